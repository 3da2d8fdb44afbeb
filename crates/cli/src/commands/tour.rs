//! `kenning tour`: the main features once, in a temporary directory.

use crate::{Host, Settings, output, owner};
use kenning_core::{Error, Result};
use kenning_tools::{Board, Selection};
use kenning_vault::Dir;
use serde_json::{Value, json};

/// What the tour does: a sentence, a tool, its arguments.
fn steps() -> Vec<(&'static str, &'static str, Value)> {
    let ada = "---\ntype: Person\n---\n# Ada Lovelace\n\nWrote the first program, for [[Charles Babbage]]'s engine.\n";
    vec![
        (
            "An agent writes a note. It is a file, a node of the graph and a signed event:",
            "vault_write_note",
            json!({ "path": "People/Ada Lovelace.md", "content": ada }),
        ),
        (
            "A name without an extension gets one:",
            "vault_write_note",
            json!({ "path": "People/Charles Babbage", "content": "# Charles Babbage\n" }),
        ),
        (
            "It lists a folder:",
            "vault_list_notes",
            json!({ "folder": "People" }),
        ),
        (
            "It reads a note:",
            "vault_read_note",
            json!({ "path": "People/Ada Lovelace.md" }),
        ),
        (
            "A path that leads outside is refused:",
            "vault_read_note",
            json!({ "path": "../../etc/passwd" }),
        ),
        (
            "It remembers what it learned:",
            "memory_store",
            json!({ "content": "Nightly dumps are never rotated, so the disk of the staging cluster is full by Friday." }),
        ),
        (
            "And finds it again by what it means, in other words:",
            "memory_recall",
            json!({ "query": "why does our test environment run out of storage", "min_relevance": 0.5 }),
        ),
        (
            "It says where it stopped, for the next session:",
            "now_update",
            json!({ "current_task": "Rotate the dumps", "recent_completions": ["Found the full disk"] }),
        ),
        ("Which begins by reading it:", "now_read", json!({})),
    ]
}

pub(crate) fn run(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let place = std::env::temp_dir().join(format!("kenning-tour-{}", std::process::id()));
    let root = Dir::create(&place)?;
    root.create_subdir("vault")?;
    let settings = Settings {
        data: place.join("data"),
        vault: Some(place.join("vault")),
        omi: Some(place.join("omi")),
        project: Some(place.clone()),
        is_project_named: false,
        selection: Selection::default(),
        ..settings.clone()
    };
    let engine = host.open(&settings)?;
    let board = Board::new(engine.clone(), settings.selection.clone())?;
    for (sentence, tool, arguments) in steps() {
        let reply = board.call(tool, arguments.clone(), &owner(&settings));
        let reply = reply.ok_or_else(|| Error::not_found("tool", tool))?;
        let answer = reply.text.trim_end().replace('\n', "\n  ");
        output::print(&format!("{sentence}\n\n  {tool} {arguments}\n  {answer}\n"));
    }
    engine.omi().settle();
    output::print("Behind every write stands an event:\n");
    for event in engine.events_after(&owner(&settings), 0, 10)? {
        let it = &event.json;
        let about = [
            &it["data"]["path"],
            &it["data"]["memory_id"],
            &it["data"]["query"],
        ];
        let about = about.iter().find_map(|it| it.as_str()).unwrap_or_default();
        let kind = it["kind"].as_str().unwrap_or_default();
        output::print(&format!("  {} {kind} {about}", event.seq));
    }
    let report = engine.verify(&settings.space, &|_| ())?;
    let fault = report.faults.first().cloned();
    if let Some(fault) = fault {
        return Err(Error::corrupt(fault));
    }
    output::print(&format!(
        "\nThe log was derived again from raw rows: {} events, {} nodes, every hash and signature holds.\n",
        report.n_events, report.n_nodes
    ));
    output::print(&format!(
        "Look around:  kenning --data {0}/data --vault {0}/vault doctor\nConnect an agent:  kenning setup claude-code",
        place.display()
    ));
    Ok(0)
}
