//! Messages of JSON-RPC, and what each deserves by a second reading of the protocol.

use crate::Source;
use serde_json::{Value, json};

/// What must come back.
#[derive(Debug, PartialEq)]
pub(super) enum Expected {
    /// Nothing at all.
    Silence,
    /// An error with this code; the id is null where none can be known.
    Error(i64, Value),
    /// Some answer to this id.
    Answer(Value),
}

/// What JSON-RPC says about a text.
pub(super) fn expected(text: &[u8]) -> Expected {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Expected::Silence;
    }
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return Expected::Error(-32700, Value::Null);
    };
    let Some(object) = value.as_object() else {
        return Expected::Error(-32600, Value::Null);
    };
    let id = object.get("id").map(usable);
    let known = id.clone().flatten().unwrap_or_default();
    let is_answer = object.contains_key("result") || object.contains_key("error");
    match object.get("method") {
        None if object.contains_key("error") => Expected::Silence,
        _ if object.get("jsonrpc") != Some(&json!("2.0")) => Expected::Error(-32600, known),
        None if object.contains_key("result") && !known.is_null() => Expected::Silence,
        Some(Value::String(_)) if is_answer => Expected::Error(-32600, known),
        Some(Value::String(_)) => match id {
            None => Expected::Silence,
            Some(None) => Expected::Error(-32600, Value::Null),
            Some(Some(id)) => match object.get("params") {
                None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => {
                    Expected::Answer(id)
                }
                Some(_) => Expected::Error(-32600, id),
            },
        },
        _ => Expected::Error(-32600, known),
    }
}

fn usable(id: &Value) -> Option<Value> {
    match id {
        Value::String(_) => Some(id.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Some(json!(number)),
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Some(json!(number as i64))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What a request of the second era says of itself.
pub(super) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Good messages.
pub(super) fn seeds() -> Vec<Value> {
    let request = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let note = json!({ "path": "People/Bill Baue.md" });
    vec![
        request("ping", json!({})),
        request("tools/list", json!({})),
        request("tools/list", json!({ "_meta": meta(), "cursor": "x" })),
        request(
            "tools/call",
            json!({ "name": "vault_read_note", "arguments": note }),
        ),
        request(
            "tools/call",
            json!({ "name": "vault_read_note", "arguments": note, "_meta": meta() }),
        ),
        request(
            "tools/call",
            json!({ "name": "kg_stats", "arguments": {}, "_meta": { "progressToken": 5 } }),
        ),
        request(
            "tools/call",
            json!({ "name": "code_query", "arguments": { "cypher": "RETURN 1+1" } }),
        ),
        request("prompts/list", json!({})),
        request("resources/list", json!({})),
        request("resources/read", json!({ "uri": "skill://x" })),
        request(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "b" } }),
        ),
        request("server/discover", json!({ "_meta": meta() })),
        request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } }),
        ),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 3, "result": { "roots": [] } }),
        json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32601, "message": "no" } }),
    ]
}

/// Pieces of messages.
pub(super) const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":",
    "\"method\":\"tools/call\"",
    "\"method\":\"ping\"",
    "\"params\":",
    "\"_meta\":",
    "\"result\":{}",
    "\"error\":{}",
    "\"arguments\":",
    "\"name\":\"kg_stats\"",
    "\"progressToken\":1",
    "null",
    "{}",
    "[]",
    "\"notifications/cancelled\"",
    "\"requestId\":7",
    "\"cursor\":\"\"",
    "-32600",
    "\\u0000",
    "\\ud800",
    "\u{2028}",
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
    "\"protocolVersion\":\"2025-11-25\"",
];

/// A message with odd parts.
pub(super) fn message(source: &mut Source) -> String {
    let methods = [
        "ping",
        "tools/list",
        "tools/call",
        "initialize",
        "server/discover",
        "prompts/get",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "logging/setLevel",
        "tasks/get",
        "",
        "\u{0}",
    ];
    let id = match source.below(5) {
        0 => source.json(1),
        1 => serde_json::Value::from(source.text()).to_string(),
        _ => format!("{}", source.below(1_000)),
    };
    let method = Value::from(*source.pick(&methods));
    let params = if source.one_in(2) {
        source.json(4)
    } else {
        format!("{{\"name\":\"kg_stats\",\"arguments\":{}}}", source.json(3))
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}")
}
