//! Checks only the newest part of a log.
//!
//! [`crate::verify`] derives everything again and takes as long as the log is long. Here only events
//! after a position are checked, and the rows that they changed: after the position of the last check,
//! or, at first, after the newest signed checkpoint. The events before it are represented by subtree
//! roots, which must give the root that the checkpoint's author signed.

use crate::checkpoint::checkpoint_hash;
use crate::event::{self, Change, SignedRow};
use crate::identity::{Identity, Origin};
use crate::key::is_signed_by;
use crate::merkle::{Frontier, Subtrees, leaf_hash};
use crate::prove::Stored;
use kenning_core::{Did, Hash, NodeId, Result};
use kenning_store::{
    EdgeFilter, EventRow, ReadTx, When, hash_of_names, hash_of_pair, hash_of_passages,
};
use std::collections::HashMap;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// A position in a log up to which it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    frontier: Frontier,
}

impl Place {
    /// How many events are before it.
    pub fn seq(&self) -> u64 {
        self.frontier.size
    }

    /// The end of a log that [`crate::verify`] found to be whole.
    pub fn end(tx: &dyn ReadTx) -> Result<Self> {
        let frontier = tx.head()?.map_or_else(Frontier::default, |head| Frontier {
            size: head.seq,
            roots: head.frontier,
        });
        Ok(Self { frontier })
    }
}

/// What was found.
#[derive(Debug)]
pub struct Newest {
    /// Where it began: events up to this one were not checked.
    pub from: u64,
    /// How far it came.
    pub to: u64,
    /// How many events there are.
    pub total: u64,
    /// Rows that were compared with their events.
    pub n_rows: u64,
    /// What is wrong, one sentence each.
    pub faults: Vec<String>,
    /// Where the next check begins; nothing if something is wrong.
    pub place: Option<Place>,
}

/// Checks at most `events_max` events after `place`, or after the newest signed checkpoint.
pub fn verify_newest(tx: &dyn ReadTx, place: Option<&Place>, events_max: usize) -> Result<Newest> {
    let head = tx.head()?;
    let total = head.as_ref().map_or(0, |it| it.seq);
    let mut found = Newest {
        from: 0,
        to: 0,
        total,
        n_rows: 0,
        faults: Vec::new(),
        place: None,
    };
    // A log that became shorter is another log, so the earlier check does not count.
    let known = place.filter(|it| it.seq() <= total).cloned();
    let start = match known {
        Some(place) => place.frontier,
        None => newest_checkpoint(tx, total, &mut found.faults)?,
    };
    let mut frontier = Frontier {
        size: start.size,
        roots: subtree_roots(tx, start.size)?,
    };
    if frontier != start {
        let seq = start.size;
        found.faults.push(format!(
            "the first {seq} events are not those that were checked before"
        ));
    }
    (found.from, found.to) = (start.size, start.size);
    let identity = head.as_ref().map(|it| Identity::from_bytes(&it.log));
    let identity = identity.transpose()?.flatten();
    let mut rows = Rows::default();
    while found.to < total && ((found.to - found.from) as usize) < events_max {
        let events = tx.events_after(found.to, PAGE)?;
        if events.is_empty() {
            found
                .faults
                .push(format!("event {} is missing", found.to + 1));
            break;
        }
        for row in &events {
            found.to += 1;
            let is_foreign = check_origin(row, identity.as_ref(), &mut found.faults);
            let faults = &mut found.faults;
            check_event(tx, row, is_foreign, &mut frontier, &mut rows, faults)?;
        }
    }
    if found.to == total
        && let Some(head) = &head
        && (frontier.size, &frontier.roots) != (head.seq, &head.frontier)
    {
        found
            .faults
            .push("the head does not match the events".to_owned());
    }
    // Rows are compared with the last event about them, so only at the end of the log.
    if found.to == total {
        rows.check(tx, &mut found)?;
    }
    if found.faults.is_empty() {
        found.place = Some(Place { frontier });
    }
    Ok(found)
}

/// Checks that the author is one whom the log names. True for an event of another log.
fn check_origin(row: &EventRow, identity: Option<&Identity>, faults: &mut Vec<String>) -> bool {
    let (Some(identity), 2..) = (identity, row.version) else {
        return false;
    };
    let seq = row.seq;
    let origin = Origin::from_bytes(&row.sealed.origin);
    if origin.is_none() {
        faults.push(format!("event {seq}: its origin is malformed"));
    }
    if !identity.authors.contains(&row.author) && !identity.revoked.contains(&row.author) {
        faults.push(format!(
            "event {seq} is signed by {}, who is not an author of this log",
            row.author
        ));
    }
    origin.is_some_and(|it| it.log != identity.id)
}

/// The frontier that the newest signed checkpoint says; an empty one if there is none.
fn newest_checkpoint(tx: &dyn ReadTx, total: u64, faults: &mut Vec<String>) -> Result<Frontier> {
    let Some(row) = tx.checkpoint_at(total)? else {
        return Ok(Frontier::default());
    };
    let frontier = Frontier {
        size: row.seq,
        roots: subtree_roots(tx, row.seq)?,
    };
    let author = row.author.parse::<Did>();
    if !author.is_ok_and(|it| is_signed_by(&it, &checkpoint_hash(&row), &row.signature)) {
        faults.push(format!(
            "checkpoint {}: the signature does not match",
            row.height
        ));
    } else if frontier.root() != row.event_root {
        faults.push(format!(
            "checkpoint {}: it does not match the log",
            row.height
        ));
    }
    Ok(frontier)
}

/// The roots of the complete subtrees of the first events.
fn subtree_roots(tx: &dyn ReadTx, size: u64) -> Result<Vec<Hash>> {
    let tree = Stored(tx);
    let (mut roots, mut start) = (Vec::new(), 0);
    for height in (0..64).rev() {
        let part = 1 << height;
        if size & part != 0 {
            roots.push(tree.root(start, part)?);
            start += part;
        }
    }
    Ok(roots)
}

type EdgeKey = (NodeId, String, NodeId);

/// What the events say of the rows that they changed.
#[derive(Default)]
struct Rows {
    /// The revision and the hash, or that it is gone.
    nodes: HashMap<NodeId, Option<(u64, Hash)>>,
    edges: HashMap<EdgeKey, Option<Hash>>,
    /// Rows that are neither: the hash, or that they are gone.
    signed: HashMap<SignedRow, Option<Hash>>,
}

fn check_event(
    tx: &dyn ReadTx,
    row: &EventRow,
    is_foreign: bool,
    frontier: &mut Frontier,
    rows: &mut Rows,
    faults: &mut Vec<String>,
) -> Result<()> {
    let seq = frontier.size + 1;
    if row.seq != seq {
        faults.push(format!("event {} is in the place of event {seq}", row.seq));
    }
    match event::check(row) {
        Err(error) => faults.push(error.message),
        // What it changed here is in the event that applied it; its parents may be events that its
        // node does not share.
        Ok(_) if is_foreign => {}
        Ok(event) => {
            if seq > 1 && event.parents.is_empty() {
                faults.push(format!("event {seq} has no parents"));
            }
            let is_reset = event.changes.contains(&Change::ResetClock);
            for parent in &event.parents {
                match tx.event_by_id(parent)? {
                    Some(it) if it.seq < row.seq && (it.hlc < row.hlc || is_reset) => {}
                    Some(_) => faults.push(format!("event {seq} is not later than its parent")),
                    None => faults.push(format!("event {seq}: a parent is not in the log")),
                }
            }
            event.changes.into_iter().for_each(|it| rows.note(it));
        }
    }
    frontier.push(leaf_hash(&row.id.0), |_, _, _| ());
    Ok(())
}

impl Rows {
    fn note(&mut self, change: Change) {
        match change {
            Change::PutNode { id, rev, hash } => {
                self.nodes.insert(id, Some((rev, hash)));
            }
            Change::RemoveNode { id } => {
                self.nodes.insert(id, None);
                self.signed.insert(SignedRow::Passages(id), None);
                self.signed.insert(SignedRow::Names(id), None);
            }
            Change::PutEdge {
                src,
                rel,
                dst,
                hash,
            } => {
                self.edges.insert((src, rel, dst), Some(hash));
            }
            Change::EndEdge { src, rel, dst } => {
                self.edges.insert((src, rel, dst), None);
            }
            Change::PutRow { row, hash } => {
                self.signed.insert(row, Some(hash));
            }
            Change::RemoveRow { row } => {
                self.signed.insert(row, None);
            }
            Change::AddAuthor { .. }
            | Change::RevokeAuthor { .. }
            | Change::ResetClock
            | Change::Apply { .. }
            | Change::KeepRevision { .. }
            | Change::EraseNode { .. }
            | Change::EraseRevision { .. }
            | Change::EraseEvent { .. } => {}
        }
    }

    fn check(self, tx: &dyn ReadTx, found: &mut Newest) -> Result<()> {
        for (id, told) in self.nodes {
            found.n_rows += 1;
            let node = tx.node(id, When::Now)?;
            let fits = node
                .as_ref()
                .is_none_or(|node| node.canonical_hash() == node.hash);
            if !fits || node.map(|node| (node.rev, node.hash)) != told {
                found
                    .faults
                    .push(format!("node {id} does not match its event"));
            }
        }
        for ((src, rel, dst), told) in self.edges {
            found.n_rows += 1;
            let filter = EdgeFilter {
                src: Some(src),
                rel: Some(rel.clone()),
                dst: Some(dst),
            };
            let edge = tx.edges(&filter, When::Now, 1)?.pop();
            let fits = edge
                .as_ref()
                .is_none_or(|edge| edge.canonical_hash() == edge.hash);
            if !fits || edge.map(|it| it.hash) != told {
                let name = format!("edge {src} -{rel}-> {dst}");
                found
                    .faults
                    .push(format!("{name} does not match its event"));
            }
        }
        for (row, told) in self.signed {
            let (there, name) = match &row {
                SignedRow::Passages(id) => (
                    hash_of_passages(&tx.passages(*id)?),
                    format!("the text index (passages) of node {id}"),
                ),
                SignedRow::Vector(collection, id) => (
                    tx.vector(collection, id)?.map(|it| it.canonical_hash()),
                    format!("the vector `{id}` of `{collection}`"),
                ),
                SignedRow::Pair(bucket, key) => (
                    tx.get(bucket, key)?
                        .map(|it| hash_of_pair(bucket, key, &it)),
                    format!("the row `{key}` of `{bucket}`"),
                ),
                SignedRow::Names(id) => (
                    hash_of_names(tx.names_of(*id)?.iter().map(String::as_str)),
                    format!("the list of names of node {id}"),
                ),
            };
            found.n_rows += 1;
            if there != told {
                found
                    .faults
                    .push(format!("{name} does not match its event"));
            }
        }
        Ok(())
    }
}
