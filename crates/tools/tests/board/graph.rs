//! The graph over a real store: what files say is what the tools answer.

use crate::shapes;
use kenning_testing::House;
use kenning_tools::{Selection, TOOLS, Toolset};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The answer of a call that must succeed.
fn ask(house: &House, tool: &str, arguments: Value) -> Value {
    let reply = house.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

/// The error of a call that must fail.
fn refusal(house: &House, tool: &str, arguments: Value) -> String {
    let reply = house.call(tool, arguments);
    assert!(reply.is_error(), "{tool}: {}", reply.text);
    let value = reply.to_json();
    assert_eq!(value["success"], false);
    assert!(value["metadata"]["executionTime"].is_u64(), "{value}");
    value["error"].as_str().unwrap().to_owned()
}

fn generate(house: &House) -> Value {
    ask(house, "kg_graph_generate", json!({}))["data"].clone()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph/docs")
}

/// Every file of the example, by its name.
fn example_files() -> BTreeMap<String, String> {
    fn gather(dir: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, root, into);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                into.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    gather(&example(), &example(), &mut files);
    files
}

/// A house whose project is the example, without a vault of its own.
fn shop() -> House {
    let house = House::without_vault(Selection::default());
    for (name, text) in example_files() {
        house.put_document(&format!("docs/{name}"), &text);
    }
    house
}

#[test]
fn before_any_generation_there_is_nothing_to_ask() {
    let house = House::without_vault(Selection::default());
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
        assert_eq!(refusal(&house, tool, arguments), expected, "{tool}");
    }
    let health = ask(&house, "kg_health", json!({}));
    assert_eq!(health["data"]["database"], false);
    let check = ask(&house, "kg_health_check", json!({}));
    assert_eq!(check["data"]["status"], "unhealthy");
}

#[test]
fn the_contract_s_own_complaints() {
    let house = shop();
    generate(&house);
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
            refusal(&house, tool, arguments.clone()),
            expected,
            "{tool} {arguments}"
        );
    }
}

#[test]
fn every_answer_has_the_shape_of_the_contract_s_example() {
    let house = shop();
    generate(&house);
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
    ] {
        let answer = ask(&house, tool, arguments);
        let faults = shapes::lacks(&shapes::kg_answer(tool), &answer, tool);
        assert_eq!(faults, Vec::<String>::new(), "{answer:#}");
    }
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
    let house = shop();
    let oracle = oracle();
    let made = generate(&house);
    let n_edges: usize = oracle.links.values().map(BTreeSet::len).sum();
    assert_eq!(made["mode"], "full");
    assert_eq!(made["filesProcessed"], oracle.links.len());
    assert_eq!(made["nodesGenerated"], oracle.links.len());
    assert_eq!(made["edgesCreated"], n_edges);
    assert_eq!(made["errorCount"], 1, "{made:#}");
    assert_eq!(made["errors"][0]["path"], "docs/reference/broken.md");

    for (id, expected) in &oracle.links {
        let node = ask(&house, "kg_get_node", json!({ "id": id }))["data"].clone();
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

    let stats = ask(&house, "kg_stats", json!({}))["data"].clone();
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

    let tags = ask(&house, "kg_list_tags", json!({}))["data"].clone();
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
        &house,
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
    let auth = ask(&house, "kg_get_node", json!({ "path": "concepts/auth.md" }))["data"].clone();
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

/// Everything that can be seen of a graph, without times.
fn picture(house: &House) -> Value {
    let nodes = ask(
        house,
        "kg_query",
        json!({ "limit": 1000, "includeContent": true }),
    )["data"]
        .clone();
    let nodes = nodes.as_array().unwrap().iter().map(|it| {
        let full = ask(house, "kg_get_node", json!({ "id": it["id"] }))["data"].clone();
        json!([it, full["outgoingLinks"], full["incomingLinks"]])
    });
    let nodes: Vec<Value> = nodes.collect();
    json!([nodes, ask(house, "kg_stats", json!({}))["data"]])
}

#[test]
fn generating_twice_gives_the_same_graph_and_no_second_event() {
    let house = shop();
    generate(&house);
    let (before, events) = (picture(&house), house.event_kinds().len());
    for arguments in [
        json!({}),
        json!({ "force": true }),
        json!({ "incremental": true }),
        json!({ "force": true, "incremental": true }),
    ] {
        let done = ask(&house, "kg_graph_generate", arguments.clone())["data"].clone();
        assert_eq!(done["nodesAdded"], 0, "{arguments}");
        assert_eq!(done["nodesUpdated"], 0, "{arguments}");
        let mode = if arguments == json!({ "incremental": true }) {
            "incremental"
        } else {
            "full"
        };
        assert_eq!(done["mode"], mode, "{arguments}");
        assert_eq!(picture(&house), before, "{arguments}");
        assert_eq!(house.event_kinds().len(), events, "{arguments}");
    }
}

#[test]
fn added_changed_removed_and_renamed_files_are_followed() {
    let house = House::without_vault(Selection::default());
    house.put_document("docs/a.md", "[[b]] and [[c]]");
    house.put_document("docs/b.md", "b");
    generate(&house);
    let node_of = |house: &House, path: &str| {
        let owner = house.owner();
        house
            .board
            .engine()
            .document(&owner, None, Some(path))
            .unwrap()
            .document
            .node
    };
    let b = node_of(&house, "docs/b.md");
    let incremental =
        || ask(&house, "kg_graph_generate", json!({ "incremental": true }))["data"].clone();
    let counts = |done: &Value| {
        ["nodesAdded", "nodesUpdated", "nodesRemoved", "edgesCreated"]
            .map(|it| done[it].as_u64().unwrap())
    };

    house.put_document("docs/c.md", "c");
    assert_eq!(
        counts(&incremental()),
        [1, 0, 0, 1],
        "a link that led nowhere leads to the new file"
    );
    house.put_document("docs/c.md", "c, and [[a]]");
    assert_eq!(counts(&incremental()), [0, 1, 0, 1]);
    std::fs::rename(
        house.project().join("docs/b.md"),
        house.project().join("docs/moved.md"),
    )
    .unwrap();
    let done = incremental();
    assert_eq!(counts(&done)[..3], [0, 1, 0], "{done}");
    assert_eq!(
        node_of(&house, "docs/moved.md"),
        b,
        "a file that was renamed is the same node"
    );
    assert_eq!(
        refusal(&house, "kg_get_node", json!({ "path": "docs/b.md" })),
        "Node not found"
    );
    std::fs::remove_file(house.project().join("docs/c.md")).unwrap();
    assert_eq!(counts(&incremental())[..3], [0, 0, 1]);
    let stats = ask(&house, "kg_stats", json!({}))["data"].clone();
    assert_eq!(
        (&stats["totalNodes"], &stats["totalEdges"]),
        (&json!(2), &json!(0))
    );
    let kinds = house.event_kinds();
    for kind in [
        "NodeCreated",
        "NodeUpdated",
        "NodeDeleted",
        "GraphLinked",
        "GraphGenerated",
    ] {
        assert!(kinds.iter().any(|it| it == kind), "{kind}: {kinds:?}");
    }
    let fresh = house.again(Selection::default());
    assert_eq!(
        picture(&fresh),
        picture(&house),
        "another process sees the same graph"
    );
}

#[test]
fn filters_are_combined_and_come_before_the_limit() {
    let house = House::without_vault(Selection::default());
    for i in 0..60 {
        let (kind, status) = (
            if i % 20 == 0 { "guide" } else { "concept" },
            if i % 40 == 0 { "draft" } else { "active" },
        );
        house.put_document(
            &format!("docs/p{i:02}.md"),
            &format!(
                "---\ntype: {kind}\nstatus: {status}\ntags: [t{}]\n---\nalpha beta {i}\n",
                i % 3
            ),
        );
    }
    generate(&house);
    let found = |tool: &str, arguments: Value| {
        let data = ask(&house, tool, arguments)["data"].clone();
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
            &house,
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
        &house,
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
            !house.call("kg_query", json!({ "limit": limit })).is_error(),
            "{limit}"
        );
    }
}

#[test]
fn files_that_cannot_be_read_are_reported_and_lose_nothing_else() {
    let house = House::without_vault(Selection::default());
    house.put_document("docs/good.md", "[[latin]]");
    std::fs::write(house.project().join("docs/latin.md"), b"caf\xe9 [[good]]").unwrap();
    std::fs::write(
        house.project().join("docs/huge.md"),
        vec![b'x'; 9 * 1024 * 1024],
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", house.project().join("docs/link.md")).unwrap();
    house.put_document(
        "docs/bad.md",
        "---\nstatus: maybe\ntype: novel\ntags: [a\n---\nbad",
    );
    house.put_document("docs/node_modules/x/readme.md", "no");
    house.put_document("docs/_templates/t.md", "no");
    house.put_document("docs/.hidden/h.md", "no");
    house.put_document("docs/private/p.md", "no");
    house.put_document(".gitignore", "private/\n");
    let done = generate(&house);
    let paths: BTreeSet<&str> = done["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        BTreeSet::from(["docs/bad.md", "docs/huge.md", "docs/latin.md"]),
        "{done:#}"
    );
    assert_eq!(done["nodesGenerated"], 3, "{done:#}");
    let good = ask(&house, "kg_get_node", json!({ "id": "good" }))["data"].clone();
    assert_eq!(good["outgoingLinks"][0]["target"], "latin");
    assert_eq!(good["incomingLinks"][0]["source"], "latin");
}

#[test]
fn only_folders_of_the_project_are_read() {
    let house = House::without_vault(Selection::default());
    house.put_document("notes/a.md", "a");
    for docs_path in ["..", "../project/notes/../..", "/etc", "notes/../../data"] {
        let error = refusal(
            &house,
            "kg_graph_generate",
            json!({ "docsPath": docs_path }),
        );
        assert!(
            error.contains("lies outside the project"),
            "{docs_path}: {error}"
        );
    }
    let error = refusal(
        &house,
        "kg_graph_generate",
        json!({ "docsPath": "nowhere" }),
    );
    assert!(error.contains("`nowhere`"), "{error}");
    let absolute = house.project().join("notes");
    for docs_path in ["notes", "./notes/", ".", absolute.to_str().unwrap()] {
        let done = ask(
            &house,
            "kg_graph_generate",
            json!({ "docsPath": docs_path }),
        );
        assert_eq!(done["data"]["filesProcessed"], 1, "{docs_path}");
    }
}

#[test]
fn notes_of_the_vault_are_nodes_at_once_and_link_among_themselves() {
    let house = House::new();
    house.call("vault_write_note", json!({ "path": "People/Ada", "content": "---\ntags: [math]\n---\nKnows [[Bill Baue]] and [[Charles]]." }));
    let found = ask(
        &house,
        "kg_graph_query",
        json!({ "query": "knows charles", "includeRelations": true }),
    );
    let node = &found["data"]["nodes"][0];
    assert_eq!(
        (&node["path"], &node["title"]),
        (&json!("vault:People/Ada.md"), &json!("Ada"))
    );
    assert_eq!(node["tags"], json!(["math"]));
    house.put_document("docs/a.md", "See [[Ada]].");
    let done = generate(&house);
    assert_eq!(
        (&done["nodesGenerated"], &done["vaultNotes"]),
        (&json!(1), &json!(2))
    );
    let ada = ask(&house, "kg_get_node", json!({ "path": "People/Ada.md" }))["data"].clone();
    assert_eq!(ada["incomingLinks"][0]["source"], "a");
    assert_eq!(ada["outgoingLinks"][0]["target"], "vault/people/bill-baue");
    assert_eq!(ada["content"], "Knows [[Bill Baue]] and [[Charles]].");
    std::fs::remove_file(house.vault().join("People/Ada.md")).unwrap();
    generate(&house);
    assert_eq!(
        refusal(&house, "kg_get_node", json!({ "path": "People/Ada.md" })),
        "Node not found"
    );
}

#[test]
fn memories_are_found_only_when_they_are_asked_for() {
    let house = shop();
    generate(&house);
    house.call(
        "memory_store",
        json!({ "content": "The token of the checkout service expires after an hour." }),
    );
    let plain = ask(
        &house,
        "kg_graph_query",
        json!({ "query": "token expires after an hour" }),
    );
    assert!(
        plain["data"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["type"] != "memory")
    );
    let with = ask(
        &house,
        "kg_graph_query",
        json!({ "query": "token expires after an hour", "kinds": ["memory"] }),
    );
    assert!(
        with["data"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["type"] == "memory"),
        "{with:#}"
    );
    assert_eq!(ask(&house, "kg_stats", json!({}))["data"]["totalNodes"], 13);
}

#[test]
fn two_processes_that_generate_at_once_end_in_one_graph() {
    let house = House::without_vault(Selection::default());
    for i in 0..300 {
        house.put_document(
            &format!("docs/p{i}.md"),
            &format!("[[p{}]] [[p{}]]", (i + 1) % 300, (i * 7) % 300),
        );
    }
    let other = house.again(Selection::default());
    std::thread::scope(|scope| {
        let both =
            [&house, &other].map(|it| scope.spawn(|| (0..3).for_each(|_| drop(generate(it)))));
        both.into_iter().for_each(|it| it.join().unwrap());
    });
    assert_eq!(picture(&house), picture(&other));
    let created = house
        .event_kinds()
        .iter()
        .filter(|it| *it == "NodeCreated")
        .count();
    assert_eq!(created, 300);
    let (engine, space) = (house.board.engine(), house.owner().principal.space);
    let report = engine.verify(&space, &|_| {}).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn a_call_that_is_cancelled_leaves_whole_documents_and_the_next_one_completes_it() {
    let house = House::without_vault(Selection::default());
    for i in 0..600 {
        house.put_document(
            &format!("docs/p{i}.md"),
            &format!("word{i} [[p{}]]", (i + 1) % 600),
        );
    }
    let mut caller = house.owner();
    let flag = caller.cancelled.clone();
    caller.progress = Some(std::sync::Arc::new(move |_, _, what: &str| {
        if what == "documents written" {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    let reply = house
        .board
        .call("kg_graph_generate", json!({}), &caller)
        .unwrap();
    assert!(reply.is_error(), "{}", reply.text);
    let partial = ask(&house, "kg_stats", json!({}))["data"]["totalNodes"]
        .as_u64()
        .unwrap();
    assert!((1..600).contains(&partial), "{partial}");
    let done = generate(&house);
    assert_eq!(
        (&done["nodesGenerated"], &done["edgesCreated"]),
        (&json!(600), &json!(600))
    );
    assert_eq!(done["nodesAdded"].as_u64().unwrap(), 600 - partial);
}

#[test]
fn a_watcher_follows_bursts_renames_and_removed_folders() {
    use kenning_engine::{GraphWatch, WatchOptions};
    let house = House::without_vault(Selection::default());
    house.put_document("docs/start.md", "start");
    let principal = house.owner().principal;
    let watch = GraphWatch::start(
        house.board.engine(),
        principal,
        WatchOptions::default(),
        |_| {},
    )
    .unwrap();
    let until = |what: &str, expected: &dyn Fn(&Value) -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let reply = house.call("kg_stats", json!({}));
            let data = reply.to_json()["data"].clone();
            if expected(&data) {
                return;
            }
            assert!(std::time::Instant::now() < end, "{what}: {data}");
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
    };
    until("the first run", &|it| it["totalNodes"] == 1);
    for i in 0..200 {
        house.put_document(&format!("docs/new/deep/p{i}.md"), &format!("[[start]] {i}"));
    }
    until("a burst in a new folder", &|it| {
        it["totalNodes"] == 201 && it["totalEdges"] == 200
    });
    std::fs::rename(
        house.project().join("docs/new"),
        house.project().join("docs/old"),
    )
    .unwrap();
    house.put_document("docs/start.md", "start of [[p7]]");
    until("a folder renamed", &|it| {
        it["totalNodes"] == 201 && it["totalEdges"] == 201
    });
    std::fs::remove_dir_all(house.project().join("docs/old")).unwrap();
    until("a folder removed", &|it| {
        it["totalNodes"] == 1 && it["totalEdges"] == 0
    });
    drop(watch);
    let other = house.again(Selection::default());
    assert_eq!(picture(&other), picture(&house));
}

/// The example with the tools that are off by default.
fn whole_shop() -> House {
    let house = crate::everything(&shop());
    generate(&house);
    house
}

#[test]
fn ways_ranks_and_groups_of_the_example() {
    let house = whole_shop();
    let near = ask(&house, "kg_neighbors", json!({ "node": "Authentication" }))["data"].clone();
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
        &house,
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
        &house,
        "kg_path",
        json!({ "from": "orphan_note.md", "to": "index" }),
    );
    assert_eq!(none["data"]["found"], false);
    let first = ask(&house, "kg_rank", json!({ "limit": 1 }))["data"]["nodes"][0].clone();
    assert!(
        [
            "concepts/auth",
            "services/auth-service",
            "concepts/sessions"
        ]
        .contains(&first["id"].as_str().unwrap()),
        "{first}"
    );
    let groups = ask(&house, "kg_communities", json!({}))["data"]["communities"].clone();
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
    let house = whole_shop();
    house.put_document(
        "docs/mention.md",
        "Somebody should rotate keys: see Key rotation, and orphan note too.",
    );
    generate(&house);
    let broken = ask(&house, "kg_broken_links", json!({}))["data"].clone();
    assert_eq!(broken["total"], 1);
    assert_eq!(
        broken["links"][0]["suggestion"]["id"],
        "guides/key-rotation"
    );
    let orphans = ask(&house, "kg_orphans", json!({}))["data"].clone();
    let orphan = orphans["orphans"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "orphan-note")
        .unwrap();
    assert_eq!(orphan["suggestions"][0]["reason"], "mentioned-by");
    assert_eq!(orphan["suggestions"][0]["id"], "mention");
    let back = ask(&house, "kg_backlinks", json!({ "node": "key-rotation" }))["data"].clone();
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
    let house = whole_shop();
    for (format, begins) in [
        ("graphml", "<?xml"),
        ("dot", "digraph"),
        ("json", "{"),
        ("canvas", "{"),
    ] {
        let data = ask(&house, "kg_export", json!({ "format": format }))["data"].clone();
        let text = data["text"].as_str().unwrap();
        assert!(
            text.starts_with(begins) && text.contains("heckout"),
            "{format}: {text}"
        );
    }
    let owner = house.owner();
    let page = house
        .board
        .engine()
        .export_graph(&owner, kenning_engine::ExportFormat::Html)
        .unwrap();
    assert!(
        page.contains("One-Click Checkout")
            && !page.contains("http://")
            && page.contains("Content-Security-Policy")
    );
}
