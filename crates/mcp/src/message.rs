//! Messages, read before rmcp reads them.
//!
//! rmcp drops what it cannot parse. Here every text is either a message or a [`Refusal`] with the
//! code that JSON-RPC gives it: -32700 for what is not JSON, -32600 for JSON that is not a message.
//! Batches are refused too, since the protocol has none after 2025-03-26. Parameters of methods are
//! not checked here.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A message that was understood.
#[derive(Debug)]
pub(crate) enum Message {
    /// It must be answered. The id is the message's own.
    Request(RequestId, Box<ClientJsonRpcMessage>),
    /// It must not be answered: a notification, or an answer to a request of ours.
    OneWay(Box<ClientJsonRpcMessage>),
    /// It must not be answered, and it is not understood.
    Noise,
}

/// The error response for a text that is not a message.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The id of the request, if it had a usable one.
    id: Option<RequestId>,
    code: ErrorCode,
    message: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn new(
        id: Option<RequestId>,
        code: ErrorCode,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            id,
            code,
            message: message.into(),
        }
    }

    /// The request is invalid.
    pub(crate) fn invalid(id: Option<RequestId>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(id, ErrorCode::INVALID_REQUEST, message)
    }

    /// JSON-RPC wants `"id": null` where the id is unknown, which rmcp's own error leaves out.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": self.id.clone().map(RequestId::into_json_value),
            "error": { "code": self.code.0, "message": self.message },
        })
    }
}

/// Reads one text as JSON.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Refusal> {
    let mut value: Value = serde_json::from_slice(text).map_err(|error| {
        // Only the position is repeated: the text may be a secret.
        let message = format!("Parse error: not JSON at column {}", error.column());
        Refusal::new(None, ErrorCode::PARSE_ERROR, message)
    })?;
    // Some clients write `null` where they have no parameters.
    if let Value::Object(object) = &mut value
        && object.get("params").is_some_and(Value::is_null)
    {
        object.remove("params");
    }
    Ok(value)
}

/// Reads JSON as a message.
pub(crate) fn read(value: Value) -> Result<Message, Refusal> {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return Err(Refusal::invalid(
                None,
                "Invalid Request: batches are not supported",
            ));
        }
        _ => return Err(Refusal::invalid(None, "Invalid Request: not an object")),
    };
    let id = object.get("id").map(usable_id);
    let known = id.clone().flatten();
    // An error is never answered with an error, or two peers could loop forever.
    if object.contains_key("error") && !object.contains_key("method") {
        return Ok(one_way(object));
    }
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Refusal::invalid(
            known,
            "Invalid Request: `jsonrpc` is not \"2.0\"",
        ));
    }
    match object.get("method") {
        Some(Value::String(_)) => {}
        Some(_) => {
            return Err(Refusal::invalid(
                known,
                "Invalid Request: `method` is not a string",
            ));
        }
        None if object.contains_key("result") && known.is_some() => return Ok(one_way(object)),
        None => return Err(Refusal::invalid(known, "Invalid Request: no `method`")),
    }
    if object.contains_key("result") || object.contains_key("error") {
        return Err(Refusal::invalid(
            known,
            "Invalid Request: the message is both a request and a response",
        ));
    }
    let id = match id {
        None => return Ok(one_way(object)),
        Some(None) => {
            return Err(Refusal::invalid(
                None,
                "Invalid Request: `id` is neither a string nor an integer of 64 bits",
            ));
        }
        Some(Some(id)) => id,
    };
    if let Some(params) = object.get("params") {
        check_params(params).map_err(|(code, why)| Refusal::new(Some(id.clone()), code, why))?;
    }
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Ok(Message::Request(id, Box::new(message))),
        Err(_) => Err(Refusal::new(
            Some(id),
            ErrorCode::INVALID_PARAMS,
            "Invalid params",
        )),
    }
}

/// rmcp takes optional parameters that it cannot read for none at all; these are the parts that every
/// method shares.
fn check_params(params: &Value) -> Result<(), (ErrorCode, &'static str)> {
    let wrong = |why| Err((ErrorCode::INVALID_PARAMS, why));
    let params = match params {
        Value::Object(params) => params,
        Value::Array(_) => return wrong("Invalid params: `params` must be an object"),
        _ => {
            let why = "Invalid Request: `params` is not an object";
            return Err((ErrorCode::INVALID_REQUEST, why));
        }
    };
    if params.get("_meta").is_some_and(|it| !it.is_object()) {
        return wrong("Invalid params: `_meta` is not an object");
    }
    match params.get("cursor") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => wrong("Invalid params: `cursor` is not a string"),
    }
}

fn one_way(object: Map<String, Value>) -> Message {
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Message::OneWay(Box::new(message)),
        Err(_) => Message::Noise,
    }
}

fn usable_id(value: &Value) -> Option<RequestId> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: i32, id: &Value) {
        let refusal = parse(text.as_bytes()).and_then(read).unwrap_err().to_json();
        assert_eq!(refusal["error"]["code"], code, "{text}");
        assert_eq!(&refusal["id"], id, "{text}");
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_code() {
        check("{", -32700, &Value::Null);
        check("nul", -32700, &Value::Null);
        check("null", -32600, &Value::Null);
        check("[]", -32600, &Value::Null);
        check(r#"{"jsonrpc":"2.0","id":1}"#, -32600, &json!(1));
        check(
            r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
            -32600,
            &json!("a"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            &Value::Null,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
            &Value::Null,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}"#,
            -32602,
            &json!(1),
        );
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, &json!(1));
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":5}"#,
            -32600,
            &json!(1),
        );
        check(
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#,
            -32600,
            &Value::Null,
        );
    }

    #[test]
    fn an_error_is_never_answered() {
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","error":5}"#,
        ] {
            let message = parse(text.as_bytes()).and_then(read).unwrap();
            assert!(!matches!(message, Message::Request(..)), "{text}");
        }
    }
}
