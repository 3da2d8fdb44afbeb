//! D5(a), A3, A4: one changed bit in any event row is noticed by the verifier, whoever wrote the event.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use kenning_audit::foreign::{Batch, Entry, Foreign};
use kenning_audit::{Draft, EdgeDraft, Log, Report, Signer, Verify, on_behalf_of, verify};
use kenning_core::{FixedClock, Kind, NodeId, SeededRandom, Space};
use kenning_store::{Row, Store, Table};
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

fn put(log: &Log, key: &str, body: &str) -> NodeId {
    let draft = Draft {
        kind: Kind::Document,
        project: String::new(),
        key: key.to_owned(),
        title: key.to_owned(),
        body: body.to_owned(),
        props: Map::new(),
    };
    log.write(&Space::default(), move |tx| {
        let node = tx.put_node(draft)?;
        tx.record("NodePut", json!({ "key": node.key }))?;
        Ok(node.id)
    })
    .unwrap()
}

/// Nodes, revisions, edges and a removal.
fn fill(log: &Log, name: &str) {
    let (one, two) = (
        put(log, &format!("{name} 1"), "a"),
        put(log, &format!("{name} 2"), "b"),
    );
    put(log, &format!("{name} 1"), "changed");
    let gone = put(log, &format!("{name} 3"), "c");
    log.write(&Space::default(), move |tx| {
        tx.put_edge(EdgeDraft {
            src: one,
            rel: "links".to_owned(),
            dst: two,
            weight: 1.0,
            props: Map::new(),
        })?;
        tx.record("EdgePut", json!({ "of": "links" }))?;
        tx.remove_node(gone)?;
        tx.record("NodeRemoved", json!({ "why": "a test" }))
    })
    .unwrap();
    log.checkpoint(&Space::default()).unwrap();
}

fn check(log: &Log) -> Report {
    let here = Space::default();
    let asked = Verify::of(&here).by(log.signer().did());
    log.read(&here, |tx| verify(tx, &asked, &|_| ())).unwrap()
}

#[test]
fn one_flipped_bit_in_the_event_rows_is_always_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    (0..4).for_each(|n| fill(&log, &format!("part {n}")));
    let cases = flip(directory.path(), &log, 5);
    println!("flipped bits: {cases} cases, 0 failures, seed 5");
}

/// Two servers on one store, an agent, and the events of a node with a log of its own.
#[test]
fn one_flipped_bit_is_noticed_among_events_of_several_authors() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = Space::default();
    let (log, second) = (open(directory.path(), 1), open(directory.path(), 2));
    fill(&log, "first");
    fill(&second, "second");
    let joined = second.signer().did().clone();
    let agent = Signer::from_secret(&[7; 32]).did().clone();
    log.write(&here, move |tx| {
        tx.add_author(&joined);
        tx.record("AuthorAdded", json!({}))
    })
    .unwrap();
    let told = on_behalf_of(Some(agent), || {
        log.write(&here, |tx| tx.record("Told", json!({ "by": "an agent" })))
    });
    told.unwrap();
    let other = open(elsewhere.path(), 3);
    fill(&other, "third");
    let mut rows = Vec::new();
    let events = other.read(&here, |tx| {
        for table in [Table::Nodes, Table::Edges] {
            tx.scan(table, &mut |row| {
                rows.push(row);
                Ok(())
            })?;
        }
        tx.events_after(0, 100)
    });
    let mut entries = Vec::new();
    for event in events.unwrap() {
        // An event brings the rows that it put and that are still there.
        let of = |row: &&Row| Foreign::check(event.clone(), vec![(*row).clone()]).is_ok();
        let own: Vec<Row> = rows.iter().filter(of).cloned().collect();
        entries.push(Entry::Event(Box::new(Foreign::check(event, own).unwrap())));
    }
    let merged = log.write(&here, move |tx| {
        tx.merge(Batch {
            entries,
            accepts_authors: true,
            ..Batch::default()
        })
    });
    assert!(merged.unwrap().n_events >= 6);
    let report = check(&log);
    assert!(
        report.n_foreign >= 6 && report.authors.len() >= 3,
        "{report:?}"
    );
    let cases = flip(directory.path(), &log, 6);
    println!("flipped bits of several authors: {cases} cases, 0 failures, seed 6");
}

/// Flips one bit at a time in the event rows. Returns how many were flipped.
fn flip(directory: &Path, log: &Log, seed: u64) -> u64 {
    // A tenth of the figure in every run; `KENNING_FLIPS=10000` runs it whole.
    let cases: u64 = std::env::var("KENNING_FLIPS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(1_000);
    assert_eq!(check(log).faults, Vec::<String>::new());
    let file = rusqlite::Connection::open(directory.join(FILE_NAME)).unwrap();
    let random = SeededRandom::new(seed);
    let n_events = log.roots(&Space::default()).unwrap().seq;
    let mut missed = Vec::new();
    let mut case = 0;
    while case < cases {
        let seq = 1 + random.below(n_events) as i64;
        let column = [
            "id",
            "parents",
            "author",
            "kind",
            "payload",
            "signature",
            "hlc",
            "version",
            "origin",
            "data",
            "salt",
            "commitment",
            "agent",
        ][random.below(13) as usize];
        let sql = format!("SELECT CAST({column} AS BLOB) FROM events WHERE seq = ?1");
        let before: Vec<u8> = file.query_row(&sql, [seq], |row| row.get(0)).unwrap();
        // There is no bit to flip: another place is drawn.
        if before.is_empty() {
            continue;
        }
        case += 1;
        let number = matches!(column, "hlc" | "version");
        let set = |bytes: &[u8]| {
            let (sql, value): (_, rusqlite::types::Value) = if number {
                let n: i64 = std::str::from_utf8(bytes).unwrap().parse().unwrap();
                ("?1", n.into())
            } else if matches!(column, "author" | "kind" | "agent") {
                ("CAST(?1 AS TEXT)", bytes.to_vec().into())
            } else {
                ("?1", bytes.to_vec().into())
            };
            let sql = format!("UPDATE events SET {column} = {sql} WHERE seq = ?2");
            file.execute(&sql, rusqlite::params![value, seq]).unwrap();
        };
        let mut after = before.clone();
        if number {
            let n: i64 = std::str::from_utf8(&before).unwrap().parse().unwrap();
            after = (n ^ (1 << random.below(if column == "hlc" { 62 } else { 8 })))
                .to_string()
                .into();
        } else {
            let at = random.below(after.len() as u64) as usize;
            after[at] ^= 1 << random.below(8);
        }
        set(&after);
        if check(log).is_clean() {
            missed.push(format!("case {case}: {column} of event {seq}"));
        }
        set(&before);
    }
    assert_eq!(missed, Vec::<String>::new());
    assert!(check(log).is_clean(), "everything was put back");
    case
}
