//! What holds on every floor alike, because no floor is asked.
//!
//! [`Store`](crate::Store) hands out transactions through [`Strict`]. It refuses numbers that one floor
//! would take and another would not, and it keeps in mind that a method failed. A half of what that
//! method does may be done, and PostgreSQL answers nothing more: so every later method fails in the
//! same way, and so does the call, even if its work goes on.

use crate::json::check_json_depth;
use crate::{
    CheckpointRow, Edge, EdgeFilter, EventRow, HeadRow, NameHit, Nearest, Node, NodeFilter,
    Passage, ReadTx, Row, RowKey, Table, TileRow, Vector, When, WriteTx,
};
use kenning_core::{Code, Error, Hash, Hlc, Kind, NodeId, Result};
use std::cell::RefCell;
use std::ops::Deref;

/// What PostgreSQL's vectors hold.
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
    fn unharmed(&self) -> Result<()> {
        match &*self.failed.borrow() {
            None => Ok(()),
            Some((code, message)) => Err(Error::new(*code, message.clone())),
        }
    }

    fn noted<V>(&self, result: Result<V>) -> Result<V> {
        if let Err(error) = &result {
            let mut failed = self.failed.borrow_mut();
            failed.get_or_insert_with(|| (error.code, error.message.clone()));
        }
        result
    }

    /// Fails if a method failed and the work went on.
    pub(crate) fn end(&self) -> Result<()> {
        self.unharmed()
    }
}

fn good_edge(edge: &Edge) -> Result<()> {
    if edge.weight.is_nan() {
        return Err(Error::invalid("the weight of an edge is not a number"));
    }
    Ok(())
}

/// What is loaded is as deep as an older program stored it; what is new is not.
fn good_new_node(node: &Node) -> Result<()> {
    check_json_depth(
        &format!("the {} `{}`", node.kind.as_str(), node.key),
        &node.props,
    )
}

fn good_new_edge(edge: &Edge) -> Result<()> {
    check_json_depth(&format!("the edge `{}`", edge.rel), &edge.props)?;
    good_edge(edge)
}

fn good_new_vector(vector: &Vector) -> Result<()> {
    check_json_depth(&format!("the vector `{}`", vector.id), &vector.props)?;
    good_vector(vector)
}

fn good_numbers(numbers: &[f32]) -> Result<()> {
    if !numbers.iter().all(|it| it.is_finite()) {
        return Err(Error::invalid("a vector holds what is not a finite number"));
    }
    Ok(())
}

fn good_vector(vector: &Vector) -> Result<()> {
    match vector.numbers.len() {
        0 => return Err(Error::invalid("a vector holds no number")),
        n if n > DIMENSIONS_MAX => {
            let message = format!("a vector of {n} numbers has more than {DIMENSIONS_MAX}");
            return Err(Error::too_large(message));
        }
        _ => {}
    }
    good_numbers(&vector.numbers)
}

macro_rules! reads {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.unharmed()?;
            self.noted(self.tx.$name($($argument),*))
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
        fn edges(filter: &EdgeFilter, when: When, limit: usize) -> Vec<Edge>;
        fn passages(node: NodeId) -> Vec<Passage>;
        fn find_names(text: &str, filter: &NodeFilter, limit: usize) -> Vec<NameHit>;
        fn vector(collection: &str, id: &str) -> Option<Vector>;
        fn vectors_since(collection: &str, seq: u64, limit: usize) -> Vec<Vector>;
        fn head() -> Option<HeadRow>;
        fn events_after(seq: u64, limit: usize) -> Vec<EventRow>;
        fn event_by_id(id: &Hash) -> Option<EventRow>;
        fn tile(level: u8, index: u64) -> Option<Hash>;
        fn checkpoint_at(seq: u64) -> Option<CheckpointRow>;
        fn get(bucket: &str, key: &str) -> Option<Vec<u8>>;
        fn list(bucket: &str) -> Vec<(String, Vec<u8>)>;
    }

    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        self.unharmed()?;
        let mut enough = false;
        let scanned = self
            .tx
            .scan(table, &mut |row| visit(row).inspect_err(|_| enough = true));
        // Who has seen enough stops so; nothing is wrong then.
        if enough { scanned } else { self.noted(scanned) }
    }

    fn scan_after(
        &self,
        table: Table,
        after: &RowKey,
        visit: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.unharmed()?;
        let mut enough = false;
        let scanned = self.tx.scan_after(table, after, &mut |row| {
            visit(row).inspect_err(|_| enough = true)
        });
        if enough { scanned } else { self.noted(scanned) }
    }

    fn nearest(&self, collection: &str, to: &[f32], limit: usize) -> Result<Nearest> {
        self.unharmed()?;
        let near = good_numbers(to).and_then(|()| self.tx.nearest(collection, to, limit));
        self.noted(near)
    }
}

macro_rules! writes {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name(&mut self, $($argument: $type),*) -> Result<()> {
            self.unharmed()?;
            let done = self.tx.$name($($argument),*);
            self.noted(done)
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
    }

    fn put_node(&mut self, node: &Node) -> Result<()> {
        self.unharmed()?;
        let done = good_new_node(node).and_then(|()| self.tx.put_node(node));
        self.noted(done)
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<()> {
        self.unharmed()?;
        let done = good_new_edge(edge).and_then(|()| self.tx.put_edge(edge));
        self.noted(done)
    }

    fn put_vector(&mut self, vector: &Vector) -> Result<()> {
        self.unharmed()?;
        let done = good_new_vector(vector).and_then(|()| self.tx.put_vector(vector));
        self.noted(done)
    }

    fn load(&mut self, row: &Row) -> Result<()> {
        self.unharmed()?;
        let good = match row {
            Row::Edge(edge) => good_edge(edge),
            Row::Vector(vector) => good_vector(vector),
            _ => Ok(()),
        };
        let done = good.and_then(|()| self.tx.load(row));
        self.noted(done)
    }
}
