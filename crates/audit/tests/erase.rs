//! Erasing: content is gone, the log verifies, and nothing brings it back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests look into the files of the store"
)]

use kenning_audit::foreign::{Batch, Entry, Foreign};
use kenning_audit::{
    Change, Draft, EdgeDraft, Log, Report, Signer, Tx, Verify, event, inclusion, verify,
    verify_newest,
};
use kenning_core::{FixedClock, Kind, NodeId, Result, SeededRandom, Space};
use kenning_store::{EdgeFilter, Node, Row, Store, Table, When};
use kenning_store_sqlite::Sqlite;
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;

const SECRET: &str = "quartz-heron-lantern-7731";

fn open(directory: &Path, seed: u64) -> Log {
    let random = SeededRandom::new(seed);
    let signer = Signer::generate(&random);
    let clock = Arc::new(FixedClock::at(1_800_000_000_000 + seed));
    let store = Store::new(Sqlite::open(directory).unwrap());
    Log::new(store, signer, clock, Arc::new(random))
}

fn here() -> Space {
    Space::default()
}

fn draft(key: &str, body: &str) -> Draft {
    Draft {
        kind: Kind::Memory,
        project: String::new(),
        key: key.to_owned(),
        title: String::new(),
        body: body.to_owned(),
        props: Map::new(),
    }
}

fn put(log: &Log, key: &'static str, body: &str) -> Node {
    let draft = draft(key, body);
    let write = move |tx: &mut Tx<'_>| {
        let node = tx.put_node(draft)?;
        tx.record("NodePut", json!({ "said": node.body }))?;
        Ok(node)
    };
    log.write(&here(), write).unwrap()
}

fn link(log: &Log, src: NodeId, dst: NodeId) {
    let write = move |tx: &mut Tx<'_>| {
        tx.put_edge(EdgeDraft {
            src,
            rel: "knows".to_owned(),
            dst,
            weight: 1.0,
            props: Map::from_iter([("why".to_owned(), json!(SECRET))]),
        })?;
        tx.record("Linked", json!({})).map(drop)
    };
    log.write(&here(), write).unwrap();
}

/// Erases a node and the data of every event that says its text.
fn erase(log: &Log, id: NodeId) {
    let write = move |tx: &mut Tx<'_>| {
        tx.erase_node(id)?;
        for row in tx.events_after(0, 1_000)? {
            if event::data(&row).to_string().contains(SECRET) {
                assert!(tx.erase_event(&row)?);
            }
        }
        tx.record("Erased", json!({})).map(drop)
    };
    log.write(&here(), write).unwrap();
}

fn check(log: &Log) -> Report {
    log.read(&here(), |tx| verify(tx, &Verify::of(&here()), &|_| ()))
        .unwrap()
}

fn assert_clean(log: &Log) -> Report {
    let report = check(log);
    assert_eq!(report.faults, Vec::<String>::new());
    let newest = log.read(&here(), |tx| verify_newest(tx, None, 10_000));
    assert_eq!(newest.unwrap().faults, Vec::<String>::new());
    report
}

fn every_row(log: &Log) -> String {
    let mut all = String::new();
    log.read(&here(), |tx| {
        for table in Table::ALL {
            tx.scan(table, &mut |row| {
                if let Row::Event(event) = &row {
                    all += &String::from_utf8_lossy(&event.payload);
                    all += &String::from_utf8_lossy(&event.sealed.data);
                }
                all += &format!("{row:?}\n");
                Ok(())
            })?;
        }
        Ok(())
    })
    .unwrap();
    all
}

fn holds_secret(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|it| it.unwrap().path()).any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes
            .windows(SECRET.len())
            .any(|it| it == SECRET.as_bytes())
    })
}

#[test]
fn an_erased_node_is_in_no_row_and_no_file_and_the_log_verifies() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let other = put(&log, "other", "stays");
    let node = put(&log, "one", &format!("{SECRET} first"));
    put(&log, "one", &format!("{SECRET} second"));
    link(&log, node.id, other.id);
    link(&log, other.id, node.id);
    assert_clean(&log);
    let secret_event = log
        .read(&here(), |tx| tx.events_after(1, 1))
        .unwrap()
        .remove(0);
    erase(&log, node.id);
    let report = assert_clean(&log);
    assert_eq!(report.n_erased, 2);
    assert!(!every_row(&log).contains(SECRET));
    assert!(log.store().scrub().unwrap());
    assert!(!holds_secret(directory.path()));
    log.read(&here(), |tx| {
        assert!(tx.node(other.id, When::Now)?.is_some());
        assert!(tx.edges(&EdgeFilter::default(), When::Now, 9)?.is_empty());
        // The event is still proved to be in the log.
        let row = tx.event_by_id(&secret_event.id)?.unwrap();
        assert!(event::is_erased(&row) && event::check(&row).is_ok());
        let size = tx.head()?.unwrap().seq;
        let proof = inclusion(tx, secret_event.seq, size)?;
        assert_eq!(proof.event, secret_event.id);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_node_of_an_erased_key_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let node = put(&log, "one", SECRET);
    erase(&log, node.id);
    let again = put(&log, "one", "another text");
    assert_ne!(again.id, node.id);
    assert_clean(&log);
}

#[test]
fn only_named_revisions_are_erased() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let first = put(&log, "log", "entry one");
    let second = put(&log, "log", &format!("entry one, {SECRET}"));
    put(&log, "log", "entry one, entry two");
    let write = move |tx: &mut Tx<'_>| {
        let erased = tx.erase_revision(second.id, second.hash)?;
        assert_eq!(erased.len(), 1);
        tx.record("Erased", json!({})).map(drop)
    };
    log.write(&here(), write).unwrap();
    assert_clean(&log);
    let history = log.read(&here(), |tx| tx.history(first.id)).unwrap();
    let bodies: Vec<String> = history.into_iter().map(|it| it.0.body).collect();
    assert_eq!(bodies, ["entry one"]);
}

#[test]
fn a_removed_node_can_be_brought_back_with_its_edges_until_it_is_erased() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let other = put(&log, "other", "stays");
    let node = put(&log, "one", "comes back");
    link(&log, node.id, other.id);
    let id = node.id;
    let remove = move |tx: &mut Tx<'_>| {
        tx.remove_node(id)?;
        tx.record("Removed", json!({})).map(drop)
    };
    log.write(&here(), remove).unwrap();
    let bring_back = move |tx: &mut Tx<'_>| {
        let node = tx.bring_back_node(id)?;
        tx.record("BroughtBack", json!({}))?;
        Ok(node)
    };
    let back = log.write(&here(), bring_back).unwrap().unwrap();
    assert_eq!(
        (back.id, back.rev, back.body.as_str()),
        (id, 2, "comes back")
    );
    assert_eq!(back.created, node.created);
    let edges = log.read(&here(), |tx| tx.edges(&EdgeFilter::default(), When::Now, 9));
    assert_eq!(edges.unwrap().len(), 1);
    assert_clean(&log);
    erase(&log, id);
    let nothing = log.write(&here(), move |tx| tx.bring_back_node(id));
    assert!(nothing.unwrap().is_none());
    assert_clean(&log);
}

/// Every event of a log with its rows, as a peer would send them.
fn entries(log: &Log) -> Vec<Entry> {
    log.read(&here(), |tx| {
        let mut entries = Vec::new();
        for row in tx.events_after(0, 1_000)? {
            let mut rows = Vec::new();
            for change in event::parse(&row).unwrap().changes {
                if let Change::PutNode { id, hash, .. } = change {
                    let history = tx.history(id)?.into_iter().map(|it| it.0);
                    let all = history.chain(tx.node(id, When::Now)?);
                    rows.extend(all.into_iter().find(|it| it.hash == hash).map(Row::Node));
                }
            }
            entries.push(Entry::Event(Box::new(Foreign::check(row, rows)?)));
        }
        Ok(entries)
    })
    .unwrap()
}

fn merge(log: &Log, entries: Vec<Entry>) {
    let work = move |tx: &mut Tx<'_>| -> Result<()> {
        let batch = Batch {
            entries,
            accepts_authors: true,
            ..Batch::default()
        };
        tx.merge(batch).map(drop)
    };
    log.write(&here(), work).unwrap();
}

#[test]
fn peers_erase_what_a_peer_erased_and_older_copies_do_not_bring_it_back() {
    let (one, two, three) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let a = open(one.path(), 1);
    let node = put(&a, "one", SECRET);
    put(&a, "two", "stays");
    let before = entries(&a);
    let b = open(two.path(), 2);
    merge(&b, before.clone());
    assert!(every_row(&b).contains(SECRET));
    erase(&a, node.id);
    merge(&b, entries(&a));
    assert!(!every_row(&b).contains(SECRET));
    assert_clean(&b);
    let root = |log: &Log| log.roots(&here()).unwrap().state_root;
    assert_eq!(root(&a), root(&b));
    // The erasure comes first, then the content from somebody who has not heard of it.
    let c = open(three.path(), 3);
    merge(&c, entries(&a).split_off(2));
    merge(&c, before);
    assert!(!every_row(&c).contains(SECRET));
    assert_clean(&c);
    assert_eq!(root(&a), root(&c));
}

#[test]
fn data_that_somebody_removed_without_an_event_is_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "one", SECRET);
    let path = directory.path().join(kenning_store_sqlite::FILE_NAME);
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "UPDATE events SET data = x'', salt = x'' WHERE seq = 1";
    connection.execute(sql, []).unwrap();
    let faults = check(&log).faults.join("; ");
    assert!(
        faults.contains("no event says that it was erased"),
        "{faults}"
    );
}
