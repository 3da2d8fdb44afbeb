//! An API key, which never appears in logs and messages.

use kenning_core::{Error, Result};
use std::fmt;

/// An API key. It has no `Display`, and its `Debug` is a blank.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key as it is sent.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        // Such a key cannot be sent in a header; often it is the newline at the end of a file.
        let sendable = !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic());
        if !sendable {
            return Err(Error::invalid(
                "the API key is empty, or holds blanks or characters outside ASCII",
            )
            .hint("check `embedding.api_key` and the variable that it names"));
        }
        Ok(Self(text))
    }

    /// A key as the configuration names it: `${NIM_API_KEY}` is looked up, anything else is the key.
    pub fn from_config(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let Some(name) = name else {
            return Self::new(text);
        };
        let value = variable(name).ok_or_else(|| {
            Error::invalid(format!(
                "`embedding.api_key` names the variable `{name}`, which is not set"
            ))
            .hint(format!("set `{name}` where the server is started"))
        })?;
        Self::new(value)
    }

    /// The value of the header that carries it.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// `text` without the key: servers may repeat what they were sent.
    pub(super) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_by_its_variable_or_written_out() {
        let variable = |name: &str| (name == "NIM_API_KEY").then(|| "nvapi-1".to_owned());
        let key = |text: &str| Key::from_config(text, variable);
        assert_eq!(key("${NIM_API_KEY}").unwrap().bearer(), "Bearer nvapi-1");
        assert_eq!(key("sk-2").unwrap().bearer(), "Bearer sk-2");
        let err = key("${OTHER_KEY}").unwrap_err().to_string();
        assert!(err.contains("`OTHER_KEY`, which is not set"), "{err}");
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_refused_and_not_repeated() {
        for text in ["", "secret word", "secret\n", "sécret"] {
            let err = Key::new(text).unwrap_err();
            let shown = format!("{err} {err:?}");
            assert!(
                !shown.contains("secret") && !shown.contains("sécret"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let key = Key::new("sk-secret").unwrap();
        assert!(!format!("{key:?} {:?}", Some(&key)).contains("secret"));
    }
}
