//! `omi store`, `recall` and `belief`

use super::{Omi, limit, table, text, text_or_stdin, texts};
use crate::{output, tool_args};
use clap::ArgMatches;
use kenning_core::{Error, Result, Unit};
use kenning_engine::omi::{
    Contradiction, Contradictions, EvidenceUpdate, MemoryDetails, MemoryType, NewMemory, Recall,
    RecallScope, RecallSort, StoredMemory,
};
use kenning_engine::{Mode, parse_moment, timestamp};
use kenning_tools::omi::{MemoryResult, memory_store};
use serde_json::{Value, json};
use std::path::Path;

/// More memories in one transaction would keep other writers waiting.
const BATCH_MAX: usize = 5_000;

/// The largest file of a batch.
const BATCH_BYTES_MAX: u64 = 256 * 1024 * 1024;

pub(super) fn store(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    if let Some(file) = matches.get_one::<String>("batch") {
        return store_batch(omi, file);
    }
    let new = NewMemory {
        content: text_or_stdin(matches, "content")?,
        memory_type: text(matches, "type").parse()?,
        confidence: matches.get_one::<f64>("confidence").copied(),
        related_to: texts(matches, "related-to").unwrap_or_default(),
        supersedes: matches.get_one::<String>("supersedes").cloned(),
        memory_id: matches.get_one::<String>("id").cloned(),
        tags: texts(matches, "tags").unwrap_or_default(),
        session_id: matches.get_one::<String>("session").cloned(),
        project: matches.get_flag("global").then(String::new),
        source: None,
        said_ms: None,
    };
    let stored = omi.engine.omi().store_memories(&omi.caller, vec![new])?;
    for it in stored {
        if omi.settings.json {
            output::print_json(&wire(&it));
            continue;
        }
        output::chat(match (it.duplicate, it.is_pending) {
            (true, _) => "✓ Memory stored (it was there already)",
            (_, true) => "✓ Memory kept aside: it is stored once a second key confirms it",
            _ => "✓ Memory stored",
        });
        output::print(&it.id);
    }
    Ok(0)
}

fn store_batch(omi: &Omi<'_>, file: &str) -> Result<u8> {
    let source = if file == "-" {
        tool_args::read_stdin()?
    } else {
        let (dir, name) = kenning_vault::split(Path::new(file))?;
        String::from_utf8(dir.read(&name, BATCH_BYTES_MAX)?).map_err(|_| {
            Error::invalid(format!("`{file}` is not UTF-8 text")).hint("convert it to UTF-8")
        })?
    };
    let new = source
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| memory_of(at + 1, line))
        .collect::<Result<Vec<NewMemory>>>()?;
    if new.len() > BATCH_MAX {
        let n = new.len();
        return Err(
            Error::too_large(format!("`--batch`: {n} memories are more than {BATCH_MAX}"))
                .hint("split the file; `split -l 5000` does it"),
        );
    }
    let stored = omi.engine.omi().store_memories(&omi.caller, new)?;
    if omi.settings.json {
        let memories: Vec<Value> = stored.iter().map(wire).collect();
        output::print_json(&json!({ "memories": memories, "count": stored.len() }));
        return Ok(0);
    }
    let known = stored.iter().filter(|it| it.duplicate).count();
    output::chat(&match known {
        0 => format!("✓ {} memories stored", stored.len()),
        known => format!(
            "✓ {} memories stored ({known} were there already)",
            stored.len()
        ),
    });
    let ids: Vec<&str> = stored.iter().map(|it| it.id.as_str()).collect();
    output::print(&ids.join("\n"));
    Ok(0)
}

fn memory_of(line_number: usize, line: &str) -> Result<NewMemory> {
    let input: memory_store::Input = serde_json::from_str(line).map_err(|cause| {
        Error::invalid(format!("`--batch`: line {line_number}: {cause}")).hint(
            "a JSON object a line, for example {\"content\": \"…\", \"memory_type\": \"fact\"}",
        )
    })?;
    Ok(input.into())
}

fn wire(stored: &StoredMemory) -> Value {
    let mut json = json!({ "memory_id": stored.id });
    if stored.duplicate {
        json["duplicate"] = true.into();
    }
    if stored.is_pending {
        json["pending"] = true.into();
    }
    json
}

pub(super) fn recall(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let mode = match text(matches, "mode") {
        "semantic" => Mode::Semantic,
        "fts" => Mode::FullText,
        _ => Mode::Hybrid,
    };
    let min_relevance = match matches.get_one::<f64>("min-relevance") {
        Some(&given) => unit("min-relevance", given)?.get(),
        // With full text every match counts, whatever its relevance.
        None if mode == Mode::FullText => 0.0,
        None => Recall::default().min_relevance,
    };
    let memory_type = matches.get_one::<String>("type");
    let as_of = matches.get_one::<String>("as-of");
    let recall = Recall {
        query: text(matches, "query").to_owned(),
        limit: limit(matches),
        min_relevance,
        memory_type: memory_type.map(|it| it.parse::<MemoryType>()).transpose()?,
        tags: texts(matches, "tags").unwrap_or_default(),
        mode,
        as_of_ms: as_of.map(|it| parse_moment("as-of", it)).transpose()?,
        sort: match text(matches, "sort") {
            "relevance" => RecallSort::Relevance,
            _ => RecallSort::FinalScore,
        },
        context: matches
            .get_one::<u32>("context")
            .map_or(0, |&it| usize::try_from(it).unwrap_or(0)),
        skip: cursor(matches)?,
        scope: match text(matches, "scope") {
            "all" => RecallScope::All,
            "global" => RecallScope::Global,
            _ => RecallScope::Project,
        },
        ..Recall::default()
    };
    let found = omi.engine.omi().recall(&omi.caller, &recall)?;
    found.remark.iter().for_each(|it| output::remark(it));
    if found.has_more {
        let next = recall.skip + found.memories.len();
        output::say(&format!(
            "more: the same command with `--cursor {CURSOR}{next}` goes on from there"
        ));
    }
    let memories: Vec<MemoryResult> = found.memories.into_iter().map(MemoryResult::from).collect();
    let memories = serde_json::to_value(memories)
        .map_err(|cause| Error::internal("memories cannot be written as JSON").because(cause))?;
    if omi.settings.json {
        output::print_json(&memories);
        return Ok(0);
    }
    let memories = memories.as_array().map_or(&[][..], Vec::as_slice);
    if memories.is_empty() {
        output::print("No memories found. Try a different query.");
        return Ok(0);
    }
    output::chat(&format!("Search Results ({} found)", memories.len()));
    let words = output::words_of(text(matches, "query"));
    let mut shown: Vec<Vec<String>> = memories.iter().flat_map(rows).collect();
    for content in shown.iter_mut().filter_map(|it| it.last_mut()) {
        *content = output::brightened(&table::cell(content), &words);
    }
    output::print_bright(&table::rows(
        &["score", "relevance", "type", "stored", "id", "content"],
        &shown,
    ));
    Ok(0)
}

/// The prefix of a cursor in a list of memories, as `memory_recall` gives it.
const CURSOR: &str = "answer:";

/// The number of memories that the cursor says were shown.
fn cursor(matches: &ArgMatches) -> Result<usize> {
    let Some(given) = matches.get_one::<String>("cursor") else {
        return Ok(0);
    };
    let number = given.strip_prefix(CURSOR).unwrap_or(given);
    number.parse().map_err(|_| {
        Error::invalid(format!(
            "`--cursor`: `{given}` is not a cursor from an earlier answer"
        ))
        .hint("give the cursor that the line `more:` named, or leave it out")
    })
}

/// A memory with its neighbors in its session, in order.
fn rows(memory: &Value) -> Vec<Vec<String>> {
    let near = memory["context"].as_array().map_or(&[][..], Vec::as_slice);
    let (before, after): (Vec<_>, Vec<_>) = near
        .iter()
        .partition(|it| it["offset"].as_i64().is_some_and(|offset| offset < 0));
    let neighbor = |near: &&Value| {
        let text = |name: &str| near[name].as_str().unwrap_or_default().to_owned();
        let offset = near["offset"].as_i64().unwrap_or(0);
        let blank = String::new;
        vec![
            blank(),
            format!("{offset:+}"),
            blank(),
            blank(),
            text("memory_id"),
            text("content"),
        ]
    };
    let before = before.iter().map(neighbor);
    let same = memory["near_identical"].as_array().into_iter().flatten();
    let same = same.filter_map(Value::as_str).map(|id| {
        let blank = String::new;
        let said = "(the same words)".to_owned();
        vec![
            blank(),
            "=".to_owned(),
            blank(),
            blank(),
            id.to_owned(),
            said,
        ]
    });
    before
        .chain([row(memory)])
        .chain(same)
        .chain(after.iter().map(neighbor))
        .collect()
}

pub(super) fn get(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let ids = texts(matches, "id").unwrap_or_default();
    let found = omi.engine.omi().memories_by_id(&omi.caller, &ids)?;
    let missing = ids.iter().zip(&found).filter(|it| it.1.is_none());
    let missing: Vec<&str> = missing.map(|it| it.0.as_str()).collect();
    let found: Vec<Value> = found.iter().flatten().map(details).collect();
    // Existing ones are shown anyway.
    let end = || match missing.as_slice() {
        [] => Ok(0),
        names => Err(Error::not_found("memory", names.join("`, `"))
            .hint("`omi recall` and `omi store` show the ids of memories")),
    };
    if omi.settings.json {
        if missing.is_empty() || !found.is_empty() {
            output::print_json(&found.into());
        }
        return end();
    }
    for (n, memory) in found.iter().enumerate() {
        if n > 0 {
            output::print("");
        }
        let text = |name: &str| memory[name].as_str().unwrap_or_default().to_owned();
        let mut lines = vec![text("content"), String::new()];
        let mut line = |name: &str, value: String| lines.push(format!("{name:<14} {value}"));
        line("id", text("memory_id"));
        line("type", text("memory_type"));
        line("stored", text("created_at"));
        if let Some(confidence) = memory["confidence"].as_f64() {
            line("confidence", format!("{confidence:.2}"));
        }
        if let Some(by) = memory["superseded_by"].as_str() {
            line("superseded by", by.to_owned());
        }
        for it in memory["relations"].as_array().into_iter().flatten() {
            let arrow = if it["direction"] == "out" {
                "→"
            } else {
                "←"
            };
            let (relation, id) = (it["relation"].as_str(), it["memory_id"].as_str());
            line(
                relation.unwrap_or_default(),
                format!("{arrow} {}", id.unwrap_or_default()),
            );
        }
        output::print(&lines.join("\n"));
    }
    end()
}

fn details(it: &MemoryDetails) -> Value {
    let relations: Vec<Value> = it
        .relations
        .iter()
        .map(|it| {
            json!({
                "memory_id": it.id, "relation": it.relation, "strength": it.strength,
                "direction": if it.is_outgoing { "out" } else { "in" },
            })
        })
        .collect();
    json!({
        "memory_id": it.memory.id, "content": it.memory.content,
        "memory_type": it.memory.memory_type.as_str(), "created_at": timestamp(it.memory.created_ms),
        "confidence": it.memory.confidence, "tags": it.memory.tags,
        "superseded_by": it.memory.superseded_by, "access_count": it.access.count,
        "relations": relations,
    })
}

fn row(memory: &Value) -> Vec<String> {
    let text = |name: &str| memory[name].as_str().unwrap_or_default().to_owned();
    let score = |name: &str| format!("{:.2}", memory[name].as_f64().unwrap_or(0.0));
    let day: String = text("created_at").chars().take(10).collect();
    vec![
        score("final_score"),
        score("relevance"),
        text("memory_type"),
        day,
        text("memory_id"),
        text("content"),
    ]
}

fn unit(flag: &str, given: f64) -> Result<Unit> {
    Unit::try_from(given).map_err(|error| Error::invalid(format!("`--{flag}`: {error}")))
}

pub(super) fn belief_update(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let strength = matches.get_one::<f64>("strength").copied().unwrap_or(0.0);
    let update = EvidenceUpdate {
        belief: text(matches, "belief").to_owned(),
        evidence: text(matches, "evidence").to_owned(),
        supports: matches.get_flag("supports"),
        strength: unit("strength", strength)?,
    };
    let done = omi.engine.omi().update_belief(&omi.caller, update)?;
    if omi.settings.json {
        output::print_json(&json!({
            "old_confidence": done.old_confidence, "new_confidence": done.new_confidence,
        }));
    } else {
        let (old, new) = (done.old_confidence, done.new_confidence);
        output::print(&format!("✓ Belief updated: {old:.4} → {new:.4}"));
    }
    Ok(0)
}

pub(super) fn belief_evidence(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let chain = omi
        .engine
        .omi()
        .evidence_chain(&omi.caller, text(matches, "belief"))?;
    if omi.settings.json {
        let chain = chain.iter().map(|it| {
            json!({
                "memory_id": it.id, "supports": it.supports, "strength": it.strength,
                "timestamp": timestamp(it.at_ms),
            })
        });
        output::print_json(&chain.collect());
        return Ok(0);
    }
    if chain.is_empty() {
        output::print("No evidence yet.");
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = chain
        .into_iter()
        .map(|it| {
            let sign = if it.supports { "✓" } else { "✗" };
            let strength = format!("{:.2}", it.strength);
            vec![sign.to_owned(), strength, timestamp(it.at_ms), it.id]
        })
        .collect();
    output::print(&table::rows(&["", "strength", "when", "memory"], &rows));
    Ok(0)
}

/// What was found; a remark about the model goes to standard error.
fn heard(checked: Contradictions) -> Vec<Contradiction> {
    if let Some(remark) = &checked.remark {
        output::say(remark);
    }
    checked.found
}

pub(super) fn belief_check(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let (engine, caller) = (&omi.engine, &omi.caller);
    let found: Vec<Contradiction> = match (text(matches, "memory"), text(matches, "other")) {
        ("", _) => engine.omi().divided_beliefs(caller)?,
        (memory, "") => heard(engine.omi().contradictions(caller, memory)?),
        (memory, other) => heard(engine.omi().check_contradiction(caller, memory, other)?),
    };
    if omi.settings.json {
        let rows = found.iter().map(|it| {
            json!({
                "memory_id_1": it.one, "memory_id_2": it.other,
                "contradiction_pattern": it.pattern,
            })
        });
        output::print_json(&rows.collect());
        return Ok(0);
    }
    if found.is_empty() {
        output::print("No contradictions found.");
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = found
        .into_iter()
        .map(|it| vec![it.one, it.other, it.pattern])
        .collect();
    output::print(&table::rows(&["memory", "contradicts", "pattern"], &rows));
    Ok(0)
}
