//! An index without what is dead, made while others search and change it.
//!
//! Whoever rewrites long texts leaves thousands of dead passages each time. The living ones are copied to a new
//! index, some at a time, each time under the lock for reading; texts are not read again. What changed
//! meanwhile is settled in the last step, which puts the new index in the place of the old one.

use crate::index::NO_THREAD;
use crate::index::{Gate, Index, NO_PLACE, Posting, for_each_distinct};
use kenning_core::NodeId;
use std::collections::HashMap;
use std::hash::Hash;

/// Passages that are looked at under one lock.
const STEP: usize = if cfg!(test) { 20 } else { 500 };

/// Nothing was copied for this one.
const NONE: u32 = u32::MAX;

/// Numbers of the old index, and what they are in the new one.
#[derive(Default)]
struct Renumbered {
    new_of: Vec<u32>,
    n: u32,
}

impl Renumbered {
    /// The new number, and whether it was given just now.
    fn number(&mut self, old: u32) -> (u32, bool) {
        let at = old as usize;
        if at >= self.new_of.len() {
            self.new_of.resize(at + 1, NONE);
        }
        let is_new = self.new_of[at] == NONE;
        if is_new {
            self.new_of[at] = self.n;
            self.n += 1;
        }
        (self.new_of[at], is_new)
    }

    /// Names by their new numbers. Those that nothing living has are gone.
    fn names<K: Eq + Hash>(&self, old: HashMap<K, u32>) -> HashMap<K, u32> {
        let new_of = |at: u32| self.new_of.get(at as usize).copied();
        let living = |it: &u32| *it != NONE;
        old.into_iter()
            .filter_map(|(name, at)| Some((name, new_of(at).filter(living)?)))
            .collect()
    }
}

/// A copy under way.
pub(crate) struct Compaction {
    new: Index,
    /// Which index is copied.
    id: u64,
    /// Where each passage of the old index is in the new one.
    places: Vec<u32>,
    terms: Renumbered,
    facets: Renumbered,
    threads: Renumbered,
    /// What was erased before this began is not copied.
    n_erasures: u32,
}

impl Compaction {
    pub(crate) fn of(old: &Index) -> Self {
        Self {
            new: Index::new(),
            id: old.id,
            places: Vec::with_capacity(old.entries.len()),
            terms: Renumbered::default(),
            facets: Renumbered::default(),
            threads: Renumbered::default(),
            n_erasures: old.n_erasures,
        }
    }

    /// Whether this is the index that is copied: another may have been put in its place.
    pub(crate) fn is_of(&self, old: &Index) -> bool {
        self.id == old.id
    }

    /// Copies some more, and says whether there is anything left.
    pub(crate) fn step(&mut self, old: &Index) -> bool {
        let from = self.places.len();
        let to = old.entries.len().min(from + STEP);
        (from..to).for_each(|at| self.copy(old, at));
        to < old.entries.len()
    }

    /// What searches need beyond the copies. Takes a while, and needs no lock.
    pub(crate) fn prepare(&mut self) {
        self.new.vectors.prepare();
    }

    fn copy(&mut self, old: &Index, at: usize) {
        if !old.is_alive(at) {
            self.places.push(NONE);
            return;
        }
        let entry = &old.entries[at];
        // The passages of a node stand side by side. If it has others already, it was rewritten meanwhile.
        let is_next = at > 0 && old.entries[at - 1].node == entry.node && old.is_alive(at - 1);
        if !is_next {
            self.new.remove(entry.node);
        }
        let new = &mut self.new;
        let Ok(place) = u32::try_from(new.entries.len()) else {
            self.places.push(NONE);
            return;
        };
        self.places.push(place);
        let old_place = u32::try_from(at).unwrap_or(u32::MAX);
        let distinct_start = new.distinct.len();
        for &old_term in old.distinct_terms(old_place) {
            let (term, is_new) = self.terms.number(old_term);
            if is_new {
                new.postings.push(Vec::new());
                new.term_frequency.push(0);
            }
            let postings = &old.postings[old_term as usize];
            let known = postings.binary_search_by_key(&old_place, |it| it.entry);
            let count = known.map_or(0, |it| postings[it].count);
            let posting = Posting {
                entry: place,
                count,
            };
            new.postings[term as usize].push(posting);
            new.term_frequency[term as usize] += 1;
            new.distinct.push(term);
        }
        let tokens_start = new.tokens.len();
        let mut ids = old.tokens(old_place).to_vec();
        new.tokens.extend_from_slice(&ids);
        for_each_distinct(&mut ids, |id| new.token_frequency[usize::from(id)] += 1);
        new.vectors.push_of(&old.vectors, at);
        let mut copied = entry.clone();
        (copied.distinct_start, copied.tokens_start) = (distinct_start, tokens_start);
        for facet in &mut copied.facets {
            *facet = self.facets.number(*facet).0;
        }
        if entry.thread != NO_THREAD {
            let (thread, is_new) = self.threads.number(entry.thread);
            if is_new {
                new.threads.add();
            }
            copied.thread = thread;
        }
        let gate = &old.gates[at];
        new.gates
            .push(Gate::of(&copied, gate.ended_ms, Some(gate.kind)));
        new.lengths.push(old.lengths[at]);
        new.sum_terms += u64::from(entry.terms);
        new.sum_tokens += u64::from(entry.tokens);
        *new.kinds.entry(gate.kind).or_default() += 1;
        new.entries.push(copied);
        new.threads.insert(&new.entries, place);
        new.by_node.entry(entry.node).or_default().push(place);
        new.alive += 1;
    }

    /// Copies the rest, settles what changed meanwhile, and puts the new index in the place of the old one,
    /// which is given back.
    pub(crate) fn finish(mut self, old: &mut Index) -> Index {
        while self.step(old) {}
        let mut gone: Vec<NodeId> = Vec::new();
        for (at, &place) in self.places.iter().enumerate() {
            let node = old.entries[at].node;
            if place != NONE && !old.is_alive(at) && old.passages_of(node).is_empty() {
                gone.push(node);
            }
        }
        gone.into_iter().for_each(|it| self.new.remove(it));
        let mut new = self.new;
        for (name, firsts) in std::mem::take(&mut old.names) {
            let places = firsts.iter().map(|&at| self.places[at as usize]);
            let living = |it: &u32| *it != NONE && new.is_alive(*it as usize);
            let firsts: Vec<u32> = places.filter(living).collect();
            if !firsts.is_empty() {
                new.names.insert(name, firsts);
            }
        }
        new.terms = self.terms.names(std::mem::take(&mut old.terms));
        new.facets = self.facets.names(std::mem::take(&mut old.facets));
        let threads = std::mem::take(&mut old.threads);
        new.threads.rename(self.threads.names(threads.into_names()));
        if let Some(mut other) = old.other.take() {
            let mut places = vec![NO_PLACE; new.entries.len()];
            for (&vector, &place) in other.places.iter().zip(&self.places) {
                if place != NONE {
                    places[place as usize] = vector;
                }
            }
            let both = places.iter().enumerate();
            let covered = both.filter(|(at, it)| **it != NO_PLACE && new.is_alive(*at));
            other.covered = covered.count();
            other.places = places;
            new.other = Some(other);
        }
        new.seq = old.seq;
        new.kept_seq = old.kept_seq;
        new.n_erasures = old.n_erasures.saturating_sub(self.n_erasures);
        std::mem::replace(old, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Mode, Query, passages};
    use kenning_core::{Hlc, Kind, SeededRandom};
    use kenning_store::Node;
    use serde_json::{Map, json};

    const WORDS: [&str; 12] = [
        "roof", "train", "kitten", "harbor", "lantern", "winter", "copper", "meadow", "violin",
        "ladder", "orange", "river",
    ];

    fn node(n: u8, random: &SeededRandom) -> Node {
        let word = || WORDS[random.below(WORDS.len() as u64) as usize];
        let mut props = Map::new();
        props.insert("memory_type".to_owned(), json!(word()));
        props.insert("session_id".to_owned(), json!(word()));
        let lines = (0..=random.below(400)).map(|n| format!("{} {} {n}.\n\n", word(), word()));
        Node {
            id: NodeId([n; 16]),
            kind: Kind::Memory,
            project: String::new(),
            key: n.to_string(),
            title: word().to_owned(),
            body: lines.collect(),
            props,
            created: Hlc::from_ms(u64::from(n)),
            updated: Hlc::default(),
            hash: kenning_core::Hash::default(),
            rev: 1,
        }
    }

    fn change(index: &mut Index, random: &SeededRandom) {
        let n = random.below(60) as u8;
        if random.below(3) == 0 {
            index.remove(NodeId([n; 16]));
        } else {
            let node = node(n, random);
            index.put(&node, &passages(&node.title, &node.body));
        }
    }

    /// Everything that can be seen from outside.
    fn seen(index: &Index) -> Vec<String> {
        let mut seen = vec![format!("{}", index.len())];
        for word in WORDS {
            let facets = [vec![], vec![format!("memory_type={word}")]];
            for facets in facets {
                let filter = Filter {
                    facets,
                    ..Filter::default()
                };
                let mut found = index.search(&Query {
                    text: word,
                    mode: Mode::Hybrid,
                    filter: &filter,
                    limit: 1_000,
                    vector: None,
                });
                found.sort_by_key(|it| (it.node, it.n));
                let found = found.iter();
                let found = found.map(|it| format!("{} {} {:.5}", it.node, it.n, it.score));
                seen.push(found.collect::<Vec<_>>().join(" "));
                let mut complete: Vec<NodeId> =
                    index.nodes_with_all_words(word, &filter).iter().collect();
                complete.sort();
                seen.push(format!("{complete:?}"));
            }
            let mut named: Vec<NodeId> = index
                .named(word)
                .map(|it| index.entries[it as usize].node)
                .collect();
            named.sort();
            seen.push(format!("{named:?}"));
        }
        for n in 0..60 {
            let near = index.around(NodeId([n; 16]), 0, 3, &Filter::default());
            seen.push(format!("{near:?}"));
        }
        seen
    }

    #[test]
    fn a_compacted_index_answers_as_before_whatever_changed_meanwhile() {
        for seed in 0..6 {
            let random = SeededRandom::new(seed);
            let mut index = Index::new();
            (0..300).for_each(|_| change(&mut index, &random));
            let n_before = index.entries.len();
            let mut compaction = Compaction::of(&index);
            let mut n_steps = 0;
            while compaction.step(&index) {
                n_steps += 1;
                (0..random.below(4)).for_each(|_| change(&mut index, &random));
            }
            (0..random.below(8)).for_each(|_| change(&mut index, &random));
            index.seq = 7;
            let expected = seen(&index);
            assert!(compaction.is_of(&index));
            drop(compaction.finish(&mut index));
            assert!(n_steps > 0 && index.entries.len() < n_before, "seed {seed}");
            assert_eq!(seen(&index), expected, "seed {seed}");
            assert_eq!(index.seq, 7);
            // It can be changed and kept like any other.
            let mut read = Index::from_snapshot(&index.to_snapshot(kenning_core::Hash::of(b"e")));
            let read = read.as_mut().expect("it holds together");
            let again = SeededRandom::new(seed + 1_000);
            (0..100).for_each(|_| change(&mut index, &again));
            let again = SeededRandom::new(seed + 1_000);
            (0..100).for_each(|_| change(read, &again));
            assert_eq!(seen(read), seen(&index), "seed {seed}");
        }
    }

    #[test]
    fn words_of_what_was_erased_are_in_no_snapshot() {
        const SECRET: &str = "quartzheronlantern";
        let holds = |index: &Index| {
            let bytes = index.unsealed().seal(kenning_core::Hash::default());
            let mut found = bytes.windows(SECRET.len());
            found.any(|it| it == SECRET.as_bytes())
        };
        let random = SeededRandom::new(5);
        let mut index = Index::new();
        let mut secret = node(1, &random);
        secret.body = format!("the code is {SECRET}");
        index.put(&secret, &passages("", &secret.body));
        index.put(&node(2, &random), &passages("", "stays"));
        index.remove(secret.id);
        assert!(holds(&index), "what is dead stays until it is copied");
        index.n_erasures = 1;
        assert!(index.is_to_be_copied());
        let mut compaction = Compaction::of(&index);
        while compaction.step(&index) {}
        compaction.prepare();
        // Something else is erased while it is copied.
        index.n_erasures += 1;
        compaction.finish(&mut index);
        assert!(!holds(&index));
        assert_eq!(index.n_erasures, 1, "that is left to the next copy");
    }
}
