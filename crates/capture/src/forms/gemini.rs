//! Gemini CLI's chats: `~/.gemini/tmp/<project>/chats/session-*.json`, one JSON object with `messages`.

use super::text_of;
use crate::{Session, Speaker};
use serde_json::Value;

/// `None` if the text is not of this form.
pub(super) fn read(text: &str) -> Option<Session> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let chat: Value = serde_json::from_str(text).ok()?;
    let messages = chat["messages"].as_array()?;
    let mut session = Session {
        id: chat["sessionId"].as_str().map(ToOwned::to_owned),
        ..Session::default()
    };
    for message in messages {
        let at = message["timestamp"].as_str();
        let by = match message["type"].as_str() {
            Some("user") => Speaker::User,
            Some("gemini" | "model") => Speaker::Assistant,
            _ => continue,
        };
        session.say(by, &text_of(&message["content"]), at);
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            let arguments = &call["args"];
            let command = match call["name"].as_str() {
                Some("run_shell_command") => arguments["command"].as_str(),
                _ => None,
            };
            let file = match call["name"].as_str() {
                Some("write_file" | "replace") => arguments["file_path"].as_str(),
                _ => None,
            };
            let place = session.turns.len();
            session.call(
                command,
                file.map(ToOwned::to_owned).into_iter().collect(),
                at,
            );
            let shown = call["resultDisplay"].as_str().map(ToOwned::to_owned);
            let shown = shown.unwrap_or_else(|| call["result"].to_string());
            session.result(place, &shown, call["status"] == "error");
        }
    }
    Some(session)
}
