//! Proofs of the log, beside a second reading of the standard.
//!
//! The bytes of an input choose a tree, a proof and what is wrong with it. The second implementation
//! follows the recursive definitions of RFC 6962; the program's own follows the loops of RFC 9162.

use super::ensure;
use crate::{Source, Subject, Target};
use kenning_audit::merkle::{self, leaf_hash, node_hash};
use kenning_core::Hash;

pub(super) const TARGET: Target = Target {
    name: "proof_verify",
    about: "a proof holds exactly if a second implementation says so",
    words: &[],
    seeds: || (0..8).map(|it| Source::new(it).bytes(24)).collect(),
    generate: |source| {
        let n = 4 + source.below(60);
        source.bytes(n)
    },
    open: || Box::new(Proofs),
    pass_cases: 3_000,
    fresh_every: u64::MAX,
    contains_panics: false,
};

fn split(n: u64) -> u64 {
    let mut k = 1;
    while k * 2 < n {
        k *= 2;
    }
    k
}

fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => merkle::empty_root(),
        [one] => *one,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len() as u64) as usize);
            node_hash(&root(left), &root(right))
        }
    }
}

fn path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let k = split(leaves.len() as u64) as usize;
    let (left, right) = leaves.split_at(k);
    let (mut made, sibling) = if index < k {
        (path(index, left), root(right))
    } else {
        (path(index - k, right), root(left))
    };
    made.push(sibling);
    made
}

fn consistency(m: usize, leaves: &[Hash], is_whole: bool) -> Vec<Hash> {
    let n = leaves.len();
    if m == n {
        return if is_whole {
            Vec::new()
        } else {
            vec![root(leaves)]
        };
    }
    let k = split(n as u64) as usize;
    let (left, right) = leaves.split_at(k);
    let (mut made, sibling) = if m <= k {
        (consistency(m, left, is_whole), root(right))
    } else {
        (consistency(m - k, right, false), root(left))
    };
    made.push(sibling);
    made
}

/// The root that a path leads to; the path is used up from its end.
fn led_to(leaf: &Hash, index: u64, size: u64, path: &mut Vec<Hash>) -> Option<Hash> {
    if index >= size {
        return None;
    }
    if size == 1 {
        return Some(*leaf);
    }
    let sibling = path.pop()?;
    let k = split(size);
    if index < k {
        Some(node_hash(&led_to(leaf, index, k, path)?, &sibling))
    } else {
        Some(node_hash(
            &sibling,
            &led_to(leaf, index - k, size - k, path)?,
        ))
    }
}

/// The old and the new root that a path leads to.
fn both(
    old_root: &Hash,
    m: u64,
    n: u64,
    is_whole: bool,
    path: &mut Vec<Hash>,
) -> Option<(Hash, Hash)> {
    if m == n {
        let it = if is_whole { *old_root } else { path.pop()? };
        return Some((it, it));
    }
    let sibling = path.pop()?;
    let k = split(n);
    if m <= k {
        let (old, new) = both(old_root, m, k, is_whole, path)?;
        Some((old, node_hash(&new, &sibling)))
    } else {
        let (old, new) = both(old_root, m - k, n - k, false, path)?;
        Some((node_hash(&sibling, &old), node_hash(&sibling, &new)))
    }
}

struct Proofs;

impl Subject for Proofs {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let mut choices = input.iter().copied();
        let mut next = |n: u64| u64::from(choices.next().unwrap_or(0)) % n.max(1);
        let size = 1 + next(70);
        let leaves: Vec<Hash> = (0..size).map(|it| leaf_hash(&it.to_le_bytes())).collect();
        let whole = root(&leaves);
        let mut frontier = merkle::Frontier::default();
        leaves
            .iter()
            .for_each(|it| frontier.push(*it, |_, _, _| {}));
        ensure!(frontier.root() == whole, "two roots of {size} leaves");

        let (mut index, mut claimed) = (next(size), size);
        let mut proof = path(index as usize, &leaves);
        let mut leaf = leaves[index as usize];
        ensure!(
            merkle::verify_inclusion(&leaf, index, size, &proof, &whole),
            "a good path is refused"
        );
        let old = 1 + next(size);
        let old_root = root(&leaves[..old as usize]);
        let mut continued = consistency(old as usize, &leaves, true);
        let holds = merkle::verify_consistency(old, &old_root, size, &whole, &continued);
        ensure!(holds, "a good continuation is refused");

        for _ in 0..next(4) {
            let at = next(8) as usize;
            for proof in [&mut proof, &mut continued] {
                let n = proof.len().max(1);
                match at {
                    0 => {
                        proof.pop();
                    }
                    1 => proof.push(whole),
                    2 if !proof.is_empty() => proof.swap(0, n - 1),
                    3 if !proof.is_empty() => proof[n / 2].0[5] ^= 4,
                    4 => proof.reverse(),
                    5 if !proof.is_empty() => {
                        proof.remove(n / 2);
                    }
                    _ => {}
                }
            }
            match at {
                6 => index = next(100),
                7 => claimed = [0, 1, size - 1, size + 1, u64::MAX, 1 << 63][next(6) as usize],
                2 => leaf = leaves[next(size) as usize],
                _ => {}
            }
        }
        // The second reading is by recursion over the size, so it is asked of trees only that it can walk.
        let expected = if claimed <= 1 << 20 {
            let mut rest = proof.clone();
            led_to(&leaf, index, claimed, &mut rest) == Some(whole) && rest.is_empty()
        } else {
            false
        };
        let holds = merkle::verify_inclusion(&leaf, index, claimed, &proof, &whole);
        ensure!(
            holds == expected,
            "inclusion: {index} of {claimed} (of {size}) with {} hashes: {holds}",
            proof.len()
        );
        let (m, n) = (next(75), if claimed <= 1 << 20 { claimed } else { size });
        let mut rest = continued.clone();
        let expected = match m {
            0 => continued.is_empty() && old_root == merkle::empty_root(),
            m if m > n => false,
            m => {
                both(&old_root, m, n, true, &mut rest) == Some((old_root, whole)) && rest.is_empty()
            }
        };
        let holds = merkle::verify_consistency(m, &old_root, n, &whole, &continued);
        ensure!(
            holds == expected,
            "consistency: {m} to {n} with {} hashes: {holds}",
            continued.len()
        );
        Ok(())
    }
}
