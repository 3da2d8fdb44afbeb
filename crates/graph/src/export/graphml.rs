//! GraphML, which Gephi, yEd, Cytoscape and NetworkX read.

use super::Picture;
use kenning_text::escape;
use std::fmt::Write;

/// The fields: what they are of, their name and their type.
const KEYS: [(&str, &str, &str); 12] = [
    ("node", "name", "string"),
    ("node", "label", "string"),
    ("node", "type", "string"),
    ("node", "status", "string"),
    ("node", "tags", "string"),
    ("node", "path", "string"),
    ("node", "rank", "double"),
    ("node", "community", "int"),
    ("node", "words", "long"),
    ("edge", "relation", "string"),
    ("edge", "weight", "double"),
    ("edge", "text", "string"),
];

/// The export in GraphML. A node's id is `n` and its number, because the format allows no `/` there;
/// the document's id is its `name` and its title its `label`.
#[must_use]
pub fn graphml(picture: &Picture) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    for (of, name, kind) in KEYS {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            out,
            "  <key id=\"{of}-{name}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>"
        );
    }
    out.push_str("  <graph id=\"documents\" edgedefault=\"directed\">\n");
    for (at, it) in picture.nodes.iter().enumerate() {
        let _ = writeln!(out, "    <node id=\"n{at}\">");
        for (name, value) in [
            ("name", it.id.as_str()),
            ("label", &it.title),
            ("type", it.doc_type.as_str()),
            ("status", it.status.as_str()),
            ("tags", &it.tags.join(", ")),
            ("path", &it.path),
            ("rank", &number(it.rank)),
            ("community", &it.community.to_string()),
            ("words", &it.words.to_string()),
        ] {
            data(&mut out, "node", name, value);
        }
        out.push_str("    </node>\n");
    }
    for (at, (from, to, it)) in picture.joined().into_iter().enumerate() {
        let _ = writeln!(
            out,
            "    <edge id=\"e{at}\" source=\"n{from}\" target=\"n{to}\">"
        );
        data(&mut out, "edge", "relation", &it.relation);
        data(&mut out, "edge", "weight", &number(it.weight));
        data(&mut out, "edge", "text", &it.text);
        out.push_str("    </edge>\n");
    }
    out + "  </graph>\n</graphml>\n"
}

fn data(out: &mut String, of: &str, name: &str, value: &str) {
    let value = escape::xml(value);
    let _ = writeln!(out, "      <data key=\"{of}-{name}\">{value}</data>");
}

/// XML Schema writes infinity differently than Rust.
fn number(it: f64) -> String {
    if it.is_finite() { it } else { 0.0 }.to_string()
}
