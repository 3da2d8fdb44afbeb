//! `omi now`, `daily`, `session-start`, `session-end` and `check`

use super::{Omi, text_or_stdin, texts};
use crate::output;
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::BackupKind;
use kenning_engine::omi::{Now, NowUpdate};
use serde_json::{Value, json};

pub(super) fn now_show(omi: &Omi<'_>) -> Result<u8> {
    let now = omi.engine.omi().now_read(&omi.caller)?;
    if omi.settings.json {
        output::print_json(&now.as_ref().map_or_else(|| json!({}), wire));
    } else {
        match now {
            Some(now) => output::print(now.render().trim_end()),
            None => output::chat("Nothing yet."),
        }
    }
    Ok(0)
}

fn wire(now: &Now) -> Value {
    json!({
        "current_task": now.task, "recent_completions": now.completions,
        "pending_decisions": now.pending, "key_files": now.files, "timestamp": now.timestamp,
    })
}

pub(super) fn now_update(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let update = NowUpdate {
        task: matches.get_one::<String>("task").cloned(),
        completions: texts(matches, "completed"),
        pending: texts(matches, "pending"),
        files: texts(matches, "file"),
    };
    if update == NowUpdate::default() {
        return Err(Error::invalid("nothing to change")
            .hint("name `--task`, `--completed`, `--pending` or `--file`"));
    }
    omi.engine.omi().now_update(&omi.caller, update)?;
    if omi.settings.json {
        let now = omi.engine.omi().now_read(&omi.caller)?;
        output::print_json(&now.as_ref().map_or_else(|| json!({}), wire));
    } else {
        output::chat("✓ NOW.md updated");
    }
    Ok(0)
}

pub(super) fn daily_append(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let content = text_or_stdin(matches, "content")?;
    let path = omi.engine.omi().daily_append(&omi.caller, &content)?;
    if omi.settings.json {
        output::print_json(&json!({ "path": path }));
    } else {
        output::chat(&format!("✓ Added to {path}"));
    }
    Ok(0)
}

pub(super) fn daily_show(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let text = match matches.get_one::<String>("date") {
        Some(date) => omi.engine.omi().daily_read_of(&omi.caller, date)?,
        None => {
            let days_ago = matches.get_one::<u32>("days-ago").copied().unwrap_or(0);
            omi.engine.omi().daily_read(&omi.caller, days_ago)?
        }
    };
    if omi.settings.json {
        output::print_json(&json!({ "content": text }));
    } else if text.is_empty() {
        output::chat("No entries.");
    } else {
        output::print(text.trim());
    }
    Ok(0)
}

pub(super) fn daily_list(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let days = matches.get_one::<u32>("days").copied().unwrap_or(7);
    let names = omi.engine.omi().daily_list(&omi.caller, days)?;
    if omi.settings.json {
        output::print_json(&json!(names));
    } else if !names.is_empty() {
        output::print(&names.join("\n"));
    }
    Ok(0)
}

pub(super) fn session_start(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = matches.get_one::<String>("id").map(String::as_str);
    let started = omi.engine.omi().session_start(&omi.caller, id)?;
    let now = if matches.get_flag("show-now") {
        omi.engine.omi().now_read(&omi.caller)?
    } else {
        None
    };
    if omi.settings.json {
        let mut json = json!({
            "session_id": started.id, "memory_count": started.memory_count,
            "now_integrity": started.now_integrity,
        });
        if matches.get_flag("show-now") {
            json["now"] = now.as_ref().map_or_else(|| json!({}), wire);
        }
        output::print_json(&json);
        return Ok(0);
    }
    output::chat("✓ Session started");
    output::print(&started.id);
    output::chat(&format!("{} memories", started.memory_count));
    match started.now_integrity {
        Some(true) => output::chat("NOW.md is as it was written"),
        Some(false) => output::say("NOW.md was changed by somebody else; `omi audit` says more"),
        None => {}
    }
    if let Some(now) = now {
        output::print(now.render().trim_end());
    }
    Ok(0)
}

pub(super) fn session_end(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = matches.get_one::<String>("id").map(String::as_str);
    let ended = omi.engine.omi().session_end(&omi.caller, id)?;
    let backup = (!matches.get_flag("no-backup"))
        .then(|| back_up(omi))
        .flatten();
    if omi.settings.json {
        output::print_json(&json!({
            "session_id": ended.id, "duration_seconds": ended.duration_seconds, "log": ended.log,
            "backup_id": backup,
        }));
        return Ok(0);
    }
    let length = ended
        .duration_seconds
        .map_or_else(String::new, |it| format!(" after {it:.0} s"));
    output::chat(&format!("✓ Session ended{length}: {}", ended.id));
    output::chat(&format!("Added to {}", ended.log));
    if let Some(backup) = backup {
        output::chat(&format!("Backed up as {backup}"));
    }
    Ok(0)
}

/// A session ends even if its backup fails.
fn back_up(omi: &Omi<'_>) -> Option<String> {
    match omi
        .engine
        .vault_backup(&omi.caller, BackupKind::Incremental)
    {
        Ok(made) => Some(made.backup_id),
        Err(error) => {
            output::complain(&format!("no backup was made: {error}"));
            None
        }
    }
}

/// An empty NOW.md stays empty: a timestamp would make it a context.
pub(super) fn check(omi: &Omi<'_>) -> Result<u8> {
    let (engine, caller) = (&omi.engine, &omi.caller);
    let is_working = engine.omi().now_read(caller)?.is_some();
    if is_working {
        engine.omi().now_update(caller, NowUpdate::default())?;
    }
    let copy = engine.omi().now_checkpoint(caller, None)?;
    let now = engine.omi().now_read(caller)?;
    let memory_count = engine.omi().memory_count(caller)?;
    if omi.settings.json {
        output::print_json(&json!({
            "checkpoint": copy, "memory_count": memory_count,
            "timestamp": now.map(|it| it.timestamp),
        }));
        return Ok(0);
    }
    output::chat("✓ State saved");
    output::print(&copy);
    Ok(0)
}
