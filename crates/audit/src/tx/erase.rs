//! Erasing: content goes, and the log still proves that it was there.
//!
//! An event names rows by their hashes, and its data is a column of its own that is signed by a salted hash. So the
//! rows and the data can be removed, and every id, signature and root stays what it was. That they were removed is
//! an event itself ([`Change::EraseNode`] and its like), which names ids and hashes.
//!
//! What was erased does not come back: a row for each erased thing says so (buckets `erased/…`), and events of other
//! logs, imports and older backups that bring it again are refused that part. Erasing is not ordered against other
//! writes: whoever writes to an erased node without knowing it, before or after, loses. A key that was erased can be
//! used again later, by a node of its own: somebody may store the same words again.

use super::Tx;
use crate::event::{self, Change};
use kenning_core::{Hash, Hlc, Kind, NodeId, Result};
use kenning_store::{EventRow, Node, ReadTx, When};

const NODES: &str = "erased/nodes";
const KEYS: &str = "erased/keys";
const REVISIONS: &str = "erased/revisions";
const EVENTS: &str = "erased/events";

/// The last event that erased something, and that of which traces may still be in files.
const PROGRESS: &str = "erased/progress";
const LAST: &str = "last";
const UNCLEAN: &str = "unclean";

/// How much was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Nodes, with all their revisions.
    pub nodes: u64,
    /// Superseded revisions of nodes that are still there.
    pub revisions: u64,
    /// Events whose data is gone.
    pub events: u64,
}

/// What may not come back.
pub struct Tombstones<'a>(&'a dyn ReadTx);

impl<'a> Tombstones<'a> {
    /// Those of this space.
    pub fn of(tx: &'a dyn ReadTx) -> Self {
        Self(tx)
    }

    /// Whether a node was erased.
    pub fn has_node(&self, id: NodeId) -> Result<bool> {
        Ok(self.0.get(NODES, &id.to_string())?.is_some())
    }

    /// When a node of this key was last erased.
    pub fn key_erased_at(&self, project: &str, kind: Kind, key: &str) -> Result<Option<Hlc>> {
        let row = self.0.get(KEYS, &hash_of_key(project, kind, key))?;
        Ok(row.map(|it| time_of(&it)))
    }

    /// When revisions of this content were erased.
    pub fn revision_erased_at(&self, hash: &Hash) -> Result<Option<Hlc>> {
        let row = self.0.get(REVISIONS, &hash.to_string())?;
        Ok(row.map(|it| time_of(&it)))
    }

    /// The last event that erased something.
    pub fn last(&self) -> Result<u64> {
        Ok(self.number(LAST)?.unwrap_or(0))
    }

    /// The last event that erased something of which traces may still be in files: free pages, the write-ahead
    /// log, stored indexes.
    pub fn unclean(&self) -> Result<Option<u64>> {
        self.number(UNCLEAN)
    }

    fn number(&self, key: &str) -> Result<Option<u64>> {
        let row = self.0.get(PROGRESS, key)?;
        Ok(row.map(|it| time_of(&it).0))
    }

    /// Whether the data of an event was erased.
    pub fn has_event(&self, id: &Hash) -> Result<bool> {
        Ok(self.0.get(EVENTS, &id.to_string())?.is_some())
    }
}

/// A key may hold words of the content, so only its hash is kept.
fn hash_of_key(project: &str, kind: Kind, key: &str) -> String {
    let text = format!("kenning erased key\0{kind}\0{project}\0{key}");
    Hash::of(text.as_bytes()).to_string()
}

fn time_of(bytes: &[u8]) -> Hlc {
    let text = std::str::from_utf8(bytes).ok();
    Hlc(text.and_then(|it| it.parse().ok()).unwrap_or_default())
}

impl Tx<'_> {
    /// What may not come back.
    pub fn tombstones(&self) -> Tombstones<'_> {
        Tombstones(&*self.raw)
    }

    pub(super) fn note_erasure(&mut self, seq: u64) -> Result<()> {
        let seq = seq.to_string();
        self.raw.set(PROGRESS, LAST, seq.as_bytes())?;
        self.raw.set(PROGRESS, UNCLEAN, seq.as_bytes())
    }

    /// The files have no traces of what was erased up to this event.
    pub fn note_clean(&mut self, seq: u64) -> Result<()> {
        match self.tombstones().unclean()? {
            Some(unclean) if unclean <= seq => self.raw.unset(PROGRESS, UNCLEAN),
            _ => Ok(()),
        }
    }

    /// Erases a node with all its revisions, passages, names and edges. Gives what was erased; nothing if the node
    /// was never here, and then it cannot come either.
    pub fn erase_node(&mut self, id: NodeId) -> Result<Vec<Node>> {
        self.erase_node_as_of(id, self.at)
    }

    /// The same content may be there as another node: somebody else stored it too, and lost. That one is erased as
    /// well, unless it was written after this one was gone.
    pub(super) fn erase_node_as_of(&mut self, id: NodeId, at: Hlc) -> Result<Vec<Node>> {
        let (mut revisions, gone_at) = self.erase_one_node(id, at)?;
        for twin in self.twins_of(id, &revisions, gone_at)? {
            revisions.extend(self.erase_one_node(twin, at)?.0);
        }
        Ok(revisions)
    }

    /// Gives the revisions, and when the node was gone.
    fn erase_one_node(&mut self, id: NodeId, at: Hlc) -> Result<(Vec<Node>, Hlc)> {
        if self.tombstones().has_node(id)? {
            return Ok((Vec::new(), at));
        }
        let current = self.raw.node(id, When::Now)?;
        if current.is_some() {
            self.remove_node(id)?;
        }
        let history = self.raw.history(id)?;
        let ended = history.iter().map(|it| it.1).max();
        let gone_at = ended.map_or(at, |it| it.min(at));
        let revisions: Vec<Node> = history.into_iter().map(|it| it.0).collect();
        self.raw.erase_revisions(id, None)?;
        self.raw.erase_ended_edges(id)?;
        self.changes.push(Change::EraseNode { id });
        self.set(NODES, &id.to_string(), at.0.to_string().as_bytes())?;
        for node in &revisions {
            let key = hash_of_key(&node.project, node.kind, &node.key);
            self.set(KEYS, &key, gone_at.0.to_string().as_bytes())?;
        }
        Ok((revisions, gone_at))
    }

    /// Erases superseded revisions of a node that have this content. Gives them.
    pub fn erase_revision(&mut self, id: NodeId, hash: Hash) -> Result<Vec<Node>> {
        self.erase_revision_as_of(id, hash, self.at)
    }

    pub(super) fn erase_revision_as_of(
        &mut self,
        id: NodeId,
        hash: Hash,
        at: Hlc,
    ) -> Result<Vec<Node>> {
        let history = self.raw.history(id)?.into_iter().map(|it| it.0);
        let revisions: Vec<Node> = history.filter(|it| it.hash == hash).collect();
        self.raw.erase_revisions(id, Some(&hash))?;
        self.changes.push(Change::EraseRevision { id, hash });
        self.set(REVISIONS, &hash.to_string(), at.0.to_string().as_bytes())?;
        Ok(revisions)
    }

    /// Erases the data of an event. False if it has none that can be erased: version 1 signed the data itself.
    pub fn erase_event(&mut self, row: &EventRow) -> Result<bool> {
        if row.version == 1 || event::is_erased(row) {
            return Ok(false);
        }
        self.raw.erase_event_data(&row.id)?;
        self.changes.push(Change::EraseEvent { event: row.id });
        self.keep_out_event(&row.id)?;
        Ok(true)
    }

    /// Whoever brings this event later brings it without its data.
    pub(super) fn keep_out_event(&mut self, id: &Hash) -> Result<()> {
        self.set(EVENTS, &id.to_string(), b"")
    }

    /// Puts a node back that was removed and not erased: its last revision, and the edges that ended with it.
    /// `None` if there is none.
    pub fn bring_back_node(&mut self, id: NodeId) -> Result<Option<Node>> {
        if let Some(node) = self.raw.node(id, When::Now)? {
            return Ok(Some(node));
        }
        let history = self.raw.history(id)?;
        let held = history
            .into_iter()
            .filter(|it| it.0.rev < event::LOST_REVISION);
        let Some((mut node, ended)) = held.max_by_key(|it| it.0.rev) else {
            return Ok(None);
        };
        let taken = self
            .raw
            .node_by_key(&node.project, node.kind, &node.key, When::Now)?;
        if taken.is_some() {
            return Ok(None);
        }
        node.rev += 1;
        node.updated = self.at;
        self.state.add_node(node.id, &node.hash);
        self.raw.put_node(&node)?;
        self.changes.push(Change::PutNode {
            id,
            rev: node.rev,
            hash: node.hash,
        });
        self.bring_back_edges(id, ended)?;
        Ok(Some(node))
    }

    fn bring_back_edges(&mut self, id: NodeId, ended: Hlc) -> Result<()> {
        let before = When::At(Hlc(ended.0.saturating_sub(1)));
        for is_out in [true, false] {
            let filter = kenning_store::EdgeFilter {
                src: is_out.then_some(id),
                dst: (!is_out).then_some(id),
                ..kenning_store::EdgeFilter::default()
            };
            for edge in self.raw.edges(&filter, before, usize::MAX)? {
                let other = if is_out { edge.dst } else { edge.src };
                if edge.to == ended && self.raw.node(other, When::Now)?.is_some() {
                    self.put_edge(super::EdgeDraft {
                        src: edge.src,
                        rel: edge.rel,
                        dst: edge.dst,
                        weight: edge.weight,
                        props: edge.props,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Other nodes that were under the keys of an erased one, and last written before this moment.
    fn twins_of(&self, id: NodeId, revisions: &[Node], at: Hlc) -> Result<Vec<NodeId>> {
        let mut twins = Vec::new();
        for node in revisions {
            for other in self.raw.key_history(&node.project, node.kind, &node.key)? {
                let current = self.raw.node(other.id, When::Now)?;
                let last = current.map_or(other.updated, |it| it.updated);
                if other.id != id && last <= at && !twins.contains(&other.id) {
                    twins.push(other.id);
                }
            }
        }
        Ok(twins)
    }
}
