//! Claude Code's JSON lines: `~/.claude/projects/<project>/<session>.jsonl`.

use super::text_of;
use crate::{Session, Speaker};
use serde_json::Value;
use std::collections::HashMap;

/// The member of a tool's input that names the file which it writes.
const WRITERS: [(&str, &str); 4] = [
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("Write", "file_path"),
    ("NotebookEdit", "notebook_path"),
];

pub(super) fn read(rows: &[Value]) -> Session {
    let mut session = Session::default();
    let mut calls: HashMap<String, usize> = HashMap::new();
    for row in rows {
        if session.id.is_none() {
            session.id = row["sessionId"].as_str().map(ToOwned::to_owned);
        }
        if session.cwd.is_none() {
            session.cwd = row["cwd"].as_str().map(ToOwned::to_owned);
        }
        // What a model asks its own helpers is not said by anybody here; `isMeta` is what the client put in.
        if row["isSidechain"] == true || row["isMeta"] == true {
            continue;
        }
        let at = row["timestamp"].as_str();
        let content = &row["message"]["content"];
        match row["type"].as_str() {
            Some("user") => {
                if results(&mut session, &calls, content) {
                    continue;
                }
                let by = match row["isCompactSummary"] == true {
                    true => Speaker::Summary,
                    false => Speaker::User,
                };
                session.say(by, &without_client_parts(&text_of(content)), at);
            }
            Some("assistant") => {
                for part in content.as_array().into_iter().flatten() {
                    match part["type"].as_str() {
                        Some("text") => {
                            let text = part["text"].as_str().unwrap_or_default();
                            session.say(Speaker::Assistant, text, at);
                        }
                        Some("tool_use") => called(&mut session, &mut calls, part, at),
                        _ => {}
                    }
                }
                if let Some(text) = content.as_str() {
                    session.say(Speaker::Assistant, text, at);
                }
            }
            _ => {}
        }
    }
    session
}

fn called(
    session: &mut Session,
    calls: &mut HashMap<String, usize>,
    part: &Value,
    at: Option<&str>,
) {
    let name = part["name"].as_str().unwrap_or_default();
    let input = &part["input"];
    let file = WRITERS.iter().find(|it| it.0 == name);
    let file = file.and_then(|it| input[it.1].as_str());
    let command = match name {
        "Bash" => input["command"].as_str(),
        _ => None,
    };
    if let Some(id) = part["id"].as_str() {
        calls.insert(id.to_owned(), session.turns.len());
    }
    session.call(
        command,
        file.map(ToOwned::to_owned).into_iter().collect(),
        at,
    );
}

/// The results of tools in a message; false if there are none.
fn results(session: &mut Session, calls: &HashMap<String, usize>, content: &Value) -> bool {
    let parts = content.as_array().into_iter().flatten();
    let mut is_result = false;
    for part in parts.filter(|it| it["type"] == "tool_result") {
        is_result = true;
        let call = part["tool_use_id"].as_str().and_then(|it| calls.get(it));
        if let Some(&call) = call {
            let failed = part["is_error"] == true;
            session.result(call, &text_of(&part["content"]), failed);
        }
    }
    is_result
}

/// What a client puts into a person's message: reminders, names of commands, what they printed.
fn without_client_parts(text: &str) -> String {
    const PARTS: [&str; 6] = [
        "system-reminder",
        "command-name",
        "command-message",
        "command-args",
        "local-command-stdout",
        "environment_context",
    ];
    let mut text = text.to_owned();
    for part in PARTS {
        let (open, close) = (format!("<{part}>"), format!("</{part}>"));
        while let Some(start) = text.find(&open) {
            let end = text[start..].find(&close);
            let end = end.map_or(text.len(), |it| start + it + close.len());
            text.replace_range(start..end, "");
        }
    }
    text
}

pub(super) fn person(text: &str) -> String {
    without_client_parts(text)
}
