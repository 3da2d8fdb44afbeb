//! What became of a batch of events of another log.

use kenning_core::{Hash, Kind, NodeId};
use kenning_store::Node;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One of two writes that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The event.
    pub event: Hash,
    /// Its author.
    pub author: String,
    /// The node that it wrote.
    pub node: NodeId,
    /// The hash of the revision.
    pub hash: Hash,
}

/// Two writes of one node or under one key, neither of which had seen the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The kind of the node.
    pub kind: Kind,
    /// Its key.
    pub key: String,
    /// The write that holds.
    pub winner: Side,
    /// The write that lost; its revision is in the history.
    pub loser: Side,
}

impl Conflict {
    /// As the data of an event.
    pub fn to_json(&self) -> Value {
        json!({
            "nodeId": self.winner.node.to_string(), "nodeType": self.kind.as_str(), "key": self.key,
            "winner": self.winner.event.to_string(), "winnerAuthor": self.winner.author,
            "loser": self.loser.event.to_string(), "loserAuthor": self.loser.author,
            "loserNodeId": self.loser.node.to_string(),
            "loserRevision": self.loser.hash.to_string(),
            "rule": "the later time wins, then the greater author",
        })
    }
}

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Events that were appended.
    pub n_events: u64,
    /// Rows that changed.
    pub n_rows: u64,
    /// Events that were refused: author and reason.
    pub refused: Vec<(Hash, String, String)>,
    /// Conflicts that were found, at most a few hundred.
    pub conflicts: Vec<Conflict>,
    /// Nodes that are others now: put or removed.
    pub nodes: Vec<NodeId>,
    /// Shared rows of the key-value table that are others now: bucket and key.
    pub pairs: Vec<(String, String)>,
    /// Conflicts that the events settled, by the events that lost.
    pub resolved: Vec<String>,
    /// What became of collections of vectors.
    pub vectors: BTreeMap<String, VectorsMerged>,
    /// Revisions that were erased here because a peer erased them.
    pub erased: Vec<Node>,
    /// As [`super::Batch::seen`], after it.
    pub seen: BTreeMap<String, u64>,
}

/// What became of a collection of vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorsMerged {
    /// Vectors that were not there before.
    pub n_added: u64,
    /// Vectors that are not there any more.
    pub n_removed: u64,
}
