//! Memories of other programs, in files of the form that each of them writes.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_capture::imports::{Form, ImportedMemory, read};

const CLAUDE_MEM: &str = include_str!("../../../testing/capture/imports/claude-mem.json");
const MEM0: &str = include_str!("../../../testing/capture/imports/mem0.json");
const BASIC_MEMORY: &str = include_str!("../../../testing/capture/imports/basic-memory/coffee.md");
const INDEX: &str = include_str!("../../../testing/capture/imports/claude-auto-memory/MEMORY.md");
const TOPIC: &str =
    include_str!("../../../testing/capture/imports/claude-auto-memory/debugging.md");
const JSON: &str = include_str!("../../../testing/capture/imports/memories.jsonl");

fn contents(found: &[ImportedMemory]) -> Vec<&str> {
    found.iter().map(|it| it.content.as_str()).collect()
}

#[test]
fn observations_and_summaries_of_claude_mem_are_memories_with_their_times() {
    let found = read(Form::ClaudeMem, "e.json", CLAUDE_MEM).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].memory_type, Some("decision"));
    assert!(
        found[0].content.contains("per year") && found[0].content.contains("Gaps are not allowed")
    );
    assert_eq!(found[0].tags, ["invoices", "numbering"]);
    assert_eq!(found[0].at.as_deref(), Some("1788256800000"));
    assert!(found[2].content.starts_with("request: Number the invoices"));
    assert_eq!(read(Form::ClaudeMem, "e.json", "{}"), None);
}

#[test]
fn what_mem0_answers_is_read() {
    let found = read(Form::Mem0, "m.json", MEM0).unwrap();
    assert_eq!(
        contents(&found),
        [
            "Dev works at TechCorp as a senior engineer",
            "Prefers morning meetings"
        ]
    );
    assert_eq!(found[1].memory_type, Some("fact"));
}

#[test]
fn observations_of_basic_memory_are_memories_and_boxes_and_links_are_not() {
    let found = read(Form::BasicMemory, "coffee.md", BASIC_MEMORY).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].memory_type, Some("decision"));
    assert!(
        found[1].tags.contains(&"freshness".to_owned())
            && found[1].tags.contains(&"coffee".to_owned())
    );
    assert_eq!(
        found[1].content,
        "Coffee Brewing Methods: We grind right before brewing (agreed in May)"
    );
}

#[test]
fn items_of_claude_codes_own_memory_are_memories_and_its_index_is_not() {
    let found = read(Form::ClaudeAutoMemory, "MEMORY.md", INDEX).unwrap();
    assert_eq!(
        contents(&found),
        [
            "Project memory: Build with `make all`, never with `make`",
            "Style: Two spaces in YAML files"
        ]
    );
    let found = read(Form::ClaudeAutoMemory, "debugging.md", TOPIC).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].content.starts_with("Debugging: The socket"));
}

#[test]
fn json_is_a_list_or_an_object_a_line() {
    let found = read(Form::Json, "m.jsonl", JSON).unwrap();
    assert_eq!(
        contents(&found),
        ["The office closes at six", "Maybe the parser is too slow"]
    );
    assert_eq!(
        (found[0].memory_type, found[1].memory_type),
        (Some("fact"), Some("belief"))
    );
    assert_eq!(read(Form::Json, "m.json", "[{\"title\": 1}]"), None);
    assert_eq!(read(Form::Json, "m.json", "not json"), None);
}
