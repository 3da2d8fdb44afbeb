//! The forms in which clients keep their transcripts.

mod claude;
mod codex;
mod gemini;
mod plain;

use crate::Session;
use serde_json::Value;

/// The largest transcript that is read.
pub const TRANSCRIPT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A line that is longer is left out: it holds a picture or a file, and nothing that anybody said.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Reads a transcript, whatever its form: JSON lines of Claude Code or of Codex, JSON of Gemini CLI, else plain text.
pub fn read(text: &str) -> Session {
    let mut session = if let Some(session) = gemini::read(text) {
        session
    } else {
        let rows = rows(text);
        if rows.is_empty() {
            plain::read(text)
        } else if rows.iter().any(codex::is_row) {
            codex::read(&rows)
        } else {
            claude::read(&rows)
        }
    };
    session.shorten();
    session
}

/// The lines that are JSON objects; none if the text does not begin with one.
fn rows(text: &str) -> Vec<Value> {
    if !text.trim_start().starts_with('{') {
        return Vec::new();
    }
    let lines = text.lines().filter(|it| it.len() <= LINE_BYTES_MAX);
    // A line that a client is just writing is cut off.
    let rows = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter(Value::is_object).collect()
}

/// The files that a patch in the form of `apply_patch` changes.
fn patched_files(patch: &str) -> Vec<String> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let lines = patch.lines().take(10_000);
    let files = lines.filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)));
    files.map(|it| it.trim().to_owned()).collect()
}

/// The text of a message whose content is a text, or a list of parts of which some are texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|it| it["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
