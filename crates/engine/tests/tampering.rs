//! Whoever changes a byte of the store behind the log's back is seen.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use jiff::tz::TimeZone;
use kenning_core::{Code, FixedClock, SeededRandom, Space};
use kenning_engine::kg::{NewVector, VectorQuery};
use kenning_engine::omi::{IntegrityScope, NewMemory, Recall};
use kenning_engine::query::Question;
use kenning_engine::{Caller, Engine, Options, Principal};
use kenning_store::Store;
use kenning_store_sqlite::{FILE_NAME, Sqlite};
use kenning_vault::Dir;
use std::path::Path;
use std::sync::Arc;

fn owner() -> Caller {
    Caller::new(Principal::owner(Space::default()))
}

fn open(root: &Path) -> Engine {
    let data = Dir::create(&root.join("data")).unwrap();
    let engine = Engine::open(Options {
        store: Store::new(Sqlite::open(data.path()).unwrap()),
        data,
        vault: None,
        omi: Some(root.join("omi")),
        project: None,
        wasm: kenning_engine::kami::WasmOptions::default(),
        items: kenning_engine::kiwi::ItemOptions::default(),
        repositories: kenning_engine::koi::RepositoryOptions::default(),
        mail: None,
        web: kenning_engine::koi::WebOptions::default(),
        space: Space::default(),
        clock: Arc::new(FixedClock::at(1_800_000_000_000)),
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(1)),
        environment: Arc::new(|_| None),
        shared: false,
        read_only: false,
    });
    engine.unwrap()
}

fn is_safe(root: &Path) -> bool {
    let found = open(root)
        .omi()
        .check_integrity(&owner(), IntegrityScope::All);
    let found = found.unwrap();
    assert_eq!(found.overall_safe, found.faults.is_empty(), "{found:?}");
    found.overall_safe
}

#[test]
fn a_changed_byte_of_a_memory_an_edge_or_an_event_is_seen() {
    let changes = [
        "UPDATE nodes SET body = replace(body, '100', '900') WHERE kind = 'memory'",
        "UPDATE nodes SET props = replace(props, '0.5', '0.9') WHERE kind = 'memory'",
        "UPDATE edges SET weight = 0.9",
        "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'belief', 'relief') AS BLOB)",
        "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'node', 'edge') AS BLOB)",
        "UPDATE events SET hlc = hlc + 1 WHERE seq = 1",
        "DELETE FROM nodes WHERE body LIKE '%100%'",
    ];
    for change in changes {
        let root = tempfile::tempdir().unwrap();
        let memory = |content: &str, related_to: &[&str]| NewMemory {
            content: content.to_owned(),
            memory_type: "belief".parse().unwrap(),
            confidence: Some(0.5),
            memory_id: Some(content[..3].to_owned()),
            related_to: related_to.iter().map(ToString::to_string).collect(),
            ..NewMemory::default()
        };
        let engine = open(root.path());
        let both = vec![
            memory("one: the limit is 100", &[]),
            memory("two", &["one"]),
        ];
        engine.omi().store_memories(&owner(), both).unwrap();
        drop(engine);
        assert!(is_safe(root.path()), "before");
        let file = rusqlite::Connection::open(root.path().join("data").join(FILE_NAME)).unwrap();
        file.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        assert!(file.execute(change, []).unwrap() > 0, "{change}");
        drop(file);
        assert!(!is_safe(root.path()), "{change}");
        let refused = open(root.path()).backup(&owner(), &mut Vec::new());
        assert_eq!(refused.unwrap_err().code, Code::Corrupt, "{change}");
    }
}

/// As after a failover to a standby that lagged, or a restore under a running server: numbers of events
/// that this process has seen stand for other events. Whatever follows the log in memory and only compares
/// numbers never sees those.
#[test]
fn a_store_that_was_taken_back_under_a_running_server_is_read_anew() {
    const BODIES: &str = "MATCH (m:Memory) RETURN m.text";
    const ALIKE: &str = "MATCH (:Memory)-[r:SIMILAR]-(:Memory) RETURN count(r) > 0";
    let root = tempfile::tempdir().unwrap();
    let engine = open(root.path());
    let store = |content: &str| {
        let memory = NewMemory {
            content: content.to_owned(),
            memory_type: "fact".parse().unwrap(),
            ..NewMemory::default()
        };
        engine.omi().store_memories(&owner(), vec![memory]).unwrap();
        engine.omi().settle();
    };
    let finds = |query: &str| {
        let recall = Recall {
            query: query.to_owned(),
            min_relevance: 0.0,
            ..Recall::default()
        };
        let found = engine.omi().recall(&owner(), &recall).unwrap();
        engine.omi().settle();
        format!("{:?}", found.memories)
    };
    let put = |id: &str, numbers: [f32; 2]| {
        let new = NewVector {
            id: id.to_owned(),
            namespace: None,
            numbers: numbers.to_vec(),
            metadata: serde_json::Map::new(),
        };
        engine.kg().upsert_vector(&owner(), new).unwrap();
    };
    let near = |numbers: [f32; 2]| {
        let query = VectorQuery {
            vector: Some(numbers.to_vec()),
            ..VectorQuery::default()
        };
        let found = engine.kg().search_vectors(&owner(), &query).unwrap();
        let hits = found.hits.into_iter();
        hits.map(|it| it.id).collect::<Vec<String>>()
    };
    let rows = |text: &str| {
        let question = Question {
            text: text.to_owned(),
            ..Question::default()
        };
        format!("{:?}", engine.query(&owner(), &question).unwrap().rows)
    };

    store("Alpha: the harbor opens in March");
    put("alpha", [1.0, 0.0]);
    let file = rusqlite::Connection::open(root.path().join("data").join(FILE_NAME)).unwrap();
    let earlier = root.path().join("earlier.db");
    file.execute("VACUUM INTO ?1", [earlier.to_str().unwrap()])
        .unwrap();
    for n in 0..10 {
        store(&format!("Beta: lighthouse number {n} was painted in April"));
    }
    store("Beta: the keeper sells postcards of the harbor and the island");
    store("Beta: the keeper sells old postcards of the harbor and the island");
    put("beta", [0.0, 1.0]);
    assert!(finds("lighthouse painted").contains("Beta"));
    assert_eq!(near([0.0, 1.0]), ["beta", "alpha"]);
    assert!(rows(BODIES).contains("Beta"));
    assert!(rows(ALIKE).contains("true"), "{}", rows(ALIKE));

    file.execute("ATTACH ?1 AS earlier", [earlier.to_str().unwrap()])
        .unwrap();
    let tables = [
        "passages",
        "names",
        "vectors",
        "nodes",
        "node_history",
        "edges",
        "events",
        "tiles",
        "checkpoints",
        "heads",
        "kv",
    ];
    let mut sql = "PRAGMA foreign_keys = OFF; BEGIN;".to_owned();
    for table in tables {
        sql += &format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM earlier.{table};"
        );
    }
    file.execute_batch(&format!("{sql} COMMIT")).unwrap();

    // Fewer events than were lost: all of their numbers were used before.
    store("Gamma: the ferry is repaired in June");
    put("gamma", [-1.0, 0.0]);
    assert!(finds("ferry repaired").contains("Gamma"));
    assert!(!finds("lighthouse painted").contains("Beta"));
    assert!(finds("harbor opens").contains("Alpha"));
    assert_eq!(near([0.0, 1.0]).len(), 2, "{:?}", near([0.0, 1.0]));
    assert!(near([-1.0, 0.1]).contains(&"gamma".to_owned()));
    let bodies = rows(BODIES);
    assert!(
        bodies.contains("Gamma") && bodies.contains("Alpha"),
        "{bodies}"
    );
    assert!(!bodies.contains("Beta"), "{bodies}");
    assert!(!rows(ALIKE).contains("true"));
    store("Gamma: the ferry is being repaired in June");
    assert!(
        rows(ALIKE).contains("true"),
        "the cursor in memory went back too"
    );
    let report = engine.verify(&Space::default(), &|_| ()).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
}
