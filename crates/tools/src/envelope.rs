//! Envelopes: the same result or error, in the words of each contract.

use crate::Toolset;
use kenning_core::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};

/// An answer, ready for any door.
#[derive(Debug)]
pub struct Reply {
    /// What an MCP client shows: the contract's text.
    pub text: String,
    /// The same as an object, when the contract's payload is one.
    pub structured: Option<Value>,
    /// Set when the call failed.
    pub error: Option<Error>,
}

impl Reply {
    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// The answer as one JSON value, for REST and the command line.
    ///
    /// An object is itself. Bare text is the contract's own `content` list, so that every answer is
    /// an object.
    pub fn to_json(&self) -> Value {
        match &self.structured {
            Some(value) => value.clone(),
            None => json!({ "content": [{ "type": "text", "text": self.text }] }),
        }
    }
}

pub(crate) fn to_value(output: &impl Serialize) -> Result<Value> {
    serde_json::to_value(output)
        .map_err(|error| Error::internal("an answer could not be written as JSON").because(error))
}

/// Puts a result into the envelope of its contract.
pub(crate) fn wrap(toolset: Toolset, result: Result<Value>) -> Reply {
    match toolset {
        Toolset::Koi | Toolset::Kami | Toolset::Kiwi | Toolset::Kg | Toolset::Omi => koi(result),
    }
}

/// koi: pretty JSON of the API's answer, or bare text; on error the message.
fn koi(result: Result<Value>) -> Reply {
    match result {
        Ok(Value::String(text)) => Reply {
            text,
            structured: None,
            error: None,
        },
        Ok(value) => {
            let text = format!("{value:#}");
            let structured = value.is_object().then_some(value);
            Reply {
                text,
                structured,
                error: None,
            }
        }
        Err(error) => Reply {
            text: error.to_string(),
            structured: None,
            error: Some(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_text_stays_bare() {
        let reply = wrap(Toolset::Koi, Ok("Written: a.md".into()));
        assert_eq!(reply.text, "Written: a.md");
        assert_eq!(reply.structured, None);
        assert_eq!(reply.to_json()["content"][0]["text"], "Written: a.md");
    }

    #[test]
    fn an_object_is_also_structured() {
        let reply = wrap(Toolset::Koi, Ok(json!({ "count": 1 })));
        assert_eq!(reply.text, "{\n  \"count\": 1\n}");
        assert_eq!(reply.to_json(), json!({ "count": 1 }));
    }
}
