//! A piece of a log, as one node sends it to another.

use crate::cursor::{Head, origin};
use crate::{ENTRIES_MAX, MESSAGE_BYTES_MAX, PAGE_BYTES, Peer};
use kenning_audit::event::{self, Change, Event, SignedRow};
use kenning_audit::foreign::{CONFLICT_RESOLVED, is_local_kind};
use kenning_audit::{LogId, Origin, Signer, is_shared_bucket};
use kenning_core::{Hash, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, EventRow, KvRow, NameRow, Node, ReadTx, Row, Vector, When, hash_of_names,
    hash_of_pair,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

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
    /// The newest checkpoint of the log that these entries reach.
    pub checkpoint: Option<CheckpointRow>,
    /// Events that were left out because they are too large. Only the sender knows.
    pub too_large: Vec<Hash>,
}

impl Page {
    /// How many entries come before what follows this page.
    pub fn end(&self) -> u64 {
        self.from.saturating_add(self.entries.len() as u64)
    }

    /// Whether the log goes on after it.
    pub fn has_more(&self) -> bool {
        self.end() < self.head.size
    }
}

/// An event that takes more bytes than this in a message is not sent.
const EVENT_BYTES_MAX: usize = MESSAGE_BYTES_MAX as usize - 2 * PAGE_BYTES;

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
    /// Events that they cannot take.
    pub leave_out: &'a HashSet<Hash>,
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
        checkpoint: None,
        too_large: Vec::new(),
    };
    let limit = wanted.entries_max.clamp(1, ENTRIES_MAX);
    let place = Place {
        tx,
        log,
        wanted,
        is_shared,
        nodes: RefCell::default(),
    };
    let mut n_bytes = 0;
    for row in tx.events_after(wanted.from, limit)? {
        let id = row.id;
        let mut sent = place.event_for(row)?;
        if let Sent::Whole(row, rows) = &sent {
            let size = size_of_event(row) + rows.iter().map(size_of_row).sum::<usize>();
            if size > EVENT_BYTES_MAX || wanted.leave_out.contains(&id) {
                page.too_large.push(id);
                sent = Sent::IdOnly;
            } else if n_bytes + size > EVENT_BYTES_MAX {
                break;
            } else {
                n_bytes += size;
            }
        }
        n_bytes += 80;
        let is_offered = matches!(sent, Sent::OnRequest);
        let event = match sent {
            Sent::Whole(row, rows) => Some((*row, rows)),
            Sent::OnRequest | Sent::IdOnly => None,
        };
        page.entries.push(PageEntry {
            id,
            event,
            is_offered,
        });
        if n_bytes > PAGE_BYTES {
            break;
        }
    }
    let checkpoint = tx.checkpoint_at(page.end())?;
    page.checkpoint = checkpoint.filter(|it| it.seq > 0 && it.seq >= page.from);
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
    wanted: &'a Wanted<'a>,
    is_shared: &'a dyn Fn(&Row) -> bool,
    /// Whether the peer gets these nodes.
    nodes: RefCell<HashMap<NodeId, bool>>,
}

impl Place<'_> {
    fn event_for(&self, row: EventRow) -> Result<Sent> {
        let wanted = self.wanted;
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
        let (mut rows, mut n_shared, mut has_node, mut has_private) = (Vec::new(), 0, false, false);
        for change in &event.changes {
            if !self.is_change_shared(change, &row.kind)? {
                has_private |= matches!(change, Change::PutNode { .. });
                continue;
            }
            n_shared += 1;
            let found = self.rows_of(change)?;
            has_node |= found.iter().any(|it| matches!(it, Row::Node(_)));
            rows.extend(found.into_iter().filter(|it| (self.is_shared)(it)));
        }
        // Whoever found the same conflict need not settle it too.
        n_shared +=
            usize::from(row.kind == CONFLICT_RESOLVED && self.is_named_node_shared(&event)?);
        // What an event says besides is told only to whom its nodes are shown. One that changed nothing
        // that is shared concerns its own node alone.
        if n_shared == 0 || has_private && !has_node {
            return Ok(Sent::IdOnly);
        }
        Ok(Sent::Whole(Box::new(row), rows))
    }

    /// Whether the peer learns of a change.
    fn is_change_shared(&self, change: &Change, event: &str) -> Result<bool> {
        Ok(match change {
            Change::PutNode { id, .. } | Change::RemoveNode { id } => self.is_node_shared(*id)?,
            Change::PutEdge { src, dst, .. } | Change::EndEdge { src, dst, .. } => {
                self.is_node_shared(*src)? && self.is_node_shared(*dst)?
            }
            Change::PutRow { row, .. } | Change::RemoveRow { row } => match row {
                SignedRow::Passages(_) => false,
                SignedRow::Names(id) => self.is_node_shared(*id)?,
                SignedRow::Vector(collection, id) => {
                    let row = Row::Vector(Vector {
                        collection: collection.clone(),
                        id: id.clone(),
                        model: String::new(),
                        numbers: Vec::new(),
                        props: serde_json::Map::new(),
                        seq: 0,
                    });
                    (self.is_shared)(&row) && self.wanted.peer.shares(Kind::Vector)
                }
                SignedRow::Pair(bucket, _) => {
                    is_shared_bucket(bucket) && self.wanted.peer.shares(kind_of_bucket(bucket))
                }
            },
            // Elsewhere only the change of a node's own key has an effect.
            Change::AddAuthor { .. } | Change::RevokeAuthor { .. } => event == "AuthorRotated",
            Change::ResetClock | Change::Apply { .. } | Change::KeepRevision { .. } => false,
            // Whoever has it must erase it too. It names nothing but ids and hashes.
            Change::EraseNode { .. } | Change::EraseRevision { .. } | Change::EraseEvent { .. } => {
                true
            }
        })
    }

    /// Whether the peer gets the node that the data of an event names.
    fn is_named_node_shared(&self, event: &Event) -> Result<bool> {
        let id = event.data.get("nodeId").and_then(|it| it.as_str());
        match id.and_then(|it| it.parse().ok()) {
            Some(id) => self.is_node_shared(id),
            None => Ok(false),
        }
    }

    /// Whether the peer gets a node, as it is or was last.
    fn is_node_shared(&self, id: NodeId) -> Result<bool> {
        if let Some(known) = self.nodes.borrow().get(&id) {
            return Ok(*known);
        }
        let node = match self.tx.node(id, When::Now)? {
            Some(node) => Some(node),
            None => {
                let history = self.tx.history(id)?.into_iter().map(|it| it.0);
                history.max_by_key(|it| it.updated)
            }
        };
        let is_shown = |it: Node| {
            let kind = it.kind;
            self.wanted.peer.shares(kind) && (self.is_shared)(&Row::Node(it))
        };
        let is_shared = node.is_none_or(is_shown);
        self.nodes.borrow_mut().insert(id, is_shared);
        Ok(is_shared)
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
            | Change::KeepRevision { .. }
            | Change::EraseNode { .. }
            | Change::EraseRevision { .. }
            | Change::EraseEvent { .. } => Vec::new(),
        })
    }
}

/// The kind of nodes that the rows of a shared bucket belong to.
fn kind_of_bucket(bucket: &str) -> Kind {
    match bucket.split_once('/').map_or(bucket, |it| it.0) {
        "entities" => Kind::Entity,
        "web" => Kind::Page,
        "omi" => Kind::Memory,
        _ => Kind::Item,
    }
}

/// An upper bound of what an event takes in a message, for ordinary texts.
fn size_of_event(row: &EventRow) -> usize {
    2 * (row.payload.len() + row.sealed.data.len()) + 600
}

fn size_of_row(row: &Row) -> usize {
    200 + match row {
        Row::Node(it) => {
            let props = serde_json::to_string(&it.props).map_or(0, |it| it.len());
            2 * (it.body.len() + it.title.len() + it.key.len()) + props + 200
        }
        Row::Edge(it) => serde_json::to_string(&it.props).map_or(0, |it| it.len()) + it.rel.len(),
        Row::Vector(it) => it.numbers.len() * 14,
        Row::Kv(it) => it.value.len() * 2 + it.key.len(),
        _ => 0,
    }
}
