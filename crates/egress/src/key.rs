//! An API key, which never appears in logs and messages.

use kenning_core::{Error, Result};
use std::fmt;

/// An API key. It has no `Display`, and its `Debug` is a blank.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key as it is sent.
    ///
    /// # Errors
    /// Invalid input when it cannot be sent in a header.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        // Such a key cannot be sent in a header; often it is the newline at the end of a file.
        let sendable = !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic());
        if !sendable {
            return Err(Error::invalid(
                "the API key is empty, or holds blanks or characters outside ASCII",
            )
            .hint("check the setting of the key and the variable that it names"));
        }
        Ok(Self(text))
    }

    /// The value of the usual header.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// The value of a header that holds the key alone.
    pub fn bare(&self) -> String {
        self.0.clone()
    }

    /// `text` without the key: servers may repeat what they were sent.
    pub fn redact(&self, text: &str) -> String {
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
        assert_eq!(key.bearer(), "Bearer sk-secret");
        assert!(!format!("{key:?} {:?}", Some(&key)).contains("secret"));
        assert_eq!(key.redact("no sk-secret here"), "no *** here");
    }
}
