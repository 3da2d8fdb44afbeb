//! Checks rows that are neither nodes nor edges, by their hashes in events since version 2.

use super::{Report, collect};
use crate::event::SignedRow;
use crate::identity::is_signed_bucket;
use kenning_core::{Hash, NodeId};
use kenning_store::{Passage, ReadTx, Row, Table, hash_of_names, hash_of_pair, hash_of_passages};
use std::collections::{HashMap, HashSet};

/// What the events say of such rows.
#[derive(Default)]
pub(super) struct SignedRows {
    told: HashMap<SignedRow, (Hash, u64)>,
    /// Nodes of version 1: their passages and names are signed only once they are written again.
    unsigned_nodes: HashSet<NodeId>,
    /// The first event of version 2; without one nothing is signed.
    since: Option<u64>,
}

impl SignedRows {
    pub(super) fn begin(&mut self, seq: u64) {
        self.since.get_or_insert(seq);
    }

    pub(super) fn put(&mut self, row: &SignedRow, hash: Hash, seq: u64) {
        self.told.insert(row.clone(), (hash, seq));
    }

    pub(super) fn remove(&mut self, row: &SignedRow) {
        self.told.remove(row);
        // From here on the log covers it: the row does not exist.
        if let SignedRow::Passages(node) | SignedRow::Names(node) = row {
            self.unsigned_nodes.remove(node);
        }
    }

    /// A node was made by an event of version 1.
    pub(super) fn put_unsigned_node(&mut self, node: NodeId) {
        self.unsigned_nodes.insert(node);
    }

    /// A node is gone, with its passages and names.
    pub(super) fn remove_node(&mut self, node: NodeId) {
        self.told.remove(&SignedRow::Passages(node));
        self.told.remove(&SignedRow::Names(node));
        self.unsigned_nodes.remove(&node);
    }

    /// Compares what there is with what the events say.
    pub(super) fn check(mut self, tx: &dyn ReadTx, report: &mut Report) {
        self.check_passages(tx, report);
        self.check_names(tx, report);
        self.check_vectors(tx, report);
        self.check_pairs(tx, report);
        let mut missing: Vec<String> = self
            .told
            .keys()
            .map(|it| format!("{} missing", name(it)))
            .collect();
        missing.sort_unstable();
        missing.into_iter().for_each(|it| report.fault(it));
    }

    /// Whether the log agrees. Removes the row from the expected ones, so that the rest is missing.
    fn compare(&mut self, row: &SignedRow, hash: Option<Hash>, report: &mut Report) -> Option<u64> {
        let told = self.told.remove(row);
        let is_unsigned = match row {
            // Without any event there is not even an old one that could have written it.
            _ if report.n_events == 0 => false,
            _ if self.since.is_none() => true,
            SignedRow::Passages(node) | SignedRow::Names(node) => {
                self.unsigned_nodes.contains(node)
            }
            SignedRow::Vector(..) | SignedRow::Pair(..) => false,
        };
        match (told, hash) {
            (Some((told, seq)), Some(hash)) if told == hash => return Some(seq),
            (None, Some(_)) if is_unsigned => report.n_unsigned += 1,
            (None, Some(_)) => report.fault(format!("{} not in the log", name(row))),
            _ => report.fault(format!("{} not what the log says", name(row))),
        }
        None
    }

    fn check_passages(&mut self, tx: &dyn ReadTx, report: &mut Report) {
        let mut of: Option<NodeId> = None;
        let mut passages: Vec<Passage> = Vec::new();
        let mut groups = Vec::new();
        // Rows come by node; a hash is all that is kept of one.
        collect(tx, Table::Passages, report, |row| {
            let Row::Passage(row) = row else { return };
            if of != Some(row.node) {
                if let Some(node) = of {
                    groups.push((node, hash_of_passages(&passages)));
                }
                passages.clear();
                of = Some(row.node);
            }
            passages.push(row.passage);
        });
        if let Some(node) = of {
            groups.push((node, hash_of_passages(&passages)));
        }
        report.n_passages = groups.len() as u64;
        for (node, hash) in groups {
            self.compare(&SignedRow::Passages(node), hash, report);
        }
    }

    fn check_names(&mut self, tx: &dyn ReadTx, report: &mut Report) {
        let mut names: HashMap<NodeId, Vec<String>> = HashMap::new();
        collect(tx, Table::Names, report, |row| {
            if let Row::Name(row) = row {
                names.entry(row.node).or_default().push(row.name);
            }
        });
        report.n_names = names.len() as u64;
        for (node, names) in names {
            let hash = hash_of_names(names.iter().map(String::as_str));
            self.compare(&SignedRow::Names(node), hash, report);
        }
    }

    fn check_vectors(&mut self, tx: &dyn ReadTx, report: &mut Report) {
        let mut found = Vec::new();
        collect(tx, Table::Vectors, report, |row| {
            if let Row::Vector(vector) = row {
                let hash = vector.canonical_hash();
                let row = SignedRow::Vector(vector.collection, vector.id);
                found.push((row, hash, vector.seq));
            }
        });
        report.n_vectors = found.len() as u64;
        for (row, hash, seq) in found {
            let is_old = self.since.is_some_and(|since| seq < since);
            if is_old && !self.told.contains_key(&row) {
                report.n_unsigned += 1;
                continue;
            }
            if let Some(told) = self.compare(&row, Some(hash), report)
                && told != seq
            {
                report.fault(format!("{} not marked with its event", name(&row)));
            }
        }
    }

    fn check_pairs(&mut self, tx: &dyn ReadTx, report: &mut Report) {
        let (mut found, mut n_unchecked) = (Vec::new(), 0);
        collect(tx, Table::Kv, report, |row| {
            let Row::Kv(row) = row else { return };
            let is_signed = is_signed_bucket(&row.bucket);
            let hash = hash_of_pair(&row.bucket, &row.key, &row.value);
            let row = SignedRow::Pair(row.bucket, row.key);
            // A row that is only shared was not signed before it was shared.
            if is_signed || self.told.contains_key(&row) {
                found.push((row, hash));
            } else {
                n_unchecked += 1;
            }
        });
        report.n_pairs = found.len() as u64;
        report.n_unchecked = n_unchecked;
        for (row, hash) in found {
            self.compare(&row, Some(hash), report);
        }
    }
}

/// For a sentence: "… is".
fn name(row: &SignedRow) -> String {
    match row {
        SignedRow::Passages(node) => format!("the text index (passages) of node {node} is"),
        SignedRow::Names(node) => format!("the list of names of node {node} is"),
        SignedRow::Vector(collection, id) => format!("the vector `{id}` of `{collection}` is"),
        SignedRow::Pair(bucket, key) => format!("the row `{key}` of `{bucket}` is"),
    }
}
