//! What peers erased is erased here, and what was erased here is not brought back by them.

use super::{Entry, Foreign, Merged};
use crate::event::Change;
use crate::tx::Tx;
use crate::tx::erase::Erased;
use kenning_core::{Hlc, Result};
use serde_json::json;

/// The event with which a node erases what a peer erased.
pub(super) const ERASED_FOR_PEER: &str = "ErasedForPeer";

impl Tx<'_> {
    /// Whether a change of another log would bring back what was erased.
    pub(super) fn is_about_erased(&self, foreign: &Foreign, change: &Change) -> Result<bool> {
        let erased = self.tombstones();
        Ok(match change {
            Change::PutNode { id, hash, .. } => {
                if erased.has_node(*id)? {
                    return Ok(true);
                }
                let at = foreign.at();
                let is_older = |it: Option<Hlc>| it.is_some_and(|it| it >= at);
                if is_older(erased.revision_erased_at(hash)?) {
                    return Ok(true);
                }
                let node = foreign.nodes().find(|it| it.id == *id && it.hash == *hash);
                match node {
                    Some(it) => is_older(erased.key_erased_at(&it.project, it.kind, &it.key)?),
                    None => false,
                }
            }
            Change::RemoveNode { id } => erased.has_node(*id)?,
            Change::PutEdge { src, dst, .. } | Change::EndEdge { src, dst, .. } => {
                erased.has_node(*src)? || erased.has_node(*dst)?
            }
            _ => false,
        })
    }

    /// Erases here what events of other logs erased. It is an event of this log, after those that brought it, so
    /// that it also covers what was written here since.
    pub(super) fn erase_for_peers(&mut self, entries: &[Entry], merged: &mut Merged) -> Result<()> {
        let mut erased = Erased::default();
        for entry in entries {
            let Entry::Event(foreign) = entry else {
                continue;
            };
            if !foreign.event().changes.iter().any(Change::erases) {
                continue;
            }
            // Only what was taken in counts: an event that was refused erases nothing.
            if self.raw.event_by_id(&foreign.id())?.is_none() {
                continue;
            }
            for change in &foreign.event().changes {
                self.erase_as_told(change, foreign.at(), &mut erased, merged)?;
            }
        }
        if erased == Erased::default() {
            return Ok(());
        }
        let data = json!({
            "nodes": erased.nodes, "revisions": erased.revisions, "events": erased.events,
        });
        self.record(ERASED_FOR_PEER, data).map(drop)
    }

    fn erase_as_told(
        &mut self,
        change: &Change,
        at: Hlc,
        erased: &mut Erased,
        merged: &mut Merged,
    ) -> Result<()> {
        match change {
            Change::EraseNode { id } if !self.tombstones().has_node(*id)? => {
                let revisions = self.erase_node_as_of(*id, at)?;
                merged.nodes.push(*id);
                merged.nodes.extend(revisions.iter().map(|it| it.id));
                merged.erased.extend(revisions);
                erased.nodes += 1;
            }
            Change::EraseRevision { id, hash }
                if self.tombstones().revision_erased_at(hash)?.is_none() =>
            {
                merged
                    .erased
                    .extend(self.erase_revision_as_of(*id, *hash, at)?);
                erased.revisions += 1;
            }
            Change::EraseEvent { event } if !self.tombstones().has_event(event)? => {
                match self.raw.event_by_id(event)? {
                    Some(row) => {
                        erased.events += u64::from(self.erase_event(&row)?);
                    }
                    // It may come later, from somebody else.
                    None => {
                        self.keep_out_event(event)?;
                        erased.events += 1;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
