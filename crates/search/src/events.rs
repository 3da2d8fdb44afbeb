//! What the events of a log change in an index.

use kenning_audit::Change;
use kenning_core::{NodeId, Result};
use kenning_store::{EventRow, Node, Passage, ReadTx, When};
use std::collections::{BTreeMap, VecDeque};

/// Events that are read at a time.
const PAGE: usize = 1_000;

/// Nodes that are read before they are taken in, and between two looks at the clock where time is short. Nodes
/// and not events: one event of an import brings hundreds.
const STEP: usize = 250;

/// The kind of the event that says that passages were made anew.
pub const REINDEXED: &str = "Reindexed";

/// What some events changed.
pub(crate) struct Changes {
    /// The last of the events.
    pub(crate) at: u64,
    /// Nodes that are new or others now.
    pub(crate) nodes: Vec<(Node, Vec<Passage>)>,
    pub(crate) gone: Vec<NodeId>,
    /// Whether something was erased: then no word of it may stay.
    pub(crate) has_erased: bool,
}

/// Events that were read and not taken in yet.
#[derive(Default)]
pub(crate) struct Events(VecDeque<EventRow>);

impl Events {
    /// What the events after `at` changed, until about [`STEP`] nodes have. `None` if all passages were made
    /// anew.
    pub(crate) fn next(&mut self, tx: &dyn ReadTx, at: u64, seq: u64) -> Result<Option<Changes>> {
        // The revision that the latest of these events made; none for one that is gone.
        let mut changed: BTreeMap<NodeId, u64> = BTreeMap::new();
        let (mut last, mut has_erased) = (at, false);
        while last < seq && changed.len() < STEP {
            if self.0.is_empty() {
                let left = usize::try_from(seq - last).unwrap_or(PAGE);
                self.0.extend(tx.events_after(last, PAGE.min(left))?);
            }
            let Some(row) = self.0.pop_front() else {
                last = seq;
                break;
            };
            last = row.seq;
            if row.kind == REINDEXED {
                return Ok(None);
            }
            let event = kenning_audit::event::parse(&row);
            for change in event.into_iter().flat_map(|it| it.changes) {
                match change {
                    Change::PutNode { id, rev, .. } => changed.insert(id, rev),
                    Change::RemoveNode { id } => changed.insert(id, u64::MAX),
                    Change::EraseNode { .. } | Change::EraseRevision { .. } => {
                        has_erased = true;
                        None
                    }
                    _ => None,
                };
            }
        }
        let (mut nodes, mut gone) = (Vec::new(), Vec::new());
        for (id, rev) in changed {
            match tx.node(id, When::Now)? {
                // A later event made what it is now, and brings it.
                Some(node) if node.rev > rev => {}
                Some(node) => nodes.push((node, tx.passages(id)?)),
                None => gone.push(id),
            }
        }
        Ok(Some(Changes {
            at: last,
            nodes,
            gone,
            has_erased,
        }))
    }
}
