//! The root of everything that is true now.
//!
//! Each current node and edge is expanded to 1,024 lanes of 16 bits; the state is the lane-wise sum
//! of all of them (LtHash), and the root is the hash of the sum. Adding, changing or removing a row
//! costs the same however many rows there are; the order does not matter, so peers that hold the same
//! rows have the same root. No tree has to be stored.

use kenning_core::{Hash, NodeId};

/// Lanes of the sum.
const LANES: usize = 1024;

/// The sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State(Box<[u16; LANES]>);

impl Default for State {
    fn default() -> Self {
        Self(Box::new([0; LANES]))
    }
}

impl State {
    /// A node has this content.
    pub fn add_node(&mut self, id: NodeId, hash: &Hash) {
        self.combine(&node_bytes(id, hash), u16::wrapping_add);
    }

    /// A node no longer has this content.
    pub fn remove_node(&mut self, id: NodeId, hash: &Hash) {
        self.combine(&node_bytes(id, hash), u16::wrapping_sub);
    }

    /// An edge with this content holds. The hash covers its ends.
    pub fn add_edge(&mut self, hash: &Hash) {
        self.combine(&edge_bytes(hash), u16::wrapping_add);
    }

    /// An edge with this content no longer holds.
    pub fn remove_edge(&mut self, hash: &Hash) {
        self.combine(&edge_bytes(hash), u16::wrapping_sub);
    }

    fn combine(&mut self, row: &[u8], op: impl Fn(u16, u16) -> u16) {
        let mut stretched = [0; 2 * LANES];
        blake3::Hasher::new()
            .update(row)
            .finalize_xof()
            .fill(&mut stretched);
        for (lane, pair) in self.0.iter_mut().zip(stretched.chunks_exact(2)) {
            *lane = op(*lane, u16::from_le_bytes([pair[0], pair[1]]));
        }
    }

    /// The root: one hash of the sum.
    pub fn root(&self) -> Hash {
        Hash::of(&self.to_bytes())
    }

    /// The sum as it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    /// The sum as it was stored.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut state = Self::default();
        if bytes.len() != 2 * LANES {
            return None;
        }
        for (lane, pair) in state.0.iter_mut().zip(bytes.chunks_exact(2)) {
            *lane = u16::from_le_bytes([pair[0], pair[1]]);
        }
        Some(state)
    }
}

fn node_bytes(id: NodeId, hash: &Hash) -> Vec<u8> {
    [b"n".as_slice(), &id.0, &hash.0].concat()
}

fn edge_bytes(hash: &Hash) -> Vec<u8> {
    [b"e".as_slice(), &hash.0].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Hlc, SeededRandom};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_does_not_matter_and_removing_undoes(
            seeds in proptest::collection::vec(any::<u64>(), 1..20),
            extra: u64,
        ) {
            let row = |seed: &u64| {
                let id = NodeId::new(Hlc::from_ms(1), &SeededRandom::new(*seed));
                (id, Hash::of(&seed.to_be_bytes()))
            };
            let mut forward = State::default();
            seeds.iter().map(row).for_each(|(id, hash)| forward.add_node(id, &hash));
            let mut backward = State::default();
            let (id, hash) = row(&extra);
            backward.add_node(id, &hash);
            backward.add_edge(&hash);
            seeds.iter().rev().map(row).for_each(|(id, hash)| backward.add_node(id, &hash));
            prop_assert_ne!(forward.root(), backward.root());
            backward.remove_edge(&hash);
            backward.remove_node(id, &hash);
            prop_assert_eq!(forward.root(), backward.root());
            let stored = State::from_bytes(&forward.to_bytes());
            prop_assert_eq!(stored, Some(forward));
        }
    }
}
