//! `omi graph export`

use super::{Omi, picture, text};
use crate::output;
use clap::ArgMatches;
use kenning_core::Result;
use kenning_engine::omi::{Memory, MemoryGraph};
use kenning_engine::timestamp;
use kenning_text::escape::dot as quoted;
use kenning_text::line::{fitted, one_line};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// A longer label would hide its neighbors.
const LABEL_CHARS_MAX: usize = 40;

pub(super) fn export(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let graph = omi.engine.omi().memory_graph(&omi.caller)?;
    let shown = match text(matches, "format") {
        "json" => format!("{:#}", to_json(&graph)),
        "svg" => picture::svg(&graph),
        "html" => picture::html(&graph),
        _ => to_dot(&graph),
    };
    let target = text(matches, "output");
    if target == "-" {
        output::print(shown.trim_end());
        return Ok(0);
    }
    let (dir, name) = kenning_vault::split(Path::new(target))?;
    dir.write(&name, format!("{}\n", shown.trim_end()).as_bytes())?;
    let (nodes, edges) = (graph.memories.len(), graph.edges.len());
    if omi.settings.json {
        output::print_json(&json!({ "file": target, "memories": nodes, "edges": edges }));
    } else {
        output::chat(&format!(
            "✓ {nodes} memories and {edges} edges written to {target}"
        ));
    }
    Ok(0)
}

fn to_json(graph: &MemoryGraph) -> Value {
    let memories = graph.memories.iter().map(|memory| {
        json!({
            "memory_id": memory.id, "content": memory.content, "memory_type": memory.memory_type.as_str(),
            "confidence": memory.confidence, "tags": memory.tags, "created_at": timestamp(memory.created_ms),
            "superseded_by": memory.superseded_by,
        })
    });
    let edges = graph.edges.iter().map(|edge| {
        json!({
            "source_id": edge.source, "target_id": edge.target, "edge_type": edge.relation,
            "strength": edge.strength, "created_at": timestamp(edge.created_ms),
        })
    });
    json!({ "memories": memories.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>() })
}

fn to_dot(graph: &MemoryGraph) -> String {
    let mut out = String::from("digraph memories {\n  node [shape=box, style=rounded];\n");
    for memory in &graph.memories {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            out,
            "  {} [label={}, tooltip={}];",
            quoted(&memory.id),
            quoted(&label(memory)),
            quoted(&memory.content)
        );
    }
    for edge in &graph.edges {
        let _ = writeln!(
            out,
            "  {} -> {} [label={}, weight={:.2}];",
            quoted(&edge.source),
            quoted(&edge.target),
            quoted(&edge.relation),
            edge.strength
        );
    }
    out + "}\n"
}

/// The beginning of a memory, on one line.
pub(super) fn label(memory: &Memory) -> String {
    fitted(&one_line(&memory.content), LABEL_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_cannot_break_out_of_its_quotes() {
        assert_eq!(
            quoted("a\"; b -> c \\\n\u{7}"),
            "\"a\\\"; b -> c \\\\\\n \""
        );
    }
}
