//! What the index holds of a passage, and which passages may be found.

use super::bits;
use kenning_core::{Hlc, Kind, NodeId};
use std::collections::HashSet;

/// A term's occurrences in a passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) entry: u32,
    pub(crate) count: u32,
}

/// A passage, as ranking sees it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The node that has the passage.
    pub node: NodeId,
    /// Which passage of it.
    pub n: u32,
    /// When the node was made.
    pub created: Hlc,
    /// The thread that the node names, or [`NO_THREAD`].
    pub(crate) thread: u32,
    /// Whether it holds a question.
    pub(crate) asks: bool,
    pub(crate) facets: Box<[u32]>,
    pub(crate) terms: u32,
    pub(crate) distinct_start: usize,
    pub(crate) distinct: u32,
    pub(crate) tokens_start: usize,
    pub(crate) tokens: u32,
    pub(crate) text: [u8; 16],
}

/// What decides whether a passage may be found, packed: every query looks at every one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    pub(crate) created_ms: u64,
    /// The end of time while it holds.
    pub(crate) ended_ms: u64,
    /// One bit for each of the first [`FACET_BITS`] properties.
    pub(crate) facets: u64,
    pub(crate) kind: Kind,
    pub(crate) alive: bool,
}

impl Gate {
    /// Of a passage whose node is of this kind, or of one that is dead.
    pub(crate) fn of(entry: &Entry, ended_ms: u64, kind: Option<Kind>) -> Self {
        Self {
            created_ms: entry.created.ms(),
            ended_ms,
            facets: bits(&entry.facets),
            kind: kind.unwrap_or(Kind::Memory),
            alive: kind.is_some(),
        }
    }
}

/// Which passages may be found.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of nodes of these kinds; empty for any.
    pub kinds: Vec<Kind>,
    /// With every one of these properties, as `name=value`.
    pub facets: Vec<String>,
    /// With at least one of these, if there are any.
    pub any_facet: Vec<String>,
    /// What held at that moment; otherwise what holds now.
    pub as_of_ms: Option<u64>,
    /// Memories and files of the context only of these projects, where any are named: `""` is what belongs to
    /// none. Other nodes are not concerned.
    pub memories_of: Vec<String>,
    /// Of these nodes only, where they are named.
    pub nodes: Option<HashSet<NodeId>>,
}
