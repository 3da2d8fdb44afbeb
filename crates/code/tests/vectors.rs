//! What the first KOI server's extractor found in three files, beside what is read of them here.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_code::read;
use kenning_code::resolve::{Place, Project, Relation, Source};
use serde_json::Value;
use std::collections::BTreeSet;

const VECTORS: &str = include_str!("../../../testing/vectors/koi-vectors.json");

/// What differs on purpose: the file, what is listed there, what is read here, and why.
const DIFFERENT: &[(&str, &str, &str, &str)] = &[
    (
        "src/a.py",
        "Function hello 7..9",
        "Method hello 7..9",
        "a function of a class is a method",
    ),
    (
        "src/b.ts",
        "",
        "Method run 5..5",
        "methods of a class on one line are read too",
    ),
];

/// Docstrings that are read here and were not there.
const DOCS: &[(&str, &str, &str)] = &[("src/b.ts", "Bar", "A class")];

fn entities(case: &Value) -> impl Iterator<Item = &Value> {
    // A file and its module are nodes of a scan, not symbols of a text.
    let is_symbol =
        |it: &&Value| !["File", "Module"].contains(&it["entity_type"].as_str().unwrap());
    case["entities"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_symbol)
}

#[test]
fn recorded_extractions_are_what_is_read_where_no_difference_is_meant() {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    let mut seen = BTreeSet::new();
    for path in ["src/a.py", "src/b.ts", "s.sql"] {
        let case = &all[format!("extract:{path}")];
        let facts = read(path, case["source"].as_str().unwrap());
        let told =
            |name: &str, kind: &str, from: u64, to: u64| format!("{kind} {name} {from}..{to}");
        let ours = facts.symbols.iter().map(|it| {
            told(
                &it.name,
                it.kind.label(),
                it.line.into(),
                it.line_end.into(),
            )
        });
        let mut ours: BTreeSet<String> = ours.collect();
        for import in &facts.imports {
            // They name a module once, and its names are part of the line.
            ours.insert(told(
                &import.module,
                "Import",
                import.line.into(),
                import.line.into(),
            ));
        }
        let mut theirs = BTreeSet::new();
        for it in entities(case) {
            let text = |name: &str| it[name].as_str().unwrap();
            let line = |name: &str| it[name].as_u64().unwrap();
            theirs.insert(told(
                text("name"),
                text("entity_type"),
                line("line_start"),
                line("line_end"),
            ));
            let Some(symbol) = facts
                .symbols
                .iter()
                .find(|symbol| symbol.name == text("name"))
            else {
                continue;
            };
            let doc = DOCS
                .iter()
                .find(|doc| doc.0 == path && doc.1 == symbol.name);
            assert_eq!(
                symbol.doc,
                doc.map_or(text("docstring"), |it| it.2),
                "{path}"
            );
            let returns = symbol.returns.as_ref().map_or("", |it| it.name.as_str());
            if path != "s.sql" {
                // SQL was read by regular expressions, which saw no types.
                assert_eq!(returns, text("return_type"), "{path} {}", symbol.name);
            }
        }
        for (at, different) in DIFFERENT.iter().enumerate().filter(|it| it.1.0 == path) {
            let was = different.1.is_empty() || theirs.remove(different.1);
            if was && ours.remove(different.2) {
                seen.insert(at);
            }
        }
        assert_eq!(ours, theirs, "{path}");
    }
    assert_eq!(seen.len(), DIFFERENT.len(), "a difference is none any more");
}

#[test]
fn recorded_calls_are_found() {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    for path in ["src/a.py", "src/b.ts"] {
        let case = &all[format!("extract:{path}")];
        let facts = read(path, case["source"].as_str().unwrap());
        let sources = [Source {
            path: path.to_owned(),
            facts,
        }];
        let name = |place: &Place| match place {
            Place::Symbol(sym) => sources[0].facts.symbols[sym.n as usize].name.clone(),
            _ => String::new(),
        };
        let links = Project::new(&sources).links(0);
        let calls = links.iter().filter(|it| it.relation == Relation::Calls);
        let ours: BTreeSet<_> = calls.map(|it| (name(&it.from), name(&it.to))).collect();
        let named = |id: &Value| {
            let all = case["entities"].as_array().unwrap().iter();
            let mut all = all.filter(|it| it["entity_id"] == *id);
            all.next().map(|it| it["name"].as_str().unwrap().to_owned())
        };
        let edges = case["edges"].as_array().unwrap().iter();
        for edge in edges.filter(|it| it["edge_type"] == "CALLS") {
            let ends = (named(&edge["from_entity_id"]), named(&edge["to_entity_id"]));
            let (Some(from), Some(to)) = ends else {
                continue;
            };
            assert!(
                ours.contains(&(from, to)),
                "{path}: {edge} is not in {ours:?}"
            );
        }
    }
}
