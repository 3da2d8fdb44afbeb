//! Rules that hold for every backend, because they are checked before it is called.
//!
//! [`Store`](crate::Store) hands out transactions through [`Strict`]. It refuses numbers that one backend
//! would accept and another would not, and it remembers that a method failed. Such a method may have
//! done half of its work, and PostgreSQL answers nothing more in that transaction. So every later method
//! fails in the same way, and so does the call, even if its work goes on.

use crate::json::check_json_depth;
use crate::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Nearest,
    Node, NodeFilter, Passage, ReadTx, Row, RowKey, Table, TileRow, Vector, When, WriteTx,
};
use kenning_core::{Code, Error, Hash, Hlc, Kind, NodeId, Result};
use std::cell::RefCell;
use std::ops::Deref;

/// The limit of PostgreSQL's vectors.
const DIMENSIONS_MAX: usize = 16_000;

/// A transaction: `T` is `&dyn ReadTx` or `&mut dyn WriteTx`.
pub(crate) struct Strict<T> {
    tx: T,
    /// The first failure.
    failed: RefCell<Option<(Code, String)>>,
}

impl<T> Strict<T> {
    pub(crate) fn new(tx: T) -> Self {
        let failed = RefCell::default();
        Self { tx, failed }
    }

    /// The first failure again, if there was one.
    fn check_not_failed(&self) -> Result<()> {
        match &*self.failed.borrow() {
            None => Ok(()),
            Some((code, message)) => Err(Error::new(*code, message.clone())),
        }
    }

    fn note_failure<V>(&self, result: Result<V>) -> Result<V> {
        if let Err(error) = &result {
            let mut failed = self.failed.borrow_mut();
            failed.get_or_insert_with(|| (error.code, error.message.clone()));
        }
        result
    }

    /// Fails if a method failed and the work went on.
    pub(crate) fn end(&self) -> Result<()> {
        self.check_not_failed()
    }
}

fn check_edge(edge: &Edge) -> Result<()> {
    if edge.weight.is_nan() {
        return Err(Error::invalid("the weight of an edge is not a number"));
    }
    Ok(())
}

/// Only new rows are checked: rows that are loaded may be as deep as an older program stored them.
fn check_new_node(node: &Node) -> Result<()> {
    check_json_depth(
        &format!("the {} `{}`", node.kind.as_str(), node.key),
        &node.props,
    )
}

fn check_new_edge(edge: &Edge) -> Result<()> {
    check_json_depth(&format!("the edge `{}`", edge.rel), &edge.props)?;
    check_edge(edge)
}

fn check_new_vector(vector: &Vector) -> Result<()> {
    check_json_depth(&format!("the vector `{}`", vector.id), &vector.props)?;
    check_vector(vector)
}

fn check_numbers(numbers: &[f32]) -> Result<()> {
    if !numbers.iter().all(|it| it.is_finite()) {
        return Err(Error::invalid(
            "a vector contains a value that is not a finite number",
        ));
    }
    Ok(())
}

fn check_vector(vector: &Vector) -> Result<()> {
    match vector.numbers.len() {
        0 => return Err(Error::invalid("a vector is empty")),
        n if n > DIMENSIONS_MAX => {
            let message = format!("a vector of {n} numbers has more than {DIMENSIONS_MAX}");
            return Err(Error::too_large(message));
        }
        _ => {}
    }
    check_numbers(&vector.numbers)
}

macro_rules! reads {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.check_not_failed()?;
            self.note_failure(self.tx.$name($($argument),*))
        })*
    };
}

impl<'a, T: Deref<Target: ReadTx + 'a>> ReadTx for Strict<T> {
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
        self.check_not_failed()?;
        let mut enough = false;
        let scanned = self
            .tx
            .scan(table, &mut |row| visit(row).inspect_err(|_| enough = true));
        // A visitor that has seen enough stops with an error of its own; nothing failed then.
        if enough {
            scanned
        } else {
            self.note_failure(scanned)
        }
    }

    fn scan_after(
        &self,
        table: Table,
        after: &RowKey,
        visit: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.check_not_failed()?;
        let mut enough = false;
        let scanned = self.tx.scan_after(table, after, &mut |row| {
            visit(row).inspect_err(|_| enough = true)
        });
        if enough {
            scanned
        } else {
            self.note_failure(scanned)
        }
    }

    fn nearest(&self, collection: &str, to: &[f32], limit: usize) -> Result<Nearest> {
        self.check_not_failed()?;
        let near = check_numbers(to).and_then(|()| self.tx.nearest(collection, to, limit));
        self.note_failure(near)
    }
}

macro_rules! writes {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name(&mut self, $($argument: $type),*) -> Result<()> {
            self.check_not_failed()?;
            let done = self.tx.$name($($argument),*);
            self.note_failure(done)
        })*
    };
}

impl WriteTx for Strict<&mut dyn WriteTx> {
    writes! {
        fn remove_node(id: NodeId, at: Hlc);
        fn end_edge(src: NodeId, rel: &str, dst: NodeId, at: Hlc);
        fn put_passages(node: NodeId, passages: &[Passage]);
        fn put_names(node: NodeId, names: &[String]);
        fn remove_vector(collection: &str, id: &str);
        fn append_event(event: &EventRow);
        fn put_head(head: &HeadRow);
        fn put_tile(tile: &TileRow);
        fn put_checkpoint(checkpoint: &CheckpointRow);
        fn set(bucket: &str, key: &str, value: &[u8]);
        fn unset(bucket: &str, key: &str);
        fn erase_revisions(id: NodeId, hash: Option<&Hash>);
        fn erase_ended_edges(id: NodeId);
        fn erase_event_data(id: &Hash);
        fn clear();
    }

    fn put_node(&mut self, node: &Node) -> Result<()> {
        self.check_not_failed()?;
        let done = check_new_node(node).and_then(|()| self.tx.put_node(node));
        self.note_failure(done)
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<()> {
        self.check_not_failed()?;
        let done = check_new_edge(edge).and_then(|()| self.tx.put_edge(edge));
        self.note_failure(done)
    }

    fn put_vector(&mut self, vector: &Vector) -> Result<()> {
        self.check_not_failed()?;
        let done = check_new_vector(vector).and_then(|()| self.tx.put_vector(vector));
        self.note_failure(done)
    }

    fn load(&mut self, row: &Row) -> Result<()> {
        self.check_not_failed()?;
        let good = match row {
            Row::Edge(edge) => check_edge(edge),
            Row::Vector(vector) => check_vector(vector),
            _ => Ok(()),
        };
        let done = good.and_then(|()| self.tx.load(row));
        self.note_failure(done)
    }
}
