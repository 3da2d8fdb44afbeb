//! The storage interface: rows, transactions and the trait of a backend.
//!
//! Everything agents know is a [`Node`]; everything that relates is an [`Edge`]; what can be searched
//! is a [`Passage`]; what can be compared is a [`Vector`]; what happened is an [`EventRow`]. A backend
//! (SQLite, PostgreSQL) stores these rows and nothing else: it knows nothing of what they mean, makes no
//! ids, reads no clock and signs nothing.
//!
//! A transaction is bound to one [`Space`] when it begins and has no way to name another, so one
//! tenant's rows cannot reach another by forgetting a condition. `write` is called by the `audit`
//! crate only: it is the one way to change anything, and it adds the event to every change.
//!
//! [`conformance::run`] is the test that every backend must pass.

#![deny(missing_docs)]

pub mod conformance;
mod event_filter;
mod json;
pub mod names;
pub mod patience;
mod rows;
mod strict;

pub use event_filter::{
    EventEffect, EventFilter, EventOf, EventPage, EventPart, EventWhat, NODE_CREATED_MARK,
};
pub use json::{
    JSON_DEPTH_MAX, canonical_json, canonical_object, check_json_depth, json_depth, parse_json,
    parse_json_once, parse_jsons_once,
};
pub use names::{NameHit, NameRow};
pub use rows::{
    CREATED_ELSEWHERE_MS, CheckpointRow, Edge, EdgeFilter, EventRow, HeadRow, IndexKind, KeyPart,
    KvRow, Near, Nearest, Node, NodeFilter, Passage, PassageRow, Row, RowKey, SealedData, Table,
    TileRow, Vector, When, hash_of_names, hash_of_pair, hash_of_passages,
};

use kenning_core::{Error, Hash, NodeId, Result, Space, idle};
use std::sync::Arc;
use std::time::Duration;
use strict::Strict;

/// Called after an append, from any thread; must not wait.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// One piece of work in a read transaction.
pub type ReadWork<'a> = dyn FnMut(&dyn ReadTx) -> Result<()> + 'a;

/// One piece of work in a write transaction. It may run on another thread.
pub type WriteWork = Box<dyn FnOnce(&mut dyn WriteTx) -> Result<()> + Send>;

/// A lock that is held until this is dropped.
pub type StoreLock = Box<dyn std::any::Any + Send>;

/// A storage engine, such as SQLite. Callers use [`Store`], which wraps one.
pub trait Backend: Send + Sync + 'static {
    /// Runs the work on a consistent snapshot of one space.
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()>;

    /// The same for work that may take long: a backup, verifying, migrating. Writes meanwhile cost no
    /// more than they always do.
    fn read_long(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        self.read(space, work)
    }

    /// Runs the work in its own transaction and returns once it is durable. An error from the
    /// work, or a panic in it, leaves nothing behind.
    fn write(&self, space: &Space, work: WriteWork) -> Result<()>;

    /// The same for work that may take long: restoring, migrating.
    fn write_long(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.write(space, work)
    }

    /// Calls `wake` after appends that the backend notices, and returns how often to poll for those
    /// that it does not.
    fn subscribe(&self, wake: Wake) -> Duration;

    /// Every space that has a head or a key-value pair, in the order of names.
    fn spaces(&self) -> Result<Vec<Space>>;

    /// Waits for a lock that all processes on this store share, on any machine. It is released when it is
    /// dropped or its process dies. `None` if the store belongs to one machine, where a lock file is
    /// enough.
    fn lock(&self, _name: &str, _wait: Duration) -> Result<Option<StoreLock>> {
        Ok(None)
    }

    /// Removes what was deleted from the files too: from free pages and from the write-ahead log. False if
    /// somebody still reads what was deleted: call it again later.
    fn scrub(&self) -> Result<bool>;

    /// Asks the backend to check its own files; each string is one fault.
    fn check(&self) -> Result<Vec<String>>;

    /// Objects in the database that are not ours, and ours that are missing or changed, one sentence
    /// each: an unknown trigger could change what is written.
    fn schema_faults(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The bytes of the write-ahead log, if that is a file beside the store's.
    fn log_bytes(&self) -> Option<u64> {
        None
    }

    /// One line for `doctor`: what it is and where, without secrets.
    fn describe(&self) -> String;
}

/// A store over any backend. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<dyn Backend>);

impl Store {
    /// A store over this backend.
    pub fn new(backend: impl Backend) -> Self {
        Self(Arc::new(backend))
    }

    /// Runs `work` on a consistent snapshot of one space.
    pub fn read<T>(&self, space: &Space, work: impl FnOnce(&dyn ReadTx) -> Result<T>) -> Result<T> {
        read_for_value(work, |work| self.0.read(space, work))
    }

    /// The same for work that may take long. An ordinary read keeps the store from reusing what was
    /// written since it began; this one does not, and costs a copy of the store where that is needed.
    pub fn read_long<T>(
        &self,
        space: &Space,
        work: impl FnOnce(&dyn ReadTx) -> Result<T>,
    ) -> Result<T> {
        read_for_value(work, |work| self.0.read_long(space, work))
    }

    /// Runs `work` in a write transaction and returns once it is durable. Once a method of the
    /// transaction has failed, the whole call fails, even if `work` goes on.
    ///
    /// Only `audit` calls this: everybody else writes through it, so that no write lacks its event.
    pub fn write<T: Send + 'static>(
        &self,
        space: &Space,
        work: impl FnOnce(&mut dyn WriteTx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let write = |work| idle::waiting(|| self.0.write(space, work));
        patience::waiting(|| run_for_value(work, write))
    }

    /// The same for work that may take long. Only `audit` calls this.
    pub fn write_long<T: Send + 'static>(
        &self,
        space: &Space,
        work: impl FnOnce(&mut dyn WriteTx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let write = |work| idle::waiting(|| self.0.write_long(space, work));
        patience::waiting(|| run_for_value(work, write))
    }

    /// Calls `wake` after appends that the backend notices, and returns how often to poll for those
    /// that it does not.
    pub fn subscribe(&self, wake: Wake) -> Duration {
        self.0.subscribe(wake)
    }

    /// Every space that has a head or a key-value pair, in the order of names.
    pub fn spaces(&self) -> Result<Vec<Space>> {
        patience::waiting(|| self.0.spaces())
    }

    /// Waits for a lock that all processes on this store share, on any machine. It is released when it is
    /// dropped or its process dies. `None` if the store belongs to one machine, where a lock file is
    /// enough.
    pub fn lock(&self, name: &str, wait: Duration) -> Result<Option<StoreLock>> {
        patience::waiting(|| idle::waiting(|| self.0.lock(name, wait)))
    }

    /// Removes what was deleted from the files too: from free pages and from the write-ahead log. False if
    /// somebody still reads what was deleted: call it again later.
    pub fn scrub(&self) -> Result<bool> {
        patience::waiting(|| idle::waiting(|| self.0.scrub()))
    }

    /// Asks the backend to check its own files; each string is one fault.
    pub fn check(&self) -> Result<Vec<String>> {
        patience::waiting(|| self.0.check())
    }

    /// Objects in the database that are not ours, and ours that are missing or changed, one sentence
    /// each.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        patience::waiting(|| self.0.schema_faults())
    }

    /// The bytes of the write-ahead log, if that is a file beside the store's.
    pub fn log_bytes(&self) -> Option<u64> {
        self.0.log_bytes()
    }

    /// One line for `doctor`.
    pub fn describe(&self) -> String {
        self.0.describe()
    }
}

/// Reads through `run` and returns the value of the work.
fn read_for_value<T>(
    work: impl FnOnce(&dyn ReadTx) -> Result<T>,
    run: impl FnOnce(&mut ReadWork<'_>) -> Result<()>,
) -> Result<T> {
    let mut work = Some(work);
    let mut out = None;
    patience::waiting(|| {
        run(&mut |tx| {
            let work = work
                .take()
                .ok_or_else(|| Error::internal("a read ran twice"))?;
            out = Some(work(&Strict::new(tx))?);
            Ok(())
        })
    })?;
    out.ok_or_else(|| Error::internal("a read did not run"))
}

/// Runs the work through `run` and returns its value, whichever thread it ran on.
fn run_for_value<T: Send + 'static>(
    work: impl FnOnce(&mut dyn WriteTx) -> Result<T> + Send + 'static,
    run: impl FnOnce(WriteWork) -> Result<()>,
) -> Result<T> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    run(Box::new(move |tx| {
        let mut tx = Strict::new(tx);
        let value = work(&mut tx)?;
        tx.end()?;
        // A caller that no longer waits loses the value, not the write.
        drop(sender.send(value));
        Ok(())
    }))?;
    receiver
        .try_recv()
        .map_err(|_| Error::internal("a write did not run"))
}

/// Reads of one space. Once a method has failed, every later one fails in the same way.
pub trait ReadTx {
    /// A node by its id, now or at a past moment.
    fn node(&self, id: NodeId, when: When) -> Result<Option<Node>>;

    /// A node by its key, which is unique per project and kind.
    fn node_by_key(
        &self,
        project: &str,
        kind: kenning_core::Kind,
        key: &str,
        when: When,
    ) -> Result<Option<Node>>;

    /// Nodes in the order of their ids, after `after`, at most `limit`.
    fn nodes(
        &self,
        filter: &NodeFilter,
        when: When,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<Node>>;

    /// How many nodes the filter admits now.
    fn count_nodes(&self, filter: &NodeFilter) -> Result<u64>;

    /// Every superseded revision of a node, oldest first, with the moment it ended.
    fn history(&self, id: NodeId) -> Result<Vec<(Node, kenning_core::Hlc)>>;

    /// Every revision that was ever put under a key, current and superseded, of whatever node.
    fn key_history(&self, project: &str, kind: kenning_core::Kind, key: &str) -> Result<Vec<Node>>;

    /// Edges by their ends, in the order of source, relation, target and beginning.
    fn edges(&self, filter: &EdgeFilter, when: When, limit: usize) -> Result<Vec<Edge>>;

    /// Every state of one edge, ended ones too, oldest first.
    fn edge_history(&self, src: NodeId, rel: &str, dst: NodeId) -> Result<Vec<Edge>>;

    /// The names that a node is found by, in the order of their bytes.
    fn names_of(&self, node: NodeId) -> Result<Vec<String>>;

    /// The passages of a node, in order.
    fn passages(&self, node: NodeId) -> Result<Vec<Passage>>;

    /// Nodes with a name like this one, the most similar first.
    fn find_names(&self, text: &str, filter: &NodeFilter, limit: usize) -> Result<Vec<NameHit>>;

    /// A vector by its name.
    fn vector(&self, collection: &str, id: &str) -> Result<Option<Vector>>;

    /// Vectors of a collection written after the event `seq`, in that order.
    fn vectors_since(&self, collection: &str, seq: u64, limit: usize) -> Result<Vec<Vector>>;

    /// The vectors of a collection that point most nearly the same way, by cosine. Those of another
    /// dimension and those of length 0 do not count; to a vector of length 0 none is near. A backend
    /// may search an approximate index where comparing all would take too long, and says so.
    fn nearest(&self, collection: &str, to: &[f32], limit: usize) -> Result<Nearest>;

    /// The log's head; `None` before the first event.
    fn head(&self) -> Result<Option<HeadRow>>;

    /// Events after `seq`, in order.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<EventRow>>;

    /// The events of one moment, in the order of the log.
    fn events_at(&self, hlc: kenning_core::Hlc) -> Result<Vec<EventRow>>;

    /// Events that the filter admits, in the order of their times and then of their places.
    fn find_events(&self, filter: &EventFilter, page: EventPage) -> Result<Vec<EventRow>>;

    /// How many events the filter admits.
    fn count_events(&self, filter: &EventFilter) -> Result<u64>;

    /// The kinds of events in the log, and how many there are of each, in the order of their names.
    fn event_kinds(&self) -> Result<Vec<(String, u64)>>;

    /// An event by its id.
    fn event_by_id(&self, id: &Hash) -> Result<Option<EventRow>>;

    /// The root of a complete subtree of `256^level` events.
    fn tile(&self, level: u8, index: u64) -> Result<Option<Hash>>;

    /// The newest checkpoint at or before `seq`.
    fn checkpoint_at(&self, seq: u64) -> Result<Option<CheckpointRow>>;

    /// A value of the key-value table.
    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>>;

    /// Every key and value of a bucket, in the order of keys.
    fn list(&self, bucket: &str) -> Result<Vec<(String, Vec<u8>)>>;

    /// Raw rows of a table, in the order of their keys. For verification and backup.
    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()>;

    /// The same, of rows with a greater key.
    fn scan_after(
        &self,
        table: Table,
        after: &RowKey,
        visit: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.scan(table, &mut |row| match row.key() > *after {
            true => visit(row),
            false => Ok(()),
        })
    }
}

/// Changes of one space.
///
/// These are raw row operations. Hashes, revisions, times and events are the caller's, which is
/// `audit`.
pub trait WriteTx: ReadTx {
    /// Puts a node. A current revision of the same id moves to the history, ending at the new
    /// revision's `updated`.
    fn put_node(&mut self, node: &Node) -> Result<()>;

    /// Removes a node with its passages; its last revision moves to the history.
    fn remove_node(&mut self, id: NodeId, at: kenning_core::Hlc) -> Result<()>;

    /// Puts an edge. A current one of the same ends and relation ends at the new one's `from`; one that
    /// began at that very moment is replaced. Its weight is a number.
    fn put_edge(&mut self, edge: &Edge) -> Result<()>;

    /// Ends an edge.
    fn end_edge(
        &mut self,
        src: NodeId,
        rel: &str,
        dst: NodeId,
        at: kenning_core::Hlc,
    ) -> Result<()>;

    /// Replaces the passages of a node, which must be there unless there are no passages.
    fn put_passages(&mut self, node: NodeId, passages: &[Passage]) -> Result<()>;

    /// Replaces the names that a node is found by.
    fn put_names(&mut self, node: NodeId, names: &[String]) -> Result<()>;

    /// Puts a vector: 1 to 16,000 finite numbers.
    fn put_vector(&mut self, vector: &Vector) -> Result<()>;

    /// Removes a vector.
    fn remove_vector(&mut self, collection: &str, id: &str) -> Result<()>;

    /// Appends an event.
    fn append_event(&mut self, event: &EventRow) -> Result<()>;

    /// Replaces the head.
    fn put_head(&mut self, head: &HeadRow) -> Result<()>;

    /// Stores the root of a complete subtree.
    fn put_tile(&mut self, tile: &TileRow) -> Result<()>;

    /// Stores a checkpoint.
    fn put_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()>;

    /// Sets a value of the key-value table.
    fn set(&mut self, bucket: &str, key: &str, value: &[u8]) -> Result<()>;

    /// Removes a value of the key-value table.
    fn unset(&mut self, bucket: &str, key: &str) -> Result<()>;

    /// Puts a raw row back as [`ReadTx::scan`] gave it. For restoring and migrating.
    fn load(&mut self, row: &Row) -> Result<()>;

    /// Removes superseded revisions of a node: all of them, or those with this hash.
    fn erase_revisions(&mut self, id: NodeId, hash: Option<&Hash>) -> Result<()>;

    /// Removes every ended edge that begins or ends at a node.
    fn erase_ended_edges(&mut self, id: NodeId) -> Result<()>;

    /// Removes the data of an event and its salt. What was signed stays.
    fn erase_event_data(&mut self, id: &Hash) -> Result<()>;

    /// Removes every row of the space, its history and its log included. For a restore that failed.
    fn clear(&mut self) -> Result<()>;
}
