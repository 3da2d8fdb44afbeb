//! What events say was erased.

use super::{Replay, Report};
use kenning_core::{Hash, Hlc, NodeId};
use kenning_store::EventRow;
use std::collections::{HashMap, HashSet};

/// What was erased, and when.
#[derive(Default)]
pub(super) struct Erasures {
    nodes: HashMap<NodeId, Hlc>,
    revisions: HashMap<(NodeId, Hash), Hlc>,
    events: HashSet<Hash>,
    /// Events of this log that have no data any more.
    without_data: Vec<(u64, Hash)>,
}

impl Erasures {
    pub(super) fn node(&mut self, id: NodeId, at: Hlc) {
        self.nodes.insert(id, at);
    }

    pub(super) fn revision(&mut self, id: NodeId, hash: Hash, at: Hlc) {
        self.revisions.insert((id, hash), at);
    }

    pub(super) fn event(&mut self, id: Hash) {
        self.events.insert(id);
    }

    /// An event of this log without its data.
    pub(super) fn found(&mut self, row: &EventRow) {
        self.without_data.push((row.seq, row.id));
    }

    /// Data that is missing must have been erased by an event: somebody with access to the file could remove
    /// it as well.
    pub(super) fn check(&self, report: &mut Report) {
        for (seq, id) in &self.without_data {
            if !self.events.contains(id) {
                report.fault(format!(
                    "event {seq} has no data, and no event says that it was erased"
                ));
            }
        }
    }
}

impl Replay {
    /// Erased rows are not missing. A row that came after the erasure is expected as any other.
    pub(super) fn leave_out_erased(&mut self) {
        let Erasures {
            nodes, revisions, ..
        } = &self.erasures;
        if nodes.is_empty() && revisions.is_empty() {
            return;
        }
        let is_gone = |id: &NodeId, ended: Hlc| nodes.get(id).is_some_and(|at| *at >= ended);
        self.superseded.retain(|(id, _), (told, ended)| {
            let erased = revisions.get(&(*id, told.hash));
            !is_gone(id, *ended) && erased.is_none_or(|at| at < ended)
        });
        self.ended.retain(|((src, _, dst), _), (_, ended)| {
            !is_gone(src, *ended) && !is_gone(dst, *ended)
        });
    }
}
