//! What people want of a graph beyond its contract.

use super::{ask, generate, shop};
use kenning_testing::Fixture;
use serde_json::json;

/// The example with the tools that are off by default.
fn whole_shop() -> Fixture {
    let fixture = crate::everything(&shop());
    generate(&fixture);
    fixture
}

#[test]
fn ways_ranks_and_groups_of_the_example() {
    let fixture = whole_shop();
    let near = ask(
        &fixture,
        "kg_neighbors",
        json!({ "node": "Authentication" }),
    )["data"]
        .clone();
    let mut ids: Vec<&str> = near["neighbors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let expected = [
        "concepts/sessions",
        "features/checkout",
        "features/one-click-checkout",
        "index",
        "reference/broken",
        "services/auth-service",
        "日本/案内",
    ];
    assert_eq!(ids, expected);
    let path = ask(
        &fixture,
        "kg_path",
        json!({ "from": "guides/getting-started.md", "to": "Auth Service", "directed": true }),
    );
    let ids: Vec<&str> = path["data"]["path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        ["guides/getting-started", "index", "services/auth-service"]
    );
    let none = ask(
        &fixture,
        "kg_path",
        json!({ "from": "orphan_note.md", "to": "index" }),
    );
    assert_eq!(none["data"]["found"], false);
    let first = ask(&fixture, "kg_rank", json!({ "limit": 1 }))["data"]["nodes"][0].clone();
    assert!(
        [
            "concepts/auth",
            "services/auth-service",
            "concepts/sessions"
        ]
        .contains(&first["id"].as_str().unwrap()),
        "{first}"
    );
    let groups = ask(&fixture, "kg_communities", json!({}))["data"]["communities"].clone();
    let sizes: u64 = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["size"].as_u64().unwrap())
        .sum();
    assert_eq!(sizes, 13);
}

#[test]
fn what_is_missing_in_the_example() {
    let fixture = whole_shop();
    fixture.put_document(
        "docs/mention.md",
        "Somebody should rotate keys: see Key rotation, and orphan note too.",
    );
    generate(&fixture);
    let broken = ask(&fixture, "kg_broken_links", json!({}))["data"].clone();
    assert_eq!(broken["total"], 2);
    let of = |missing: &str| {
        let mut links = broken["links"].as_array().unwrap().iter();
        links.find(|it| it["missing"] == missing).unwrap().clone()
    };
    assert_eq!(of("document")["suggestion"]["id"], "guides/key-rotation");
    assert_eq!(of("heading")["target"], "Checkout#Old way");
    let orphans = ask(&fixture, "kg_orphans", json!({}))["data"].clone();
    let orphan = orphans["orphans"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "orphan-note")
        .unwrap();
    assert_eq!(orphan["suggestions"][0]["reason"], "mentioned-by");
    assert_eq!(orphan["suggestions"][0]["id"], "mention");
    let back = ask(&fixture, "kg_backlinks", json!({ "node": "key-rotation" }))["data"].clone();
    assert_eq!(
        back["backlinks"][0]["source"]["id"],
        "guides/getting-started"
    );
    assert_eq!(
        back["backlinks"][0]["context"], "Ask about [[key-rotation]].",
        "{back:#}"
    );
    assert_eq!(back["unlinkedMentions"][0]["id"], "mention", "{back:#}");
}

#[test]
fn the_graph_can_be_taken_elsewhere() {
    let fixture = whole_shop();
    for (format, begins) in [
        ("graphml", "<?xml"),
        ("dot", "digraph"),
        ("json", "{"),
        ("canvas", "{"),
    ] {
        let data = ask(&fixture, "kg_export", json!({ "format": format }))["data"].clone();
        let text = data["text"].as_str().unwrap();
        assert!(
            text.starts_with(begins) && text.contains("heckout"),
            "{format}: {text}"
        );
    }
    let owner = fixture.owner();
    let page = fixture
        .board
        .engine()
        .kg()
        .export_graph(&owner, kenning_engine::kg::ExportFormat::Html)
        .unwrap();
    assert!(
        page.contains("One-Click Checkout")
            && !page.contains("http://")
            && page.contains("Content-Security-Policy")
    );
}

#[test]
fn a_query_in_cypher_is_asked_of_the_engine_and_its_nodes_are_shown_as_documents() {
    let fixture = whole_shop();
    let query = "MATCH (a:Document {title: 'Authentication'})-[:LINK]->(b:Document) RETURN a, b.title AS title ORDER BY title";
    let found = ask(
        &fixture,
        "kg_graph_query",
        json!({ "query": query, "includeRelations": true }),
    );
    assert_eq!(found["metadata"]["matched"], "cypher", "{found}");
    let data = &found["data"];
    assert_eq!(data["columns"], json!(["a", "title"]));
    assert_eq!(data["count"], 1, "{data}");
    // The node as a search shows it.
    let searched = ask(
        &fixture,
        "kg_graph_query",
        json!({ "query": "Authentication", "includeRelations": true }),
    );
    let nodes = searched["data"]["nodes"].as_array().unwrap();
    let same = nodes.iter().find(|it| it["title"] == "Authentication");
    assert_eq!(Some(&data["nodes"][0]), same);
    let rows = data["rows"].as_array().unwrap();
    assert!(!rows.is_empty(), "{data}");
    for row in rows {
        assert_eq!(row["a"], "concepts/auth", "{row}");
        assert!(row["title"].is_string(), "{row}");
    }
    // No nodes, but rows; more rows than the limit; and a misspelled name.
    let count = json!({ "query": "MATCH (d:Document) RETURN count(d) AS n" });
    let found = ask(&fixture, "kg_graph_query", count);
    assert_eq!(found["data"]["nodes"], json!([]));
    assert_eq!(found["data"]["rows"], json!([{ "n": 13 }]));
    let many = json!({ "query": "MATCH (d:Document) RETURN d", "limit": 3 });
    let found = ask(&fixture, "kg_graph_query", many);
    assert_eq!(found["data"]["count"], 3, "{found}");
    assert_eq!(found["data"]["totalAvailable"], 13);
    // What is no statement is searched for, as ever.
    for words in ["return policy", "MATCH (n", "match making"] {
        let found = ask(&fixture, "kg_graph_query", json!({ "query": words }));
        assert_eq!(found["data"]["rows"], json!(null), "{words}: {found}");
    }
    // One that has no meaning says so.
    let reply = fixture.call(
        "kg_graph_query",
        json!({ "query": "MATCH (d:Document) RETURN nothing" }),
    );
    assert!(
        reply.is_error() && reply.text.contains("nothing"),
        "{}",
        reply.text
    );
}
