//! `omi list`, `edit`, `forget` and `restore`

use super::{Omi, limit, table, text, text_or_stdin, texts};
use crate::output;
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::omi::{Forget, ForgetReport, ListMemories, Memory, NewMemory};
use kenning_engine::timestamp;
use serde_json::{Value, json};

pub(super) fn list(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    if matches.get_flag("forgotten") {
        return list_forgotten(omi);
    }
    let memory_type = matches.get_one::<String>("type");
    let offset = matches.get_one::<u32>("offset").copied().unwrap_or(0);
    let which = ListMemories {
        memory_type: memory_type.map(|it| it.parse()).transpose()?,
        tags: texts(matches, "tags").unwrap_or_default(),
        with_superseded: matches.get_flag("superseded"),
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        limit: limit(matches),
    };
    let (memories, total) = omi.engine.omi().list_memories(&omi.caller, &which)?;
    if omi.settings.json {
        let memories: Vec<Value> = memories.iter().map(wire).collect();
        output::print_json(&json!({ "memories": memories, "total": total }));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = memories
        .iter()
        .map(|it| {
            vec![
                it.id.clone(),
                day(it.created_ms),
                it.memory_type.to_string(),
                it.content.clone(),
            ]
        })
        .collect();
    table::print(&["id", "stored", "type", "text"], &rows, "no memories");
    let shown = which.offset as u64 + memories.len() as u64;
    if shown < total {
        output::chat(&format!(
            "{total} in all; more: `omi list --offset {shown}`"
        ));
    }
    Ok(0)
}

fn list_forgotten(omi: &Omi<'_>) -> Result<u8> {
    let found = omi.engine.omi().forgotten_memories(&omi.caller)?;
    if omi.settings.json {
        let memories: Vec<Value> = found
            .iter()
            .map(|it| {
                let mut json = wire(&it.memory);
                json["forgotten_at"] = timestamp(it.forgotten_ms).into();
                json["restorable_until"] = timestamp(it.due_ms).into();
                json
            })
            .collect();
        output::print_json(&json!({ "memories": memories, "total": memories.len() }));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|it| {
            vec![
                it.memory.id.clone(),
                timestamp(it.due_ms),
                it.memory.content.clone(),
            ]
        })
        .collect();
    let none = "nothing was forgotten that could still be restored";
    table::print(&["id", "erased after", "text"], &rows, none);
    Ok(0)
}

fn day(ms: u64) -> String {
    timestamp(ms).chars().take(10).collect()
}

fn wire(memory: &Memory) -> Value {
    json!({
        "memory_id": memory.id, "content": memory.content,
        "memory_type": memory.memory_type.as_str(), "confidence": memory.confidence,
        "tags": memory.tags, "created_at": timestamp(memory.created_ms),
        "superseded_by": memory.superseded_by,
    })
}

pub(super) fn edit(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = text(matches, "id").to_owned();
    let found = omi
        .engine
        .omi()
        .memories_by_id(&omi.caller, std::slice::from_ref(&id))?;
    let Some(details) = found.into_iter().flatten().next() else {
        return Err(Error::not_found("memory", &id).hint("`omi list` shows the ids of memories"));
    };
    let content = text_or_stdin(matches, "content")?;
    if content.trim() == details.memory.content.trim() {
        output::chat("nothing changed");
        return Ok(0);
    }
    let new = NewMemory {
        content,
        memory_type: details.memory.memory_type,
        confidence: details.memory.confidence,
        tags: details.memory.tags,
        session_id: details.memory.session_id,
        supersedes: Some(id.clone()),
        ..NewMemory::default()
    };
    let stored = omi.engine.omi().store_memories(&omi.caller, vec![new])?;
    for it in stored {
        if omi.settings.json {
            output::print_json(&json!({ "memory_id": it.id, "supersedes": id }));
            continue;
        }
        output::chat(&format!(
            "✓ Memory stored in place of `{id}`, which stays as its earlier version"
        ));
        output::print(&it.id);
    }
    Ok(0)
}

pub(super) fn forget(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let forget = Forget {
        ids: texts(matches, "id").unwrap_or_default(),
        at_once: matches.get_flag("now"),
    };
    let report = omi.engine.omi().forget_memories(&omi.caller, &forget)?;
    show(&report, omi.settings.json);
    match report.missing.as_slice() {
        [] => Ok(0),
        names => Err(Error::not_found("memory", names.join("`, `"))
            .hint("`omi list` shows the ids of memories")),
    }
}

/// Shows what became of memories that were forgotten.
pub(crate) fn show(report: &ForgetReport, as_json: bool) {
    if as_json {
        output::print_json(&report_json(report));
        return;
    }
    let n = report.ids.len();
    match report.due_ms {
        _ if n == 0 => {}
        Some(due_ms) => output::chat(&format!(
            "✓ {n} forgotten; `omi restore ID` brings them back until {}",
            timestamp(due_ms)
        )),
        None => output::chat(&format!("✓ {n} forgotten and erased")),
    }
    for name in &report.files {
        output::chat(&format!("  `{name}`: what repeated it was removed"));
    }
    for name in &report.also_in {
        output::chat(&format!(
            "  `{name}` still holds the text: change it yourself"
        ));
    }
    if let Some(erased) = report.erased {
        if erased.unerasable > 0 {
            output::chat(&format!(
                "  {} events of an older form mention it and cannot be erased; see `kenning forget --help`",
                erased.unerasable
            ));
        }
        if !erased.is_clean {
            output::chat(
                "  free pages of the store are cleaned later: somebody still reads what was there",
            );
        }
    }
}

/// The same for programs.
pub(crate) fn report_json(report: &ForgetReport) -> Value {
    let mut json = json!({
        "forgotten": report.ids, "missing": report.missing, "files_changed": report.files,
        "still_in": report.also_in, "restorable_until": report.due_ms.map(timestamp),
    });
    if let Some(erased) = report.erased {
        json["erased"] = json!({
            "nodes": erased.erased.nodes, "revisions": erased.erased.revisions,
            "events": erased.erased.events, "events_not_erased": erased.unerasable,
            "files_are_clean": erased.is_clean,
        });
    }
    json
}

pub(super) fn restore(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let ids = texts(matches, "id").unwrap_or_default();
    let restored = omi.engine.omi().restore_memories(&omi.caller, &ids)?;
    if omi.settings.json {
        output::print_json(&json!({ "restored": restored }));
        return Ok(0);
    }
    output::chat(&format!("✓ {} restored", restored.len()));
    output::print(&restored.join("\n"));
    Ok(0)
}
