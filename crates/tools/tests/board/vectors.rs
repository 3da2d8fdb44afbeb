//! Vectors that callers bring: `kg_vector_upsert` and `kg_vector_search`.

use crate::everything;
use kenning_engine::kg::NewVector;
use kenning_testing::Fixture;
use serde_json::{Map, Value, json};

fn call(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    let answer = reply.to_json();
    assert_eq!(answer["success"], json!(true));
    assert!(answer["metadata"]["executionTime"].is_u64(), "{answer}");
    assert_eq!(reply.text, answer.to_string());
    answer
}

fn upsert(fixture: &Fixture, arguments: Value) -> Value {
    call(fixture, "kg_vector_upsert", arguments)
}

fn search(fixture: &Fixture, arguments: Value) -> Value {
    call(fixture, "kg_vector_search", arguments)
}

fn refusal(fixture: &Fixture, tool: &str, arguments: Value) -> String {
    let reply = fixture.call(tool, arguments);
    assert!(reply.is_error(), "{tool}: {}", reply.text);
    let answer = reply.to_json();
    assert_eq!(answer["success"], json!(false));
    assert!(answer["metadata"]["executionTime"].is_u64(), "{answer}");
    assert!(answer.get("data").is_none(), "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

fn ids(answer: &Value) -> Vec<&str> {
    let results = answer["data"]["results"].as_array().unwrap();
    assert_eq!(answer["data"]["count"], json!(results.len()));
    results
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect()
}

/// Numbers that look random and are the same every time.
fn numbers(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dimensions).map(|_| number()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let both = a.iter().zip(b);
        both.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn every_refusal_of_an_upsert_begins_with_the_words_of_the_contract() {
    let fixture = Fixture::new();
    upsert(&fixture, json!({ "id": "three", "vector": [1, 2, 3] }));
    let long: Vec<f32> = vec![0.5; 4_097];
    for (arguments, expected) in [
        (json!({ "vector": [1] }), "ID must be a string"),
        (json!({ "id": 5, "vector": [1] }), "ID must be a string"),
        (json!({ "id": null, "vector": [1] }), "ID must be a string"),
        (json!({ "id": ["a"], "vector": [1] }), "ID must be a string"),
        (json!({ "id": "", "vector": [1] }), "ID cannot be empty"),
        (json!({ "id": "a" }), "Vector must be an array"),
        (
            json!({ "id": "a", "vector": "1,2" }),
            "Vector must be an array",
        ),
        (
            json!({ "id": "a", "vector": { "0": 1 } }),
            "Vector must be an array",
        ),
        (json!({ "id": "a", "vector": [] }), "Vector cannot be empty"),
        (
            json!({ "id": "three", "vector": [1, 2] }),
            "Vector dimension mismatch: expected 3, got 2",
        ),
        (
            json!({ "id": "a", "vector": long }),
            "Vector dimension mismatch: expected at most 4096, got 4097",
        ),
        (
            json!({ "id": "a", "vector": [1, "2"] }),
            "Invalid vector element at index 1: must be a finite number",
        ),
        (
            json!({ "id": "a", "vector": [null] }),
            "Invalid vector element at index 0: must be a finite number",
        ),
        (
            json!({ "id": "a", "vector": [1, 2, [3]] }),
            "Invalid vector element at index 2: must be a finite number",
        ),
        (
            json!({ "id": "a", "vector": [0, 1e39] }),
            "Invalid vector element at index 1: must be a finite number",
        ),
        (
            json!({ "id": "a", "vector": [-1e39] }),
            "Invalid vector element at index 0: must be a finite number",
        ),
        (
            json!({ "id": "a", "vector": [true] }),
            "Invalid vector element at index 0: must be a finite number",
        ),
        (
            json!({ "id": "a b", "vector": [1] }),
            "ID \"a b\" is not a valid name",
        ),
        (
            json!({ "id": "a\nb", "vector": [1] }),
            "ID \"a\\nb\" is not a valid name",
        ),
        (
            json!({ "id": "a?", "vector": [1] }),
            "ID \"a?\" is not a valid name",
        ),
        (json!({ "id": "x".repeat(257), "vector": [1] }), "ID \"xxx"),
        (
            json!({ "id": "a", "vector": [1], "namespace": "no spaces" }),
            "Namespace \"no spaces\" is not a valid name",
        ),
        (
            json!({ "id": "a", "vector": [1], "metadata": "text" }),
            "Metadata must be an object",
        ),
        (
            json!({ "id": "a", "vector": [1], "metadata": [1] }),
            "Metadata must be an object",
        ),
    ] {
        let shown = arguments.to_string();
        let text = refusal(&fixture, "kg_vector_upsert", arguments);
        assert!(text.starts_with(expected), "{shown:.80}: {text}");
    }
    let large = "x".repeat(1 << 20);
    let arguments = json!({ "id": "a", "vector": [1], "metadata": { "content": large } });
    let text = refusal(&fixture, "kg_vector_upsert", arguments);
    assert!(text.starts_with("`metadata`: "), "{text}");
    let kinds = fixture.event_kinds();
    assert_eq!(kinds, ["VectorUpserted"], "a refusal leaves nothing behind");
}

#[test]
fn every_refusal_of_a_search_begins_with_the_words_of_the_contract() {
    let fixture = Fixture::new();
    let required = "Query parameter is required and must be a string";
    for (arguments, expected) in [
        (json!({}), required),
        (json!({ "query": "" }), required),
        (json!({ "query": 5 }), required),
        (json!({ "query": null }), required),
        (json!({ "query": ["a"], "vector": [1] }), required),
        (
            json!({ "query": "a", "vector": "b" }),
            "Vector must be an array",
        ),
        (
            json!({ "query": "a", "vector": [] }),
            "Vector cannot be empty",
        ),
        (
            json!({ "query": "a", "vector": [1, "x"] }),
            "Invalid vector element at index 1: must be a finite number",
        ),
        (
            json!({ "query": "a", "type": "rumor" }),
            "`type`: `rumor` is not a type",
        ),
        (
            json!({ "query": "a", "namespace": "a b" }),
            "Namespace \"a b\" is not a valid name",
        ),
        (
            json!({ "query": "a", "filter": { "x": [1] } }),
            "`filter.x`: only plain values can be compared",
        ),
        (json!({ "query": "a", "k": "many" }), "`k`: "),
    ] {
        let shown = arguments.to_string();
        let text = refusal(&fixture, "kg_vector_search", arguments);
        assert!(text.starts_with(expected), "{shown}: {text}");
    }
}

#[test]
fn an_upsert_inserts_then_updates_and_replaces_what_belonged_to_it() {
    let fixture = Fixture::new();
    let vector = numbers(1, 1_536);
    let metadata =
        json!({ "title": "Neural Networks", "type": "concept", "tags": ["AI"], "year": 2024 });
    let first = upsert(
        &fixture,
        json!({ "id": "doc-1", "vector": vector, "metadata": metadata }),
    );
    let expected = json!({
        "id": "doc-1", "operation": "inserted", "dimensions": 1_536, "hasMetadata": true,
        "namespace": "default",
    });
    assert_eq!(first["data"], expected);
    assert_eq!(first["metadata"]["totalVectors"], 1);
    assert_eq!(first["metadata"]["wasUpdate"], false);
    let fields: Vec<&String> = first["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["executionTime", "totalVectors", "wasUpdate"]);

    let found = search(
        &fixture,
        json!({ "vector": vector, "filter": { "year": 2024.0 } }),
    );
    assert_eq!(ids(&found), ["doc-1"]);
    assert_eq!(found["data"]["results"][0]["metadata"], metadata);
    assert_eq!(found["data"]["results"][0]["score"], 1.0);
    assert_eq!(found["data"]["query"], "");

    let second = upsert(
        &fixture,
        json!({ "id": "doc-1", "vector": vector, "metadata": { "title": "Trees" } }),
    );
    assert_eq!(second["data"]["operation"], "updated");
    assert_eq!(second["metadata"]["totalVectors"], 1);
    assert_eq!(second["metadata"]["wasUpdate"], true);
    let found = search(&fixture, json!({ "vector": vector }));
    let result = &found["data"]["results"][0];
    assert_eq!(result["metadata"], json!({ "title": "Trees" }));
    let found = search(
        &fixture,
        json!({ "vector": vector, "filter": { "year": 2024 } }),
    );
    assert!(ids(&found).is_empty(), "what was replaced is not found");
    let found = search(
        &fixture,
        json!({ "query": "neural networks", "hybrid": true }),
    );
    assert_eq!(found["data"]["results"][0]["keywordScore"], 0.0);

    let third = upsert(
        &fixture,
        json!({ "id": "doc-1", "vector": numbers(2, 1_536) }),
    );
    assert_eq!(third["data"]["hasMetadata"], false);
    let found = search(&fixture, json!({ "vector": vector }));
    assert!(found["data"]["results"][0]["score"].as_f64().unwrap() < 0.2);
    let found = search(&fixture, json!({ "query": "trees" }));
    assert!(ids(&found).is_empty(), "nothing is left of the text");

    let kinds = fixture.event_kinds();
    assert_eq!(kinds, ["VectorUpserted"; 3]);
    let events = fixture.board.engine().events_after(&fixture.owner(), 0, 10);
    let data = json!({
        "id": "doc-1", "namespace": "default", "dimensions": 1_536, "operation": "updated",
    });
    assert_eq!(events.unwrap()[1].json["data"], data);
}

#[test]
fn the_same_upsert_twice_is_one_event() {
    let fixture = Fixture::new();
    let arguments =
        json!({ "id": "a", "vector": [0.25, 0.1], "metadata": { "rate": 0.1, "title": "x" } });
    upsert(&fixture, arguments.clone());
    fixture.clock.advance(1_000);
    let again = upsert(&fixture, arguments);
    assert_eq!(again["data"]["operation"], "updated");
    assert_eq!(fixture.event_kinds(), ["VectorUpserted"]);
}

#[test]
fn a_search_has_the_shape_of_the_contract_and_its_defaults() {
    let fixture = Fixture::new();
    for i in 0..12 {
        upsert(
            &fixture,
            json!({ "id": format!("v{i}"), "vector": numbers(i, 8), "metadata": { "title": format!("note {i} about rivers") } }),
        );
    }
    let found = search(&fixture, json!({ "query": "rivers" }));
    assert_eq!(ids(&found).len(), 10);
    let fields: Vec<&String> = found["data"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["results", "count", "query", "searchMode", "filters"]
    );
    assert_eq!(found["data"]["query"], "rivers");
    assert_eq!(found["data"]["searchMode"], "vector");
    let filters = json!({ "type": null, "minScore": null, "namespace": null });
    assert_eq!(found["data"]["filters"], filters);
    let fields: Vec<&String> = found["metadata"].as_object().unwrap().keys().collect();
    // The last is there because there is more than was asked for.
    assert_eq!(
        fields,
        [
            "executionTime",
            "totalVectors",
            "indexType",
            "cached",
            "truncated"
        ]
    );
    assert_eq!(found["metadata"]["totalVectors"], 12);
    assert_eq!(found["metadata"]["indexType"], "exact");
    assert_eq!(found["metadata"]["cached"], false);
    let fields: Vec<&String> = found["data"]["results"][0]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(fields, ["id", "score", "metadata", "namespace"]);

    for (k, n) in [
        (json!(0), 1),
        (json!(-3), 1),
        (json!(3.9), 3),
        (json!(1_000), 12),
    ] {
        let found = search(&fixture, json!({ "vector": numbers(3, 8), "k": k }));
        assert_eq!(ids(&found).len(), n, "{k}");
        assert_eq!(ids(&found)[0], "v3");
    }
    let found = search(&fixture, json!({ "vector": numbers(3, 8), "minScore": 7 }));
    assert_eq!(ids(&found), ["v3"]);
    assert_eq!(found["data"]["filters"]["minScore"], 1.0);
    let found = search(&fixture, json!({ "query": "...!?", "hybrid": true }));
    assert!(ids(&found).is_empty());
}

#[test]
fn a_namespace_keeps_vectors_apart_and_default_is_one() {
    let fixture = Fixture::new();
    let vector = json!([0.5, 0.5, 0.0]);
    upsert(&fixture, json!({ "id": "a", "vector": vector }));
    upsert(
        &fixture,
        json!({ "id": "a", "vector": vector, "namespace": "team/x" }),
    );
    upsert(
        &fixture,
        json!({ "id": "x/a", "vector": vector, "namespace": "team" }),
    );
    upsert(
        &fixture,
        json!({ "id": "a", "vector": [1, 0], "namespace": "flat" }),
    );
    let total = upsert(
        &fixture,
        json!({ "id": "b", "vector": [0, 1, 0], "namespace": "" }),
    );
    assert_eq!(total["data"]["namespace"], "default");
    assert_eq!(total["metadata"]["totalVectors"], 5);
    for (namespace, expected) in [
        (json!("default"), vec!["a", "b"]),
        (json!("team/x"), vec!["a"]),
        (json!("team"), vec!["x/a"]),
        (json!("flat"), vec![]),
        (json!("nobody"), vec![]),
        (json!(null), vec!["a", "a", "x/a", "b"]),
    ] {
        let found = search(
            &fixture,
            json!({ "vector": vector, "namespace": namespace }),
        );
        let mut found = ids(&found);
        found.sort_unstable();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(found, expected, "{namespace}");
    }
    let engine = fixture.board.engine();
    let namespaces = engine.kg().vector_namespaces(&fixture.owner()).unwrap();
    let shown: Vec<String> = namespaces
        .iter()
        .map(|it| format!("{} {} {}", it.namespace, it.dimensions, it.vectors))
        .collect();
    assert_eq!(shown, ["default 3 2", "flat 2 1", "team 3 1", "team/x 3 1"]);
}

#[test]
fn odd_names_are_kept_as_they_are() {
    let fixture = Fixture::new();
    let names = [
        "a",
        "a/b",
        "a:b.c-d_e",
        "été",
        "文書-1",
        "..",
        "/",
        "x".repeat(256).leak(),
    ];
    for (i, id) in names.iter().enumerate() {
        upsert(
            &fixture,
            json!({ "id": id, "vector": numbers(i as u64, 5) }),
        );
    }
    for (i, id) in names.iter().enumerate() {
        let found = search(&fixture, json!({ "vector": numbers(i as u64, 5), "k": 1 }));
        assert_eq!(ids(&found), [*id]);
    }
}

#[test]
fn zeros_are_kept_and_never_near() {
    let fixture = Fixture::new();
    upsert(
        &fixture,
        json!({ "id": "zeros", "vector": [0, 0], "metadata": { "title": "an empty vector" } }),
    );
    upsert(&fixture, json!({ "id": "far", "vector": [-1, 0] }));
    let found = search(&fixture, json!({ "vector": [1, 0] }));
    assert_eq!(ids(&found), ["far"], "the farthest is nearer than nothing");
    assert_eq!(found["data"]["results"][0]["score"], 0.0);
    assert!(ids(&search(&fixture, json!({ "vector": [0, 0] }))).is_empty());
    let found = search(
        &fixture,
        json!({ "query": "empty vector", "includeVectors": true }),
    );
    assert_eq!(ids(&found), ["zeros"], "its text is found");
    assert_eq!(found["data"]["results"][0]["vector"], json!([0.0, 0.0]));
}

#[test]
fn numbers_of_any_size_have_their_direction() {
    let fixture = Fixture::new();
    upsert(&fixture, json!({ "id": "huge", "vector": [3e38, 3e38] }));
    upsert(&fixture, json!({ "id": "tiny", "vector": [1e-38, -1e-38] }));
    let found = search(&fixture, json!({ "vector": [1e-30, 1e-30] }));
    assert_eq!(ids(&found), ["huge", "tiny"]);
    assert_eq!(found["data"]["results"][0]["score"], 1.0);
    assert_eq!(found["data"]["results"][1]["score"], 0.0);
}

#[test]
fn the_numbers_come_back_as_they_were_written() {
    let fixture = Fixture::new();
    upsert(
        &fixture,
        json!({ "id": "a", "vector": [0.1, -2.5, 1e-7, 3] }),
    );
    let found = search(
        &fixture,
        json!({ "vector": [0, -1, 0, 1], "includeVectors": true }),
    );
    let vector = &found["data"]["results"][0]["vector"];
    assert_eq!(vector.to_string(), "[0.1,-2.5,1e-7,3.0]");
}

#[test]
fn an_answer_with_numbers_is_not_longer_than_a_client_can_read() {
    let fixture = Fixture::new();
    let new = (0..20).map(|i| NewVector {
        id: format!("v{i}"),
        numbers: numbers(i, 1_536),
        ..NewVector::default()
    });
    let engine = fixture.board.engine();
    engine
        .kg()
        .upsert_vectors(&fixture.owner(), new.collect())
        .unwrap();
    let asked = json!({ "vector": numbers(3, 1_536), "k": 20, "includeVectors": true });
    let (mut asked, mut seen) = (asked, Vec::new());
    for _ in 0..20 {
        let found = search(&fixture, asked.clone());
        assert!(found.to_string().len() <= 80_000);
        seen.extend(ids(&found).iter().map(ToString::to_string));
        let cursor = &found["metadata"]["truncated"][0]["cursor"];
        if cursor.is_null() {
            break;
        }
        asked["cursor"] = cursor.clone();
    }
    assert_eq!(seen.len(), 20);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20);

    for i in 0..100 {
        let content = "a long story ".repeat(1_000);
        let metadata = json!({ "content": content, "list": vec![7; 300] });
        upsert(
            &fixture,
            json!({ "id": format!("long{i}"), "vector": numbers(i, 3), "metadata": metadata }),
        );
    }
    let reply = fixture.call("kg_vector_search", json!({ "query": "story", "k": 100 }));
    assert!(reply.text.len() < 80_000, "{}", reply.text.len());
    let found = reply.to_json();
    assert!(ids(&found).len() > 20);
    let remark = found["metadata"]["remark"].as_str().unwrap();
    assert!(
        remark.contains("long metadata is shown in part"),
        "{remark}"
    );
}

/// Callers' vectors of which one in a hundred is rare.
fn fill(fixture: &Fixture, n: u64) {
    let new = (0..n).map(|i| {
        let rare = i % 100 == 42;
        let metadata = json!({
            "type": if rare { "standard" } else { "concept" },
            "tags": if i % 2 == 0 { json!(["even"]) } else { json!(["odd"]) },
            "title": format!("river number {i}"), "n": i, "old": i < 100,
        });
        NewVector {
            id: format!("v{i}"),
            numbers: numbers(i + 1, 32),
            metadata: metadata.as_object().unwrap().clone(),
            ..NewVector::default()
        }
    });
    let engine = fixture.board.engine();
    engine
        .kg()
        .upsert_vectors(&fixture.owner(), new.collect())
        .unwrap();
}

#[test]
fn a_filter_comes_before_the_limit() {
    let fixture = Fixture::new();
    fill(&fixture, 5_000);
    let mut exact: Vec<(f64, u64)> = (0..5_000)
        .filter(|i| i % 100 == 42)
        .map(|i| {
            let cosine = cosine(&numbers(7_777, 32), &numbers(i + 1, 32));
            (cosine, i)
        })
        .collect();
    exact.sort_by(|a, b| b.0.total_cmp(&a.0));
    let expected: Vec<String> = exact[..10].iter().map(|it| format!("v{}", it.1)).collect();
    for filter in [
        json!({ "type": "standard" }),
        json!({ "filter": { "type": "standard" } }),
        json!({ "type": "standard", "tags": ["even"] }),
    ] {
        let mut asked = json!({ "vector": numbers(7_777, 32), "k": 10 });
        let asked_fields = asked.as_object_mut().unwrap();
        asked_fields.extend(filter.as_object().unwrap().clone());
        let found = search(&fixture, asked.clone());
        assert_eq!(ids(&found), expected, "{filter}");
        let by_text = json!({ "query": "river", "k": 10, "vector": null });
        asked
            .as_object_mut()
            .unwrap()
            .extend(by_text.as_object().unwrap().clone());
        assert_eq!(ids(&search(&fixture, asked)).len(), 10, "{filter} by text");
    }
    for (filter, n) in [
        (json!({ "old": true, "type": "standard" }), 1),
        (json!({ "n": 4_999 }), 1),
        (json!({ "n": "4999" }), 0),
        (json!({ "title": "river number 17" }), 1),
        (json!({ "tags": "even", "old": true }), 50),
        (json!({ "nothing": 1 }), 0),
        (json!({ "old": true, "nothing": 1 }), 0),
    ] {
        for by in [
            json!({ "vector": numbers(9, 32) }),
            json!({ "query": "river" }),
        ] {
            let mut asked = json!({ "k": 100, "filter": filter });
            asked
                .as_object_mut()
                .unwrap()
                .extend(by.as_object().unwrap().clone());
            assert_eq!(ids(&search(&fixture, asked)).len(), n, "{filter} {by}");
        }
    }
    let found = search(
        &fixture,
        json!({ "vector": numbers(9, 32), "tags": ["even", "odd"] }),
    );
    assert!(ids(&found).is_empty());
}

#[test]
fn a_hybrid_search_ranks_by_the_formula_of_the_contract_and_misses_no_word() {
    let fixture = Fixture::new();
    for i in 0..150 {
        upsert(
            &fixture,
            json!({ "id": format!("v{i}"), "vector": [1, i], "metadata": { "title": format!("Garden diary {i}"), "content": "roses and tulips in the garden" } }),
        );
    }
    upsert(
        &fixture,
        json!({ "id": "code", "vector": [1, 999], "metadata": { "title": "zx81 garden manual", "content": "about the ZX81 computer", "description": "a zx81", "tags": ["zx81"] } }),
    );
    let found = search(
        &fixture,
        json!({ "query": "garden of the zx81", "hybrid": true, "k": 5 }),
    );
    assert_eq!(found["data"]["searchMode"], "hybrid");
    let first = &found["data"]["results"][0];
    assert_eq!(first["id"], "code");
    assert_eq!(first["source"], "merged");
    // Words of more than two letters: garden (title), the (content), zx81 (all four).
    assert_eq!(first["keywordScore"], 0.5);
    for result in found["data"]["results"].as_array().unwrap() {
        let number = |name: &str| result[name].as_f64().unwrap();
        let expected = 0.7 * number("score") + 0.3 * number("keywordScore");
        assert!(
            (number("combinedScore") - expected).abs() < 1.1e-4,
            "{result}"
        );
    }
    let asked = json!({ "query": "zx81", "vector": [1, 0], "hybrid": true, "k": 3 });
    let found = search(&fixture, asked);
    let results = found["data"]["results"].as_array().unwrap();
    assert_eq!(results[0]["id"], "v0", "near, though it lacks the word");
    let code = json!({ "query": "zx81", "vector": [1, 999], "hybrid": true, "k": 3 });
    assert_eq!(ids(&search(&fixture, code))[0], "code");
}

#[test]
fn documents_are_found_by_text_beside_what_callers_brought() {
    let fixture = Fixture::new();
    let note = json!({ "path": "Rivers/Rhine.md", "content": "# Rhine\n\nThe Rhine flows through Basel and Cologne." });
    let reply = fixture.call("vault_write_note", note);
    assert!(!reply.is_error(), "{}", reply.text);
    upsert(
        &fixture,
        json!({ "id": "doc-rhine", "vector": [1, 2], "metadata": { "title": "The Rhine", "content": "A river that flows through Basel" } }),
    );
    let found = search(
        &fixture,
        json!({ "query": "which river flows through Basel", "includeVectors": true }),
    );
    let mut both = ids(&found);
    both.sort_unstable();
    assert_eq!(both, ["doc-rhine", "vault/rivers/rhine"]);
    assert_eq!(found["metadata"]["totalVectors"], 2);
    for result in found["data"]["results"].as_array().unwrap() {
        let dimensions = result["vector"].as_array().unwrap().len();
        let score = result["score"].as_f64().unwrap();
        assert!(score > 0.0 && score <= 1.0, "{result}");
        if result["id"] == "doc-rhine" {
            assert_eq!((dimensions, &result["namespace"]), (2, &json!("default")));
        } else {
            assert_eq!(dimensions, 256);
            assert_eq!(result["metadata"]["path"], "vault:Rivers/Rhine.md");
            assert!(result.get("namespace").is_none());
        }
    }
    for (namespace, expected) in [
        ("documents", "vault/rivers/rhine"),
        ("default", "doc-rhine"),
    ] {
        let found = search(
            &fixture,
            json!({ "query": "Basel", "namespace": namespace }),
        );
        assert_eq!(ids(&found), [expected]);
        assert_eq!(found["data"]["filters"]["namespace"], namespace);
    }
}

#[test]
fn two_processes_see_what_the_other_wrote_and_removed() {
    let one = Fixture::new();
    let two = everything(&one);
    let asked = json!({ "vector": [1, 0, 0], "k": 100 });
    let both = |expected: &[&str]| {
        for fixture in [&one, &two] {
            let found = search(fixture, asked.clone());
            let mut found = ids(&found);
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    };
    upsert(&one, json!({ "id": "a", "vector": [1, 0, 0] }));
    both(&["a"]);
    upsert(&two, json!({ "id": "b", "vector": [0, 1, 0] }));
    upsert(
        &one,
        json!({ "id": "c", "vector": [0, 0, 1], "metadata": { "title": "c" } }),
    );
    both(&["a", "b", "c"]);
    let delete = |fixture: &Fixture, id: &str| {
        let engine = fixture.board.engine();
        engine
            .kg()
            .delete_vector(&fixture.owner(), None, id)
            .unwrap()
    };
    assert!(delete(&one, "b"));
    assert!(!delete(&two, "b"), "it is gone for both");
    both(&["a", "c"]);
    assert!(delete(&two, "a"));
    upsert(&two, json!({ "id": "a", "vector": [1, 0, 0] }));
    assert!(delete(&one, "c"));
    both(&["a"]);
    for fixture in [&one, &two] {
        assert!(ids(&search(fixture, json!({ "query": "c" }))).is_empty());
    }
    let total = upsert(&one, json!({ "id": "a", "vector": [0, 1, 0] }));
    assert_eq!(total["metadata"]["totalVectors"], 1);
    upsert(&two, json!({ "id": "b", "vector": [0.9, 0.1, 0] }));
    both(&["a", "b"]);
    for fixture in [&one, &two] {
        assert_eq!(
            ids(&search(fixture, asked.clone()))[0],
            "b",
            "`a` was turned away"
        );
    }
    // A new process reads the same.
    let three = everything(&one);
    assert_eq!(ids(&search(&three, asked.clone())), ["b", "a"]);
    let verified = three
        .board
        .engine()
        .verify(&kenning_core::Space::default(), &|_| ());
    assert!(verified.unwrap().faults.is_empty());
}

#[test]
fn what_belongs_to_a_vector_may_be_anything() {
    let fixture = Fixture::new();
    let metadata = json!({
        "title": 5, "tags": "one", "type": { "a": [1, null] }, "nothing": null, "文": "字", "": true,
    });
    upsert(
        &fixture,
        json!({ "id": "a", "vector": [1], "metadata": metadata }),
    );
    for filter in [
        json!({ "title": 5 }),
        json!({ "文": "字" }),
        json!({ "": true }),
        json!({ "tags": "one" }),
    ] {
        let found = search(&fixture, json!({ "vector": [1], "filter": filter }));
        assert_eq!(
            found["data"]["results"][0]["metadata"], metadata,
            "{filter}"
        );
    }
    upsert(
        &fixture,
        json!({ "id": "b", "vector": [1], "metadata": Map::new() }),
    );
    upsert(
        &fixture,
        json!({ "id": "c", "vector": [1], "metadata": null }),
    );
    assert_eq!(ids(&search(&fixture, json!({ "vector": [1] }))).len(), 3);
}

/// `{"a":{"a":…1}}` with so many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }))
}

#[test]
fn metadata_nested_too_deep_is_refused_by_name_and_the_next_backup_can_be_restored() {
    let fixture = everything(&Fixture::new());
    let put = |id: &str, levels| json!({ "id": id, "vector": [1], "metadata": nested(levels) });
    for levels in [64, 125] {
        let error = refusal(&fixture, "kg_vector_upsert", put("deep", levels));
        assert!(error.contains("`metadata`"), "{error}");
        assert!(error.contains(&format!("{levels} levels")), "{error}");
    }
    upsert(&fixture, put("deep-enough", 60));
    let reply = fixture.call("vault_backup", json!({}));
    assert!(!reply.is_error(), "{}", reply.text);
    let id = reply.to_json()["backup_id"].as_str().unwrap().to_owned();
    let verified = fixture
        .board
        .engine()
        .backup_verify(&fixture.owner(), &id, false);
    assert_eq!(verified.unwrap().files[0], "store.jsonl");
}

#[test]
fn no_tool_takes_arguments_that_are_nested_too_deep() {
    let fixture = everything(&Fixture::new());
    for tool in kenning_tools::TOOLS {
        let reply = fixture.call(tool.name(), json!({ "anything": nested(100) }));
        assert!(reply.is_error(), "{}", tool.name());
        assert!(reply.text.contains("100 levels"), "{}", reply.text);
    }
}
