//! The words after a command: `--name value`, `--flag` and bare words.
//!
//! Small on purpose: the options are few and only developers type them. A command asks for what it
//! knows and ends with [`Options::only`], which refuses the rest, so that a misspelled option never
//! passes in silence.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The one option that every measurement knows.
pub(crate) const AS_BUILT: &str = "as-built";

/// Of measurements that need what others made: what could not be had is named and left out.
pub(crate) const ALLOW_MISSING: &str = "allow-missing";

/// Options that stand alone.
const FLAGS: &[&str] = &[
    AS_BUILT,
    ALLOW_MISSING,
    "check",
    "debug",
    "keep",
    "release",
    "report",
    "sabotage",
    "threads",
    "uncommitted",
    "warm",
];

/// What was typed.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) words: Vec<String>,
    /// In the order in which they were given.
    values: BTreeMap<String, Vec<String>>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(name) = word.strip_prefix("--") else {
                options.words.push(word.clone());
                continue;
            };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if FLAGS.contains(&name) => (name, String::new()),
                None => {
                    let value = rest.next();
                    let value = value.with_context(|| format!("`--{name}` needs a value"))?;
                    (name, value.clone())
                }
            };
            let values = options.values.entry(name.to_owned()).or_default();
            values.push(value);
        }
        Ok(options)
    }

    /// Refuses every option but these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        for name in self.values.keys() {
            if !known.contains(&name.as_str()) && name != AS_BUILT {
                bail!("no option `--{name}` here; `cargo xtask --help` lists them");
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of an option; of several the last.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// All values of an option that may be repeated.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn value<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => match text.replace('_', "").parse() {
                Ok(value) => Ok(value),
                Err(_) => bail!("`--{name} {text}` is not a number"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn words_values_and_flags_are_told_apart() {
        let options = parse("writes --seconds 3 --check --callers=1,64").unwrap();
        assert_eq!(options.words, ["writes"]);
        assert_eq!(options.value("seconds", 1).unwrap(), 3);
        assert!(options.has("check"));
        assert_eq!(options.text("callers"), Some("1,64"));
        assert_eq!(options.value("kills", 7).unwrap(), 7);
    }

    #[test]
    fn an_option_may_be_repeated_and_else_its_last_value_counts() {
        let options = parse("code --repository a --repository b --seed 1 --seed 2").unwrap();
        assert_eq!(options.texts("repository"), ["a", "b"]);
        assert_eq!(options.texts("cases"), [""; 0]);
        assert_eq!(options.value("seed", 0).unwrap(), 2);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(parse("--seconds").is_err());
        let options = parse("--secons 3").unwrap();
        assert!(options.only(&["seconds"]).is_err());
        assert!(parse("--seconds x").unwrap().value("seconds", 1).is_err());
    }
}
