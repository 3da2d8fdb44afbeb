//! Write transactions, which record their events.

mod authors;

use crate::checkpoint::CheckpointLabel;
use crate::clock::{self, Clock, Time};
use crate::event::{self, Change, Event, SignedRow};
use crate::identity::{Identity, LogId, Origin, is_shared_bucket, is_signed_bucket};
use crate::key::Signer;
use crate::merkle::{Frontier, leaf_hash};
use crate::state::State;
use kenning_core::{Did, Error, EventId, Hash, Hlc, Kind, NodeId, Random, Result, Space};
use kenning_store::{
    Edge, EdgeFilter, HeadRow, Node, Passage, ReadTx, TileRow, Vector, When, WriteTx,
    check_json_depth, hash_of_names, hash_of_pair, hash_of_passages,
};
use serde_json::{Map, Value};
use std::ops::Deref;

mod checkpoint;
mod erase;
pub mod foreign;

pub use erase::{Erased, Tombstones};

/// The first event of version 2 in a log that has events of version 1.
pub(crate) const UPGRADED: &str = "LogUpgraded";

/// The event with which a node with an unknown key begins to write.
pub(crate) const JOINED: &str = "AuthorJoined";

/// The event for changed rows that no other event records.
const ROWS_CHANGED: &str = "RowsChanged";

/// The content of a new node or revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// What it is.
    pub kind: Kind,
    /// The project it belongs to, or nothing.
    pub project: String,
    /// Unique per project and kind.
    pub key: String,
    /// For people.
    pub title: String,
    /// The text.
    pub body: String,
    /// Everything else.
    pub props: Map<String, Value>,
}

/// The passages of a node with their hash: made before the transaction, so that others do not wait while a
/// text is cut, tokenized and hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passages {
    list: Vec<Passage>,
    hash: Option<Hash>,
}

impl From<Vec<Passage>> for Passages {
    fn from(list: Vec<Passage>) -> Self {
        let hash = hash_of_passages(&list);
        Self { list, hash }
    }
}

impl Deref for Passages {
    type Target = [Passage];

    fn deref(&self) -> &[Passage] {
        &self.list
    }
}

/// The content of a new edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeDraft {
    /// The source node.
    pub src: NodeId,
    /// The relation.
    pub rel: String,
    /// The target node.
    pub dst: NodeId,
    /// The strength of the relation.
    pub weight: f64,
    /// Everything else.
    pub props: Map<String, Value>,
}

/// What a log writes with.
#[derive(Clone, Copy)]
pub(crate) struct WriteContext<'a> {
    pub(crate) signer: &'a Signer,
    pub(crate) clock: &'a Clock,
    pub(crate) random: &'a dyn Random,
    pub(crate) checkpoint_every: u64,
}

/// A write transaction that records its changes. It can be read like any [`ReadTx`].
pub struct Tx<'a> {
    pub(crate) raw: &'a mut dyn WriteTx,
    pub(crate) signer: &'a Signer,
    clock: &'a Clock,
    random: &'a dyn Random,
    space: &'a Space,
    pub(crate) head: HeadRow,
    identity: Identity,
    pub(crate) state: State,
    pub(crate) frontier: Frontier,
    checkpoint_every: u64,
    at: Hlc,
    agent: Option<Did>,
    changes: Vec<Change>,
    n_events: usize,
}

impl<'a> Deref for Tx<'a> {
    type Target = dyn ReadTx + 'a;

    fn deref(&self) -> &Self::Target {
        // A write transaction is also a read transaction.
        &*self.raw
    }
}

impl<'a> Tx<'a> {
    /// Begins to write. If the log does not know this node's key, an event adds it; if the log has version 1,
    /// an event upgrades it to version 2.
    pub(crate) fn begin(
        raw: &'a mut dyn WriteTx,
        context: WriteContext<'a>,
        space: &'a Space,
        time: Time,
        agent: Option<Did>,
    ) -> Result<Self> {
        let WriteContext {
            signer,
            clock,
            random,
            checkpoint_every,
        } = context;
        let head = raw.head()?.unwrap_or(HeadRow {
            seq: 0,
            hlc: Hlc::default(),
            tips: Vec::new(),
            frontier: Vec::new(),
            state: State::default().to_bytes(),
            log: Vec::new(),
        });
        let state = State::from_bytes(&head.state)
            .ok_or_else(|| Error::corrupt("the head's state is malformed"))?;
        let frontier = Frontier {
            size: head.seq,
            roots: head.frontier.clone(),
        };
        let known = Identity::from_bytes(&head.log)?;
        let at = match time {
            Time::Onward => {
                clock::check(clock, head.hlc)?;
                clock.tick(head.hlc)
            }
            Time::Reset => clock.reset(),
        };
        let identity = known
            .clone()
            .unwrap_or_else(|| Identity::new(LogId::new(random), signer.did()));
        let mut tx = Self {
            raw,
            signer,
            clock,
            random,
            space,
            head,
            identity,
            state,
            frontier,
            checkpoint_every,
            at,
            agent,
            changes: Vec::new(),
            n_events: 0,
        };
        if time == Time::Reset {
            tx.changes.push(Change::ResetClock);
        }
        match known {
            None if tx.head.seq > 0 => tx.take_over_version_1()?,
            None => {}
            Some(_) => tx.join_unless_author()?,
        }
        Ok(tx)
    }

    /// The space that it writes to.
    pub fn space(&self) -> &Space {
        self.space
    }

    /// The moment of the changes that are being made.
    pub fn now(&self) -> Hlc {
        self.at
    }

    /// The place that the next event will have.
    pub fn next_seq(&self) -> u64 {
        self.head.seq + 1
    }

    /// Puts a node: a new one, or the next revision of the one with this key. Content that is
    /// already there changes nothing.
    pub fn put_node(&mut self, draft: Draft) -> Result<Node> {
        let before = self
            .raw
            .node_by_key(&draft.project, draft.kind, &draft.key, When::Now)?;
        let (id, rev, created) = match &before {
            Some(before) if before.id.is_of_name() => (before.id, 1, self.at),
            Some(before) => (before.id, 1, before.created),
            None => self.new_id(&draft)?,
        };
        let node = Node {
            id,
            kind: draft.kind,
            project: draft.project,
            key: draft.key,
            title: draft.title,
            body: draft.body,
            props: draft.props,
            created,
            updated: self.at,
            hash: Hash::default(),
            rev,
        };
        self.put_revision(before, node)
    }

    /// The id of a node that is not there, its next revision and when it was made. Entities and vectors are
    /// the same thing on every machine that makes them, so their ids follow from their keys.
    fn new_id(&self, draft: &Draft) -> Result<(NodeId, u64, Hlc)> {
        let names = [draft.kind.as_str(), &draft.project, &draft.key];
        let id = match draft.kind {
            Kind::Vector => NodeId::of_name(&names),
            Kind::Entity => NodeId::of_own_name(&names),
            _ => return Ok((NodeId::new(self.at, self.random), 1, self.at)),
        };
        if self.raw.node(id, When::Now)?.is_some() {
            return Ok((NodeId::new(self.at, self.random), 1, self.at));
        }
        let history = self.raw.history(id)?.into_iter().map(|it| it.0);
        let last = history
            .filter(|it| it.rev < event::LOST_REVISION)
            .max_by_key(|it| it.rev);
        let created = last.as_ref().filter(|_| !id.is_of_name());
        let created = created.map_or(self.at, |it| it.created);
        Ok((id, last.map_or(0, |it| it.rev) + 1, created))
    }

    /// As [`Tx::put_node`], for a node that has an id already, elsewhere. It keeps it, unless the key is
    /// known here under another one, or the id was ever used here for something else.
    pub fn put_node_as(&mut self, id: NodeId, draft: Draft) -> Result<Node> {
        let known = self
            .raw
            .node_by_key(&draft.project, draft.kind, &draft.key, When::Now)?;
        if known.is_some()
            || self.raw.node(id, When::Now)?.is_some()
            || !self.raw.history(id)?.is_empty()
        {
            return self.put_node(draft);
        }
        let node = Node {
            id,
            kind: draft.kind,
            project: draft.project,
            key: draft.key,
            title: draft.title,
            body: draft.body,
            props: draft.props,
            created: self.at,
            updated: self.at,
            hash: Hash::default(),
            rev: 1,
        };
        self.put_revision(None, node)
    }

    /// Puts the next revision of a node whose key or project changed; its id stays.
    pub fn move_node(&mut self, id: NodeId, draft: Draft) -> Result<Node> {
        let before = self
            .raw
            .node(id, When::Now)?
            .ok_or_else(|| Error::not_found("node", id))?;
        let node = Node {
            id,
            kind: draft.kind,
            project: draft.project,
            key: draft.key,
            title: draft.title,
            body: draft.body,
            props: draft.props,
            created: if id.is_of_name() {
                self.at
            } else {
                before.created
            },
            updated: self.at,
            hash: Hash::default(),
            rev: 1,
        };
        self.put_revision(Some(before), node)
    }

    fn put_revision(&mut self, before: Option<Node>, mut node: Node) -> Result<Node> {
        node.hash = node.canonical_hash();
        if let Some(before) = before {
            if before.hash == node.hash {
                return Ok(before);
            }
            self.state.remove_node(before.id, &before.hash);
            node.rev = before.rev + 1;
        }
        self.state.add_node(node.id, &node.hash);
        self.raw.put_node(&node)?;
        self.changes.push(Change::PutNode {
            id: node.id,
            rev: node.rev,
            hash: node.hash,
        });
        Ok(node)
    }

    /// Removes a node with its passages and ends its edges. Its revisions stay in the history.
    pub fn remove_node(&mut self, id: NodeId) -> Result<()> {
        let node = self
            .raw
            .node(id, When::Now)?
            .ok_or_else(|| Error::not_found("node", id))?;
        let out = EdgeFilter {
            src: Some(id),
            ..EdgeFilter::default()
        };
        let into = EdgeFilter {
            dst: Some(id),
            ..EdgeFilter::default()
        };
        for filter in [out, into] {
            for edge in self.raw.edges(&filter, When::Now, usize::MAX)? {
                self.end_edge(edge.src, &edge.rel, edge.dst)?;
            }
        }
        self.state.remove_node(id, &node.hash);
        self.raw.remove_node(id, self.at)?;
        self.stamp_removal(id)?;
        self.changes.push(Change::RemoveNode { id });
        Ok(())
    }

    /// Puts an edge, or changes the one with these ends and this relation.
    pub fn put_edge(&mut self, draft: EdgeDraft) -> Result<Edge> {
        let before = self.current_edge(draft.src, &draft.rel, draft.dst)?;
        self.put_edge_over(draft, before)
    }

    /// The same for a caller that has read the current edge in this transaction.
    pub fn put_edge_over(&mut self, draft: EdgeDraft, before: Option<Edge>) -> Result<Edge> {
        let mut edge = Edge {
            src: draft.src,
            rel: draft.rel,
            dst: draft.dst,
            weight: draft.weight,
            props: draft.props,
            from: self.at,
            to: Hlc::MAX,
            hash: Hash::default(),
        };
        edge.hash = edge.canonical_hash();
        if let Some(before) = before {
            if before.hash == edge.hash {
                return Ok(before);
            }
            self.state.remove_edge(&before.hash);
        }
        // All changes of an event have one moment. Of several states of one edge in it only the last
        // ever holds, and the rows show no other.
        self.changes
            .retain(|it| !it.is_about_edge(edge.src, &edge.rel, edge.dst));
        self.state.add_edge(&edge.hash);
        self.raw.put_edge(&edge)?;
        self.changes.push(Change::PutEdge {
            src: edge.src,
            rel: edge.rel.clone(),
            dst: edge.dst,
            hash: edge.hash,
        });
        Ok(edge)
    }

    /// Ends an edge, if it holds.
    pub fn end_edge(&mut self, src: NodeId, rel: &str, dst: NodeId) -> Result<()> {
        let Some(before) = self.current_edge(src, rel, dst)? else {
            return Ok(());
        };
        self.state.remove_edge(&before.hash);
        self.raw.end_edge(src, rel, dst, self.at)?;
        self.changes.push(Change::EndEdge {
            src,
            rel: rel.to_owned(),
            dst,
        });
        Ok(())
    }

    fn current_edge(&self, src: NodeId, rel: &str, dst: NodeId) -> Result<Option<Edge>> {
        let filter = EdgeFilter {
            src: Some(src),
            rel: Some(rel.to_owned()),
            dst: Some(dst),
        };
        Ok(self.raw.edges(&filter, When::Now, 1)?.pop())
    }

    /// Replaces the passages of a node. The event holds their hash. Those that are there already
    /// change nothing.
    pub fn put_passages(&mut self, node: NodeId, passages: &[Passage]) -> Result<()> {
        self.replace_passages(node, passages, || hash_of_passages(passages))
    }

    /// The same for passages that were hashed before.
    pub fn put_hashed_passages(&mut self, node: NodeId, passages: &Passages) -> Result<()> {
        self.replace_passages(node, &passages.list, || passages.hash)
    }

    fn replace_passages(
        &mut self,
        node: NodeId,
        passages: &[Passage],
        hash: impl FnOnce() -> Option<Hash>,
    ) -> Result<()> {
        let is_put = |it: &Change| matches!(it, Change::PutNode { id, .. } if *id == node);
        if !self.changes.iter().rev().any(is_put) && self.raw.passages(node)? == passages {
            return Ok(());
        }
        self.raw.put_passages(node, passages)?;
        self.note_row(SignedRow::Passages(node), hash());
        Ok(())
    }

    /// Replaces the names that a node is found by. The event holds their hash.
    pub fn put_names(&mut self, node: NodeId, names: &[String]) -> Result<()> {
        self.raw.put_names(node, names)?;
        let hash = hash_of_names(names.iter().map(String::as_str));
        self.note_row(SignedRow::Names(node), hash);
        Ok(())
    }

    /// Puts a vector, marked with the number of the next event so that followers find it. The event
    /// holds its hash.
    pub fn put_vector(&mut self, vector: Vector) -> Result<()> {
        let seq = self.next_seq();
        let vector = Vector { seq, ..vector };
        self.raw.put_vector(&vector)?;
        let hash = vector.canonical_hash();
        self.note_row(SignedRow::Vector(vector.collection, vector.id), Some(hash));
        Ok(())
    }

    /// Removes a vector, if it is there.
    pub fn remove_vector(&mut self, collection: &str, id: &str) -> Result<()> {
        if self.raw.vector(collection, id)?.is_none() {
            return Ok(());
        }
        self.raw.remove_vector(collection, id)?;
        let row = SignedRow::Vector(collection.to_owned(), id.to_owned());
        self.stamp_row(&row, true)?;
        self.note_row(row, None);
        Ok(())
    }

    /// Sets a cursor, a job or a setting. If its bucket decides about permissions
    /// ([`is_signed_bucket`]), the event holds its hash.
    pub fn set(&mut self, bucket: &str, key: &str, value: &[u8]) -> Result<()> {
        let (is_signed, is_shared) = (is_signed_bucket(bucket), is_shared_bucket(bucket));
        let is_noted = is_signed || is_shared;
        if is_noted && self.raw.get(bucket, key)?.as_deref() == Some(value) {
            return Ok(());
        }
        self.raw.set(bucket, key, value)?;
        if is_noted {
            let hash = hash_of_pair(bucket, key, value);
            let row = SignedRow::Pair(bucket.to_owned(), key.to_owned());
            if is_shared {
                self.stamp_row(&row, false)?;
            }
            self.note_row(row, Some(hash));
        }
        Ok(())
    }

    /// Removes a cursor, a job or a setting.
    pub fn unset(&mut self, bucket: &str, key: &str) -> Result<()> {
        let (is_signed, is_shared) = (is_signed_bucket(bucket), is_shared_bucket(bucket));
        let is_noted = is_signed || is_shared;
        if is_noted && self.raw.get(bucket, key)?.is_none() {
            return Ok(());
        }
        self.raw.unset(bucket, key)?;
        if is_noted {
            let row = SignedRow::Pair(bucket.to_owned(), key.to_owned());
            if is_shared {
                self.stamp_row(&row, true)?;
            }
            self.note_row(row, None);
        }
        Ok(())
    }

    fn note_row(&mut self, row: SignedRow, hash: Option<Hash>) {
        self.changes.push(match hash {
            Some(hash) => Change::PutRow { row, hash },
            None => Change::RemoveRow { row },
        });
    }

    /// Whether it has recorded anything so far.
    pub fn has_events(&self) -> bool {
        self.n_events > 0
    }

    /// Records the changes since the last call as one signed event.
    pub fn record(&mut self, kind: &str, data: Value) -> Result<EventId> {
        if let Value::Object(fields) = &data {
            check_json_depth(&format!("the event `{kind}`"), fields)?;
        }
        let event = Event {
            parents: self.head.tips.clone(),
            hlc: self.at,
            author: self.signer.did().clone(),
            agent: self.agent.clone(),
            kind: kind.to_owned(),
            changes: std::mem::take(&mut self.changes),
            data,
        };
        let mut salt = [0; event::SALT_BYTES];
        self.random.fill(&mut salt);
        let row = event.sign(self.head.seq + 1, &self.origin(), salt, self.signer);
        self.raw.append_event(&row)?;
        let mut tiles = Vec::new();
        self.frontier
            .push(leaf_hash(&row.id.0), |height, index, hash| {
                if height % 8 == 0 {
                    let level = u8::try_from(height / 8).unwrap_or(u8::MAX);
                    tiles.push(TileRow { level, index, hash });
                }
            });
        tiles.iter().try_for_each(|tile| self.raw.put_tile(tile))?;
        if event.changes.iter().any(Change::erases) {
            self.note_erasure(row.seq)?;
        }
        self.head.seq = row.seq;
        self.head.hlc = row.hlc;
        self.head.tips = vec![row.id];
        self.n_events += 1;
        self.at = self.clock.tick(self.head.hlc);
        if row.seq.is_multiple_of(self.checkpoint_every) {
            self.record_checkpoint(&CheckpointLabel::automatic())?;
        }
        Ok(EventId(row.id))
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::new(self.identity.id, self.space)
    }

    pub(crate) fn record_clock_reset(&mut self) -> Result<()> {
        // Joining or upgrading a log may have recorded it already.
        if self.changes.contains(&Change::ResetClock) {
            self.record("ClockReset", Value::Null)?;
        }
        Ok(())
    }

    /// Ends the transaction: everything that changed must have been recorded.
    pub(crate) fn finish(mut self) -> Result<()> {
        let is_row = |it: &Change| matches!(it, Change::PutRow { .. } | Change::RemoveRow { .. });
        if !self.changes.iter().all(is_row) {
            return Err(Error::internal("a write without its event was refused"));
        }
        if !self.changes.is_empty() {
            self.record(ROWS_CHANGED, Value::Null)?;
        }
        if self.n_events == 0 {
            return Ok(());
        }
        self.head.frontier = self.frontier.roots;
        self.head.state = self.state.to_bytes();
        self.head.log = self.identity.to_bytes();
        self.raw.put_head(&self.head)
    }
}
