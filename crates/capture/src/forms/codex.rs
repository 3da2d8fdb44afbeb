//! Codex's JSON lines: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

use super::{claude, patched_files, text_of};
use crate::{Session, Speaker};
use serde_json::Value;
use std::collections::HashMap;

/// Whether a line is of this form.
pub(super) fn is_row(row: &Value) -> bool {
    matches!(row["type"].as_str(), Some("session_meta" | "response_item"))
        && row["payload"].is_object()
}

pub(super) fn read(rows: &[Value]) -> Session {
    let mut session = Session::default();
    let mut calls: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let (payload, at) = (&row["payload"], row["timestamp"].as_str());
        let text = |name: &str| payload[name].as_str().unwrap_or_default();
        match (row["type"].as_str(), payload["type"].as_str()) {
            (Some("session_meta"), _) => {
                session.id = payload["id"].as_str().map(ToOwned::to_owned);
                session.cwd = payload["cwd"].as_str().map(ToOwned::to_owned);
            }
            (Some("response_item"), Some("message")) => {
                let by = match text("role") {
                    "user" => Speaker::User,
                    "assistant" => Speaker::Assistant,
                    _ => continue,
                };
                let said = text_of(&payload["content"]);
                session.say(by, &claude::person(&said), at);
            }
            (
                Some("response_item"),
                Some("function_call" | "custom_tool_call" | "local_shell_call"),
            ) => {
                let arguments = payload["arguments"].as_str();
                let arguments = arguments.and_then(|it| serde_json::from_str::<Value>(it).ok());
                let arguments = arguments.unwrap_or_else(|| payload["action"].clone());
                let command = command_of(&arguments);
                let patch = command.as_deref().or(payload["input"].as_str());
                let files = patched_files(patch.unwrap_or_default());
                let command = command.filter(|_| files.is_empty());
                calls.insert(text("call_id").to_owned(), session.turns.len());
                session.call(command.as_deref(), files, at);
            }
            (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
                let Some(&call) = calls.get(text("call_id")) else {
                    continue;
                };
                let (output, code) = output_of(&payload["output"]);
                session.result(call, &output, code != 0);
            }
            _ => {}
        }
    }
    session
}

/// `["bash", "-lc", "make test"]` is `make test`; newer versions have one text.
fn command_of(arguments: &Value) -> Option<String> {
    for name in ["command", "cmd"] {
        match &arguments[name] {
            Value::String(command) => return Some(command.clone()),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                return Some(match words[..] {
                    [_, "-lc" | "-c", command] => command.to_owned(),
                    _ => words.join(" "),
                });
            }
            _ => {}
        }
    }
    None
}

/// What a command printed, and its exit code: a JSON text with both, or text that says the code.
fn output_of(output: &Value) -> (String, i64) {
    let plain = text_of(output);
    if let Ok(value) = serde_json::from_str::<Value>(&plain)
        && let Some(text) = value["output"].as_str()
    {
        return (
            text.to_owned(),
            value["metadata"]["exit_code"].as_i64().unwrap_or(0),
        );
    }
    let code = plain.lines().take(5).find_map(|line| {
        line.trim()
            .to_lowercase()
            .strip_prefix("exit code: ")?
            .parse()
            .ok()
    });
    (plain, code.unwrap_or(0))
}
