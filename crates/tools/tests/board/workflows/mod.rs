//! Workflows over a real store.

mod contract;
mod kills;
mod planning;
mod reach;

use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};

/// The data of an answer that must be a success.
fn ask(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

fn start(fixture: &Fixture, kind: &str, input: Value) -> Value {
    let arguments = json!({ "workflowId": kind, "input": input });
    ask(fixture, "kg_workflow_start", arguments)["data"].clone()
}

fn status(fixture: &Fixture, id: &Value) -> Value {
    ask(fixture, "kg_workflow_status", json!({ "workflowId": id }))["data"]["workflow"].clone()
}

const SPEC: &str = "---\ntitle: Counting walruses\n---\n\n\
    # Overview\n\nAn engine that counts the walruses of every beach and writes their number down each morning.\n\n\
    ## Requirements\n\nIt counts every walrus once, even at night, and never counts a rock.\n\n\
    ## Acceptance criteria\n\n- two walruses are two\n- no walrus is none at all\n\n\
    ## Design\n\n```rust\nlet n = count(&beach, Walrus::all());\n```\n\n\
    ## Tests\n\nA beach with known walruses is counted a hundred times.\n";

/// A project with one good specification and one that lacks most.
fn project() -> Fixture {
    let fixture = Fixture::new();
    fixture.put_document("docs/spec.md", SPEC);
    fixture.put_document(
        "docs/draft.md",
        "# Draft\n\nSee [the old one](old.md) and [nothing](nowhere.md).\n\nCounting should always be done at night. TBD\n",
    );
    fixture.put_document(
        "docs/old.md",
        "---\nstatus: deprecated\nexpires: 2001-01-01\n---\n\nIt was so once.\n",
    );
    fixture
}

/// The same store, as another process sees it.
fn reopened(fixture: &Fixture) -> Fixture {
    fixture.again(Selection::default())
}
