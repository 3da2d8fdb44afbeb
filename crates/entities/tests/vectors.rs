//! Names, URIs, links and pages, compared with what the original answered.
//!
//! Vectors that wait are listed by name with the reason, so that none is left out in silence.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail and tell as tests do"
)]

use kenning_entities::names::{alias_key, entity_uri, normalized, page_rid, phonetic_key};
use kenning_entities::ontology::{Ontology, values};
use kenning_entities::page;
use kenning_entities::similarity::token_overlap;
use kenning_text::similarity::jaro_winkler;
use serde_json::{Map, Value, json};

const VECTORS: &str = include_str!("../../../testing/vectors/koi-vectors.json");

/// What belongs to something that does not exist yet, or is a fault that is not imitated.
const WAITING: &[(&str, &str)] = &[
    ("extract:src/a.py", "the code graph"),
    ("extract:src/b.ts", "the code graph"),
    ("extract:s.sql", "the code graph"),
    (
        "sentence_chunker_1234_words_dot_every_17",
        "loses the tail of a text",
    ),
    (
        "sentence_chunker_500_words",
        "belongs to passages, which `search` cuts",
    ),
    (
        "sentence_chunker_501_words_nodots",
        "loses the tail of a text",
    ),
    (
        "schema_version",
        "a hash over the original's own source form of the types",
    ),
];

fn vectors() -> Map<String, Value> {
    serde_json::from_str(VECTORS).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn check_texts(name: &str, of: impl Fn(&str) -> String) {
    let vectors = vectors();
    let cases = vectors[name].as_object().unwrap();
    assert!(cases.len() > 2, "{name}");
    for (input, expected) in cases {
        assert_eq!(of(input), text(expected), "{name}: {input:?}");
    }
}

const COVERED: &[&str] = &[
    "normalize_entity_text",
    "normalize_alias",
    "generate_entity_uri",
    "jaro_winkler",
    "token_overlap",
    "phonetic",
    "web_rid",
    "parse_wikilink",
    "parse_yaml_values",
    "html",
];

#[test]
fn every_vector_is_tested_or_waits_by_name() {
    for name in vectors().keys() {
        let waits = WAITING.iter().any(|it| it.0 == name);
        assert!(COVERED.contains(&name.as_str()) != waits, "{name}");
    }
    assert_eq!(vectors().len(), COVERED.len() + WAITING.len());
}

#[test]
fn keys_of_names_are_equal() {
    check_texts("normalize_entity_text", normalized);
    check_texts("normalize_alias", alias_key);
}

#[test]
fn names_of_pages_are_equal() {
    check_texts("web_rid", page_rid);
}

#[test]
fn what_is_heard_is_equal() {
    let ontology = Ontology::default();
    let stopwords = &ontology.kind("Person").unwrap().phonetic_stopwords;
    check_texts("phonetic", |it| phonetic_key(it, stopwords));
}

#[test]
fn uris_are_equal() {
    let vectors = vectors();
    let cases = vectors["generate_entity_uri"].as_array().unwrap();
    assert!(cases.len() > 30);
    for case in cases {
        let uri = entity_uri(text(&case[0]), text(&case[1]));
        assert_eq!(uri, text(&case[2]), "{case}");
    }
}

#[test]
fn similarities_are_equal() {
    let vectors = vectors();
    for case in vectors["jaro_winkler"].as_array().unwrap() {
        let found = jaro_winkler(text(&case[0]), text(&case[1]));
        assert!(
            (found - case[2].as_f64().unwrap()).abs() < 1e-12,
            "{case}: {found}"
        );
    }
    for case in vectors["token_overlap"].as_array().unwrap() {
        let (share, n_shared) = token_overlap(text(&case[0]), text(&case[1]));
        assert_eq!(json!([case[0], case[1], share, n_shared]), *case);
    }
}

#[test]
fn links_and_values_of_fields_are_equal() {
    let vectors = vectors();
    let ontology = Ontology::default();
    for (link, expected) in vectors["parse_wikilink"].as_object().unwrap() {
        let (name, kind) = ontology.named_by(link);
        assert_eq!(json!([name, kind]), *expected, "{link}");
    }
    for case in vectors["parse_yaml_values"].as_array().unwrap() {
        assert_eq!(json!(values(&case[0])), case[1], "{case}");
    }
}

#[test]
fn a_page_is_equal() {
    let vectors = vectors();
    let case = &vectors["html"];
    let page = page::read(text(&case["input"]));
    assert_eq!(page.summary, text(&case["text"]));
    let it = &page.metadata;
    let metadata = json!({
        "title": it.title, "description": it.description, "keywords": it.keywords, "author": it.author,
        "published_date": it.published, "og_image": it.image, "site_name": it.site_name,
    });
    assert_eq!(metadata, case["meta"]);
}
