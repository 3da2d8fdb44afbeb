//! What a graph is made of, by number: nodes, relationships, labels and types.

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A relationship.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelId(pub u64);

/// A label or a relationship type that the graph knows, as a small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A relationship with its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rel {
    /// Its id.
    pub id: RelId,
    /// The node that it leaves.
    pub start: NodeId,
    /// The node that it enters.
    pub end: NodeId,
    /// Its type.
    pub kind: Token,
}

/// Which relationships of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Those that leave it.
    Out,
    /// Those that enter it.
    In,
    /// Both; one from a node to itself comes once.
    Both,
}

impl Direction {
    /// The same, seen from the other end.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}
