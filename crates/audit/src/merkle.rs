//! A Merkle tree of the shape and hash of RFC 6962, so that any tool for transparency logs can check
//! our proofs.
//!
//! A leaf is `SHA-256(0x00 | event id)`, an inner node `SHA-256(0x01 | left | right)`. The log keeps
//! only the [`Frontier`], the roots of its complete subtrees; appending and asking for the root cost
//! the logarithm of its length.

use kenning_core::Hash;
use sha2::{Digest, Sha256};

/// Of a leaf's content.
pub fn leaf_hash(content: &[u8]) -> Hash {
    Hash(
        Sha256::new_with_prefix([0])
            .chain_update(content)
            .finalize()
            .into(),
    )
}

/// Of two subtrees.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Hash(
        Sha256::new_with_prefix([1])
            .chain_update(left.0)
            .chain_update(right.0)
            .finalize()
            .into(),
    )
}

/// Of a tree without leaves.
pub fn empty_root() -> Hash {
    Hash(Sha256::digest([]).into())
}

/// The largest power of two smaller than `n`, for `n` of at least 2.
fn split(n: u64) -> u64 {
    1 << (63 - (n - 1).leading_zeros())
}

/// The roots of the complete subtrees of a tree, largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    /// Number of leaves.
    pub size: u64,
    /// One root for each bit that is set in `size`, highest bit first.
    pub roots: Vec<Hash>,
}

impl Frontier {
    /// Adds a leaf. `complete` is told each subtree that it completes: height, index, root.
    pub fn push(&mut self, leaf: Hash, mut complete: impl FnMut(u32, u64, Hash)) {
        let mut root = leaf;
        let mut height = 0;
        while self.size >> height & 1 == 1
            && let Some(left) = self.roots.pop()
        {
            root = node_hash(&left, &root);
            height += 1;
            complete(height, self.size >> height, root);
        }
        self.roots.push(root);
        self.size += 1;
    }

    /// The root of the whole tree.
    pub fn root(&self) -> Hash {
        let mut roots = self.roots.iter().rev();
        let Some(&last) = roots.next() else {
            return empty_root();
        };
        roots.fold(last, |right, left| node_hash(left, &right))
    }
}

/// Gives the root of the leaves `start..start + size`.
pub trait Subtrees {
    /// What can go wrong.
    type Error;
    /// The root of a complete subtree or of the last, incomplete one.
    fn root(&self, start: u64, size: u64) -> Result<Hash, Self::Error>;
}

/// The path that proves that leaf `index` is in the tree of `size` leaves.
pub fn inclusion_path<S: Subtrees>(tree: &S, index: u64, size: u64) -> Result<Vec<Hash>, S::Error> {
    let mut path = Vec::new();
    let (mut start, mut size) = (0, size);
    while size > 1 {
        let left = split(size);
        if index - start < left {
            path.push(tree.root(start + left, size - left)?);
            size = left;
        } else {
            path.push(tree.root(start, left)?);
            start += left;
            size -= left;
        }
    }
    path.reverse();
    Ok(path)
}

/// The path that proves that the tree of `old` leaves is a prefix of the tree of `new` leaves.
pub fn consistency_path<S: Subtrees>(tree: &S, old: u64, new: u64) -> Result<Vec<Hash>, S::Error> {
    let mut path = Vec::new();
    let (mut start, mut m, mut n) = (0, old, new);
    let mut whole = true;
    while m != n {
        let left = split(n);
        if m <= left {
            path.push(tree.root(start + left, n - left)?);
            n = left;
        } else {
            path.push(tree.root(start, left)?);
            start += left;
            m -= left;
            n -= left;
            whole = false;
        }
    }
    if !whole {
        path.push(tree.root(start, m)?);
    }
    path.reverse();
    Ok(path)
}

/// Whether the path proves that `leaf` is at `index` in the tree of `size` leaves with this root
/// (RFC 9162, section 2.1.3.2).
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut fnode, mut snode, mut hash) = (index, size - 1, *leaf);
    for sibling in path {
        if snode == 0 {
            return false;
        }
        if fnode & 1 == 1 || fnode == snode {
            hash = node_hash(sibling, &hash);
            while fnode & 1 == 0 && fnode != 0 {
                fnode >>= 1;
                snode >>= 1;
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        fnode >>= 1;
        snode >>= 1;
    }
    snode == 0 && hash == *root
}

/// Whether the path proves that the tree (`old`, `old_root`) is a prefix of (`new`, `new_root`)
/// (RFC 9162, section 2.1.4.2).
pub fn verify_consistency(
    old: u64,
    old_root: &Hash,
    new: u64,
    new_root: &Hash,
    path: &[Hash],
) -> bool {
    if old == 0 || old > new {
        // Every tree continues the empty tree, with an empty path.
        return old == 0 && path.is_empty() && *old_root == empty_root();
    }
    if old == new {
        return path.is_empty() && old_root == new_root;
    }
    let mut path = path.iter().copied();
    let (mut fnode, mut snode) = (old - 1, new - 1);
    while fnode & 1 == 1 {
        fnode >>= 1;
        snode >>= 1;
    }
    let first = if old.is_power_of_two() {
        Some(*old_root)
    } else {
        path.next()
    };
    let Some(first) = first else { return false };
    let (mut old_hash, mut new_hash) = (first, first);
    for sibling in path {
        if snode == 0 {
            return false;
        }
        if fnode & 1 == 1 || fnode == snode {
            old_hash = node_hash(&sibling, &old_hash);
            new_hash = node_hash(&sibling, &new_hash);
            while fnode & 1 == 0 && fnode != 0 {
                fnode >>= 1;
                snode >>= 1;
            }
        } else {
            new_hash = node_hash(&new_hash, &sibling);
        }
        fnode >>= 1;
        snode >>= 1;
    }
    snode == 0 && old_hash == *old_root && new_hash == *new_root
}
