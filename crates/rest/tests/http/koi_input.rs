//! What the KOI API says of bad input.

use crate::place::Place;
use serde_json::{Value, json};

#[tokio::test]
async fn koi_bad_input_is_told_thing_by_thing() {
    let place = Place::new().await;
    for (method, path, body, kind, at) in [
        (
            "POST",
            "/entity/resolve",
            "{}",
            "missing",
            json!(["body", "label"]),
        ),
        ("POST", "/entity/resolve", "", "missing", json!(["body"])),
        (
            "POST",
            "/entity/resolve",
            "{bad",
            "json_invalid",
            json!(["body", 1]),
        ),
        (
            "POST",
            "/entity/resolve",
            "[]",
            "model_attributes_type",
            json!(["body"]),
        ),
        (
            "POST",
            "/entity/resolve",
            r#"{"label": 5}"#,
            "string_type",
            json!(["body", "label"]),
        ),
        (
            "POST",
            "/entity/resolve",
            r#"{"label": ""}"#,
            "string_too_short",
            json!(["body", "label"]),
        ),
        (
            "POST",
            "/entity/resolve",
            r#"{"label": "a", "limit": "x"}"#,
            "int_parsing",
            json!(["body", "limit"]),
        ),
        (
            "POST",
            "/entity/resolve",
            r#"{"label": "a", "context": []}"#,
            "model_attributes_type",
            json!(["body", "context"]),
        ),
        (
            "GET",
            "/entity/resolve",
            "",
            "missing",
            json!(["query", "label"]),
        ),
        (
            "GET",
            "/relationships/x?predicate=a&predicate=b",
            "",
            "",
            Value::Null,
        ),
        (
            "GET",
            "/entity/x/mentioned-in?limit=1.5",
            "",
            "int_parsing",
            json!(["query", "limit"]),
        ),
        (
            "GET",
            "/entity-search?query=",
            "",
            "string_too_short",
            json!(["query", "query"]),
        ),
        (
            "GET",
            "/entity-search?query=a&limit=abc",
            "",
            "int_parsing",
            json!(["query", "limit"]),
        ),
        (
            "POST",
            "/search",
            r#"{"query": "a", "include_chunks": "perhaps"}"#,
            "bool_parsing",
            json!(["body", "include_chunks"]),
        ),
        (
            "POST",
            "/search",
            r#"{"query": null}"#,
            "string_type",
            json!(["body", "query"]),
        ),
        ("GET", "/search", "", "missing", json!(["query", "q"])),
        (
            "POST",
            "/resolve-to-vault",
            r#"{"uris": []}"#,
            "list_type",
            json!(["body"]),
        ),
        (
            "POST",
            "/resolve-to-vault",
            "[1]",
            "string_type",
            json!(["body", 0]),
        ),
        (
            "POST",
            "/entities/mentioned-in",
            r#"{"uris": "x"}"#,
            "list_type",
            json!(["body", "uris"]),
        ),
        (
            "POST",
            "/get-contextual-candidates",
            r#"{"attendees": [{}]}"#,
            "string_type",
            json!(["body", "attendees", 0]),
        ),
        (
            "POST",
            "/query",
            r#"{"filters": 1}"#,
            "dict_type",
            json!(["body", "filters"]),
        ),
        (
            "POST",
            "/register-entity",
            r#"{"name": "a"}"#,
            "missing",
            json!(["body", "vault_rid"]),
        ),
        (
            "POST",
            "/sync-relationships",
            r#"{"vault_path": "a.md", "entity_uri": "x", "frontmatter": "y"}"#,
            "dict_type",
            json!(["body", "frontmatter"]),
        ),
        (
            "POST",
            "/ingest",
            r#"{"document_rid": "a", "entities": [{"name": "x"}]}"#,
            "missing",
            json!(["body", "entities", 0, "type"]),
        ),
        (
            "POST",
            "/ingest",
            r#"{"document_rid": "a", "entities": [], "relationships": [{}]}"#,
            "missing",
            json!(["body", "relationships", 0, "subject"]),
        ),
        (
            "GET",
            "/entities?limit=x",
            "",
            "int_parsing",
            json!(["query", "limit"]),
        ),
        (
            "GET",
            "/vault-entities?offset=x",
            "",
            "int_parsing",
            json!(["query", "offset"]),
        ),
        (
            "POST",
            "/vault/regenerate?limit=x",
            "",
            "int_parsing",
            json!(["query", "limit"]),
        ),
        (
            "POST",
            "/web/preview",
            r#"{"url": 5}"#,
            "string_type",
            json!(["body", "url"]),
        ),
        (
            "POST",
            "/web/process",
            r#"{"url": "x", "hint_entities": "y"}"#,
            "list_type",
            json!(["body", "hint_entities"]),
        ),
        (
            "POST",
            "/web/ingest",
            r#"{"url": "x", "entities": [{"type": "y"}]}"#,
            "missing",
            json!(["body", "entities", 0, "name"]),
        ),
        (
            "POST",
            "/web/evaluate",
            r#"{"url": "x", "relevance_score": "high"}"#,
            "float_parsing",
            json!(["body", "relevance_score"]),
        ),
        (
            "POST",
            "/web/monitor/add",
            r#"{"title": "x"}"#,
            "missing",
            json!(["body", "url"]),
        ),
        (
            "POST",
            "/web/monitor/remove",
            "{}",
            "missing",
            json!(["body", "url"]),
        ),
        (
            "POST",
            "/github/repos",
            r#"{"repo_url": ""}"#,
            "string_too_short",
            json!(["body", "repo_url"]),
        ),
        (
            "GET",
            "/github/files?limit=x",
            "",
            "int_parsing",
            json!(["query", "limit"]),
        ),
        (
            "POST",
            "/code/query",
            r#"{"cypher": 1}"#,
            "string_type",
            json!(["body", "cypher"]),
        ),
        (
            "POST",
            "/entity/describe",
            r#"{"limit": []}"#,
            "int_type",
            json!(["body", "limit"]),
        ),
    ] {
        let answer = match method {
            "GET" => place.get(path, "").await,
            _ => place.post(path, "", body).await,
        };
        if kind.is_empty() {
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            continue;
        }
        assert_eq!(answer.status, 422, "{path} {body}: {answer:?}");
        let first = answer.json()["detail"][0].clone();
        assert_eq!(
            (&first["type"], &first["loc"]),
            (&json!(kind), &at),
            "{path} {body}: {first}"
        );
        assert!(
            first["msg"].is_string() && first.get("input").is_some(),
            "{first}"
        );
    }
}
