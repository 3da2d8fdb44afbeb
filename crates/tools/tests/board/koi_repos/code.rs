//! The code of a repository: its symbols are nodes of the one store, found by the one search, and its edges
//! follow every change.

use super::{Repo, call, register, scan, status, verify};
use crate::Fixture;
use kenning_core::{Kind, Space};
use kenning_engine::koi::ScanResult;
use kenning_store::{EdgeFilter, Node, NodeFilter, When};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The symbols of the store, by their keys.
fn symbols(fixture: &Fixture) -> BTreeMap<String, Node> {
    let filter = NodeFilter {
        kinds: vec![Kind::Symbol],
        ..NodeFilter::default()
    };
    let log = fixture.log();
    let nodes = log.read(&Space::default(), |tx| {
        tx.nodes(&filter, When::Now, None, 100_000)
    });
    let nodes = nodes.unwrap().into_iter();
    nodes.map(|it| (it.key.clone(), it)).collect()
}

/// All edges of a relation, as `title -> title origin`.
fn edges(fixture: &Fixture, rel: &str) -> Vec<String> {
    let log = fixture.log();
    let filter = EdgeFilter {
        rel: Some(rel.to_owned()),
        ..EdgeFilter::default()
    };
    let mut all = log
        .read(&Space::default(), |tx| {
            let mut all = Vec::new();
            for edge in tx.edges(&filter, When::Now, usize::MAX)? {
                let title = |id| {
                    let node = tx
                        .node(id, When::Now)
                        .unwrap()
                        .expect("an edge has its ends");
                    node.title
                };
                let origin = edge.props.get("origin").and_then(Value::as_str);
                let (src, dst) = (title(edge.src), title(edge.dst));
                all.push(format!("{src} -> {dst} {}", origin.unwrap_or("-")));
            }
            Ok(all)
        })
        .unwrap();
    all.sort();
    all
}

fn labels(fixture: &Fixture) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in symbols(fixture).values() {
        let label = node.props["label"].as_str().unwrap().to_owned();
        *all.entry(label).or_insert(0) += 1;
    }
    all
}

fn sample(fixture: &Fixture) -> Repo {
    let repo = Repo::new(fixture, "code");
    repo.put(
        "src/parse.py",
        "\"\"\"Parsing.\"\"\"\nfrom src.util import trimmed\n\ndef parse_header(line: str) -> str:\n    \"\"\"Reads the herring header.\"\"\"\n    return trimmed(line)\n\nclass Reader:\n    def read(self):\n        return parse_header('x')\n",
    )
    .put("src/util.py", "import os\n\ndef trimmed(line):\n    return os.fspath(line)\n")
    .put(
        "tests/test_parse.py",
        "from src.parse import parse_header\n\ndef test_header():\n    assert parse_header('a')\n",
    )
    .put("notes.xyz", "no language\n")
    .put("README.md", "# Demo\n");
    repo.commit();
    assert_eq!(register(fixture, &repo, "acme/code")["status"], "added");
    repo
}

#[test]
fn a_scan_makes_symbols_nodes_and_references_edges() {
    let fixture = Fixture::new();
    sample(&fixture);
    let done = scan(&fixture);
    let row = &done["results"][0];
    let (n_symbols, n_edges) = (row["code_entities"].as_u64(), row["code_edges"].as_u64());
    assert_eq!(n_symbols, Some(5), "{done}");
    assert!(n_edges.is_some_and(|it| it > 10), "{done}");
    let again = scan(&fixture);
    assert_eq!(
        again["results"][0]["code_entities"], 0,
        "nothing was read: {again}"
    );
    let found = status(&fixture);
    assert_eq!(found["total_code_entities"], 5);
    assert_eq!(found["repos"][0]["code_entity_count"], 5);
    assert_eq!(
        edges(&fixture, "CALLS"),
        [
            "Reader.read -> parse_header scope",
            "parse_header -> trimmed import",
            "test_header -> parse_header import",
            "trimmed -> os.fspath external",
        ]
    );
    assert_eq!(
        edges(&fixture, "TESTS"),
        ["test_header -> parse_header import"]
    );
    assert_eq!(
        edges(&fixture, "IMPORTS"),
        [
            "src/parse.py -> src/util.py import",
            "src/parse.py -> trimmed import",
            "src/util.py -> os external",
            "tests/test_parse.py -> parse_header import",
            "tests/test_parse.py -> src/parse.py import",
        ]
    );
    assert_eq!(
        edges(&fixture, "BELONGS_TO"),
        [
            "src/parse.py -> src -",
            "src/util.py -> src -",
            "tests/test_parse.py -> tests -",
        ]
    );
    let expected = [
        ("Class", 1),
        ("External", 2),
        ("Function", 3),
        ("Import", 3),
        ("Method", 1),
        ("Module", 2),
    ];
    let expected = expected.map(|it| (it.0.to_owned(), it.1));
    assert_eq!(labels(&fixture), BTreeMap::from(expected));
    let all = symbols(&fixture);
    let parse = &all["github:acme/code:src/parse.py#parse_header"];
    assert_eq!(
        parse.props["signature"],
        "def parse_header(line: str) -> str"
    );
    assert_eq!(parse.props["docstring"], "Reads the herring header.");
    assert_eq!(parse.props["line_start"], 4);
    assert_eq!(parse.props["params"], json!(["line: str"]));
    assert_eq!(parse.props["return_type"], "str");
    assert_eq!(
        all["github:acme/code:src/parse.py#Reader.read"].props["receiver_type"],
        "Reader"
    );
    assert_eq!(
        all["github:acme/code:tests/test_parse.py#test_header"].props["is_test"],
        true
    );
    // The one search finds a symbol, by its name and by what is said of it.
    for query in ["parse_header", "herring header"] {
        let found = call(
            &fixture,
            "knowledge_search",
            json!({ "query": query, "source": "github" }),
        );
        let text = found.to_string();
        assert!(
            text.contains("src/parse.py#parse_header"),
            "{query}: {text}"
        );
    }
    verify(&fixture);
}

/// Scans, and says in how many files references were resolved.
fn n_resolved(fixture: &Fixture) -> u64 {
    let koi = fixture.board.engine().koi();
    let done = koi.scan_repositories(&fixture.owner(), None).unwrap();
    match &done[..] {
        [ScanResult::Done(done)] => done.n_resolved,
        other => panic!("{other:?}"),
    }
}

#[test]
fn edges_follow_changes_renames_and_removals() {
    let fixture = Fixture::new();
    let repo = sample(&fixture);
    scan(&fixture);
    let before = symbols(&fixture);
    // A change of a body resolves that file alone.
    repo.put(
        "src/util.py",
        "import os\n\ndef trimmed(line):\n    os.getcwd()\n    return os.fspath(line)\n",
    );
    repo.commit();
    assert_eq!(n_resolved(&fixture), 1, "only the file that changed");
    assert!(edges(&fixture, "CALLS").contains(&"trimmed -> os.getcwd external".to_owned()));
    // What a function gives may change what its callers mean.
    repo.put("src/util.py", "def trimmed(line):\n    return line\n");
    repo.commit();
    scan(&fixture);
    assert!(
        edges(&fixture, "CALLS")
            .iter()
            .all(|it| !it.contains("os.fspath"))
    );
    assert!(
        !symbols(&fixture).contains_key("github:acme/code:#external os.fspath"),
        "nothing refers to it"
    );
    // What a name means changes in a file that did not.
    repo.put("src/util.py", "def other(line):\n    return line\n");
    repo.commit();
    assert!(n_resolved(&fixture) >= 2, "and the file that imports it");
    assert!(
        edges(&fixture, "CALLS")
            .iter()
            .all(|it| !it.starts_with("parse_header ->"))
    );
    repo.put("src/util.py", "def trimmed(line):\n    return line\n");
    repo.commit();
    scan(&fixture);
    assert!(edges(&fixture, "CALLS").contains(&"parse_header -> trimmed import".to_owned()));
    // A file that has another name keeps its nodes.
    repo.git(&["mv", "tests/test_parse.py", "tests/test_header.py"]);
    repo.commit();
    scan(&fixture);
    let after = symbols(&fixture);
    let (old, new) = (
        &before["github:acme/code:tests/test_parse.py#test_header"],
        &after["github:acme/code:tests/test_header.py#test_header"],
    );
    assert_eq!(old.id, new.id);
    assert_eq!(new.props["file_path"], "tests/test_header.py");
    assert_eq!(
        edges(&fixture, "TESTS"),
        ["test_header -> parse_header import"]
    );
    // A file that is gone takes its symbols along.
    repo.git(&["rm", "--quiet", "src/parse.py"]);
    repo.commit();
    scan(&fixture);
    assert_eq!(status(&fixture)["total_code_entities"], 2);
    assert_eq!(edges(&fixture, "CALLS"), Vec::<String>::new());
    assert!(
        symbols(&fixture)
            .keys()
            .all(|it| !it.contains("src/parse.py"))
    );
    verify(&fixture);
    // Nothing new is nothing to do.
    let seq = fixture
        .log()
        .read(&Space::default(), |tx| Ok(tx.head()?.unwrap().seq))
        .unwrap();
    scan(&fixture);
    let after = fixture
        .log()
        .read(&Space::default(), |tx| Ok(tx.head()?.unwrap().seq))
        .unwrap();
    assert_eq!(after, seq + 1, "one event for the scan itself");
    // Who forgets the repository forgets its code.
    let owner = fixture.owner();
    fixture
        .board
        .engine()
        .koi()
        .forget_repository(&owner, "acme/code", false)
        .unwrap();
    assert!(symbols(&fixture).is_empty());
    verify(&fixture);
}

#[test]
fn what_was_scanned_in_steps_is_what_is_scanned_at_once() {
    let fixture = Fixture::new();
    let repo = sample(&fixture);
    scan(&fixture);
    repo.put(
        "src/more.py",
        "from src.parse import Reader\n\ndef more():\n    return Reader().read()\n",
    );
    repo.commit();
    scan(&fixture);
    repo.put(
        "src/parse.py",
        "class Base:\n    def read(self): pass\n\nclass Reader(Base):\n    pass\n",
    );
    repo.commit();
    scan(&fixture);
    let rels = [
        "CALLS",
        "MAY_CALL",
        "IMPORTS",
        "EXTENDS",
        "TESTS",
        "USES",
        "CONTAINS",
        "BELONGS_TO",
    ];
    let stepwise: Vec<Vec<String>> = rels.iter().map(|it| edges(&fixture, it)).collect();
    let other = Fixture::new();
    let copy = Repo::new(&other, "copy");
    for path in [
        "src/parse.py",
        "src/util.py",
        "src/more.py",
        "tests/test_parse.py",
    ] {
        copy.put(path, std::fs::read(repo.0.join(path)).unwrap());
    }
    copy.commit();
    register(&other, &copy, "acme/code");
    scan(&other);
    let at_once: Vec<Vec<String>> = rels.iter().map(|it| edges(&other, it)).collect();
    assert_eq!(stepwise, at_once);
    assert!(
        at_once[0].contains(&"more -> Base.read type".to_owned()),
        "{at_once:?}"
    );
}

#[test]
fn an_event_is_of_a_file_and_not_of_a_symbol() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "many");
    let many: String = (0..300)
        .map(|n| format!("def f{n}():\n    return f{}()\n", (n + 1) % 300))
        .collect();
    repo.put("many.py", many);
    repo.commit();
    register(&fixture, &repo, "acme/many");
    let done = scan(&fixture);
    assert_eq!(done["results"][0]["code_entities"], 300);
    assert_eq!(edges(&fixture, "CALLS").len(), 300);
    let head = fixture
        .log()
        .read(&Space::default(), |tx| Ok(tx.head()?.unwrap().seq))
        .unwrap();
    assert!(head < 10, "{head} events");
}

#[test]
fn an_agent_registers_by_scanning_what_the_policy_admits() {
    let fixture = Fixture::new();
    let repo = Repo::new(&fixture, "asked");
    repo.put("a.py", "def one():\n    pass\n");
    repo.commit();
    let path = repo.0.to_str().unwrap();
    let arguments = json!({ "action": "scan", "repo_name": path });
    let done = call(&fixture, "github_scan", arguments);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["results"][0]["code_entities"], 1, "{done}");
    // What nobody allowed is not fetched, and the answer says who can allow it.
    let arguments = json!({ "action": "scan", "repo_name": "acme/unknown" });
    let done = call(&fixture, "github_scan", arguments);
    assert_eq!(done["status"], "no_repos", "{done}");
    let message = done["message"].as_str().unwrap();
    assert!(message.contains("KENNING_REPO_ALLOW"), "{message}");
    // Nor is what is outside of the configured directories.
    let arguments = json!({ "action": "scan", "repo_name": "/etc" });
    let done = call(&fixture, "github_scan", arguments);
    assert_eq!(done["status"], "no_repos", "{done}");
}

#[test]
fn people_ask_who_calls_what_calls_and_what_tests() {
    use kenning_engine::koi::CodeQuestion;
    let fixture = Fixture::new();
    sample(&fixture);
    scan(&fixture);
    let (engine, owner) = (fixture.board.engine(), fixture.owner());
    let found = engine
        .koi()
        .code_symbols(&owner, "Reader.read", None)
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].text("file_path"), found[0].line()),
        ("src/parse.py", 9)
    );
    let ask = |name: &str, question| -> Vec<String> {
        let found = engine
            .koi()
            .code_links(&owner, name, Some("acme/code"), question, false);
        let links = found.unwrap().into_iter().flat_map(|it| it.1);
        links
            .map(|it| format!("{} {}", it.depth, it.symbol.text("name")))
            .collect()
    };
    assert_eq!(
        ask("parse_header", CodeQuestion::Callers),
        ["1 read", "1 test_header"]
    );
    assert_eq!(ask("parse_header", CodeQuestion::Callees), ["1 trimmed"]);
    assert_eq!(ask("trimmed", CodeQuestion::Tests), ["2 test_header"]);
    assert_eq!(
        ask("trimmed", CodeQuestion::Impact),
        ["1 parse_header", "2 read", "2 test_header"]
    );
    let missing = engine
        .koi()
        .code_links(&owner, "nobody", None, CodeQuestion::Callers, false);
    assert!(missing.unwrap_err().message.contains("nobody"));
}
