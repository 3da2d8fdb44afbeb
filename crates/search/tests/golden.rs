//! The pipeline gives what the reference arithmetic gives.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_core::{Hash, Hlc, Kind, NodeId};
use kenning_search::{Filter, Index, Mode, Query, passages};
use kenning_store::Node;
use serde_json::{Map, Value};

fn note(n: u8, text: &str) -> Node {
    Node {
        id: NodeId([n; 16]),
        kind: Kind::Memory,
        project: String::new(),
        key: n.to_string(),
        title: String::new(),
        body: text.to_owned(),
        props: Map::new(),
        created: Hlc::default(),
        updated: Hlc::default(),
        hash: Hash::default(),
        rev: 1,
    }
}

fn index_of(notes: &[&str]) -> Index {
    let mut index = Index::new();
    for (n, text) in notes.iter().enumerate() {
        index.put(&note(u8::try_from(n).unwrap(), text), &passages("", text));
    }
    index
}

fn query<'a>(text: &'a str, filter: &'a Filter) -> Query<'a> {
    Query {
        text,
        mode: Mode::Hybrid,
        filter,
        limit: 10,
        vector: None,
    }
}

/// What the reference printed, and an index of its notes.
fn golden() -> (Value, Index) {
    let text = include_str!("../../embed/tests/golden-ext256.json");
    let golden: Value = serde_json::from_str(text).unwrap();
    let notes = golden["notes"].as_array().unwrap().iter();
    let notes: Vec<&str> = notes.map(|it| it.as_str().unwrap()).collect();
    let index = index_of(&notes);
    (golden, index)
}

fn check(what: &str, found: &[f64], expected: &Value) {
    let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(&expected) {
        assert!(
            (a - b).abs() < 1e-4,
            "{what}: {found:?} is not {expected:?}"
        );
    }
}

/// Notes of two threads, some without one, and one with names.
fn golden_threads() -> (Value, Index) {
    let (golden, _) = golden();
    let mut index = Index::new();
    for (n, case) in (0..).zip(golden["thread_notes"].as_array().unwrap()) {
        let text = case["text"].as_str().unwrap();
        let mut node = note(n, text);
        node.created = Hlc::from_ms(u64::from(n));
        if let Some(thread) = case["thread"].as_str() {
            node.props.insert("session_id".to_owned(), thread.into());
        }
        node.props
            .insert("aliases".to_owned(), case["names"].clone());
        index.put(&node, &passages("", text));
    }
    (golden, index)
}

fn check_stages(index: &Index, searches: &Value) {
    let filter = Filter::default();
    for case in searches.as_array().unwrap() {
        let text = case["query"].as_str().unwrap();
        let stages = index.stages(&query(text, &filter));
        for (name, found) in [
            ("full text", &stages.full_text),
            ("table", &stages.vectors),
            ("fused", &stages.fused),
            ("re-ranked", &stages.ranked),
        ] {
            check(&format!("{text}, {name}"), found, &case["stages"][name]);
        }
        let relevance: Vec<f64> = (0..stages.passages.len())
            .map(|n| NodeId([u8::try_from(n).unwrap(); 16]))
            .map(|node| index.relevance(&query(text, &filter), node))
            .collect();
        check(
            &format!("{text}, relevance"),
            &relevance,
            &case["relevance"],
        );
    }
}

fn check_answers(index: &Index, searches: &Value) {
    let filter = Filter::default();
    for case in searches.as_array().unwrap() {
        let text = case["query"].as_str().unwrap();
        let hits = index.search(&query(text, &filter));
        let expected: Vec<(u8, f64)> = serde_json::from_value(case["answer"].clone()).unwrap();
        let order: Vec<u8> = hits.iter().map(|it| it.node.0[0]).collect();
        assert_eq!(
            order,
            expected.iter().map(|it| it.0).collect::<Vec<_>>(),
            "{text}: {hits:?}"
        );
        for (hit, (_, relevance)) in hits.iter().zip(expected) {
            assert!(
                (hit.relevance - relevance).abs() < 1e-4,
                "{text}: {hit:?} {relevance}"
            );
        }
    }
}

#[test]
fn every_stage_scores_the_same() {
    let (golden, index) = golden();
    check_stages(&index, &golden["searches"]);
}

#[test]
fn answers_and_their_relevance_are_the_same() {
    let (golden, index) = golden();
    check_answers(&index, &golden["searches"]);
}

#[test]
fn with_threads_names_and_other_scripts_every_stage_scores_the_same() {
    let (golden, index) = golden_threads();
    check_stages(&index, &golden["thread_searches"]);
}

#[test]
fn with_threads_names_and_other_scripts_answers_are_the_same() {
    let (golden, index) = golden_threads();
    check_answers(&index, &golden["thread_searches"]);
}

#[test]
fn a_node_that_is_put_again_counts_once_and_a_removed_one_not_at_all() {
    let fresh = index_of(&["the cat sat", "the dog ran"]);
    let mut changed = index_of(&["something else entirely", "the dog ran", "gone"]);
    changed.put(&note(0, "the cat sat"), &passages("", "the cat sat"));
    changed.remove(NodeId([2; 16]));
    assert_eq!(changed.len(), 2);
    let filter = Filter::default();
    let by_node = |index: &Index| {
        let mut hits = index.search(&query("where did the cat sit", &filter));
        hits.sort_by_key(|it| it.node);
        hits
    };
    assert_eq!(by_node(&fresh), by_node(&changed));
}

#[test]
fn a_query_without_a_known_word_finds_what_has_it_literally() {
    let index = index_of(&[
        "release 🚀 on Friday",
        "会議は毎週火曜日",
        "nothing of the kind",
        "C++ is a language",
    ]);
    let filter = Filter::default();
    for (text, first) in [("🚀", 0), ("会議", 1), ("C++", 3)] {
        let hits = index.search(&query(text, &filter));
        assert_eq!(hits[0].node.0[0], first, "{text}");
        assert!(hits[0].relevance >= 0.7, "{text}: {hits:?}");
    }
}

#[test]
fn odd_queries_find_nothing_or_something_but_never_fail() {
    let index = index_of(&["fixed the auth-bug", "it's done"]);
    let filter = Filter::default();
    for text in [
        "",
        "   ",
        "\"",
        "foo AND",
        "auth-bug",
        "it's",
        "*",
        "NEAR(",
        "\u{0}",
        "a".repeat(100_000).as_str(),
    ] {
        for mode in [Mode::Hybrid, Mode::Semantic, Mode::FullText] {
            let hits = index.search(&Query {
                mode,
                ..query(text, &filter)
            });
            assert!(
                hits.iter()
                    .all(|it| it.relevance.is_finite() && it.score.is_finite()),
                "{text}"
            );
        }
    }
    assert_eq!(index.search(&query("auth-bug", &filter))[0].node.0[0], 0);
    let full_text = Query {
        mode: Mode::FullText,
        ..query("auth-bug", &filter)
    };
    assert_eq!(index.search(&full_text).len(), 1);
}
