//! A cursor goes on past the limit of every list that answers a question.

use crate::everything;
use kenning_testing::Fixture;
use kenning_tools::Reply;
use serde_json::{Value, json};
use std::fs;

/// What was seen of the lists of a tool by following its cursors, with how many pages that took.
fn read_on(fixture: &Fixture, tool: &str, arguments: &Value, lists: &[&str], id: &str) -> Seen {
    let mut arguments = arguments.clone();
    let mut seen = Seen::default();
    seen.ids.resize(lists.len(), Vec::new());
    loop {
        seen.n_pages += 1;
        assert!(seen.n_pages < 200, "{tool} goes on forever");
        let reply = fixture.call(tool, arguments.clone());
        assert!(!reply.is_error(), "{tool} {arguments}: {}", reply.text);
        let answer = reply.to_json();
        for (list, ids) in lists.iter().zip(&mut seen.ids) {
            let list = if list.is_empty() {
                &answer
            } else {
                &answer[list]
            };
            for it in list.as_array().into_iter().flatten() {
                // A passage has no other name than its own.
                let own = it.get("chunk_rid").unwrap_or(&it[id]);
                ids.push(own.as_str().unwrap().to_owned());
            }
        }
        let Some(next) = next_of(&reply) else {
            return seen;
        };
        arguments["cursor"] = next.into();
    }
}

#[derive(Default)]
struct Seen {
    ids: Vec<Vec<String>>,
    n_pages: usize,
}

fn next_of(reply: &Reply) -> Option<String> {
    if let Some(next) = reply.to_json().get("next_cursor") {
        return Some(next.as_str().unwrap().to_owned());
    }
    let remark = reply.remarks.iter().find(|it| it.starts_with("more: "))?;
    let (_, rest) = remark.split_once("`cursor: \"").unwrap();
    Some(rest.split_once('"').unwrap().0.to_owned())
}

fn check_all_once(what: &str, mut ids: Vec<String>, n: usize) {
    let n_seen = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), n_seen, "{what}: something was shown twice");
    assert_eq!(n_seen, n, "{what}");
}

#[test]
fn memories_and_beliefs_are_read_past_the_limit_each_once_and_in_the_same_order() {
    let fixture = everything(&Fixture::new());
    let memories: Vec<Value> = (0..50)
        .map(|i| json!({ "content": format!("The mill grinds grain of sort {i} at night."), "memory_type": "belief", "confidence": 0.5 }))
        .collect();
    for batch in 0..4 {
        let mut memories = memories.clone();
        for (i, it) in memories.iter_mut().enumerate() {
            it["content"] = format!("The mill grinds grain of sort {batch}-{i} at night.").into();
        }
        fixture.call("memory_store_batch", json!({ "memories": memories }));
    }
    for tool in ["memory_recall", "belief_retrieve"] {
        let asked = json!({ "query": "grain ground by the mill", "min_relevance": 0.0 });
        let seen = read_on(&fixture, tool, &asked, &[""], "memory_id");
        let ids = seen.ids.into_iter().next().unwrap();
        assert!(seen.n_pages >= 20, "{tool}: {} pages", seen.n_pages);
        let mut whole = asked.clone();
        whole["limit"] = 10.into();
        let first = fixture.call(tool, whole).to_json();
        let first: Vec<&str> = first
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["memory_id"].as_str().unwrap())
            .collect();
        assert_eq!(first, ids[..10], "{tool}");
        check_all_once(tool, ids, 200);
    }
    // Who names memories reads on in those that were named.
    let found = fixture.call(
        "memory_recall",
        json!({ "query": "grain", "min_relevance": 0.0, "limit": 15 }),
    );
    let ids: Vec<String> = found
        .to_json()
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["memory_id"].as_str().unwrap().to_owned())
        .collect();
    let asked = json!({ "query": ids.join(" "), "limit": 4 });
    let seen = read_on(&fixture, "memory_recall", &asked, &[""], "memory_id");
    assert_eq!((seen.ids[0].clone(), seen.n_pages), (ids, 4));
    let beyond = fixture.call(
        "memory_recall",
        json!({ "query": "grain", "cursor": "answer:5000" }),
    );
    assert!(
        beyond.is_error() && beyond.text.contains("`cursor`"),
        "{}",
        beyond.text
    );
}

#[test]
fn entities_documents_and_items_are_read_past_the_limit() {
    let fixture = everything(&Fixture::new());
    let people = fixture.vault().join("People");
    fs::create_dir_all(&people).unwrap();
    for i in 0..60 {
        let text = format!(
            "---\ntype: Person\n---\n# Miller Number{i}\n\nA miller who grinds grain for [[Mary Major]].\n"
        );
        fs::write(people.join(format!("Miller Number{i}.md")), text).unwrap();
    }
    fs::write(
        people.join("Mary Major.md"),
        "---\ntype: Person\n---\n# Mary Major\n",
    )
    .unwrap();
    let knowledge = fixture.project().join(".ai/knowledge");
    fs::create_dir_all(&knowledge).unwrap();
    for i in 0..45 {
        let entry = format!(
            "---\nzettel_id: grain-{i}\ntitle: Grain {i}\n---\nHow grain of sort {i} is ground.\n"
        );
        fs::write(knowledge.join(format!("grain-{i}.md")), entry).unwrap();
    }
    let asked = json!({ "query": "miller", "type_filter": "Person", "limit": 7 });
    let mut seen = read_on(&fixture, "koi_search", &asked, &["results"], "uri");
    let entities = seen.ids.remove(0);
    assert!(entities.len() >= 60, "{}", entities.len());
    let n = entities.len();
    check_all_once("entities", entities, n);

    let asked = json!({ "query": "grain", "limit": 10 });
    let seen = read_on(&fixture, "koi_search", &asked, &["documents"], "rid");
    let documents = seen.ids.into_iter().next().unwrap();
    let n = documents.len();
    assert!(n >= 100, "{n}");
    check_all_once("documents", documents, n);

    let asked = json!({ "query": "miller grain", "source": "vault", "limit": 9 });
    let lists = ["results", "chunk_results"];
    let seen = read_on(&fixture, "knowledge_search", &asked, &lists, "rid");
    assert_eq!(seen.n_pages, 7);
    for (list, ids) in lists.iter().zip(seen.ids) {
        check_all_once(list, ids, 60);
    }

    let asked = json!({ "item_type": "knowledge", "query": "grain", "limit": 8 });
    for sort in ["relevance", "name"] {
        let mut asked = asked.clone();
        asked["sort"] = sort.into();
        let seen = read_on(&fixture, "search", &asked, &["results"], "id");
        assert_eq!(seen.n_pages, 6, "{sort}");
        check_all_once(sort, seen.ids.into_iter().next().unwrap(), 45);
    }
}

#[test]
fn the_documents_of_an_entity_are_read_past_five_hundred() {
    let fixture = Fixture::new();
    let notes = fixture.vault().join("Notes");
    fs::create_dir_all(&notes).unwrap();
    let mary = fixture.vault().join("People/Mary Major.md");
    fs::create_dir_all(mary.parent().unwrap()).unwrap();
    fs::write(mary, "---\ntype: Person\n---\n# Mary Major\n").unwrap();
    for i in 0..520 {
        fs::write(notes.join(format!("n{i}.md")), "Mary Major was here.").unwrap();
    }
    let asked = json!({ "entity_uri": "Mary Major" });
    let first = fixture
        .call("get_entity_documents", asked.clone())
        .to_json();
    assert!(first["next_cursor"].is_string(), "{first:#}");
    let seen = read_on(
        &fixture,
        "get_entity_documents",
        &asked,
        &["documents"],
        "document_rid",
    );
    check_all_once("documents", seen.ids.into_iter().next().unwrap(), 520);
}
