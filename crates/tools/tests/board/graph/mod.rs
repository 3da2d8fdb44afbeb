//! The graph over a real store: what files say is what the tools answer.

mod contract;
mod extra;
mod following;
mod links;
mod truth;

use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The answer of a call that must succeed.
fn ask(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

/// The error of a call that must fail.
fn refusal(fixture: &Fixture, tool: &str, arguments: Value) -> String {
    let reply = fixture.call(tool, arguments);
    assert!(reply.is_error(), "{tool}: {}", reply.text);
    let value = reply.to_json();
    assert_eq!(value["success"], false);
    assert!(value["metadata"]["executionTime"].is_u64(), "{value}");
    value["error"].as_str().unwrap().to_owned()
}

fn generate(fixture: &Fixture) -> Value {
    ask(fixture, "kg_graph_generate", json!({}))["data"].clone()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph/docs")
}

/// Every file of the example, by its name.
fn example_files() -> BTreeMap<String, String> {
    fn gather(dir: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, root, into);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                into.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    gather(&example(), &example(), &mut files);
    files
}

/// A fixture whose project is the example, without a vault of its own.
fn shop() -> Fixture {
    let fixture = Fixture::without_vault(Selection::default());
    for (name, text) in example_files() {
        fixture.put_document(&format!("docs/{name}"), &text);
    }
    fixture
}

/// Everything that can be seen of a graph, without times.
fn picture(fixture: &Fixture) -> Value {
    let nodes = ask(
        fixture,
        "kg_query",
        json!({ "limit": 1000, "includeContent": true }),
    )["data"]
        .clone();
    let nodes = nodes.as_array().unwrap().iter().map(|it| {
        let full = ask(fixture, "kg_get_node", json!({ "id": it["id"] }))["data"].clone();
        json!([it, full["outgoingLinks"], full["incomingLinks"]])
    });
    let nodes: Vec<Value> = nodes.collect();
    json!([nodes, ask(fixture, "kg_stats", json!({}))["data"]])
}
