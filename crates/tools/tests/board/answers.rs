//! No answer of any tool is longer than a model can read at once, and what was cut can be read on.

use crate::everything;
use kenning_engine::ANSWER_CHARS_MAX;
use kenning_testing::Fixture;
use kenning_tools::{Effect, Reply, Selection, TOOLS};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const N_DOCUMENTS: usize = 700;
const N_NOTES: usize = 2_500;

/// A store in which every list is long, and some texts.
fn large() -> Fixture {
    let fixture = everything(&Fixture::new());
    let words = "The hub is where everything meets, and whoever reads this reads on. ".repeat(4);
    for i in 0..N_DOCUMENTS {
        let text = format!(
            "---\ntags: [tag{i}, everywhere]\n---\n# Page {i}\n\n{words} [the hub, {words}](hub.md) \
             [gone](missing/page{i}.md) {words}\n"
        );
        fixture.put_document(&format!("docs/page{i}.md"), &text);
        fixture.put_document(&format!("docs/alone/orphan{i}.md"), "Nobody links here.");
    }
    let links: String = (0..N_DOCUMENTS)
        .map(|i| format!("- [{words}](page{i}.md)\n"))
        .collect();
    fixture.put_document(
        "docs/hub.md",
        &format!("# Hub\n\n{links}\n{}", words.repeat(2_000)),
    );
    std::fs::create_dir_all(fixture.vault().join("People")).unwrap();
    for i in 0..N_NOTES {
        let name = format!("A person with a rather long name, the {i}th of so many people");
        let text = format!("---\ntype: Person\n---\n# {name}\n\nKnows [[Mary Major]].\n");
        std::fs::write(fixture.vault().join(format!("People/{name}.md")), text).unwrap();
    }
    let mary = format!(
        "---\ntype: Person\n---\n# Mary Major\n\n{}",
        words.repeat(1_500)
    );
    std::fs::write(fixture.vault().join("People/Mary Major.md"), mary).unwrap();
    let knowledge = fixture.project().join(".ai/knowledge");
    std::fs::create_dir_all(&knowledge).unwrap();
    let entry = format!(
        "---\nzettel_id: long-one\ntitle: Long\n---\n{}",
        words.repeat(1_500)
    );
    std::fs::write(knowledge.join("long-one.md"), entry).unwrap();
    fixture
}

fn store_memories(fixture: &Fixture) {
    let filler = "words about the cache and how it is warmed ".repeat(60);
    for batch in 0..3 {
        let memories: Vec<Value> = (0..50)
            .map(|i| json!({ "content": format!("Memory {batch}-{i}: {filler}"), "memory_type": "belief", "confidence": 0.9 }))
            .collect();
        let reply = fixture.call("memory_store_batch", json!({ "memories": memories }));
        check("memory_store_batch", &reply);
    }
    let long: Vec<String> = (0..300).map(|i| format!("{i}: {filler}")).collect();
    let reply = fixture.call(
        "now_update",
        json!({ "current_task": "x", "recent_completions": long }),
    );
    check("now_update", &reply);
}

fn check(what: &str, reply: &Reply) {
    let text: usize = reply.text.chars().count()
        + reply
            .remarks
            .iter()
            .map(|it| it.chars().count())
            .sum::<usize>();
    assert!(
        text <= ANSWER_CHARS_MAX,
        "{what}: {text} characters of text"
    );
    let structured = reply
        .structured()
        .map_or(0, |it| it.to_string().chars().count());
    assert!(
        structured <= ANSWER_CHARS_MAX,
        "{what}: {structured} of structure"
    );
}

/// Calls of a tool whose answers are as long as can be.
fn calls(name: &str) -> Vec<Value> {
    let all = |value: Value| vec![value];
    match name {
        "kg_query" => vec![
            json!({ "limit": 1000 }),
            json!({ "limit": 1000, "includeContent": true }),
            json!({ "query": "hub", "limit": 1000, "includeContent": true }),
        ],
        "kg_get_node" => vec![
            json!({ "id": "hub" }),
            json!({ "id": "hub", "limit": 1000 }),
        ],
        "kg_list_tags" => all(json!({ "limit": 100 })),
        "kg_graph_query" => all(json!({ "query": "hub", "limit": 100, "includeRelations": true })),
        "kg_search_nodes" => all(json!({ "query": "hub", "limit": 100 })),
        "kg_search_tags" => all(json!({ "tags": ["everywhere"], "limit": 100 })),
        "kg_vector_search" => {
            all(json!({ "query": "the hub", "k": 100, "hybrid": true, "includeVectors": true }))
        }
        "kg_vector_upsert" => all(
            json!({ "id": "v", "vector": vec![0.5; 1536], "metadata": { "text": "x".repeat(50_000) } }),
        ),
        "kg_audit_query" => vec![
            json!({ "limit": 1000, "includePayload": true }),
            json!({ "limit": 1000, "newestFirst": true }),
        ],
        "kg_audit_checkpoint" => all(json!({ "name": "x".repeat(200), "tags": vec!["y"; 50] })),
        "kg_graph_generate" => all(json!({ "force": true })),
        "kg_backlinks" => vec![
            json!({ "node": "hub" }),
            json!({ "node": "hub", "limit": 500 }),
        ],
        "kg_broken_links" => all(json!({ "limit": 1000 })),
        "kg_orphans" => all(json!({ "limit": 20 })),
        "kg_communities" => all(json!({ "limit": 200, "members": 100 })),
        "kg_rank" => all(json!({ "limit": 500 })),
        "kg_neighbors" => all(json!({ "node": "hub", "depth": 3, "limit": 500 })),
        "kg_path" => all(json!({ "from": "page1", "to": "page2" })),
        "kg_export" => all(json!({ "format": "json" })),
        "kg_health_check" | "kg_graph_stats" => all(json!({ "detailed": true })),
        "find" => all(json!({ "query": "person Mary Major", "limit": 100 })),
        "note_list" => all(json!({ "folder": "People" })),
        "note_read" => all(json!({ "path": "People/Mary Major.md" })),
        "note_write" => all(json!({ "path": "Other.md", "content": "x".repeat(200_000) })),
        "note_move" => all(json!({ "path": "Other.md", "to": "Archive/" })),
        "note_delete" => all(json!({ "path": "Archive/Other.md" })),
        "execute_read" => {
            all(json!({ "tool": "kg_backlinks", "input": { "node": "hub", "limit": 500 } }))
        }
        "vault_list_notes" => vec![json!({}), json!({ "folder": "People" })],
        "vault_read_note" => all(json!({ "path": "People/Mary Major.md" })),
        "vault_write_note" => all(json!({ "path": "New.md", "content": "x".repeat(200_000) })),
        "resolve_entity" => all(json!({ "label": "A person with a rather long name" })),
        "get_entity_neighborhood" | "get_entity_documents" => {
            all(json!({ "entity_uri": "Mary Major" }))
        }
        "koi_search" => all(json!({ "query": "person", "limit": 100 })),
        "knowledge_search" => all(json!({ "query": "person Mary Major", "limit": 100 })),
        "code_query" => all(json!({ "cypher": "MATCH (n) RETURN n" })),
        "preview_url" | "process_url" | "ingest_url" => {
            all(json!({ "url": format!("https://example.org/{}", "x".repeat(100_000)) }))
        }
        "monitor_url" => all(json!({ "action": "list" })),
        "search" => all(json!({ "item_type": "knowledge", "query": "hub", "limit": 100 })),
        "load" => all(json!({ "item_type": "knowledge", "item_id": "long-one" })),
        "execute" => vec![
            json!({ "item_type": "knowledge", "action": "run", "item_id": "long-one" }),
            json!({ "item_type": "tool", "action": "run", "item_id": "kg_backlinks", "parameters": { "node": "hub", "limit": 500 } }),
        ],
        "memory_recall" | "belief_retrieve" => {
            all(json!({ "query": "cache warmed", "limit": 100 }))
        }
        "memory_store" => all(json!({ "content": "x ".repeat(20_000) })),
        "memory_store_batch" => all(json!({ "memories": [{ "content": "one" }] })),
        "belief_update" => all(
            json!({ "belief_id": "b", "evidence_memory_id": "m", "supports": true, "strength": 0.5 }),
        ),
        "memory_forget" => {
            let ids: Vec<String> = (0..100)
                .map(|n| format!("{n}{}", "x".repeat(1_000)))
                .collect();
            all(json!({ "memory_ids": ids }))
        }
        "memory_get" => all(json!({ "memory_ids": ["m"] })),
        "belief_evidence" => all(json!({ "belief_id": "b" })),
        "belief_check_contradiction" => all(json!({ "memory_id_1": "m" })),
        "daily_append" => all(json!({ "content": "x".repeat(100_000) })),
        "kg_agent_spawn" => all(json!({ "type": "analyst", "task": "everything that is wrong" })),
        "kg_agent_list" => all(json!({})),
        "kg_workflow_start" => all(json!({ "workflowId": "analysis" })),
        "kg_workflow_status" => all(json!({ "includeMetrics": true, "includeConfig": true })),
        "kg_workflow_list" => all(json!({ "limit": 1000 })),
        "kg_trajectory_list" => all(json!({ "limit": 100, "includeSteps": true })),
        "kg_stats" | "kg_health" | "kg_cache_stats" | "kg_sync_status" | "help" | "now_read"
        | "now_update" | "integrity_check" | "federation_status" | "github_scan"
        | "vault_backup" => all(json!({})),
        other => panic!("say how `{other}` is called so that its answer is as long as can be"),
    }
}

#[test]
fn no_answer_of_any_tool_is_longer_than_a_model_can_read() {
    let fixture = large();
    check(
        "kg_graph_generate",
        &fixture.call("kg_graph_generate", json!({})),
    );
    store_memories(&fixture);
    let mut cut = BTreeSet::new();
    for tool in TOOLS {
        for arguments in calls(tool.name()) {
            let mut arguments = arguments;
            // A cursor leads on, and each answer on the way is short enough.
            for _ in 0..3 {
                let reply = fixture.call(tool.name(), arguments.clone());
                check(&format!("{} {arguments}", tool.name()), &reply);
                let told = reply.to_json()["metadata"]["truncated"][0]["cursor"].clone();
                let told = told.as_str().map(ToOwned::to_owned);
                let next = reply.remarks.iter().find_map(|it| cursor_in(it)).or(told);
                if next.is_some() || reply.remarks.iter().any(|it| it.starts_with("cut: ")) {
                    cut.insert(tool.name());
                    assert!(
                        next.is_some() || tool.effect() != Effect::Read,
                        "{:?}",
                        reply.remarks
                    );
                }
                let Some(next) = next else { break };
                arguments["cursor"] = next.into();
            }
        }
    }
    for tool in [
        "kg_query",
        "kg_get_node",
        "kg_list_tags",
        "kg_graph_query",
        "kg_search_nodes",
        "kg_search_tags",
        "kg_vector_search",
        "kg_backlinks",
        "kg_broken_links",
        "kg_orphans",
        "kg_rank",
        "kg_neighbors",
        "vault_list_notes",
        "vault_read_note",
        "memory_recall",
        "now_read",
    ] {
        assert!(cut.contains(tool), "{tool} is cut nowhere: {cut:?}");
    }
    let error = fixture.call("kg_query", json!({ "cursor": "data.none:7" }));
    assert!(
        error.is_error() && error.text.contains("`cursor`: `data.none:7`"),
        "{}",
        error.text
    );
    reads_on(&fixture);
}

fn cursor_in(remark: &str) -> Option<String> {
    let (_, rest) = remark.split_once("`cursor: \"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// What a caller who follows the cursors has seen in the end is the whole.
fn reads_on(fixture: &Fixture) {
    let mut seen = BTreeSet::new();
    let mut arguments = json!({ "node": "hub", "limit": 500 });
    let mut n_calls = 0;
    loop {
        n_calls += 1;
        let answer = fixture.call("kg_backlinks", arguments.clone()).to_json();
        let links = answer["data"]["backlinks"].as_array().unwrap();
        assert_eq!(answer["data"]["count"], links.len());
        assert_eq!(answer["data"]["total"], N_DOCUMENTS);
        seen.extend(
            links
                .iter()
                .map(|it| it["source"]["id"].as_str().unwrap().to_owned()),
        );
        let cuts = answer["metadata"]["truncated"].as_array();
        let own = cuts
            .into_iter()
            .flatten()
            .find(|it| it["field"] == "data.backlinks");
        let Some(own) = own else { break };
        assert_eq!(own["total"], N_DOCUMENTS);
        arguments["cursor"] = own["cursor"].clone();
    }
    assert_eq!(seen.len(), N_DOCUMENTS);
    assert!(n_calls > 1);
    let path = fixture.vault().join("People/Mary Major.md");
    let whole = std::fs::read_to_string(path).unwrap();
    let (mut text, mut arguments) = (String::new(), json!({ "path": "People/Mary Major.md" }));
    loop {
        let reply = fixture.call("vault_read_note", arguments.clone());
        text.push_str(&reply.text);
        let Some(next) = reply.remarks.iter().find_map(|it| cursor_in(it)) else {
            break;
        };
        arguments["cursor"] = next.into();
    }
    assert_eq!(text, whole);
    let mut caller = fixture.owner();
    caller.answer_chars_max = None;
    let reply = fixture.board.call(
        "vault_read_note",
        json!({ "path": "People/Mary Major.md" }),
        &caller,
    );
    assert_eq!(reply.unwrap().text, whole, "a program reads it at once");
}

#[test]
fn a_number_that_is_brought_inside_its_limits_is_named_beside_the_answer() {
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("docs/one.md", "# One\n\n#tag and [[two]].\n");
    fixture.put_document("docs/two.md", "# Two\n");
    fixture.call("kg_graph_generate", json!({}));
    for (tool, arguments, remark) in [
        (
            "kg_query",
            json!({ "query": "one", "limit": 0 }),
            "`limit` is from 1 to ",
        ),
        (
            "kg_list_tags",
            json!({ "limit": 1_000_000 }),
            "`limit` is from 1 to ",
        ),
        ("kg_list_tags", json!({ "limit": 5 }), ""),
    ] {
        let reply = fixture.call(tool, arguments);
        assert!(!reply.is_error(), "{tool}: {}", reply.text);
        let remarks = reply.remarks.join(" ");
        assert!(remarks.contains(remark), "{tool}: {remarks}");
        assert_eq!(remarks.contains("`limit`"), !remark.is_empty(), "{remarks}");
    }
}
