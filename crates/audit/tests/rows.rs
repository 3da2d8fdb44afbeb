//! Moving a store, checking the newest part of its log, and edges that are stated twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests change rows behind the log's back on purpose"
)]

use kenning_audit::{Draft, EdgeDraft, Log, Place, Signer, Verify, migrate, verify, verify_newest};
use kenning_core::{Code, FixedClock, Kind, NodeId, Result, SeededRandom, Space};
use kenning_store::{EdgeFilter, Store, When};
use kenning_store_sqlite::{FILE_NAME, Sqlite};
use serde_json::{Map, json};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

fn open(directory: &Path) -> Log {
    let random = SeededRandom::new(1);
    let signer = Signer::generate(&random);
    let clock = Arc::new(FixedClock::at(1_700_000_000_000));
    let store = Store::new(Sqlite::open(directory).unwrap());
    Log::new(store, signer, clock, Arc::new(random))
}

fn put(log: &Log, key: &str, body: &str) -> NodeId {
    let draft = Draft {
        kind: Kind::Document,
        project: String::new(),
        key: key.to_owned(),
        title: String::new(),
        body: body.to_owned(),
        props: Map::new(),
    };
    log.write(&Space::default(), move |tx| {
        let node = tx.put_node(draft)?;
        tx.put_names(node.id, std::slice::from_ref(&node.key))?;
        tx.record("NodePut", json!({}))?;
        Ok(node.id)
    })
    .unwrap()
}

fn set(log: &Log, key: &str, value: &str) {
    let (key, value) = (key.to_owned(), value.to_owned());
    let set = move |tx: &mut dyn kenning_store::WriteTx| tx.set("bucket", &key, value.as_bytes());
    log.store().write(&Space::default(), set).unwrap();
}

fn settings(log: &Log) -> Vec<(String, Vec<u8>)> {
    log.read(&Space::default(), |tx| tx.list("bucket")).unwrap()
}

fn faults(log: &Log) -> Vec<String> {
    let report = log.read(&Space::default(), |tx| {
        verify(tx, &Verify::of(&Space::default()), &|_| ())
    });
    report.unwrap().faults
}

/// Moves, and stops as one that is killed after so many rows.
fn move_some(from: &Log, to: &Log, rows: u64) {
    let over = Cell::new(0);
    let moved = catch_unwind(AssertUnwindSafe(|| {
        migrate(from.store(), to.store(), &|n| {
            assert!(over.get() < rows, "killed");
            over.set(n);
        })
    }));
    assert!(moved.is_err(), "it was not interrupted");
}

#[test]
fn a_resumed_move_notices_what_was_added_removed_and_changed_beside_the_log() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (open(here.path()), open(there.path()));
    for n in 0..20 {
        put(&from, &format!("node {n}"), "body");
    }
    for n in 0..1_700 {
        set(&from, &format!("k{n:05}"), "value");
    }
    for rows in [1_000, 300] {
        move_some(&from, &to, rows);
        assert!(!settings(&to).is_empty(), "nothing was over yet");
        assert_eq!(to.roots(&Space::default()).unwrap().seq, 0);
        // Before the place, at it, and after it.
        set(&from, &format!("a new first one {rows}"), "value");
        set(&from, &format!("k00500 and a half {rows}"), "value");
        set(&from, "k00003", &format!("changed {rows}"));
        let unset = move |tx: &mut dyn kenning_store::WriteTx| {
            tx.unset("bucket", &format!("k{:05}", rows / 100))
        };
        from.store().write(&Space::default(), unset).unwrap();
    }
    let moved = migrate(from.store(), to.store(), &|_| ()).unwrap();
    assert_eq!(moved[0].roots, from.roots(&Space::default()).unwrap());
    assert_eq!(settings(&to), settings(&from));
    assert_eq!(faults(&to), [""; 0]);
    let again = migrate(from.store(), to.store(), &|_| ()).unwrap();
    assert_eq!(again[0].rows, 0);
}

#[test]
fn a_move_whose_tables_differ_at_the_end_says_which() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (open(here.path()), open(there.path()));
    let first = put(&from, "node", "body");
    for n in 0..600 {
        put(&from, &format!("node {n}"), "body");
    }
    for n in 0..600 {
        set(&from, &format!("k{n}"), "value");
    }
    move_some(&from, &to, 1_900);
    // Names are derived: they change without an event.
    let rename =
        move |tx: &mut dyn kenning_store::WriteTx| tx.put_names(first, &["another".to_owned()]);
    from.store().write(&Space::default(), rename).unwrap();
    let error = migrate(from.store(), to.store(), &|_| ()).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("`names`"), "{error}");
    assert_eq!(
        to.roots(&Space::default()).unwrap().seq,
        0,
        "it is no log yet"
    );
}

fn edge(src: NodeId, dst: NodeId, weight: f64) -> EdgeDraft {
    EdgeDraft {
        src,
        rel: "links".to_owned(),
        dst,
        weight,
        props: Map::new(),
    }
}

#[test]
fn of_edges_with_equal_ends_in_one_event_the_last_one_holds() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    let (a, b) = (put(&log, "a", ""), put(&log, "b", ""));
    let here = Space::default();
    type Step = fn(&mut kenning_audit::Tx<'_>, NodeId, NodeId) -> Result<()>;
    let put_one: Step = |tx, a, b| tx.put_edge(edge(a, b, 1.0)).map(drop);
    let put_two: Step = |tx, a, b| tx.put_edge(edge(a, b, 2.0)).map(drop);
    let end: Step = |tx, a, b| tx.end_edge(a, "links", b);
    // Every order of three, again and again over what the one before left.
    let steps = [put_one, put_two, end];
    for n in 0..27 {
        let order = [steps[n % 3], steps[n / 3 % 3], steps[n / 9]];
        log.write(&here, move |tx| {
            order.iter().try_for_each(|step| step(tx, a, b))?;
            tx.record("EdgesPut", json!({})).map(drop)
        })
        .unwrap();
        assert_eq!(faults(&log), [""; 0], "order {n}");
        let expected = match n / 9 {
            0 => vec![1.0],
            1 => vec![2.0],
            _ => vec![],
        };
        let edges = log.read(&here, |tx| tx.edges(&EdgeFilter::default(), When::Now, 9));
        let weights: Vec<f64> = edges.unwrap().iter().map(|it| it.weight).collect();
        assert_eq!(weights, expected, "order {n}");
    }
}

fn newest(log: &Log, place: Option<&Place>) -> kenning_audit::Newest {
    log.read(&Space::default(), |tx| verify_newest(tx, place, 10_000))
        .unwrap()
}

#[test]
fn the_newest_part_of_a_log_is_checked_from_the_last_checkpoint_and_then_from_the_last_check() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    let nothing = newest(&log, None);
    assert_eq!((nothing.to, nothing.faults.len()), (0, 0));
    // The event about the checkpoint of the first 1,024 is one more.
    for n in 0..1_099 {
        put(&log, &format!("node {}", n % 50), &format!("body {n}"));
    }
    let found = newest(&log, None);
    assert_eq!(found.faults, [""; 0]);
    assert_eq!((found.from, found.to, found.total), (1_024, 1_100, 1_100));
    // Each node, and its list of names.
    assert_eq!(found.n_rows, 100);
    let place = found.place.unwrap();
    put(&log, "one more", "");
    let found = newest(&log, Some(&place));
    assert_eq!((found.from, found.to, found.n_rows), (1_100, 1_101, 2));
    assert_eq!(found.faults, [""; 0]);

    let file = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    for (damage, repair, from) in [
        (
            "UPDATE events SET hlc = hlc + 1 WHERE seq = 1101",
            "UPDATE events SET hlc = hlc - 1 WHERE seq = 1101",
            1_100,
        ),
        (
            "UPDATE nodes SET body = 'x' WHERE key = 'one more'",
            "UPDATE nodes SET body = '' WHERE key = 'one more'",
            1_100,
        ),
        // An event that was checked before is another now.
        (
            "UPDATE events SET id = zeroblob(32) WHERE seq = 1100",
            "",
            1_100,
        ),
    ] {
        file.execute_batch(damage).unwrap();
        let found = newest(&log, Some(&place));
        assert_eq!(found.from, from);
        assert!(!found.faults.is_empty(), "{damage}");
        assert!(found.place.is_none());
        file.execute_batch(repair).unwrap();
    }
}

#[test]
fn a_checkpoint_that_nobody_signed_is_no_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    for n in 0..1_030 {
        put(&log, &format!("node {}", n % 5), &format!("body {n}"));
    }
    assert_eq!(newest(&log, None).faults, [""; 0]);
    let file = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    let changed = "UPDATE checkpoints SET signature = zeroblob(64)";
    assert_eq!(file.execute(changed, []).unwrap(), 1);
    let found = newest(&log, None);
    assert!(found.faults[0].contains("signature"), "{:?}", found.faults);
}
