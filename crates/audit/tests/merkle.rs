//! Proofs are right, and no false one is accepted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_audit::merkle::{
    Frontier, Subtrees, consistency_path, empty_root, inclusion_path, leaf_hash, node_hash,
    verify_consistency, verify_inclusion,
};
use kenning_audit::{Consistency, Inclusion};
use kenning_core::{Hash, SeededRandom};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;

const SIZE_MAX: u64 = 256;
const MUTATIONS: u64 = 200_000;

/// The definition of RFC 6962, section 2.1, word for word: a second implementation. Subtrees that
/// were hashed once are remembered.
struct Naive(Vec<Hash>, RefCell<HashMap<(usize, usize), Hash>>);

impl Naive {
    fn of(n: u64) -> Self {
        Self(
            (0..n).map(|i| Hash::of(&i.to_be_bytes())).collect(),
            RefCell::default(),
        )
    }

    fn head(&self, at: Range<usize>) -> Hash {
        if let Some(&known) = self.1.borrow().get(&(at.start, at.end)) {
            return known;
        }
        let head = match at.len() {
            0 => empty_root(),
            1 => leaf_hash(&self.0[at.start].0),
            n => {
                let middle = at.start + Self::k(n);
                node_hash(&self.head(at.start..middle), &self.head(middle..at.end))
            }
        };
        self.1.borrow_mut().insert((at.start, at.end), head);
        head
    }

    fn k(n: usize) -> usize {
        let mut k = 1;
        while k * 2 < n {
            k *= 2;
        }
        k
    }

    fn path(&self, m: usize, at: Range<usize>) -> Vec<Hash> {
        if at.len() == 1 {
            return Vec::new();
        }
        let k = Self::k(at.len());
        let middle = at.start + k;
        let (mut path, last) = if m < k {
            (self.path(m, at.start..middle), self.head(middle..at.end))
        } else {
            (
                self.path(m - k, middle..at.end),
                self.head(at.start..middle),
            )
        };
        path.push(last);
        path
    }

    fn proof(&self, m: usize, at: Range<usize>, whole: bool) -> Vec<Hash> {
        if m == at.len() {
            return if whole {
                Vec::new()
            } else {
                vec![self.head(at)]
            };
        }
        let k = Self::k(at.len());
        let middle = at.start + k;
        let (mut path, last) = if m <= k {
            (
                self.proof(m, at.start..middle, whole),
                self.head(middle..at.end),
            )
        } else {
            (
                self.proof(m - k, middle..at.end, false),
                self.head(at.start..middle),
            )
        };
        path.push(last);
        path
    }
}

impl Subtrees for Naive {
    type Error = Infallible;

    fn root(&self, start: u64, size: u64) -> Result<Hash, Infallible> {
        Ok(self.head(start as usize..(start + size) as usize))
    }
}

#[test]
fn hashes_are_those_of_the_rfc() {
    let hex = |text| Hash::from_hex(text).unwrap();
    let empty = hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(empty_root(), empty);
    let leaf = hex("6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    assert_eq!(leaf_hash(b""), leaf);
    let leaf = hex("395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56");
    assert_eq!(leaf_hash(b"L123456"), leaf);
    // The eight leaves and their roots that every transparency log's tests begin with.
    let leaves: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut frontier = Frontier::default();
    for (leaf, root) in leaves.iter().zip(roots) {
        frontier.push(leaf_hash(leaf), |_, _, _| ());
        assert_eq!(frontier.root(), hex(root));
    }
}

#[test]
fn every_inclusion_and_consistency_proof_up_to_256_verifies() {
    let tree = Naive::of(SIZE_MAX);
    let mut frontier = Frontier::default();
    let (mut cases, mut failures) = (0, 0);
    let mut roots = vec![empty_root()];
    for n in 1..=SIZE_MAX {
        let all = 0..n as usize;
        frontier.push(leaf_hash(&tree.0[n as usize - 1].0), |_, _, _| ());
        let root = frontier.root();
        assert_eq!(root, tree.head(all.clone()), "root of {n}");
        roots.push(root);
        for i in 0..n {
            let path = inclusion_path(&tree, i, n).unwrap();
            let same = path == tree.path(i as usize, all.clone());
            let leaf = leaf_hash(&tree.0[i as usize].0);
            cases += 1;
            failures += u32::from(!same || !verify_inclusion(&leaf, i, n, &path, &root));
        }
        for m in 1..=n {
            let path = consistency_path(&tree, m, n).unwrap();
            let same = path == tree.proof(m as usize, all.clone(), true);
            let good = verify_consistency(m, &roots[m as usize], n, &root, &path);
            cases += 1;
            failures += u32::from(!same || !good);
        }
    }
    println!("proofs: {cases} cases, {failures} failures");
    assert_eq!((cases, failures), (65_792, 0));
}

/// Flips one bit of one part of a proof; true if it was still accepted.
fn a_changed_proof_is_accepted(tree: &Naive, random: &SeededRandom) -> bool {
    let n = 2 + random.below(SIZE_MAX - 1);
    let root = tree.root(0, n).unwrap();
    let flip = |hash: &mut Hash| hash.0[random.below(32) as usize] ^= 1 << random.below(8);
    if random.below(2) == 0 {
        let index = random.below(n);
        let path = inclusion_path(tree, index, n).unwrap();
        let event = tree.0[index as usize];
        let mut proof = Inclusion {
            event,
            index,
            size: n,
            root,
            path,
        };
        assert!(proof.holds(n, &root));
        let which = random.below(4);
        match which {
            0 => flip(&mut proof.event),
            1 => proof.index ^= 1 << random.below(64),
            2 => proof.size ^= 1 << random.below(64),
            _ => {
                let at = random.below(proof.path.len() as u64) as usize;
                flip(&mut proof.path[at]);
            }
        }
        return proof.holds(n, &root);
    }
    let m = 1 + random.below(n - 1);
    let old_root = tree.root(0, m).unwrap();
    let path = consistency_path(tree, m, n).unwrap();
    let mut proof = Consistency {
        old_size: m,
        old_root,
        new_size: n,
        new_root: root,
        path,
    };
    assert!(proof.holds((m, &old_root), (n, &root)));
    match random.below(6) {
        0 => proof.old_size ^= 1 << random.below(64),
        1 => proof.new_size ^= 1 << random.below(64),
        2 => flip(&mut proof.old_root),
        3 => flip(&mut proof.new_root),
        4 => proof.path.truncate(proof.path.len() - 1),
        _ => {
            let at = random.below(proof.path.len() as u64) as usize;
            flip(&mut proof.path[at]);
        }
    }
    proof.holds((m, &old_root), (n, &root))
}

#[test]
fn every_one_bit_change_of_a_proof_is_refused() {
    let seed = std::env::var("KENNING_SEED")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(6962);
    let random = SeededRandom::new(seed);
    let tree = Naive::of(SIZE_MAX);
    let accepted = (0..MUTATIONS)
        .filter(|_| a_changed_proof_is_accepted(&tree, &random))
        .count();
    println!("mutated proofs: {MUTATIONS} cases, {accepted} failures, seed {seed}");
    assert_eq!(accepted, 0);
}

#[test]
fn a_path_that_is_too_long_or_too_short_is_refused() {
    let tree = Naive::of(9);
    let root = tree.root(0, 9).unwrap();
    for index in 0..9 {
        let leaf = leaf_hash(&tree.0[index as usize].0);
        let mut path = inclusion_path(&tree, index, 9).unwrap();
        path.push(root);
        assert!(!verify_inclusion(&leaf, index, 9, &path, &root));
        path.truncate(path.len() - 2);
        assert!(!verify_inclusion(&leaf, index, 9, &path, &root));
        assert!(!verify_inclusion(&leaf, index, 0, &[], &root));
    }
    assert!(verify_consistency(0, &empty_root(), 9, &root, &[]));
    assert!(!verify_consistency(0, &root, 9, &root, &[]));
    assert!(!verify_consistency(9, &root, 8, &root, &[]));
    assert!(!verify_consistency(9, &root, 9, &root, &[root]));
}
