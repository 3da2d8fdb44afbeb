//! A piece of a log, as one node sends it to another.

use crate::cursor::{Head, origin};
use crate::{ENTRIES_MAX, PAGE_BYTES, Peer};
use kenning_audit::event::{self, Change, SignedRow};
use kenning_audit::foreign::is_local_kind;
use kenning_audit::{LogId, Origin, Signer, is_shared_bucket};
use kenning_core::{Hash, Result, Space};
use kenning_store::{EventRow, KvRow, NameRow, ReadTx, Row, When, hash_of_names, hash_of_pair};
use std::collections::HashSet;

/// One entry of a log.
#[derive(Clone, Debug)]
pub struct PageEntry {
    /// The event's id.
    pub id: Hash,
    /// The event with its rows, if it is sent.
    pub event: Option<(EventRow, Vec<Row>)>,
    /// Whether the event is sent if somebody asks for it: it came from elsewhere, so that the receiver
    /// may have it already.
    pub is_offered: bool,
}

/// A piece of a log.
#[derive(Clone, Debug)]
pub struct Page {
    /// What the sender says of its whole log.
    pub head: Head,
    /// How many entries come before these.
    pub from: u64,
    /// The entries, in the log's order.
    pub entries: Vec<PageEntry>,
}

impl Page {
    /// How many entries come before what follows this page.
    pub fn end(&self) -> u64 {
        self.from + self.entries.len() as u64
    }

    /// Whether the log goes on after it.
    pub fn has_more(&self) -> bool {
        self.end() < self.head.size
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Who gets it.
    pub peer: &'a Peer,
    /// The log of whoever gets it: they have their own events.
    pub their_log: Option<LogId>,
    /// How many entries they have.
    pub from: u64,
    /// Offered events that they asked for.
    pub include: &'a HashSet<Hash>,
    /// At most so many entries.
    pub entries_max: usize,
}

/// The next piece of this node's log for a peer. `is_shared` says which rows leave this machine.
/// Nothing if there is no log yet.
pub fn build(
    tx: &dyn ReadTx,
    space: &Space,
    signer: &Signer,
    now_ms: u64,
    wanted: &Wanted<'_>,
    is_shared: &dyn Fn(&Row) -> bool,
) -> Result<Option<Page>> {
    let Some(log) = kenning_audit::log_id(tx)? else {
        return Ok(None);
    };
    let roots = kenning_audit::roots(tx)?;
    let head = Head::sign(
        origin(log, space),
        roots.seq,
        roots.event_root,
        now_ms,
        signer,
    );
    let mut page = Page {
        head,
        from: wanted.from,
        entries: Vec::new(),
    };
    let limit = wanted.entries_max.clamp(1, ENTRIES_MAX);
    let mut n_bytes = 0;
    for row in tx.events_after(wanted.from, limit)? {
        let id = row.id;
        let place = Place { tx, log, is_shared };
        let event = place.event_for(row, wanted)?;
        let is_offered = matches!(event, Sent::OnRequest);
        let event = match event {
            Sent::Whole(row, rows) => {
                n_bytes += size_of_event(&row) + rows.iter().map(size_of_row).sum::<usize>();
                Some((*row, rows))
            }
            Sent::OnRequest | Sent::IdOnly => None,
        };
        n_bytes += 80;
        page.entries.push(PageEntry {
            id,
            event,
            is_offered,
        });
        if n_bytes > PAGE_BYTES {
            break;
        }
    }
    Ok(Some(page))
}

enum Sent {
    Whole(Box<EventRow>, Vec<Row>),
    OnRequest,
    IdOnly,
}

struct Place<'a> {
    tx: &'a dyn ReadTx,
    log: LogId,
    is_shared: &'a dyn Fn(&Row) -> bool,
}

impl Place<'_> {
    fn event_for(&self, row: EventRow, wanted: &Wanted<'_>) -> Result<Sent> {
        let Some(origin) = Origin::from_bytes(&row.sealed.origin) else {
            // Version 1 did not sign which log an event is of.
            return Ok(Sent::IdOnly);
        };
        if Some(origin.log) == wanted.their_log || is_local_kind(&row.kind) {
            return Ok(Sent::IdOnly);
        }
        if origin.log != self.log && !wanted.include.contains(&row.id) {
            return Ok(Sent::OnRequest);
        }
        let Some(event) = event::parse(&row) else {
            return Ok(Sent::IdOnly);
        };
        let (mut rows, mut n_private, mut n_nodes) = (Vec::new(), 0, 0);
        for change in &event.changes {
            let found = self.rows_of(change)?;
            n_nodes += usize::from(matches!(
                change,
                Change::PutNode { .. } | Change::RemoveNode { .. }
            ));
            for it in found {
                let kind = match &it {
                    Row::Node(node) => Some(node.kind),
                    _ => None,
                };
                if (self.is_shared)(&it) && kind.is_none_or(|it| wanted.peer.shares(it)) {
                    rows.push(it);
                } else {
                    n_private += usize::from(kind.is_some());
                }
            }
        }
        let has_node = rows.iter().any(|it| matches!(it, Row::Node(_)));
        // What an event says besides is told only to whom its nodes are shown.
        let is_private = n_private > 0 && !has_node;
        let is_chosen = wanted.peer.policy.kinds.is_empty() || has_node || n_nodes > 0;
        if is_private || !is_chosen {
            return Ok(Sent::IdOnly);
        }
        Ok(Sent::Whole(Box::new(row), rows))
    }

    /// The rows that a change put, as far as they are still here.
    fn rows_of(&self, change: &Change) -> Result<Vec<Row>> {
        let tx = self.tx;
        Ok(match change {
            Change::PutNode { id, hash, .. } => {
                let current = tx.node(*id, When::Now)?.filter(|it| it.hash == *hash);
                let node = match current {
                    Some(node) => Some(node),
                    None => {
                        let mut history = tx.history(*id)?.into_iter().map(|it| it.0);
                        history.find(|it| it.hash == *hash)
                    }
                };
                node.map(Row::Node).into_iter().collect()
            }
            Change::PutEdge {
                src,
                rel,
                dst,
                hash,
            } => {
                let mut states = tx.edge_history(*src, rel, *dst)?.into_iter();
                let edge = states.find(|it| it.hash == *hash);
                edge.map(Row::Edge).into_iter().collect()
            }
            Change::PutRow { row, hash } => match row {
                SignedRow::Names(node) => {
                    let names = tx.names_of(*node)?;
                    if hash_of_names(names.iter().map(String::as_str)) != Some(*hash) {
                        return Ok(Vec::new());
                    }
                    let node = *node;
                    let row = |name| Row::Name(NameRow { node, name });
                    names.into_iter().map(row).collect()
                }
                SignedRow::Vector(collection, id) => {
                    let vector = tx.vector(collection, id)?;
                    let vector = vector.filter(|it| it.canonical_hash() == *hash);
                    vector.map(Row::Vector).into_iter().collect()
                }
                SignedRow::Pair(bucket, key) if is_shared_bucket(bucket) => {
                    let value = tx.get(bucket, key)?;
                    let value = value.filter(|it| hash_of_pair(bucket, key, it) == *hash);
                    let (bucket, key) = (bucket.clone(), key.clone());
                    let row = value.map(|value| Row::Kv(KvRow { bucket, key, value }));
                    row.into_iter().collect()
                }
                SignedRow::Pair(..) | SignedRow::Passages(_) => Vec::new(),
            },
            Change::RemoveNode { .. }
            | Change::EndEdge { .. }
            | Change::RemoveRow { .. }
            | Change::AddAuthor { .. }
            | Change::RevokeAuthor { .. }
            | Change::ResetClock
            | Change::Apply { .. }
            | Change::KeepRevision { .. } => Vec::new(),
        })
    }
}

fn size_of_event(row: &EventRow) -> usize {
    row.payload.len() + row.sealed.data.len() + 600
}

fn size_of_row(row: &Row) -> usize {
    200 + match row {
        Row::Node(it) => it.body.len() + it.title.len() + it.key.len() + 200,
        Row::Vector(it) => it.numbers.len() * 12,
        Row::Kv(it) => it.value.len() * 2,
        _ => 0,
    }
}
