//! Envelopes: results and errors in the format of each contract.

use crate::Toolset;
use kenning_core::{Code, Error, Result};
use kenning_engine::kami::ToolRun;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A reply, ready for any transport.
#[derive(Debug, Default)]
pub struct Reply {
    /// What an MCP client shows: the contract's text.
    pub text: String,
    /// The contract's payload, unless it is bare text.
    pub value: Option<Value>,
    /// Remarks for the caller; not part of the contract's payload.
    pub remarks: Vec<String>,
    /// Set when the call failed.
    pub error: Option<Error>,
    /// The HTTP status, if the contract's differs from the error's.
    pub status: Option<u16>,
}

impl Reply {
    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// The payload for MCP's `structuredContent`, which always matches the tool's output schema:
    /// errors have none.
    pub fn structured(&self) -> Option<&Value> {
        let is_structured = |it: &&Value| it.is_object() && !self.is_error();
        self.value.as_ref().filter(is_structured)
    }

    /// The reply as one JSON value, for REST and the command line.
    ///
    /// Plain text becomes the contract's own `content` list, so that every reply is JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
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
pub(crate) fn wrap(toolset: Toolset, result: Result<Value>, took: Duration) -> Reply {
    match toolset {
        Toolset::Omi | Toolset::OmiExtra => omi(result),
        Toolset::Kg | Toolset::KgExtra => kg(result, took),
        Toolset::Kiwi => match result {
            Err(error) => kiwi_error(error, Map::new(), Map::new()),
            done => koi(done),
        },
        Toolset::Core | Toolset::Koi | Toolset::Kami => koi(result),
    }
}

/// kg: `{success, data, metadata}` with the time it took; on error `{success, error, metadata}`, with
/// the hint beside the contract's own text.
fn kg(result: Result<Value>, took: Duration) -> Reply {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let (value, error) = match result {
        Ok(mut answer) => {
            let mut metadata = json!({ "executionTime": ms });
            if let (Some(all), Value::Object(more)) =
                (metadata.as_object_mut(), answer["metadata"].take())
            {
                all.extend(more);
            }
            let value =
                json!({ "success": true, "data": answer["data"].take(), "metadata": metadata });
            (value, None)
        }
        Err(error) => {
            let mut value = json!({
                "success": false, "error": error.message, "metadata": { "executionTime": ms },
            });
            if let Some(hint) = &error.hint {
                value["metadata"]["hint"] = hint.as_str().into();
            }
            (value, Some(error))
        }
    };
    Reply {
        text: value.to_string(),
        value: Some(value),
        error,
        ..Reply::default()
    }
}

/// koi: pretty JSON of the API's answer, or plain text; on error the message.
fn koi(result: Result<Value>) -> Reply {
    match result {
        Ok(Value::String(text)) => Reply {
            text,
            ..Reply::default()
        },
        Ok(value) => Reply {
            text: format!("{value:#}"),
            value: Some(value),
            ..Reply::default()
        },
        Err(error) => Reply {
            text: error.to_string(),
            error: Some(error),
            ..Reply::default()
        },
    }
}

/// The fields of the call that an error of kiwi repeats: item and action.
pub(crate) fn asked(toolset: Toolset, arguments: &Value) -> Map<String, Value> {
    let mut asked = Map::new();
    if toolset == Toolset::Kiwi {
        for name in ["item_type", "action", "item_id"] {
            if let Some(text @ Value::String(_)) = arguments.get(name) {
                asked.insert(name.to_owned(), text.clone());
            }
        }
    }
    asked
}

/// kiwi: `{error, item_type, action, item_id, message}` and the error's own fields.
pub(crate) fn kiwi_error(
    error: Error,
    asked: Map<String, Value>,
    details: Map<String, Value>,
) -> Reply {
    let of = |name: &str| asked.get(name).and_then(Value::as_str);
    let message = match (of("action"), of("item_type")) {
        (Some(action), Some(kind)) => format!("Failed to execute {action} on {kind}"),
        _ => error.to_string(),
    };
    let mut body = Map::new();
    body.insert("error".to_owned(), error.message.as_str().into());
    body.extend(asked);
    body.insert("message".to_owned(), message.into());
    if let Some(hint) = &error.hint {
        body.insert("hint".to_owned(), hint.as_str().into());
    }
    body.extend(details);
    // The contract distinguishes missing from wrong fields.
    let status = match error.code {
        Code::InvalidInput if error.is_missing => Some(400),
        Code::InvalidInput | Code::Conflict => Some(422),
        _ => None,
    };
    let value = Value::Object(body);
    Reply {
        text: format!("{value:#}"),
        value: Some(value),
        error: Some(error),
        status,
        ..Reply::default()
    }
}

/// kiwi: the error for a body that is not a call.
pub fn malformed(error: Error) -> Reply {
    Reply {
        status: Some(400),
        ..kiwi_error(error, Map::new(), Map::new())
    }
}

/// kami: the tool's own text; a JSON object is structured too.
pub(crate) fn kami(run: ToolRun) -> Reply {
    match run.result {
        Ok(text) => {
            let value = serde_json::from_str(&text).ok().filter(Value::is_object);
            Reply {
                text,
                value,
                ..Reply::default()
            }
        }
        Err(text) => {
            let code = run.code.unwrap_or(Code::Internal);
            // A failure of the tool is a reply to its caller, never a protocol error.
            let code = if code == Code::Internal {
                Code::Unavailable
            } else {
                code
            };
            Reply {
                error: Some(Error::new(code, text.clone())),
                text,
                ..Reply::default()
            }
        }
    }
}

/// omi: the bare value, or `ok` if there is none; on error the contract's name for it and the
/// message.
fn omi(result: Result<Value>) -> Reply {
    match result {
        Ok(Value::Null) => Reply {
            text: "ok".to_owned(),
            value: Some(json!({})),
            ..Reply::default()
        },
        Ok(value) => Reply {
            text: value.to_string(),
            value: Some(value),
            ..Reply::default()
        },
        Err(error) => {
            let name = match error.code {
                Code::NotFound => Some("MemoryNotFoundError"),
                Code::Corrupt => Some("IntegrityError"),
                _ => None,
            };
            Reply {
                text: name.map_or_else(|| error.to_string(), |name| format!("{name}: {error}")),
                error: Some(error),
                ..Reply::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_text_stays_bare() {
        let reply = wrap(Toolset::Koi, Ok("Written: a.md".into()), Duration::ZERO);
        assert_eq!(reply.text, "Written: a.md");
        assert_eq!(reply.structured(), None);
        assert_eq!(reply.to_json()["content"][0]["text"], "Written: a.md");
    }

    #[test]
    fn an_object_is_also_structured() {
        let reply = wrap(Toolset::Koi, Ok(json!({ "count": 1 })), Duration::ZERO);
        assert_eq!(reply.text, "{\n  \"count\": 1\n}");
        assert_eq!(reply.to_json(), json!({ "count": 1 }));
        assert_eq!(reply.structured(), Some(&json!({ "count": 1 })));
    }

    #[test]
    fn memories_come_bare_and_errors_by_the_name_of_their_contract() {
        let list = wrap(Toolset::Omi, Ok(json!([1])), Duration::ZERO);
        assert_eq!((list.text.as_str(), list.structured()), ("[1]", None));
        assert_eq!(list.to_json(), json!([1]));
        let nothing = wrap(Toolset::Omi, Ok(Value::Null), Duration::ZERO);
        assert_eq!(
            (nothing.text.as_str(), nothing.to_json()),
            ("ok", json!({}))
        );
        let missing = wrap(
            Toolset::Omi,
            Err(Error::not_found("memory", "mem_1")),
            Duration::ZERO,
        );
        assert!(
            missing.text.starts_with("MemoryNotFoundError: "),
            "{}",
            missing.text
        );
    }

    #[test]
    fn the_graph_answers_in_its_own_form() {
        let took = Duration::from_millis(45);
        let done = wrap(
            Toolset::Kg,
            Ok(json!({ "data": [1], "metadata": { "itemCount": 1 } })),
            took,
        );
        let expected = json!({
            "success": true, "data": [1], "metadata": { "executionTime": 45, "itemCount": 1 },
        });
        assert_eq!(done.to_json(), expected);
        assert_eq!(done.text, expected.to_string());
        let failed = wrap(Toolset::Kg, Err(Error::invalid("no").hint("say yes")), took);
        let expected = json!({
            "success": false, "error": "no", "metadata": { "executionTime": 45, "hint": "say yes" },
        });
        assert_eq!((failed.to_json(), failed.is_error()), (expected, true));
        assert_eq!(failed.structured(), None);
    }
}
