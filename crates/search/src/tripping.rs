//! What is derived from rows survives a panic at any of the reads that it is made of.

use crate::collections::{ACCOUNTS, Account, Collections, row_props};
use crate::searcher::{Keeper, Searcher};
use crate::{Index, passages};
use kenning_audit::{Draft, Log, Signer, Tx};
use kenning_core::{FixedClock, Hash, Hlc, Kind, NodeId, Result, SeededRandom, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Nearest,
    Node, NodeFilter, Passage, ReadTx, Row, Store, Table, Vector, When,
};
use kenning_store_sqlite::Sqlite;
use serde_json::{Map, json};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const COLLECTION: &str = "kg/2/default";

/// A snapshot that does something, such as to panic, at one of the calls or at one of the rows of a scan.
struct Tripping<'a> {
    tx: &'a dyn ReadTx,
    left: Cell<u32>,
    /// Which calls are counted; all if none is named.
    only: Option<&'static str>,
    trip: &'a dyn Fn(),
}

impl Tripping<'_> {
    fn step(&self, name: &str) {
        if self.only.is_some_and(|it| it != name) {
            return;
        }
        match self.left.get() {
            0 => {
                self.left.set(u32::MAX);
                (self.trip)();
            }
            n => self.left.set(n - 1),
        }
    }
}

macro_rules! reads {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.step(stringify!($name));
            self.tx.$name($($argument),*)
        })*
    };
}

impl ReadTx for Tripping<'_> {
    reads! {
        fn node(id: NodeId, when: When) -> Option<Node>;
        fn node_by_key(project: &str, kind: Kind, key: &str, when: When) -> Option<Node>;
        fn nodes(filter: &NodeFilter, when: When, after: Option<NodeId>, limit: usize) -> Vec<Node>;
        fn count_nodes(filter: &NodeFilter) -> u64;
        fn history(id: NodeId) -> Vec<(Node, Hlc)>;
        fn key_history(project: &str, kind: Kind, key: &str) -> Vec<Node>;
        fn edges(filter: &EdgeFilter, when: When, limit: usize) -> Vec<Edge>;
        fn edge_history(src: NodeId, rel: &str, dst: NodeId) -> Vec<Edge>;
        fn names_of(node: NodeId) -> Vec<String>;
        fn passages(node: NodeId) -> Vec<Passage>;
        fn find_names(text: &str, filter: &NodeFilter, limit: usize) -> Vec<NameHit>;
        fn vector(collection: &str, id: &str) -> Option<Vector>;
        fn vectors_since(collection: &str, seq: u64, limit: usize) -> Vec<Vector>;
        fn nearest(collection: &str, to: &[f32], limit: usize) -> Nearest;
        fn head() -> Option<HeadRow>;
        fn events_after(seq: u64, limit: usize) -> Vec<EventRow>;
        fn events_at(hlc: Hlc) -> Vec<EventRow>;
        fn find_events(filter: &EventFilter, page: EventPage) -> Vec<EventRow>;
        fn count_events(filter: &EventFilter) -> u64;
        fn event_kinds() -> Vec<(String, u64)>;
        fn event_by_id(id: &Hash) -> Option<EventRow>;
        fn tile(level: u8, index: u64) -> Option<Hash>;
        fn checkpoint_at(seq: u64) -> Option<CheckpointRow>;
        fn get(bucket: &str, key: &str) -> Option<Vec<u8>>;
        fn list(bucket: &str) -> Vec<(String, Vec<u8>)>;
    }

    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        self.step("scan");
        self.tx.scan(table, &mut |row| {
            self.step("scan");
            visit(row)
        })
    }
}

fn draft(kind: Kind, n: u64) -> Draft {
    Draft {
        kind,
        project: String::new(),
        key: n.to_string(),
        title: String::new(),
        body: format!("the word of number {n}"),
        props: Map::new(),
    }
}

/// A memory and a vector.
fn put(tx: &mut Tx<'_>, n: u64) -> Result<()> {
    let node = tx.put_node(draft(Kind::Memory, n))?;
    tx.put_passages(node.id, &passages("", &node.body))?;
    let node = tx.put_node(draft(Kind::Vector, n))?;
    tx.put_vector(Vector {
        collection: COLLECTION.to_owned(),
        id: node.id.to_string(),
        model: "caller".to_owned(),
        numbers: vec![1.0, n as f32],
        props: row_props(&[]),
        seq: 0,
    })?;
    let mut account = Account::read(&**tx, COLLECTION)?;
    account.count += 1;
    tx.set(ACCOUNTS, COLLECTION, &account.to_bytes())?;
    tx.record("MemoryStored", json!({})).map(drop)
}

fn log_in(folder: &std::path::Path) -> Log {
    let store = Store::new(Sqlite::open(folder).unwrap());
    let random = Arc::new(SeededRandom::new(5));
    let signer = Signer::generate(&*random);
    let clock = Arc::new(FixedClock::at(1_800_000_000_000));
    Log::new(store, signer, clock, random as _)
}

/// A lock that is held while rows are read would make this hang: the other searches are made in the middle
/// of it, by the same thread.
#[test]
fn while_an_index_is_followed_other_spaces_and_earlier_snapshots_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let (busy, other) = (Space::default(), "other".parse::<Space>().unwrap());
    let searcher = Searcher::default();
    let found = |space: &Space, tx: &dyn ReadTx| searcher.with(space, tx, None, Index::len);
    let write = |space: &Space, n: u64| log.write(space, move |tx| put(tx, n)).unwrap();
    write(&busy, 1);
    write(&other, 1);
    write(&other, 2);
    log.read(&busy, |before| {
        assert_eq!(found(&busy, before)?, 1);
        write(&busy, 2);
        log.read(&busy, |after| {
            let n_trips = Cell::new(0);
            let trip = || {
                n_trips.set(n_trips.get() + 1);
                let of_other = log.read(&other, |tx| found(&other, tx));
                assert_eq!(of_other.unwrap(), 2);
                assert_eq!(found(&busy, before).unwrap(), 1);
            };
            let tripping = Tripping {
                tx: after,
                left: Cell::new(0),
                only: Some("passages"),
                trip: &trip,
            };
            assert_eq!(found(&busy, &tripping)?, 2);
            assert_eq!(n_trips.get(), 1);
            Ok(())
        })
    })
    .unwrap();
}

#[test]
fn what_a_writer_has_taken_in_no_search_reads_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let space = Space::default();
    let searcher = Searcher::default();
    let write = |n: u64| log.write(&space, move |tx| put(tx, n)).unwrap();
    let catch_up = || log.read(&space, |tx| searcher.catch_up(&space, tx, None));
    write(1);
    assert!(!catch_up().unwrap(), "nobody searches yet");
    let n_reads = Cell::new(0);
    let count = || n_reads.set(n_reads.get() + 1);
    let found = || {
        log.read(&space, |tx| {
            let counting = Tripping {
                tx,
                left: Cell::new(0),
                only: Some("passages"),
                trip: &count,
            };
            searcher.with(&space, &counting, None, Index::len)
        })
    };
    assert_eq!(found().unwrap(), 1);
    n_reads.set(0);
    write(2);
    assert!(catch_up().unwrap());
    assert_eq!((found().unwrap(), n_reads.get()), (2, 0));
    write(3);
    assert_eq!((found().unwrap(), n_reads.get()), (3, 1));
}

#[test]
fn a_panic_while_an_index_follows_the_log_costs_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let space = Space::default();
    let (searcher, collections) = (Searcher::default(), Collections::default());
    let n_passages = |index: &Index| index.len();
    let found = |tx: &dyn ReadTx| -> Result<(usize, usize)> {
        let passages = searcher.with(&space, tx, None, n_passages)?;
        let vectors = collections.with(&space, tx, COLLECTION, 2, |it| Ok(it.len()))?;
        Ok((passages, vectors))
    };
    let mut n_panics = 0;
    for round in 1..=30_usize {
        log.write(&space, move |tx| put(tx, round as u64)).unwrap();
        log.read(&space, |tx| {
            // At a later step each time: while it is made, and while it follows.
            let tripping = Tripping {
                tx,
                left: Cell::new(u32::try_from(round / 2).unwrap()),
                only: None,
                trip: &|| panic!("on purpose"),
            };
            let tripped = catch_unwind(AssertUnwindSafe(|| found(&tripping)));
            n_panics += usize::from(tripped.is_err());
            assert_eq!(found(tx)?, (round, round), "in round {round}");
            Ok(())
        })
        .unwrap();
    }
    assert!(n_panics > 5, "{n_panics}");
}

/// Keeps in memory, and counts who asks.
#[derive(Default)]
struct KeptIndexes {
    kept: Mutex<Option<Vec<u8>>>,
    n_asked: AtomicUsize,
}

impl Keeper for Arc<KeptIndexes> {
    fn load(&self, _: &Space) -> Option<Vec<u8>> {
        self.kept.lock().unwrap().clone()
    }

    fn save(&self, _: &Space, snapshot: Vec<u8>) {
        *self.kept.lock().unwrap() = Some(snapshot);
    }

    fn ask_to_tend(&self, _: &Space) {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn whoever_searches_neither_copies_nor_keeps_an_index_and_whoever_tends_it_does_both() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let space = Space::default();
    let kept = Arc::new(KeptIndexes::default());
    let searcher = Searcher::kept_by(Arc::clone(&kept));
    let write = |text: &str| {
        let body = text.repeat(40_000);
        let work = move |tx: &mut Tx<'_>| {
            let node = tx.put_node(Draft {
                body,
                ..draft(Kind::Memory, 1)
            })?;
            tx.put_passages(node.id, &passages("", &node.body))?;
            tx.record("MemoryStored", json!({})).map(drop)
        };
        log.write(&space, work).unwrap();
    };
    let n_scans = Cell::new(0);
    let count = || n_scans.set(n_scans.get() + 1);
    let found = || {
        let work = |tx: &dyn ReadTx| {
            let counting = Tripping {
                tx,
                left: Cell::new(0),
                only: Some("scan"),
                trip: &count,
            };
            let both = |it: &Index| (it.len(), it.entries.len());
            searcher.with(&space, &counting, None, both)
        };
        log.read(&space, work).unwrap()
    };
    write("the first text, of which nothing stays. ");
    let (n_alive, _) = found();
    assert!(n_alive > 1_000, "{n_alive}");
    n_scans.set(0);
    write("another one that is rewritten at once. ");
    found();
    write("the one that stays, because it is last. ");
    let (n_alive, n_all) = found();
    assert!(n_alive * 2 < n_all, "{n_alive} of {n_all}");
    assert_eq!(n_scans.get(), 0, "a search reads everything again");
    assert!(kept.load(&space).is_none(), "a search keeps an index");
    assert!(kept.n_asked.load(Ordering::Relaxed) > 0);
    let tend = || searcher.tend(&space, &log, &|| false).unwrap();
    assert!(tend());
    assert_eq!(found(), (n_alive, n_alive));
    assert!(!tend(), "nothing is left to do");
    let other = Searcher::kept_by(Arc::clone(&kept));
    let is_kept = |tx: &dyn ReadTx| {
        let no_scan = Tripping {
            tx,
            left: Cell::new(0),
            only: Some("scan"),
            trip: &|| panic!("what was kept is read again"),
        };
        other.with(&space, &no_scan, None, Index::len)
    };
    assert_eq!(log.read(&space, is_kept).unwrap(), n_alive);
}
