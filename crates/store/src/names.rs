//! Names that are almost the same: keys of three characters, the same for every backend.
//!
//! A name's keys are the runs of three characters of each of its words, with two blanks before and
//! one behind, so that the beginning of a word counts more than its end. Two names are as similar as
//! the share of keys that they have in common.

use kenning_core::NodeId;
use std::collections::BTreeSet;
use unicode_normalization::UnicodeNormalization;

/// A longer name is found by its first characters.
const CHARS_MAX: usize = 200;

/// A name that a node is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// The node.
    pub node: NodeId,
    /// The name.
    pub name: String,
}

/// A name that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct NameHit {
    /// The node that has it.
    pub node: NodeId,
    /// The name.
    pub name: String,
    /// Between 0 and 1: 1 for the same letters and digits.
    pub similarity: f64,
}

/// The keys of a name.
pub fn keys(name: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    each_key(name, |chars| {
        keys.insert(chars.iter().collect());
    });
    keys
}

/// The same keys as numbers, in order and each once: for comparing many names in memory.
pub fn packed_keys(name: &str) -> Vec<u64> {
    let mut keys = Vec::new();
    each_key(name, |chars| {
        let packed = chars
            .iter()
            .fold(0, |sum, &c| sum << 21 | u64::from(u32::from(c)));
        keys.push(packed);
    });
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn each_key(name: &str, mut visit: impl FnMut(&[char])) {
    // A letter and its accent are one key, whether they were written as one character or as two.
    let folded: String = name
        .nfc()
        .take(CHARS_MAX)
        .flat_map(char::to_lowercase)
        .collect();
    for word in folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty())
    {
        let padded: Vec<char> = "  "
            .chars()
            .chain(word.chars())
            .chain(" ".chars())
            .collect();
        padded.windows(3).for_each(&mut visit);
    }
}

/// How similar two names are.
pub fn similarity(one: &str, two: &str) -> f64 {
    let (one, two) = (keys(one), keys(two));
    let all = one.union(&two).count();
    if all == 0 {
        0.0
    } else {
        one.intersection(&two).count() as f64 / all as f64
    }
}

/// How many candidates a backend proposes for `n` answers: those with the most keys in common are not
/// always the most similar.
pub fn candidates(n: usize) -> usize {
    n.saturating_mul(4).saturating_add(50)
}

/// The most similar of the candidates.
pub fn ranked(text: &str, candidates: Vec<NameRow>, n: usize) -> Vec<NameHit> {
    let hit = |row: NameRow| NameHit {
        similarity: similarity(text, &row.name),
        node: row.node,
        name: row.name,
    };
    let mut hits: Vec<NameHit> = candidates.into_iter().map(hit).collect();
    hits.sort_by(|a, b| {
        b.similarity
            .total_cmp(&a.similarity)
            .then_with(|| (&a.name, a.node).cmp(&(&b.name, b.node)))
    });
    hits.truncate(n);
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_more_similar_than_others() {
        assert!((similarity("Bill Baue", "bill  BAUE!") - 1.0).abs() < 1e-9);
        assert!(similarity("Herring Monitoring", "Herring Monitring") > 0.6);
        assert!(similarity("University of Guelph", "University of Melbourne") < 0.6);
        assert!(similarity("Ada", "Bob") < 0.1);
        assert!(similarity("", "") < 0.1);
        assert!(similarity("会議室", "会議") > 0.3);
        assert!((similarity("Fl\u{fc}gge", "Flu\u{308}gge") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn packed_keys_are_as_many_as_keys() {
        for name in ["", "Bill Baue", "aaa aaa", "会議室 \u{10ffff}x", "İstanbul"] {
            assert_eq!(packed_keys(name).len(), keys(name).len(), "{name}");
        }
    }
}
