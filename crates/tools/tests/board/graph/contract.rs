//! The contract of the graph: its texts, its shapes, its values.

use super::{ask, example_files, generate, refusal, shop};
use crate::shapes;
use kenning_core::Did;
use kenning_engine::NewPeer;
use kenning_testing::Fixture;
use kenning_tools::{Selection, TOOLS, Toolset};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn before_any_generation_there_is_nothing_to_ask() {
    let fixture = Fixture::without_vault(Selection::default());
    let short = "Database not initialized";
    let long = "Database not initialized. Run graph generation first.";
    for (tool, arguments, expected) in [
        ("kg_query", json!({}), short),
        ("kg_stats", json!({}), short),
        ("kg_get_node", json!({ "id": "x" }), short),
        ("kg_list_tags", json!({}), short),
        ("kg_graph_query", json!({ "query": "x" }), long),
        ("kg_graph_stats", json!({}), long),
        ("kg_search_nodes", json!({ "query": "x" }), long),
        ("kg_search_tags", json!({ "tags": ["x"] }), long),
        ("kg_cache_stats", json!({}), "Cache not initialized"),
    ] {
        assert_eq!(refusal(&fixture, tool, arguments), expected, "{tool}");
    }
    let health = ask(&fixture, "kg_health", json!({}));
    assert_eq!(health["data"]["database"], false);
    let check = ask(&fixture, "kg_health_check", json!({}));
    assert_eq!(check["data"]["status"], "unhealthy");
}

#[test]
fn the_contract_s_own_complaints() {
    let fixture = shop();
    generate(&fixture);
    for (tool, arguments, expected) in [
        ("kg_get_node", json!({}), "Either id or path required"),
        (
            "kg_get_node",
            json!({ "id": "" }),
            "Either id or path required",
        ),
        ("kg_get_node", json!({ "id": "node-123" }), "Node not found"),
        (
            "kg_get_node",
            json!({ "path": "docs/none.md" }),
            "Node not found",
        ),
        (
            "kg_graph_query",
            json!({}),
            "Query parameter is required and must be a string",
        ),
        (
            "kg_graph_query",
            json!({ "query": 5 }),
            "Query parameter is required and must be a string",
        ),
        (
            "kg_graph_query",
            json!({ "query": "" }),
            "Query parameter is required and must be a string",
        ),
        (
            "kg_search_nodes",
            json!({ "query": ["a"] }),
            "Query parameter is required and must be a string",
        ),
        (
            "kg_search_tags",
            json!({}),
            "Tags parameter is required and must be a non-empty array of strings",
        ),
        (
            "kg_search_tags",
            json!({ "tags": "api" }),
            "Tags parameter is required and must be a non-empty array of strings",
        ),
        (
            "kg_search_tags",
            json!({ "tags": [] }),
            "Tags parameter is required and must be a non-empty array of strings",
        ),
        (
            "kg_search_tags",
            json!({ "tags": [1, ""] }),
            "At least one valid tag string is required",
        ),
    ] {
        assert_eq!(
            refusal(&fixture, tool, arguments.clone()),
            expected,
            "{tool} {arguments}"
        );
    }
}

#[test]
fn every_answer_has_the_shape_of_the_contract_s_example() {
    let fixture = shop();
    generate(&fixture);
    let peer = NewPeer {
        did: Some(Did::of_key(&[7; 32])),
        ..NewPeer::default()
    };
    let engine = fixture.board.engine();
    engine.add_peer(&fixture.owner(), peer).unwrap();
    let upsert =
        json!({ "id": "doc-123", "vector": vec![0.1; 1_536], "metadata": { "title": "x" } });
    for (tool, arguments) in [
        (
            "kg_query",
            json!({ "query": "token", "includeContent": true }),
        ),
        ("kg_stats", json!({})),
        ("kg_get_node", json!({ "path": "docs/concepts/auth.md" })),
        ("kg_list_tags", json!({})),
        (
            "kg_graph_query",
            json!({ "query": "token", "includeRelations": true }),
        ),
        ("kg_graph_stats", json!({ "detailed": true })),
        ("kg_graph_generate", json!({ "force": true })),
        ("kg_search_nodes", json!({ "query": "token" })),
        ("kg_search_tags", json!({ "tags": ["security"] })),
        ("kg_health", json!({})),
        ("kg_health_check", json!({ "detailed": true })),
        ("kg_vector_upsert", upsert.clone()),
        ("kg_vector_upsert", upsert),
        (
            "kg_vector_search",
            json!({ "query": "token", "hybrid": true, "includeVectors": true, "minScore": 0.01 }),
        ),
        ("kg_cache_stats", json!({})),
        ("kg_sync_status", json!({ "detailed": true })),
    ] {
        let answer = ask(&fixture, tool, arguments);
        let faults = shapes::lacks(&shapes::kg_answer(tool), &answer, tool);
        assert_eq!(faults, Vec::<String>::new(), "{answer:#}");
    }
}

#[test]
fn the_state_of_one_peer_is_told_and_an_unknown_one_is_not_found() {
    let fixture = shop();
    let none = ask(&fixture, "kg_sync_status", json!({}));
    assert_eq!(none["data"]["summary"]["totalPeers"], 0);
    assert_eq!(none["data"]["serviceStatus"]["syncInterval"], 300_000);
    let peer = NewPeer {
        did: Some(Did::of_key(&[7; 32])),
        ..NewPeer::default()
    };
    let engine = fixture.board.engine();
    let peer = engine.add_peer(&fixture.owner(), peer).unwrap();
    let one = ask(&fixture, "kg_sync_status", json!({ "peerId": peer.id }));
    assert_eq!(one["data"]["peer"]["status"], "disconnected");
    assert_eq!(one["data"]["serviceStatus"]["running"], false);
    assert_eq!(
        refusal(&fixture, "kg_sync_status", json!({ "peerId": "peer-x" })),
        "Peer not found: peer-x"
    );
}

#[test]
fn every_input_takes_what_the_contract_names() {
    for tool in TOOLS.iter().filter(|it| it.toolset() == Toolset::Kg) {
        let (contract, ours) = (shapes::kg_input(tool.name()), tool.input_schema());
        for (field, wanted) in contract["properties"].as_object().unwrap() {
            let there = &ours["properties"][field];
            let shown = format!("{}.{field}: {there}", tool.name());
            assert_eq!(there["type"], wanted["type"], "{shown}");
            assert_eq!(there["enum"], wanted["enum"], "{shown}");
        }
        assert_eq!(ours["required"], contract["required"], "{}", tool.name());
    }
}

/// What the example must give, found by reading its files in the simplest way: no parser of ours.
struct Oracle {
    /// Documents by their ids, with what they link to.
    links: BTreeMap<&'static str, BTreeSet<&'static str>>,
    tags: BTreeMap<&'static str, usize>,
}

/// By hand, from the files: whoever changes one of them changes this.
fn oracle() -> Oracle {
    let links: [(&str, &[&str]); 13] = [
        (
            "index",
            &[
                "concepts/auth related",
                "services/auth-service related",
                "concepts/auth",
                "services/auth-service",
                "features/checkout",
                "guides/getting-started",
                "standards/code-style embed",
            ],
        ),
        (
            "concepts/auth",
            &[
                "concepts/sessions depends_on",
                "services/auth-service",
                "concepts/sessions",
            ],
        ),
        (
            "concepts/sessions",
            &["concepts/auth parent", "concepts/auth"],
        ),
        (
            "services/auth-service",
            &["api/login", "standards/code-style"],
        ),
        ("api/login", &["services/auth-service"]),
        (
            "features/checkout",
            &[
                "index parent",
                "concepts/auth",
                "features/one-click-checkout",
            ],
        ),
        (
            "features/one-click-checkout",
            &["features/checkout", "concepts/auth"],
        ),
        (
            "guides/getting-started",
            &["index", "standards/code-style", "guides/key-rotation"],
        ),
        ("guides/key-rotation", &["reference/broken"]),
        ("standards/code-style", &[]),
        ("reference/broken", &["concepts/auth"]),
        ("orphan-note", &[]),
        ("日本/案内", &["concepts/auth"]),
    ];
    let links = links
        .into_iter()
        .map(|(id, to)| (id, to.iter().copied().collect()));
    let tags = [
        ("security", 4),
        ("start", 2),
        ("shop", 2),
        ("payments", 2),
        ("api", 2),
        ("handbook", 1),
        ("welcome", 1),
        ("sessions", 1),
        ("security/tokens", 1),
        ("日本", 1),
    ];
    Oracle {
        links: links.collect(),
        tags: tags.into_iter().collect(),
    }
}

fn words_of(text: &str) -> u64 {
    let mut content = text;
    for fence in ["---\n", "+++\n"] {
        if let Some(rest) = text.strip_prefix(fence)
            && let Some(end) = rest.find(&format!("\n{fence}"))
        {
            content = &rest[end + 5..];
        }
    }
    let plain: String = content
        .chars()
        .filter(|c| !"#*`[]()".contains(*c))
        .collect();
    plain.split_whitespace().count() as u64
}

#[test]
fn the_example_gives_what_its_files_say() {
    let fixture = shop();
    let oracle = oracle();
    let made = generate(&fixture);
    let n_edges: usize = oracle.links.values().map(BTreeSet::len).sum();
    assert_eq!(made["mode"], "full");
    assert_eq!(made["filesProcessed"], oracle.links.len());
    assert_eq!(made["nodesGenerated"], oracle.links.len());
    assert_eq!(made["edgesCreated"], n_edges);
    assert_eq!(made["errorCount"], 1, "{made:#}");
    assert_eq!(made["errors"][0]["path"], "docs/reference/broken.md");

    for (id, expected) in &oracle.links {
        let node = ask(&fixture, "kg_get_node", json!({ "id": id }))["data"].clone();
        let links = node["outgoingLinks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it.get("broken").is_none());
        let links: BTreeSet<String> = links
            .map(|it| {
                let (target, relation) =
                    (it["target"].as_str().unwrap(), it["type"].as_str().unwrap());
                if relation == "link" {
                    target.to_owned()
                } else {
                    format!("{target} {relation}")
                }
            })
            .collect();
        assert_eq!(
            links,
            expected.iter().map(|&it| it.to_owned()).collect(),
            "{id}"
        );
        let incoming = oracle
            .links
            .iter()
            .flat_map(|(from, to)| to.iter().map(move |it| (from, it)));
        let incoming: Vec<&str> = incoming
            .filter(|(_, to)| to.split(' ').next() == Some(*id))
            .map(|(from, _)| *from)
            .collect();
        let mut sources: Vec<&str> = node["incomingLinks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["source"].as_str().unwrap())
            .collect();
        sources.sort_unstable();
        assert_eq!(sources, incoming, "{id}");
        let name = node["path"]
            .as_str()
            .unwrap()
            .strip_prefix("docs/")
            .unwrap();
        if *id != "reference/broken" {
            assert_eq!(node["wordCount"], words_of(&example_files()[name]), "{id}");
        }
    }

    let stats = ask(&fixture, "kg_stats", json!({}))["data"].clone();
    assert_eq!(stats["totalNodes"], 13);
    assert_eq!(stats["totalEdges"], n_edges);
    assert_eq!(stats["orphanNodes"], 1);
    assert_eq!(stats["brokenLinks"], 1);
    let average = (n_edges as f64 / 13.0 * 100.0).round() / 100.0;
    assert_eq!(stats["avgLinksPerNode"], average);
    let by_type = json!({
        "concept": 4, "technical": 1, "feature": 2, "primitive": 0, "service": 2, "guide": 3, "standard": 1,
        "integration": 0,
    });
    assert_eq!(stats["nodesByType"], by_type);
    let by_status = json!({ "draft": 1, "active": 11, "deprecated": 1, "archived": 0 });
    assert_eq!(stats["nodesByStatus"], by_status);

    let tags = ask(&fixture, "kg_list_tags", json!({}))["data"].clone();
    let tags: BTreeMap<String, usize> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["tag"].as_str().unwrap().to_lowercase(),
                usize::try_from(it["count"].as_u64().unwrap()).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        tags,
        oracle
            .tags
            .iter()
            .map(|(tag, n)| ((*tag).to_owned(), *n))
            .collect()
    );

    let service = ask(
        &fixture,
        "kg_get_node",
        json!({ "id": "services/auth-service" }),
    )["data"]
        .clone();
    let broken = service["outgoingLinks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["broken"] == true)
        .unwrap();
    assert_eq!(
        (&broken["target"], &broken["suggestion"]),
        (&json!("Key rotaton"), &json!("guides/key-rotation"))
    );
    let auth = ask(
        &fixture,
        "kg_get_node",
        json!({ "path": "concepts/auth.md" }),
    )["data"]
        .clone();
    assert_eq!(auth["title"], "Authentication");
    assert_eq!(
        auth["frontmatter"]["description"],
        "Who somebody is, and how we know"
    );
    assert!(
        auth["content"]
            .as_str()
            .unwrap()
            .starts_with("# Authentication"),
        "{auth}"
    );
}

#[test]
fn filters_are_combined_and_come_before_the_limit() {
    let fixture = Fixture::without_vault(Selection::default());
    for i in 0..60 {
        let (kind, status) = (
            if i % 20 == 0 { "guide" } else { "concept" },
            if i % 40 == 0 { "draft" } else { "active" },
        );
        fixture.put_document(
            &format!("docs/p{i:02}.md"),
            &format!(
                "---\ntype: {kind}\nstatus: {status}\ntags: [t{}]\n---\nalpha beta {i}\n",
                i % 3
            ),
        );
    }
    generate(&fixture);
    let found = |tool: &str, arguments: Value| {
        let data = ask(&fixture, tool, arguments)["data"].clone();
        let nodes = if data.is_array() {
            data
        } else {
            data["nodes"].clone()
        };
        let mut paths: Vec<String> = nodes
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["path"].as_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    let guides = ["docs/p00.md", "docs/p20.md", "docs/p40.md"];
    assert_eq!(
        found("kg_query", json!({ "type": "guide", "limit": 3 })),
        guides
    );
    assert_eq!(
        found(
            "kg_query",
            json!({ "query": "alpha", "type": "guide", "limit": 3 })
        ),
        guides
    );
    assert_eq!(
        found(
            "kg_query",
            json!({ "query": "alpha", "type": "guide", "status": "draft" })
        ),
        ["docs/p00.md", "docs/p40.md"]
    );
    assert_eq!(
        found(
            "kg_query",
            json!({ "type": "guide", "status": "draft", "tag": "#T1" })
        ),
        ["docs/p40.md"]
    );
    assert_eq!(
        found(
            "kg_graph_query",
            json!({ "query": "alpha", "type": "guide", "limit": 3 })
        ),
        guides
    );
    assert_eq!(
        found(
            "kg_search_nodes",
            json!({ "query": "beta alpha", "type": "guide", "status": "active", "limit": 1 })
        ),
        ["docs/p20.md"]
    );
    assert_eq!(
        ask(
            &fixture,
            "kg_graph_query",
            json!({ "query": "alpha", "limit": 5 })
        )["data"]["totalAvailable"],
        60
    );
    assert_eq!(
        found("kg_query", json!({ "query": "?!… ()" })),
        Vec::<String>::new()
    );
    let tags = ask(
        &fixture,
        "kg_search_tags",
        json!({ "tags": ["T0", "t1"], "limit": 5 }),
    )["data"]
        .clone();
    assert_eq!(
        (tags["totalMatching"].as_u64(), tags["count"].as_u64()),
        (Some(40), Some(5))
    );
    assert_eq!(
        tags["nodes"][0]["matchedTags"],
        json!(["T0"]),
        "in the caller's spelling"
    );
    for limit in [json!(0), json!(-3), json!(2.7), json!(1e9)] {
        assert!(
            !fixture
                .call("kg_query", json!({ "limit": limit }))
                .is_error(),
            "{limit}"
        );
    }
}
