//! The turns of a session at which something is captured, or given back: what failed before and how it was mended.

use super::hook::{Said, Scene, refuse_read_only, shown_memories};
use crate::env_vars;
use kenning_capture::{Session, Speaker, TRANSCRIPT_BYTES_MAX};
use kenning_core::{Code, Error, Result};
use kenning_engine::omi::{Recall, RecallSort};
use kenning_text::line::{dotted, one_line};
use std::path::Path;

/// What is known about one error.
const MEMORIES_ABOUT_ERROR: usize = 2;

/// The most characters of an error that are searched for.
const ERROR_CHARS_MAX: usize = 400;

/// When the assistant has answered: what was said and done so far.
pub(super) fn at_stop(scene: &Scene<'_>) -> Result<Said> {
    capture(scene, &[(Speaker::Assistant, "last_assistant_message")])
}

/// After the client has summarized the session: what its summary says was decided.
pub(super) fn after_compaction(scene: &Scene<'_>) -> Result<Said> {
    capture(scene, &[(Speaker::Summary, "compact_summary")])
}

/// The transcript lags behind the client's message, so what the message says is added.
fn capture(scene: &Scene<'_>, said: &[(Speaker, &str)]) -> Result<Said> {
    refuse_read_only(scene)?;
    if std::env::var(env_vars::CAPTURE).is_ok_and(|it| it.trim() == "off") {
        return Ok(Said::default());
    }
    let mut session = match scene.text("transcript_path") {
        Some(path) => read_transcript(Path::new(path))?,
        None => Session::default(),
    };
    for (by, field) in said {
        if let Some(text) = scene.text(field) {
            session.add(*by, text);
        }
    }
    let name = scene.text("session_id");
    scene.engine.omi().capture(&scene.caller, &session, name)?;
    Ok(Said::default())
}

/// A transcript that a client or a person named; empty if there is none yet.
pub(super) fn read_transcript(path: &Path) -> Result<Session> {
    let (dir, name) = kenning_vault::split(path)?;
    let bytes = match dir.read(&name, TRANSCRIPT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.code == Code::NotFound => return Ok(Session::default()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("`{name}` is not UTF-8 text")))?;
    Ok(kenning_capture::read(&text))
}

/// A tool failed: what failed like that before, and what worked then.
pub(super) fn known_trouble(scene: &Scene<'_>) -> Result<Said> {
    let command = scene.input["tool_input"]["command"].as_str();
    let error = scene.text("error").unwrap_or_default();
    let query = one_line(&format!("{} {error}", command.unwrap_or_default()));
    if query.trim().is_empty() {
        return Ok(Said::default());
    }
    let recall = Recall {
        query: dotted(query.trim(), ERROR_CHARS_MAX),
        limit: MEMORIES_ABOUT_ERROR,
        tags: vec!["trouble".to_owned()],
        sort: RecallSort::RelevanceAndAge,
        daily_logs: false,
        until: Some(scene.index_until),
        ..Recall::default()
    };
    let found = scene.engine.omi().recall(&scene.caller, &recall)?;
    Ok(Said {
        context: shown_memories(&found.memories, None),
        is_far_behind: false,
    })
}
