//! `omi init`, `status`, `audit` and `config`

use super::{Omi, text};
use crate::output;
use clap::ArgMatches;
use kenning_core::{Code, Result};
use kenning_engine::omi::IntegrityScope;
use serde_json::{Value, json};

pub(super) fn init(omi: &Omi<'_>, made: &[&str]) -> u8 {
    let path = omi.path();
    if omi.settings.json {
        output::print_json(&json!({ "path": path, "made": made }));
        return 0;
    }
    output::chat(&if made.is_empty() {
        format!("✓ OMI was initialized already in {path}")
    } else {
        format!("✓ OMI initialized in {path}")
    });
    for name in made {
        output::chat(&format!("  made {name}"));
    }
    0
}

impl Omi<'_> {
    /// Where NOW.md is, for people.
    fn path(&self) -> String {
        let path = self.settings.omi.as_ref();
        path.map_or_else(|| "nowhere".to_owned(), |it| it.display().to_string())
    }

    /// Where memories are, for people; a URL may contain a password.
    fn store(&self) -> String {
        match &self.settings.database {
            Some(_) => "a database".to_owned(),
            None => self.settings.data.display().to_string(),
        }
    }
}

pub(super) fn status(omi: &Omi<'_>) -> Result<u8> {
    let (engine, caller) = (&omi.engine, &omi.caller);
    let (by_type, edges) = engine.omi().memory_counts(caller)?;
    let total: u64 = by_type.values().sum();
    let embedding = engine.embedding_status(caller)?;
    let task = engine.omi().now_read(caller)?.map(|it| it.task);
    let task = task.filter(|it| !it.trim().is_empty());
    let events = engine.roots(caller)?.seq;
    if omi.settings.json {
        let by_type: Value = by_type
            .iter()
            .map(|(name, n)| ((*name).to_owned(), Value::from(*n)))
            .collect();
        output::print_json(&json!({
            "data_dir": omi.path(), "store": omi.store(), "space": omi.settings.space.as_str(),
            "memories": total, "by_type": by_type, "edges": edges, "events": events,
            "embedding_provider": embedding.provider, "embedding_model": embedding.model,
            "embedding_dimensions": embedding.dimensions, "passages": embedding.passages,
            "embedding_queue": embedding.waiting, "embedding_fault": embedding.fault,
            "current_task": task,
        }));
        return Ok(0);
    }
    let mut types: Vec<String> = by_type
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    types.sort_unstable();
    let types = if types.is_empty() {
        String::new()
    } else {
        format!(" ({})", types.join(", "))
    };
    let rows = [
        ("data directory", omi.path()),
        ("store", omi.store()),
        ("space", omi.settings.space.to_string()),
        ("memories", format!("{total}{types}")),
        ("edges", edges.to_string()),
        ("events", events.to_string()),
        (
            "embedding",
            format!(
                "{}, {}, {} dimensions",
                embedding.provider, embedding.model, embedding.dimensions
            ),
        ),
        (
            "queue",
            format!(
                "{} of {} passages wait for a vector",
                embedding.waiting, embedding.passages
            ),
        ),
        ("current task", task.unwrap_or_else(|| "none".to_owned())),
    ];
    let rows = rows.map(|(name, value)| format!("{name:<16} {value}"));
    output::print(&rows.join("\n"));
    if let Some(fault) = &embedding.fault {
        output::print(&format!("fault: {fault}"));
    }
    Ok(0)
}

pub(super) fn reindex(omi: &Omi<'_>) -> Result<u8> {
    super::super::reindex::run(&omi.engine, omi.caller.clone(), omi.settings.json)
}

pub(super) fn audit(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    if matches.get_flag("accept") {
        for fault in omi.engine.omi().context_accept(&omi.caller)? {
            output::say(&format!("accepted: {fault}"));
        }
    }
    let mut caller = omi.caller.clone();
    // A person who waits decides how long.
    caller.deadline += std::time::Duration::from_secs(365 * 24 * 60 * 60);
    let found = omi
        .engine
        .omi()
        .check_integrity(&caller, IntegrityScope::All)?;
    let events = omi.engine.roots(&caller)?.seq;
    let topology = found.topology.unwrap_or_default();
    // Memories without an edge are unsafe by the contract's rule for `overall_safe`, but not damaged:
    // whoever only stores and recalls has no others. So the verdict here is a different one.
    let is_intact =
        found.now_md && found.memory_md && found.faults.is_empty() && topology.sudden_cores == 0;
    let exit = if is_intact {
        0
    } else {
        Code::Corrupt.row().exit
    };
    if omi.settings.json {
        output::print_json(&json!({
            "now_md": found.now_md, "memory_md": found.memory_md,
            "topology": {
                "orphan_nodes": topology.orphan_nodes, "sudden_cores": topology.sudden_cores,
                "warnings": topology.warnings,
            },
            "faults": found.faults, "events": events, "intact": is_intact,
        }));
        return Ok(exit);
    }
    let unlinked = match is_intact && !found.overall_safe {
        true => ", which is no damage; `integrity_check` calls more than 5 of them unsafe",
        false => "",
    };
    let mark = |good: bool| if good { "✓" } else { "✗" };
    let mut lines = vec![
        format!("{} NOW.md is as it was written", mark(found.now_md)),
        format!(
            "{} MEMORY.md and the daily logs are as they were written",
            mark(found.memory_md)
        ),
        format!(
            "  {} memories without an edge{unlinked}",
            topology.orphan_nodes
        ),
        format!(
            "{} {} memories that gained edges too quickly",
            mark(topology.sudden_cores == 0),
            topology.sudden_cores
        ),
        format!("  {events} events derived again from raw rows"),
    ];
    lines.extend(found.faults.iter().map(|it| format!("fault: {it}")));
    let warnings = topology.warnings.iter();
    lines.extend(warnings.map(|it| format!("look at: {it}")));
    lines.push(if is_intact {
        "✓ All integrity checks passed".to_owned()
    } else {
        "✗ Integrity issues detected; nothing was repaired".to_owned()
    });
    output::print(&lines.join("\n"));
    Ok(exit)
}

pub(super) fn config_get(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let value = omi
        .engine
        .omi()
        .config_get(&omi.caller, text(matches, "key"))?;
    match value {
        Value::String(text) if !omi.settings.json => output::print(&text),
        value => output::print(&value.to_string()),
    }
    Ok(0)
}

pub(super) fn config_set(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let (key, value) = (text(matches, "key"), text(matches, "value"));
    omi.engine.omi().config_set(&omi.caller, key, value)?;
    let holds = omi.engine.omi().config_get(&omi.caller, key)?;
    if omi.settings.json {
        output::print_json(&json!({ (key): holds }));
    } else {
        output::chat(&format!("✓ {key} = {holds}"));
    }
    Ok(0)
}

pub(super) fn config_show(omi: &Omi<'_>) -> Result<u8> {
    if omi.settings.json {
        output::print_json(&omi.engine.omi().config_values(&omi.caller)?);
    } else {
        output::print(omi.engine.omi().config_show(&omi.caller)?.trim_end());
    }
    Ok(0)
}
