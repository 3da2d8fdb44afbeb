//! Figures and marks of an answer are what they say.

use super::{ask, generate, refusal, shop};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[test]
fn an_answer_says_whether_the_documents_lay_in_memory() {
    let fixture = shop();
    generate(&fixture);
    let other = fixture.again(Selection::default());
    let cached =
        |tool: &str, arguments: Value| ask(&other, tool, arguments)["metadata"]["cached"].clone();
    assert_eq!(cached("kg_graph_stats", json!({})), false);
    for (tool, arguments) in [
        ("kg_graph_stats", json!({})),
        ("kg_graph_query", json!({ "query": "token" })),
        ("kg_search_nodes", json!({ "query": "token" })),
        ("kg_search_tags", json!({ "tags": ["security"] })),
        ("kg_vector_search", json!({ "query": "token" })),
    ] {
        assert_eq!(cached(tool, arguments), true, "{tool}");
    }
    fixture.put_document("docs/new.md", "# New");
    generate(&fixture);
    assert_eq!(
        cached("kg_search_nodes", json!({ "query": "token" })),
        false
    );
}

#[test]
fn an_answer_says_that_no_document_has_the_words() {
    let fixture = shop();
    generate(&fixture);
    for tool in ["kg_query", "kg_graph_query", "kg_search_nodes"] {
        let found = ask(&fixture, tool, json!({ "query": "checkout" }));
        assert_eq!(found["metadata"]["matched"], "words", "{tool}");
        let reply = fixture.call(tool, json!({ "query": "zzzqqq" }));
        let answer = reply.to_json();
        let nodes = answer["data"]
            .as_array()
            .or(answer["data"]["nodes"].as_array());
        let matched = if nodes.unwrap().is_empty() {
            "none"
        } else {
            assert!(
                reply
                    .remarks
                    .iter()
                    .any(|it| it.contains("no document has every word"))
            );
            "meaning"
        };
        assert_eq!(answer["metadata"]["matched"], matched, "{tool}");
    }
    let all = ask(&fixture, "kg_query", json!({}));
    assert_eq!(all["metadata"]["matched"], Value::Null);
}

#[test]
fn a_hybrid_hit_says_what_found_it() {
    let fixture = shop();
    generate(&fixture);
    let query = json!({ "query": "checkout", "hybrid": true, "k": 50 });
    let found = ask(&fixture, "kg_vector_search", query)["data"]["results"].clone();
    let found = found.as_array().unwrap();
    assert!(found.len() > 3);
    for hit in found {
        let has = |name: &str| hit[name].as_f64().unwrap() > 0.0;
        let expected = match (has("score"), has("keywordScore")) {
            (true, true) => "merged",
            (false, true) => "keyword",
            _ => "vector",
        };
        assert_eq!(hit["source"], expected, "{hit}");
    }
    let sources: std::collections::BTreeSet<&str> = found
        .iter()
        .filter_map(|it| it["source"].as_str())
        .collect();
    assert!(sources.len() > 1, "{sources:?}");
}

#[test]
fn the_cache_is_as_large_as_what_it_holds() {
    let fixture = shop();
    generate(&fixture);
    let size = |fixture: &Fixture| {
        ask(fixture, "kg_cache_stats", json!({}))["data"]["sizeBytes"]
            .as_u64()
            .unwrap()
    };
    let before = size(&fixture);
    let links: String = (0..100).map(|i| format!("[[page {i} of many]] ")).collect();
    fixture.put_document("docs/many.md", &links);
    generate(&fixture);
    assert!(
        size(&fixture) > before + 2_000,
        "{before}, {}",
        size(&fixture)
    );
}

#[test]
fn health_tells_of_runs_that_failed() {
    let fixture = shop();
    generate(&fixture);
    let agents = |fixture: &Fixture| {
        let data = ask(fixture, "kg_health_check", json!({}))["data"].clone();
        (
            data["components"]["agents"].clone(),
            data["componentDetails"]["agents"].clone(),
        )
    };
    let (state, why) = agents(&fixture);
    assert_eq!(state, "healthy");
    assert!(why.as_str().unwrap().contains("0 of 0 runs"), "{why}");
    let missing = json!({ "item_type": "directive", "action": "run", "item_id": "nowhere" });
    for (more, expected) in [(1, "degraded"), (4, "unhealthy")] {
        for _ in 0..more {
            assert!(fixture.call("execute", missing.clone()).is_error());
        }
        assert_eq!(agents(&fixture).0, expected);
    }
}

#[test]
fn what_is_not_there_yet_is_refused_in_the_words_of_the_contract() {
    let fixture = Fixture::without_vault(Selection::default());
    let text = refusal(&fixture, "kg_vector_search", json!({ "query": "x" }));
    assert_eq!(text, "Vector store not initialized");
    ask(
        &fixture,
        "kg_vector_upsert",
        json!({ "id": "a", "vector": [1.0, 0.0] }),
    );
    ask(&fixture, "kg_vector_search", json!({ "query": "x" }));
}

#[test]
fn progress_of_a_generation_goes_on_and_comes_to_an_end() {
    let fixture = shop();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&steps);
    let mut caller = fixture.owner();
    caller.progress = Some(Arc::new(move |done, total, _: &str| {
        theirs.lock().unwrap().push((done, total));
    }));
    let reply = fixture.board.call("kg_graph_generate", json!({}), &caller);
    assert!(!reply.unwrap().is_error());
    let steps = steps.lock().unwrap().clone();
    assert!(steps.len() >= 4, "{steps:?}");
    assert!(steps.windows(2).all(|it| it[0].0 < it[1].0), "{steps:?}");
    let (done, total) = *steps.last().unwrap();
    assert_eq!(Some(done), total, "{steps:?}");
}
