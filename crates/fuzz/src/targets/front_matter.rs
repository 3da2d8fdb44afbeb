//! The fields before a text, of documents and of items.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};

pub(super) const TARGET: Target = Target {
    name: "front_matter",
    about: "every text has a reading, and what is wrong is said with its line",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Texts),
    pass_cases: 300,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "---\n",
    "---\r\n",
    "\n---\n",
    "...\n",
    "title: ",
    "tags: [a, b]\n",
    "tags:\n  - a\n",
    "aliases: ",
    "type: concept\n",
    "status: draft\n",
    "key: value\n",
    "? k\n: v\n",
    "- ",
    "  ",
    "\t",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!tag ",
    "|\n  text\n",
    ">-\n  text\n",
    "\"",
    "'",
    "{a: 1}",
    "[1, 2]",
    "# c\n",
    ": ",
    "~",
    "null",
    "yes",
    "0o17",
    "1:30",
    "2026-01-02",
    ".inf",
    ".nan",
    "%YAML 1.2\n",
    "\u{feff}",
    "[[Link]]",
    "name:: value\n",
    "(key:: v)",
    "[key:: v]",
    "\u{2028}",
];

const SEEDS: &[&str] = &[
    "---\ntitle: A\ntags: [a, b/c]\naliases:\n  - One\n  - Two\ntype: concept\nstatus: draft\n---\n# A\n\ntext #tag [[B]]\n",
    "---\na: &x [1, 2]\nb: *x\nc: {d: {e: f}}\n---\nbody",
    "---\ntext: |\n  several\n  lines\nfolded: >-\n  a\n  b\n---\n",
    "---\ntitle: \"quoted: \\u00e9\"\nnum: 1e3\nnone:\nlink: \"[[Other]]\"\n---\nname:: value\n",
    "---\r\ntitle: A\r\n---\r\nbody\r\n",
    "no front matter at all",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("[", "]"),
        ("{a: ", "}"),
        ("- ", ""),
        ("a:\n ", ""),
        ("[[", "]]"),
        ("? ", ""),
        ("&a ", ""),
        ("'", "'"),
        ("!t ", ""),
        ("a: [", "]\n"),
        ("{", "}"),
    ];
    let inside = pieces(source, WORDS, pairs);
    let after = pieces(source, WORDS, pairs);
    format!("---\n{inside}\n---\n{after}").into_bytes()
}

struct Texts;

impl Subject for Texts {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let document = in_time(input, || kenning_graph::parse(&text))?;
        let start = document.body_start;
        ensure!(
            text.is_char_boundary(start),
            "body_start: {start} is inside a character"
        );
        let n_lines = text.lines().count().max(1) as u32 + 1;
        for fault in &document.faults {
            let line = fault.line;
            ensure!((1..=n_lines).contains(&line), "line: {line} of {n_lines}");
            ensure!(!fault.message.is_empty(), "a fault says nothing");
        }
        let again = kenning_graph::parse(&text);
        ensure!(again == document, "two readings differ");
        let depth = document
            .frontmatter
            .values()
            .map(depth_of)
            .max()
            .unwrap_or(0);
        ensure!(
            depth <= 126,
            "depth: {depth} levels cannot be stored as JSON"
        );
        in_time(input, || kenning_graph::inline_fields(&text))?;
        in_time(input, || kenning_graph::readable(&text))?;
        in_time(input, || kenning_graph::frontmatter_faults(&text))?;
        Ok(())
    }
}

/// How deep a value is, without recursion.
pub(super) fn depth_of(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|it| (it, depth + 1))),
            _ => {}
        }
    }
    deepest
}
