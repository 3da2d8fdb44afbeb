//! Memories by their ids, near-identical ones, beliefs with a threshold, daily logs, and copies that keep ids and dates.

use crate::everything;
use crate::memories::{believe, recall, store};
use kenning_testing::Fixture;
use serde_json::{Value, json};

#[test]
fn related_memories_are_read_by_their_ids() {
    let fixture = Fixture::new();
    let one = store(
        &fixture,
        json!({ "content": "Auth design: tokens live ten minutes" }),
    );
    let two = store(
        &fixture,
        json!({ "content": "Refreshed the middleware", "memory_id": "middleware", "related_to": [one] }),
    );
    store(
        &fixture,
        json!({ "content": "The office plants are watered on Mondays" }),
    );
    let found = recall(&fixture, json!({ "query": "refreshed the middleware" }));
    let related = found[0]["related_memories"].clone();
    assert_eq!(related, json!([one]));
    // As they stand there, with the tools that everybody has.
    for query in [one.clone(), related.to_string(), format!("`{one}`, {one}")] {
        let found = recall(&fixture, json!({ "query": query }));
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        assert_eq!(found[0]["content"], "Auth design: tokens live ten minutes");
        assert_eq!(found[0]["relevance"], 1.0);
        assert_eq!(found[0]["related_memories"], json!([two]));
    }
    assert_eq!(
        recall(&fixture, json!({ "query": one, "memory_type": "fact" })),
        Vec::<Value>::new()
    );
    // A name that somebody chose is also a word.
    let found = recall(
        &fixture,
        json!({ "query": "middleware", "min_relevance": 0 }),
    );
    assert_eq!(found[0]["memory_id"], "middleware");
    assert!(found.len() > 1, "{found:?}");
    let unknown = format!("mem_{}", "0".repeat(32));
    assert_eq!(
        recall(&fixture, json!({ "query": unknown })),
        Vec::<Value>::new()
    );
    // Everything about them, with a tool of its own.
    let all = everything(&fixture);
    let got = all.call("memory_get", json!({ "memory_ids": [two, "nobody", one] }));
    assert!(!got.is_error(), "{}", got.text);
    let got = got.to_json();
    assert_eq!(got["missing"], json!(["nobody"]));
    assert_eq!(got["memories"][0]["memory_id"], json!(two));
    let expected = json!([{ "memory_id": one, "relation": "RELATED_TO", "strength": 0.5, "direction": "out" }]);
    assert_eq!(got["memories"][0]["relations"], expected);
    assert_eq!(got["memories"][1]["relations"][0]["direction"], "in");
    let text = all.call("memory_get", json!({ "memory_ids": [] })).text;
    assert!(
        text.contains("`memory_ids`: 0 ids are not between 1 and 10"),
        "{text}"
    );
    let many: Vec<String> = (0..11).map(|it| it.to_string()).collect();
    let text = all.call("memory_get", json!({ "memory_ids": many })).text;
    assert!(text.contains("11 ids"), "{text}");
}

#[test]
fn a_long_memory_is_read_by_its_id_part_by_part() {
    let fixture = Fixture::new();
    let content: String = (0..2_000).map(|i| format!("line {i} é\n")).collect();
    let id = store(&fixture, json!({ "content": content }));
    let all = everything(&fixture);
    let (mut whole, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let got = all.call("memory_get", json!({ "memory_ids": [id], "offset": from }));
        let got = got.to_json()["memories"][0].clone();
        assert_eq!(got["part_of_chars"], json!(content.chars().count()));
        let part = got["content"].as_str().unwrap();
        assert!(part.chars().count() <= 6_000);
        whole += part;
        offset = got["next_offset"].as_u64();
    }
    assert_eq!(whole, content);
    let found = recall(&fixture, json!({ "query": id }));
    assert!(found[0]["content"].as_str().unwrap().chars().count() <= 6_000);
    assert_eq!(found[0]["part_of_chars"], json!(content.chars().count()));
}

#[test]
fn memories_that_differ_by_a_period_take_one_place() {
    let fixture = Fixture::new();
    let ids: Vec<String> = [
        "The staging cache is cold",
        "the staging cache is cold.",
        "The staging cache is cold!",
    ]
    .iter()
    .map(|it| store(&fixture, json!({ "content": it })))
    .collect();
    let fact = store(
        &fixture,
        json!({ "content": "The staging cache is cold", "memory_type": "fact" }),
    );
    let other = store(&fixture, json!({ "content": "The staging cache is cold?" }));
    let found = recall(
        &fixture,
        json!({ "query": "is the staging cache cold", "limit": 3, "min_relevance": 0 }),
    );
    assert_eq!(found.len(), 3, "{found:?}");
    let of = |id: &str| found.iter().find(|it| it["memory_id"] == id);
    assert!(of(&fact).is_some() && of(&other).is_some(), "{found:?}");
    let kept = ids.iter().find_map(|it| of(it)).unwrap();
    let mut all: Vec<&str> = kept["near_identical"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    all.push(kept["memory_id"].as_str().unwrap());
    all.sort_unstable();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn no_edge_is_stronger_than_one() {
    let fixture = Fixture::new();
    for text in [
        "Deploys run on Tuesdays",
        "Deploys run on Tuesdays.",
        "deploys run on Tuesdays",
    ] {
        store(&fixture, json!({ "content": text }));
    }
    let engine = fixture.board.engine();
    engine.omi().settle();
    let graph = engine.omi().memory_graph(&fixture.owner()).unwrap();
    let similar: Vec<f64> = graph
        .edges
        .iter()
        .filter(|it| it.relation == "similar")
        .map(|it| it.strength)
        .collect();
    assert!(!similar.is_empty());
    assert!(
        similar.iter().all(|it| (0.0..=1.0).contains(it)),
        "{similar:?}"
    );
}

#[test]
fn beliefs_that_have_nothing_to_do_with_the_query_are_left_out() {
    let fixture = Fixture::new();
    store(
        &fixture,
        json!({ "content": "Caching speeds the API up", "memory_type": "belief", "confidence": 0.6 }),
    );
    store(
        &fixture,
        json!({ "content": "Olive trees need little water", "memory_type": "belief", "confidence": 0.99 }),
    );
    let all = everything(&fixture);
    let found = |arguments: Value| {
        let reply = all.call("belief_retrieve", arguments);
        assert!(!reply.is_error(), "{}", reply.text);
        let found = reply.to_json();
        let contents = found.as_array().unwrap().iter();
        contents
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(json!({ "query": "does caching make the API faster" })),
        ["Caching speeds the API up"]
    );
    let all = found(json!({ "query": "does caching make the API faster", "min_relevance": 0 }));
    assert_eq!(all.len(), 2);
}

#[test]
fn entries_of_the_daily_log_are_recalled() {
    let fixture = Fixture::new();
    let all = everything(&fixture);
    let append = |text: &str| {
        let reply = all.call("daily_append", json!({ "content": text }));
        assert!(!reply.is_error(), "{}", reply.text);
    };
    append("Moved the nightly backup to the harbor server");
    append("Lunch with the auditors about invoice numbers");
    store(
        &fixture,
        json!({ "content": "The office plants are watered on Mondays" }),
    );
    fixture.call(
        "now_update",
        json!({ "current_task": "where the nightly backup runs" }),
    );
    let found = recall(
        &fixture,
        json!({ "query": "where does the nightly backup run" }),
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0]["content"],
        "Moved the nightly backup to the harbor server"
    );
    assert_eq!(found[0]["memory_type"], "experience");
    assert_eq!(found[0]["memory_id"], "omi:memory/2027-01-15.md");
    // The id leads to the whole day, and can be evidence.
    let got = all.call(
        "memory_get",
        json!({ "memory_ids": [found[0]["memory_id"]] }),
    );
    assert!(got.text.contains("invoice numbers"), "{}", got.text);
    let belief = store(
        &fixture,
        json!({ "content": "The harbor server is reliable", "memory_type": "belief" }),
    );
    believe(&fixture, &belief, "omi:memory/2027-01-15.md", true, 0.5);
    for (memory_type, n) in [("experience", 1), ("fact", 0)] {
        let found = recall(
            &fixture,
            json!({ "query": "where does the nightly backup run", "memory_type": memory_type }),
        );
        assert_eq!(found.len(), n, "{memory_type}: {found:?}");
    }
    // That a session ended is no memory of what it was about.
    let engine = fixture.board.engine();
    engine.omi().session_end(&fixture.owner(), None).unwrap();
    let found = recall(
        &fixture,
        json!({ "query": "session ended, last task: where the nightly backup runs", "min_relevance": 0 }),
    );
    let texts: Vec<&str> = found
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert!(
        !texts.iter().any(|it| it.contains("Session ended")),
        "{texts:?}"
    );
    // Cut again, it is found again.
    let owner = fixture.owner();
    engine.reindex(&owner).unwrap();
    let found = recall(
        &fixture,
        json!({ "query": "where does the nightly backup run" }),
    );
    assert_eq!(
        found[0]["content"],
        "Moved the nightly backup to the harbor server"
    );
}

#[test]
fn an_import_cannot_pose_as_another_memory() {
    let fixture = Fixture::new();
    store(
        &fixture,
        json!({ "content": "Deploys happen on Tuesdays", "memory_id": "orig" }),
    );
    let engine = fixture.board.engine();
    for (key, memory_id, memory_type) in [
        ("id:other", json!("orig"), json!("fact")),
        ("content:x", json!("orig"), json!("fact")),
        ("id:a", json!(["x"]), json!("fact")),
        ("id:a", json!("a"), json!({ "a": 1 })),
        ("id:a", json!("a"), json!("rumor")),
    ] {
        let line = json!({ "node": {
            "kind": "memory", "key": key, "body": "Deploys happen never",
            "props": { "memory_id": memory_id, "memory_type": memory_type },
        } });
        let line = line.to_string();
        let refused = engine.import(&fixture.owner(), &mut line.as_bytes());
        assert!(refused.is_err(), "{line}");
    }
}

#[test]
fn export_and_import_keep_ids_and_dates() {
    let one = Fixture::new();
    let old = store(
        &one,
        json!({ "content": "Deploys happen on Tuesdays", "memory_type": "fact" }),
    );
    let named = store(
        &one,
        json!({ "content": "The harbor is full", "memory_id": "harbor" }),
    );
    one.clock.advance(5 * 86_400_000);
    let new = store(
        &one,
        json!({ "content": "Deploys happen on Thursdays", "memory_type": "fact", "supersedes": old, "related_to": [named] }),
    );
    everything(&one).call(
        "daily_append",
        json!({ "content": "Painted the lighthouse" }),
    );
    let export = |fixture: &Fixture| {
        let mut out = Vec::new();
        let engine = fixture.board.engine();
        engine.export(&fixture.owner(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let exported = export(&one);
    let other = Fixture::new();
    other.clock.advance(60 * 86_400_000);
    let engine = other.board.engine();
    let import = |text: &str| {
        let mut input = text.as_bytes();
        engine.import(&other.owner(), &mut input).unwrap()
    };
    import(&exported);
    let logs = std::fs::read_dir(other.omi().join("memory"))
        .unwrap()
        .count();
    assert!(logs >= 1, "the file of the log is there too");
    let check = other.call("integrity_check", json!({}));
    assert!(!check.text.contains("missing"), "{}", check.text);
    let ask = |fixture: &Fixture, query: &str| {
        recall(
            fixture,
            json!({ "query": query, "limit": 1, "min_relevance": 0 }),
        )[0]
        .clone()
    };
    for query in [
        "when do deploys happen",
        "is the harbor full",
        "who painted the lighthouse",
    ] {
        let (here, there) = (ask(&one, query), ask(&other, query));
        for field in ["memory_id", "content", "created_at", "related_memories"] {
            assert_eq!(here[field], there[field], "{query}: {field}");
        }
        assert!(
            there["final_score"].as_f64() < here["final_score"].as_f64(),
            "it is as old as it was: {there}"
        );
    }
    // What is read by its id is the same too, the superseded one included.
    let details = |fixture: &Fixture| {
        let got = everything(fixture).call("memory_get", json!({ "memory_ids": [old, new] }));
        let mut got = got.to_json();
        for memory in got["memories"].as_array_mut().unwrap() {
            memory["access_count"] = json!(0);
        }
        got
    };
    assert_eq!(details(&one), details(&other));
    assert_eq!(details(&other)["memories"][0]["superseded_by"], json!(new));
    // The log holds, and a second time changes nothing, nor does what was exported from here.
    let revision = || {
        let report = engine
            .verify(&other.owner().principal.space, &|_| ())
            .unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
        engine.roots(&other.owner()).unwrap().state_root
    };
    let before = revision();
    import(&exported);
    import(&export(&other));
    assert_eq!(revision(), before);
    assert_eq!(export(&other).lines().count(), exported.lines().count());
    // The past is asked by the dates that memories had.
    let found = recall(
        &other,
        json!({ "query": "when do deploys happen", "as_of": "2027-01-16T00:00:00Z" }),
    );
    assert_eq!(found[0]["memory_id"], json!(old));
    let bad = engine.import(
        &other.owner(),
        &mut r#"{"node":{"kind":"memory","key":"x","created_ms":"soon"}}"#.as_bytes(),
    );
    let message = bad.unwrap_err().message;
    assert!(message.contains("`created_ms`"), "{message}");
}

#[test]
fn an_import_refuses_properties_that_are_nested_too_deep_and_names_the_line() {
    let fixture = everything(&Fixture::new());
    let good = r#"{"node":{"kind":"document","key":"a","props":{"x":[[1]]}}}"#;
    for levels in [64, 120, 400] {
        let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let bad = format!(r#"{{"node":{{"kind":"document","key":"b","props":{{"x":{deep}}}}}}}"#);
        let input = format!("{good}\n{bad}\n");
        let refused = fixture
            .board
            .engine()
            .import(&fixture.owner(), &mut input.as_bytes());
        let message = refused.unwrap_err().message;
        assert!(message.starts_with("line 2: `x`"), "{message}");
        assert!(message.contains(&format!("{levels} levels")), "{message}");
    }
}

#[test]
fn two_edges_with_equal_ends_in_one_import_are_one_edge() {
    let fixture = everything(&Fixture::new());
    let node = |id: &str, key: &str| {
        json!({ "node": { "id": id, "kind": "document", "key": key } }).to_string()
    };
    let (a, b) = (
        "00000000-0000-7000-8000-000000000001",
        "00000000-0000-7000-8000-000000000002",
    );
    let edge = |weight: f64| {
        json!({ "edge": { "src": a, "rel": "links", "dst": b, "weight": weight } }).to_string()
    };
    let lines = [node(a, "a"), node(b, "b"), edge(0.25), edge(0.75)].join("\n");
    let engine = fixture.board.engine();
    let done = engine.import(&fixture.owner(), &mut lines.as_bytes());
    assert_eq!(done.unwrap().edges, 2);
    let mut exported = Vec::new();
    engine.export(&fixture.owner(), &mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    let edges: Vec<&str> = exported
        .lines()
        .filter(|it| it.contains("\"edge\""))
        .collect();
    assert_eq!(edges.len(), 1, "{edges:?}");
    assert!(edges[0].contains("0.75"), "{edges:?}");
    let report = engine.verify(&fixture.owner().principal.space, &|_| ());
    assert!(report.unwrap().is_clean());
}
