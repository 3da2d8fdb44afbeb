//! `kenning capture`: memories from transcripts, looked at and undone by session.

use super::{hook_capture, table};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_capture::{CandidateKind, extract};
use kenning_core::Result;
use kenning_engine::omi::{CapturedSession, Memory};
use kenning_engine::{Caller, Engine, timestamp};
use serde_json::{Value, json};
use std::path::Path;

/// The subcommands.
pub(crate) fn command() -> Command {
    let session = || {
        Arg::new("session")
            .value_name("SESSION")
            .required(true)
            .help("The session, as `kenning capture list` shows it")
    };
    Command::new("capture")
        .about("Memories from transcripts, without a model: decisions, rules, facts, what failed and then worked")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("transcript")
                .about("Capture an existing transcript: JSON lines of Claude Code or Codex, a chat of Gemini CLI, or plain text")
                .arg(Arg::new("file").value_name("FILE").required(true))
                .arg(
                    Arg::new("session")
                        .long("session")
                        .value_name("ID")
                        .help("A name for the session, if the transcript has none"),
                )
                .arg(
                    Arg::new("dry-run")
                        .long("dry-run")
                        .action(ArgAction::SetTrue)
                        .help("Show what would be stored, and store nothing"),
                ),
        )
        .subcommand(Command::new("list").about("List the captured sessions of this project, newest first"))
        .subcommand(Command::new("show").about("Show what was captured of a session").arg(session()))
        .subcommand(Command::new("undo").about("Remove what was captured of a session").arg(session()))
}

pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let named = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
    match matches.subcommand() {
        Some(("transcript", matches)) => transcript(host, settings, matches),
        Some((what @ ("show" | "undo"), matches)) => {
            let session = named(matches, "session").unwrap_or_default();
            let (engine, caller) = (host.open(settings)?, owner(settings));
            if what == "show" {
                let captured = engine.omi().captured_session(&caller, &session)?;
                return show(settings, &captured);
            }
            let n_removed = engine.omi().undo_capture(&caller, &session)?;
            match settings.json {
                true => output::print_json(&json!({ "session_id": session, "removed": n_removed })),
                false => output::print(&format!("✓ memories removed: {n_removed}")),
            }
            Ok(0)
        }
        _ => list(&*host.open(settings)?, &owner(settings), settings),
    }
}

fn transcript(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let file = matches.get_one::<String>("file").map_or("", String::as_str);
    let path = Path::new(file);
    // A transcript that is missing is a mistake of the caller here, and none of a client.
    let (dir, name) = kenning_vault::split(path)?;
    dir.metadata(&name)?;
    let session = hook_capture::read_transcript(path)?;
    if matches.get_flag("dry-run") {
        let found = extract(&session);
        if settings.json {
            let found: Vec<Value> = found
                .iter()
                .map(|it| json!({ "kind": it.kind.as_str(), "content": it.text, "at": it.at }))
                .collect();
            output::print_json(&Value::Array(found));
            return Ok(0);
        }
        for candidate in found {
            output::print(&line(candidate.kind.as_str(), &candidate.text));
        }
        return Ok(0);
    }
    let mut caller = owner(settings);
    // The transcript says where it was; the directory may be gone, and then it is where the command is given.
    let project = settings.memory_project_in(session.cwd.as_deref());
    if project.is_some() {
        caller.principal = caller.principal.in_project(project);
    }
    let name = matches.get_one::<String>("session");
    let engine = host.open(settings)?;
    let captured = engine
        .omi()
        .capture(&caller, &session, name.map(String::as_str))?;
    if settings.json {
        output::print_json(&json!({
            "session_id": captured.session, "stored": captured.stored, "known": captured.known,
            "model_tokens": 0,
        }));
        return Ok(0);
    }
    output::print(&format!(
        "✓ session {}: {} memories stored, {} known already; 0 model tokens",
        captured.session,
        captured.stored.len(),
        captured.known
    ));
    output::say(&format!(
        "`kenning capture show {0}` shows them, `kenning capture undo {0}` removes them",
        captured.session
    ));
    Ok(0)
}

fn line(kind: &str, text: &str) -> String {
    format!("{kind:<9} {text}")
}

/// The word of capture for a memory: one of its tags.
fn kind_of(memory: &Memory) -> &str {
    const KINDS: [CandidateKind; 6] = [
        CandidateKind::Decision,
        CandidateKind::Rule,
        CandidateKind::Fact,
        CandidateKind::Trouble,
        CandidateKind::Files,
        CandidateKind::Summary,
    ];
    let mut tags = memory.tags.iter();
    let kind = tags.find(|tag| KINDS.iter().any(|it| it.as_str() == *tag));
    kind.map_or("", String::as_str)
}

fn show(settings: &Settings, captured: &CapturedSession) -> Result<u8> {
    if settings.json {
        output::print_json(&json_of(captured));
        return Ok(0);
    }
    for memory in &captured.memories {
        output::print(&line(kind_of(memory), &memory.content));
    }
    Ok(0)
}

fn list(engine: &Engine, caller: &Caller, settings: &Settings) -> Result<u8> {
    let sessions = engine.omi().captured_sessions(caller)?;
    if settings.json {
        output::print_json(&sessions.iter().map(json_of).collect::<Value>());
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|it| {
            let summary = it.memories.iter().find(|it| kind_of(it) == "summary");
            vec![
                timestamp(it.at_ms),
                it.memories.len().to_string(),
                it.session.clone(),
                summary.map_or_else(String::new, |it| table::cell(&it.content)),
            ]
        })
        .collect();
    output::print(&table::rows(
        &["captured", "memories", "session", "summary"],
        &rows,
    ));
    Ok(0)
}

fn json_of(captured: &CapturedSession) -> Value {
    let memories = captured.memories.iter().map(|it| {
        json!({
            "memory_id": it.id, "kind": kind_of(it), "content": it.content,
            "memory_type": it.memory_type.as_str(), "created_at": timestamp(it.created_ms),
        })
    });
    json!({
        "session_id": captured.session, "project": captured.project,
        "captured_at": timestamp(captured.at_ms), "memories": memories.collect::<Vec<_>>(),
    })
}
