//! Texts of the configuration, in which `${NAME}` is replaced by an environment variable.

use kenning_core::{Error, Result};
use std::fmt;

/// A text as it is in the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    key: String,
    raw: String,
    secret: bool,
}

impl Text {
    pub(super) fn new(key: &str, raw: &str, secret: bool) -> Self {
        Self {
            key: key.to_owned(),
            raw: raw.to_owned(),
            secret,
        }
    }

    /// The text with its variables replaced. An unset variable is an error only here, where the text
    /// is needed.
    pub fn expand(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String> {
        let mut out = String::new();
        let mut rest = self.raw.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after.split_once('}').ok_or_else(|| {
                Error::invalid(format!("config.yaml: `{}`: `${{` has no `}}`", self.key))
                    .hint("write `${NAME}`")
            })?;
            out.push_str(before);
            out.push_str(&self.variable(name, lookup)?);
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn variable(&self, name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String> {
        let key = &self.key;
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) || name.starts_with(char::is_numeric) {
            return Err(Error::invalid(format!(
                "config.yaml: `{key}`: `{name}` is not the name of a variable"
            ))
            .hint("letters, digits and `_`, as in `${NIM_API_KEY}`"));
        }
        lookup(name).ok_or_else(|| {
            Error::invalid(format!(
                "config.yaml: `{key}`: the environment variable `{name}` is not set"
            ))
            .hint(format!("set {name}, or write the value itself"))
        })
    }

    /// For display: the variable's name is not secret, its value is.
    pub fn shown(&self) -> String {
        if self.secret {
            masked(&self.raw)
        } else {
            without_credentials(&self.raw)
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

/// A URL without credentials: user name and password before the host, and the query.
fn without_credentials(raw: &str) -> String {
    let Some((scheme, rest)) = raw.split_once("://") else {
        return raw.to_owned();
    };
    let (rest, query) = rest
        .split_once('?')
        .map_or((rest, ""), |it| (it.0, "?********"));
    let (host, path) = rest
        .split_once('/')
        .map_or((rest, None), |parts| (parts.0, Some(parts.1)));
    let host = host
        .rsplit_once('@')
        .map_or(host.to_owned(), |it| format!("********@{}", it.1));
    let path = path.map(|it| format!("/{it}")).unwrap_or_default();
    format!("{scheme}://{host}{path}{query}")
}

/// A masked secret: only a bare reference to a variable stays readable.
pub(super) fn masked(raw: &str) -> String {
    let name = raw.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    let is_reference = name.is_some_and(|it| !it.contains(['$', '{', '}']));
    if raw.is_empty() || is_reference {
        raw.to_owned()
    } else {
        "********".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(raw: &str) -> Result<String> {
        let lookup = |name: &str| (name == "NIM_API_KEY").then(|| "nvapi-1".to_owned());
        Text::new("embedding.api_key", raw, true).expand(&lookup)
    }

    #[test]
    fn variables_are_put_in_where_they_are_named() {
        for (raw, expected) in [
            ("${NIM_API_KEY}", "nvapi-1"),
            ("Bearer ${NIM_API_KEY}!", "Bearer nvapi-1!"),
            ("${NIM_API_KEY}${NIM_API_KEY}", "nvapi-1nvapi-1"),
            ("plain $ { text }", "plain $ { text }"),
            ("", ""),
        ] {
            assert_eq!(expand(raw).unwrap(), expected, "{raw}");
        }
    }

    #[test]
    fn a_variable_that_is_missing_is_named_with_its_key() {
        for (raw, expected) in [
            (
                "${NIM_KEY}",
                "the environment variable `NIM_KEY` is not set",
            ),
            ("${NIM KEY}", "`NIM KEY` is not the name of a variable"),
            ("${}", "`` is not the name of a variable"),
            ("${1}", "`1` is not the name of a variable"),
            ("${NIM_API_KEY", "`${` has no `}`"),
        ] {
            let message = expand(raw).unwrap_err().message;
            assert_eq!(
                message,
                format!("config.yaml: `embedding.api_key`: {expected}")
            );
        }
    }

    #[test]
    fn a_secret_is_shown_only_as_the_name_of_its_variable() {
        let shown = |raw| format!("{:?}", Text::new("embedding.api_key", raw, true));
        assert_eq!(shown("${NIM_API_KEY}"), "\"${NIM_API_KEY}\"");
        for raw in ["nvapi-1", "${A}nvapi-1", "${nvapi-1}${A}"] {
            assert_eq!(shown(raw), "\"********\"", "{raw}");
        }
    }
}
