//! DOT, which Graphviz draws.

use super::Picture;
use kenning_text::escape::dot as quoted;
use std::fmt::Write;

/// The export in DOT.
#[must_use]
pub fn dot(picture: &Picture) -> String {
    let mut out = String::from("digraph documents {\n  node [shape=box, style=rounded];\n");
    for it in &picture.nodes {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            out,
            "  {} [label={}, tooltip={}, class={}];",
            quoted(&it.id),
            quoted(&it.title),
            quoted(&it.path),
            quoted(it.doc_type.as_str()),
        );
    }
    for (_, _, it) in picture.joined() {
        let label = if it.relation == "link" {
            String::new()
        } else {
            format!(" [label={}]", quoted(&it.relation))
        };
        let (from, to) = (quoted(&it.source), quoted(&it.target));
        let _ = writeln!(out, "  {from} -> {to}{label};");
    }
    out + "}\n"
}
