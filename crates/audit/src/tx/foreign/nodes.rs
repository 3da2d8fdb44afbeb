//! Nodes of other logs: which write holds, and what becomes of the one that does not.

use super::{
    CONFLICTS_MAX, Conflict, Foreign, Merged, STAMPS, Side, Stamp, displaced, gone, puts_node,
    touches_node,
};
use crate::event::{Change, LOST_REVISION};
use crate::identity::Origin;
use crate::tx::{Passages, Tx};
use kenning_core::{Hash, Hlc, NodeId, Result};
use kenning_store::{Node, Row, When};
use std::collections::HashMap;

impl Tx<'_> {
    pub(super) fn merge_node(
        &mut self,
        foreign: &Foreign,
        mut node: Node,
        passages: &HashMap<Hash, Passages>,
        merged: &mut Merged,
    ) -> Result<()> {
        let (id, at) = (node.id, foreign.row.hlc);
        let current = self.raw.node(id, When::Now)?;
        let history = self.raw.history(id)?;
        let others = self
            .raw
            .key_history(&node.project, node.kind, &node.key)?
            .into_iter()
            .filter(|it| it.id != id);
        let others: Vec<Node> = others.collect();
        let strongest_at = others.iter().map(|it| it.updated).max();
        let is_strongest = |it: &Node| Some(it.updated) == strongest_at;
        let mut strongest = None;
        let mut wins_key = true;
        for other in others.into_iter().filter(is_strongest) {
            let (of, hash) = (other.id, other.hash);
            if !self.is_later(foreign, other.updated, |it| puts_node(it, of, &hash))? {
                wins_key = false;
                strongest = Some(other);
            }
        }
        let is_displaced = self.raw.get(STAMPS, &displaced(id))?.is_some();
        let about = |it: &Change| touches_node(it, id);
        // The latest write of this node, and whether this event is later.
        let latest = match &current {
            Some(current) => Some(current.updated),
            None => self.latest_of_absent(id, &history)?,
        };
        let wins_id = match latest {
            None => true,
            Some(latest) => self.is_later(foreign, latest, about)?,
        };
        // Nobody else may be current under this key if this is the later write of it.
        if wins_key
            && let Some(other) =
                self.raw
                    .node_by_key(&node.project, node.kind, &node.key, When::Now)?
            && other.id != id
        {
            self.note_conflict(foreign, &node, &other, false, merged)?;
            self.displace(&other, at, merged)?;
        }
        node.created = current
            .as_ref()
            .map(|it| it.created)
            .or_else(|| history.iter().map(|it| it.0.created).min())
            .unwrap_or(at);
        if id.is_of_name() {
            node.created = at;
        }
        node.updated = at;
        if !wins_id || !wins_key {
            let against = if wins_id {
                strongest.as_ref()
            } else {
                current.as_ref()
            };
            if let Some(against) = against
                && against.hash != node.hash
            {
                self.note_conflict(foreign, &node, against, true, merged)?;
            }
            let ended = if wins_id {
                strongest.map(|it| it.updated)
            } else {
                latest
            };
            self.keep_revision(node, &history, ended.unwrap_or(at).max(at))?;
            // It is this node's latest write all the same, so what it was before is gone.
            if wins_id && let Some(current) = current {
                self.displace(&current, at, merged)?;
            } else if wins_id {
                self.raw.set(STAMPS, &displaced(id), b"")?;
            }
            return Ok(());
        }
        if let Some(current) = &current {
            if current.hash != node.hash {
                self.note_conflict(foreign, &node, current, false, merged)?;
            }
            self.state.remove_node(id, &current.hash);
        }
        let held = history.iter().map(|it| it.0.rev);
        let last_rev = held.filter(|it| *it < LOST_REVISION).max().unwrap_or(0);
        node.rev = current.as_ref().map_or(last_rev, |it| it.rev) + 1;
        if is_displaced {
            self.raw.unset(STAMPS, &displaced(id))?;
        }
        self.state.add_node(id, &node.hash);
        self.raw.put_node(&node)?;
        self.changes.push(Change::PutNode {
            id,
            rev: node.rev,
            hash: node.hash,
        });
        merged.nodes.push(id);
        match passages.get(&node.hash) {
            Some(passages) => self.put_hashed_passages(id, passages),
            None => self.put_passages(id, &[]),
        }
    }

    /// Takes a node away because another one has its key, or because its latest write lost its key.
    pub(super) fn displace(&mut self, node: &Node, at: Hlc, merged: &mut Merged) -> Result<()> {
        self.state.remove_node(node.id, &node.hash);
        self.raw.remove_node(node.id, at)?;
        self.raw.set(STAMPS, &displaced(node.id), b"")?;
        self.changes.push(Change::RemoveNode { id: node.id });
        merged.nodes.push(node.id);
        Ok(())
    }

    pub(super) fn keep_revision(
        &mut self,
        mut node: Node,
        history: &[(Node, Hlc)],
        ended: Hlc,
    ) -> Result<()> {
        if history
            .iter()
            .any(|it| (it.0.updated, it.0.hash) == (node.updated, node.hash))
        {
            return Ok(());
        }
        let lost = history.iter().map(|it| it.0.rev + 1);
        node.rev = lost.max().unwrap_or(0).max(LOST_REVISION);
        self.changes.push(Change::KeepRevision {
            id: node.id,
            rev: node.rev,
            hash: node.hash,
            ended,
        });
        self.raw.load(&Row::History(node, ended))
    }

    pub(super) fn note_conflict(
        &mut self,
        foreign: &Foreign,
        theirs: &Node,
        other: &Node,
        is_lost: bool,
        merged: &mut Merged,
    ) -> Result<()> {
        let (id, hash) = (other.id, other.hash);
        let Some(writer) = self.writer_of(other.updated, |it| puts_node(it, id, &hash))? else {
            return Ok(());
        };
        let origin = Origin::from_bytes(&writer.sealed.origin);
        let log = origin.as_ref().map(|it| it.log);
        // One log is written in one order, and whoever had seen the other write meant to replace it.
        if log == Some(foreign.origin.log) {
            return Ok(());
        }
        let log = log.map(|it| it.to_string()).unwrap_or_default();
        let had_seen = merged.seen.get(&log).is_some_and(|it| *it >= writer.seq);
        if !is_lost && had_seen {
            return Ok(());
        }
        if merged.conflicts.len() == CONFLICTS_MAX {
            return Ok(());
        }
        let here = Side {
            event: writer.id,
            author: writer.author,
            node: id,
            hash,
        };
        let there = Side {
            event: foreign.row.id,
            author: foreign.row.author.clone(),
            node: theirs.id,
            hash: theirs.hash,
        };
        let (winner, loser) = if is_lost {
            (here, there)
        } else {
            (there, here)
        };
        merged.conflicts.push(Conflict {
            kind: other.kind,
            key: other.key.clone(),
            winner,
            loser,
        });
        Ok(())
    }

    /// When a node that is not current was last written: put, or removed.
    pub(super) fn latest_of_absent(
        &self,
        id: NodeId,
        history: &[(Node, Hlc)],
    ) -> Result<Option<Hlc>> {
        let put = history.iter().map(|it| it.0.updated).max();
        let gone = self.raw.get(STAMPS, &gone(id))?;
        let gone = gone.and_then(|it| Stamp::from_bytes(&it)).map(|it| it.hlc);
        if gone.is_some() || self.raw.get(STAMPS, &displaced(id))?.is_some() {
            return Ok(gone.max(put));
        }
        // It was removed by a program that kept no stamps.
        Ok(history.iter().map(|it| it.1).max())
    }

    pub(super) fn merge_removal(
        &mut self,
        foreign: &Foreign,
        id: NodeId,
        merged: &mut Merged,
    ) -> Result<()> {
        let at = foreign.row.hlc;
        let about = |it: &Change| touches_node(it, id);
        let current = self.raw.node(id, When::Now)?;
        if let Some(current) = current {
            if !self.is_later(foreign, current.updated, about)? {
                return Ok(());
            }
            self.state.remove_node(id, &current.hash);
            self.raw.remove_node(id, at)?;
            self.changes.push(Change::RemoveNode { id });
            merged.nodes.push(id);
            return self.set_stamp(&gone(id), foreign, true);
        }
        let history = self.raw.history(id)?;
        let is_displaced = self.raw.get(STAMPS, &displaced(id))?.is_some();
        let latest = self.latest_of_absent(id, &history)?;
        let is_later = match latest {
            Some(latest) => self.is_later(foreign, latest, about)?,
            None => true,
        };
        if !is_later {
            return Ok(());
        }
        if is_displaced {
            self.raw.unset(STAMPS, &displaced(id))?;
        }
        self.set_stamp(&gone(id), foreign, true)
    }
}
