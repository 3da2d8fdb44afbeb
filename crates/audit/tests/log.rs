//! The log over a real store: signatures bind, damage is noticed, histories only grow.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests damage files and logs on purpose"
)]

use kenning_audit::event::{self, canonical_bytes};
use kenning_audit::{
    Change, Draft, EdgeDraft, Event, Log, LogId, Origin, Report, SignedRow, Signer, Verify, verify,
};
use kenning_core::{Code, Error, FixedClock, Hash, Hlc, Kind, NodeId, SeededRandom, Space};
use kenning_store::{EventRow, SealedData, Store, When, canonical_json};
use kenning_store_sqlite::{FILE_NAME, Sqlite};
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;

fn open(directory: &Path, seed: u64) -> Log {
    let random = SeededRandom::new(seed);
    let signer = Signer::generate(&random);
    let clock = Arc::new(FixedClock::at(1_700_000_000_000));
    Log::new(
        Store::new(Sqlite::open(directory).unwrap()),
        signer,
        clock,
        Arc::new(random),
    )
}

fn draft(key: &str, body: &str) -> Draft {
    Draft {
        kind: Kind::Document,
        project: String::new(),
        key: key.to_owned(),
        title: key.to_owned(),
        body: body.to_owned(),
        props: Map::new(),
    }
}

fn put(log: &Log, key: &str, body: &str) -> NodeId {
    let draft = draft(key, body);
    log.write(&Space::default(), move |tx| {
        let node = tx.put_node(draft)?;
        tx.record("NodePut", json!({ "key": node.key }))?;
        Ok(node.id)
    })
    .unwrap()
}

/// Nodes, revisions, edges, a removal: some of everything.
fn fill(log: &Log, n: usize) {
    let here = Space::default();
    for i in 0..n {
        let id = put(log, &format!("k{}", i % 40), &format!("body {i}"));
        if i % 3 == 0 {
            let other = put(log, "hub", "hub");
            log.write(&here, move |tx| {
                let edge = EdgeDraft {
                    src: id,
                    rel: "links".to_owned(),
                    dst: other,
                    weight: (i % 7) as f64,
                    props: Map::new(),
                };
                tx.put_edge(edge)?;
                tx.record("EdgePut", json!({}))
            })
            .unwrap();
        }
        if i % 10 == 9 {
            log.write(&here, move |tx| {
                tx.remove_node(id)?;
                tx.record("NodeRemoved", json!({}))
            })
            .unwrap();
        }
    }
    log.checkpoint(&here).unwrap();
}

/// Rows that are no nodes and no edges.
fn fill_rows(log: &Log) {
    let node = put(log, "hub", "hub with passages");
    log.write(&Space::default(), move |tx| {
        tx.set("tokens", "t1", b"a token")?;
        tx.set("cursors", "c1", b"a cursor")?;
        let passage = |n: u32| kenning_store::Passage {
            n,
            text: format!("piece {n}"),
            start: u64::from(n) * 10,
            tokens: format!("piec {n}"),
            title_tokens: String::new(),
        };
        tx.put_passages(node, &[passage(0), passage(1)])?;
        tx.put_names(node, &["Hub".to_owned(), "...".to_owned()])?;
        for id in ["v1", "v2"] {
            tx.put_vector(kenning_store::Vector {
                collection: "kg/2/default".to_owned(),
                id: id.to_owned(),
                model: String::new(),
                numbers: vec![0.5, -0.0],
                props: Map::new(),
                seq: 0,
            })?;
        }
        tx.record("RowsPut", json!({}))
    })
    .unwrap();
    log.write(&Space::default(), |tx| {
        tx.set("tokens", "t2", b"another token")?;
        tx.unset("tokens", "t1")?;
        tx.remove_vector("kg/2/default", "v2")
    })
    .unwrap();
}

fn check(log: &Log) -> Report {
    let here = Space::default();
    let asked = Verify::of(&here).by(log.signer().did());
    log.read(&here, |tx| verify(tx, &asked, &|_| ())).unwrap()
}

#[test]
fn a_log_that_nobody_touched_is_clean() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    assert!(check(&log).is_clean(), "an empty log is clean");
    fill(&log, 300);
    let report = check(&log);
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(report.n_events > 400 && report.n_edges > 50 && report.n_history > 200);
    assert_eq!(report.roots, Some(log.roots(&Space::default()).unwrap()));
}

#[test]
fn a_write_without_its_event_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let error = log
        .write(&Space::default(), |tx| tx.put_node(draft("k", "b")))
        .unwrap_err();
    assert_eq!(error.code, Code::Internal);
    let node = log.read(&Space::default(), |tx| {
        tx.node_by_key("", Kind::Document, "k", When::Now)
    });
    assert_eq!(node.unwrap(), None);
}

#[test]
fn a_failed_write_has_no_event() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "before", "b");
    let failed = log.write(&Space::default(), |tx| -> kenning_core::Result<()> {
        tx.put_node(draft("k", "b"))?;
        tx.record("NodePut", json!({}))?;
        Err(Error::invalid("no"))
    });
    assert!(failed.is_err());
    assert_eq!(log.roots(&Space::default()).unwrap().seq, 1);
    put(&log, "after", "b");
    assert!(check(&log).is_clean());
}

#[test]
fn content_that_is_there_already_makes_no_revision() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let one = put(&log, "k", "same");
    let before = log.roots(&Space::default()).unwrap();
    assert_eq!(put(&log, "k", "same"), one);
    let after = log.roots(&Space::default()).unwrap();
    assert_eq!(after.state_root, before.state_root);
    let history = log.read(&Space::default(), |tx| tx.history(one)).unwrap();
    assert!(history.is_empty());
}

#[test]
fn several_writers_keep_one_order() {
    let directory = tempfile::tempdir().unwrap();
    let logs = [open(directory.path(), 1), open(directory.path(), 2)];
    std::thread::scope(|scope| {
        for (which, log) in logs.iter().enumerate() {
            for thread in 0..3 {
                scope.spawn(move || {
                    for n in 0..20 {
                        put(log, &format!("{which}/{thread}/{n}"), "b");
                    }
                });
            }
        }
    });
    let (first, second) = (check(&logs[0]), check(&logs[1]));
    assert_eq!(first.n_events, 121, "the one that came second joined");
    // One of them began the log; the other added itself and is not confirmed yet.
    let (owner, other) = match first.is_clean() {
        true => (&logs[1], &logs[0]),
        false => (&logs[0], &logs[1]),
    };
    assert!(
        first.is_clean() != second.is_clean(),
        "{first:?} {second:?}"
    );
    let did = other.signer().did().clone();
    owner
        .write(&Space::default(), move |tx| {
            tx.add_author(&did);
            tx.record("AuthorAdded", json!({}))
        })
        .unwrap();
    assert_eq!(check(&logs[0]).faults, Vec::<String>::new());
    assert_eq!(check(&logs[1]).faults, Vec::<String>::new());
}

#[test]
fn proofs_from_a_stored_log_hold() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    for n in 0..600 {
        put(&log, &format!("k{n}"), "b");
    }
    let here = Space::default();
    let now = log.roots(&here).unwrap();
    log.read(&here, |tx| {
        for seq in [1, 2, 255, 256, 257, 300, 512, 513, 600] {
            let proof = kenning_audit::inclusion(tx, seq, now.seq)?;
            assert!(proof.holds(now.seq, &now.event_root), "event {seq}");
            let then = kenning_audit::consistency(tx, seq, now.seq)?;
            let old_root = then.old_root;
            assert!(
                then.holds((seq, &old_root), (now.seq, &now.event_root)),
                "prefix {seq}"
            );
        }
        for (seq, size) in [(0, 600), (601, 601), (5, 4)] {
            let error = kenning_audit::inclusion(tx, seq, size).unwrap_err();
            assert_eq!(error.code, Code::InvalidInput);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn after_each_of_many_appends_the_old_head_is_a_prefix_of_the_new() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let here = Space::default();
    put(&log, "k0", "b");
    let mut old = log.roots(&here).unwrap();
    for n in 1..400 {
        put(&log, &format!("k{n}"), "b");
        let new = log.roots(&here).unwrap();
        let proof = log
            .read(&here, |tx| kenning_audit::consistency(tx, old.seq, new.seq))
            .unwrap();
        assert!(proof.holds((old.seq, &old.event_root), (new.seq, &new.event_root)));
        old = new;
    }
}

fn sample(n: u64) -> (Event, Signer) {
    let signer = Signer::from_secret(&[9; 32]);
    let id = NodeId::new(Hlc::from_ms(1_700_000_000_000), &SeededRandom::new(n));
    let event = Event {
        parents: (0..n % 3).map(|i| Hash::of(&i.to_be_bytes())).collect(),
        hlc: Hlc::from_ms(1_700_000_000_000 + n),
        author: signer.did().clone(),
        agent: None,
        kind: "NoteWritten".to_owned(),
        changes: vec![
            Change::PutNode {
                id,
                rev: n,
                hash: Hash::of(b"node"),
            },
            Change::RemoveNode { id },
            Change::PutEdge {
                src: id,
                rel: "a\"b".to_owned(),
                dst: id,
                hash: Hash::of(b"edge"),
            },
            Change::EndEdge {
                src: id,
                rel: "é".to_owned(),
                dst: id,
            },
        ],
        data: json!({ "path": "People/Bill Baue.md", "n": n, "b": [true, null, 1.5] }),
    };
    (event, signer)
}

/// Signs as the first version did.
fn sign_version_1(event: &Event, seq: u64, signer: &Signer) -> EventRow {
    let now = event.sign(seq, &origin(), [0; event::SALT_BYTES], signer);
    let payload = json!({ "changes": event::changes_json(&now), "data": event.data });
    let mut row = EventRow {
        version: 1,
        payload: canonical_json(&payload).into_bytes(),
        sealed: SealedData::default(),
        ..now
    };
    row.id = Hash::of(&canonical_bytes(&row));
    row.signature = signer.sign(&row.id);
    row
}

fn origin() -> Origin {
    Origin {
        log: LogId([5; 16]),
        space: "default".to_owned(),
    }
}

fn golden_line(row: &EventRow) -> String {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect::<String>()
    };
    let (bytes, signature) = (hex(&canonical_bytes(row)), hex(&row.signature));
    format!("{bytes} {} {signature}\n", row.id)
}

#[test]
fn the_canonical_bytes_of_version_1_are_those_of_the_golden_file() {
    let mut lines = String::new();
    for n in 0..4 {
        let (event, signer) = sample(n);
        let row = sign_version_1(&event, n + 1, &signer);
        lines += &golden_line(&row);
        assert_eq!(
            event::check(&row).unwrap(),
            event,
            "what was signed reads back"
        );
    }
    assert_eq!(
        lines,
        include_str!("golden/events-v1.txt"),
        "these bytes never change"
    );
}

#[test]
fn the_canonical_bytes_of_version_2_are_those_of_the_golden_file() {
    let mut lines = String::new();
    for n in 0..4 {
        let (mut event, signer) = sample(n);
        let agent = Signer::from_secret(&[7; 32]).did().clone();
        event.agent = (n % 2 == 1).then_some(agent.clone());
        let id = NodeId::new(event.hlc, &SeededRandom::new(n));
        let pair = SignedRow::Pair("tokens".to_owned(), "a\"b".to_owned());
        let vector = SignedRow::Vector("kg/3/é".to_owned(), "v".to_owned());
        event.changes.extend([
            Change::PutRow {
                row: SignedRow::Passages(id),
                hash: Hash::of(b"passages"),
            },
            Change::PutRow {
                row: SignedRow::Names(id),
                hash: Hash::of(b"names"),
            },
            Change::PutRow {
                row: vector,
                hash: Hash::of(b"vector"),
            },
            Change::RemoveRow { row: pair },
            Change::AddAuthor {
                author: agent.clone(),
            },
            Change::RevokeAuthor { author: agent },
            Change::ResetClock,
        ]);
        let row = event.sign(n + 1, &origin(), [n as u8; 16], &signer);
        lines += &golden_line(&row);
        assert_eq!(event::check(&row).unwrap(), event);
    }
    let expected = include_str!("golden/events-v2.txt");
    assert_eq!(lines, expected, "these bytes never change");
}

#[test]
fn erased_data_is_gone_and_the_event_still_verifies() {
    let (event, signer) = sample(2);
    let whole = event.sign(1, &origin(), [3; 16], &signer);
    let mut row = whole.clone();
    row.sealed.data.clear();
    row.sealed.salt.clear();
    let erased = event::check(&row).unwrap();
    assert_eq!(
        erased.changes, event.changes,
        "what was changed is still said"
    );
    assert!(event::is_erased(&row) && erased.data.is_null());
    assert_eq!(event::data(&row), serde_json::Value::Null);
    assert!(
        !canonical_bytes(&whole).windows(4).any(|it| it == b"Bill"),
        "what was said is not in what is signed"
    );
    // Data without its salt, and a salt without its data, are not what was signed.
    let half = EventRow {
        sealed: SealedData {
            salt: Vec::new(),
            ..whole.sealed.clone()
        },
        ..whole.clone()
    };
    assert!(event::check(&half).is_err());
}

#[test]
fn every_one_bit_change_of_a_signed_event_is_refused() {
    const CASES: u64 = 10_000;
    let seed = 3;
    let random = SeededRandom::new(seed);
    let mut accepted = 0;
    for n in 0..CASES {
        // Several authors, some of them for an agent.
        let (event, _) = sample(n);
        let signer = Signer::from_secret(&[(n % 17) as u8; 32]);
        let event = Event {
            author: signer.did().clone(),
            agent: (n % 6 == 5).then(|| Signer::from_secret(&[99; 32]).did().clone()),
            ..event
        };
        let mut row = match n % 2 {
            0 => sign_version_1(&event, n + 1, &signer),
            _ => event.sign(n + 1, &origin(), [n as u8; 16], &signer),
        };
        flip_one_bit(&mut row, &random);
        accepted += u32::from(event::check(&row).is_ok());
    }
    println!("changed events: {CASES} cases, {accepted} failures, seed {seed}");
    assert_eq!(accepted, 0);
}

fn flip_one_bit(row: &mut EventRow, random: &SeededRandom) {
    let flip = |bytes: &mut [u8]| {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    };
    let flip_text = |text: &mut String| {
        // A text stays a text: an ASCII character becomes another one.
        let at = random.below(text.len() as u64) as usize;
        let mut bytes = std::mem::take(text).into_bytes();
        bytes[at] ^= 1 << random.below(7);
        *text = String::from_utf8_lossy(&bytes).into_owned();
    };
    let n_fields = if row.version == 1 { 8 } else { 13 };
    match random.below(n_fields) {
        12 if !row.sealed.agent.is_empty() => flip_text(&mut row.sealed.agent),
        8 => flip(&mut row.sealed.origin),
        9 => flip(&mut row.sealed.data),
        10 => flip(&mut row.sealed.salt),
        11 => flip(&mut row.sealed.commitment),
        0 => flip(&mut row.id.0),
        1 if !row.parents.is_empty() => flip(&mut row.parents[0].0),
        2 => row.hlc.0 ^= 1 << random.below(63),
        3 => flip_text(&mut row.author),
        4 => flip_text(&mut row.kind),
        5 => flip(&mut row.signature),
        6 => row.version ^= 1 << random.below(8),
        _ => flip(&mut row.payload),
    }
}

#[test]
fn another_key_or_another_author_is_refused() {
    let (event, signer) = sample(1);
    let other = Signer::from_secret(&[8; 32]);
    let good = event.sign(1, &origin(), [1; 16], &signer);
    let wrong_key = EventRow {
        signature: other.sign(&good.id),
        ..good.clone()
    };
    assert!(event::check(&wrong_key).is_err());
    let mut swapped = EventRow {
        author: other.did().to_string(),
        ..good.clone()
    };
    assert!(event::check(&swapped).is_err(), "the id covers the author");
    swapped.id = Hash::of(&canonical_bytes(&swapped));
    assert!(
        event::check(&swapped).is_err(),
        "and the signature covers the id"
    );
    assert!(event::check(&good).is_ok());
}

#[test]
fn an_event_replayed_into_another_log_is_noticed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (open(one.path(), 1), open(two.path(), 2));
    put(&source, "a", "b");
    put(&source, "b", "b");
    put(&target, "c", "b");
    let here = Space::default();
    let mut foreign = source
        .read(&here, |tx| tx.events_after(1, 1))
        .unwrap()
        .remove(0);
    foreign.seq = 2;
    target
        .store()
        .write(&here, move |tx| tx.append_event(&foreign))
        .unwrap();
    let faults = check(&target).faults.join("\n");
    assert!(
        faults.contains("the last events are of another log, and no event applies them"),
        "{faults}"
    );
}

#[test]
fn every_kind_of_tampering_with_rows_is_noticed() {
    let sabotages = [
        "UPDATE nodes SET body = body || '!' WHERE key = 'k1'",
        "UPDATE nodes SET title = 'x' WHERE key = 'k1'",
        "UPDATE nodes SET props = '{\"a\":1}' WHERE key = 'k1'",
        "UPDATE nodes SET rev = rev + 1 WHERE key = 'k1'",
        "UPDATE nodes SET updated = updated + 1 WHERE key = 'k1'",
        "UPDATE nodes SET created = created + 1 WHERE key = 'k1'",
        "UPDATE nodes SET hash = zeroblob(32) WHERE key = 'k1'",
        "UPDATE nodes SET hash = x'00' WHERE key = 'k1'",
        "DELETE FROM nodes WHERE key = 'k1'",
        "UPDATE node_history SET body = 'x' WHERE rev = 1",
        "UPDATE node_history SET ended = ended + 1 WHERE rev = 1",
        "DELETE FROM node_history WHERE rev = 1",
        "UPDATE edges SET weight = weight + 1",
        "UPDATE edges SET valid_to = valid_to - 1",
        "DELETE FROM edges",
        "DELETE FROM events WHERE seq = 5",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "UPDATE events SET seq = seq + 1000 WHERE seq = 5",
        "UPDATE events SET seq = -seq WHERE seq = 5",
        "UPDATE heads SET seq = seq + 1",
        "UPDATE heads SET state = zeroblob(2048)",
        "UPDATE heads SET state = x''",
        "UPDATE heads SET tips = zeroblob(32)",
        "UPDATE heads SET frontier = zeroblob(32)",
        "UPDATE heads SET log = x''",
        "UPDATE heads SET log = CAST(replace(log, 'did:', 'DID:') AS BLOB)",
        "DELETE FROM heads",
        "UPDATE checkpoints SET signature = zeroblob(64)",
        "UPDATE checkpoints SET event_root = zeroblob(32)",
        "UPDATE checkpoints SET state_root = zeroblob(32)",
        "UPDATE checkpoints SET height = 7",
        "UPDATE checkpoints SET seq = seq - 1",
        "UPDATE checkpoints SET author = 'did:key:zzz'",
        "UPDATE checkpoints SET origin = x''",
        "UPDATE checkpoints SET version = 1",
        "UPDATE kv SET value = x'00' WHERE bucket = 'tokens'",
        "UPDATE kv SET key = 'another' WHERE bucket = 'tokens'",
        "DELETE FROM kv WHERE bucket = 'tokens'",
        "INSERT INTO kv VALUES ('default', 'tokens', 'forged', x'00')",
        "INSERT INTO kv VALUES ('default', 'tools/trusted', 'forged', x'00')",
        "INSERT INTO kv VALUES ('default', 'registry/owners', 'tool/a', x'00')",
        "UPDATE passages SET text = 'x' WHERE n = 0",
        "UPDATE passages SET tokens = 'x' WHERE n = 0",
        "DELETE FROM passages WHERE n = 1",
        "UPDATE names SET name = 'x'",
        "DELETE FROM names",
        "INSERT INTO names SELECT space, id, 'Forged', ' fo' FROM nodes WHERE key = 'hub'",
        "UPDATE vectors SET numbers = x'0000803f00000000'",
        "UPDATE vectors SET props = '{\"a\":1}'",
        "UPDATE vectors SET seq = seq + 1",
        "DELETE FROM vectors",
        "INSERT INTO vectors SELECT space, collection, 'forged', model, numbers, props, seq FROM vectors",
        "UPDATE tiles SET hash = zeroblob(32)",
        "DELETE FROM tiles",
    ];
    let original = tempfile::tempdir().unwrap();
    {
        let log = open(original.path(), 1);
        fill(&log, 200);
        fill_rows(&log);
        assert_eq!(check(&log).faults, Vec::<String>::new());
    }
    for sabotage in sabotages {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE_NAME);
        std::fs::copy(original.path().join(FILE_NAME), &file).unwrap();
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.execute_batch(sabotage).unwrap();
        drop(connection);
        let report = check(&open(directory.path(), 1));
        assert!(!report.is_clean(), "not noticed: {sabotage}");
    }
}
