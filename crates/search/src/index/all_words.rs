//! Nodes that have every word of a query.

use super::{Filter, Index};
use kenning_core::NodeId;

/// Words that must all be there, at most.
const ALL_WORDS_MAX: usize = 20;

/// Nodes that have every word that was asked for.
pub struct WithAllWords<'a> {
    index: &'a Index,
    /// The first passage of each, in their order.
    firsts: Vec<u32>,
}

impl WithAllWords<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Whether this node is one of them.
    pub fn contains(&self, node: NodeId) -> bool {
        let first = self.index.first_passage(node);
        first.is_some_and(|it| self.firsts.binary_search(&it).is_ok())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.firsts
            .iter()
            .map(|&at| self.index.entries[at as usize].node)
    }
}

impl Index {
    /// Nodes that have every word of a text, each in one passage or another.
    pub fn nodes_with_all_words(&self, text: &str, filter: &Filter) -> WithAllWords<'_> {
        let mut words = crate::tokens(&self.respelled(text));
        words.sort_unstable();
        words.dedup();
        words.truncate(ALL_WORDS_MAX);
        let terms: Option<Vec<usize>> = words
            .iter()
            .map(|word| self.term(word).map(|it| it.0))
            .collect();
        let mut terms = terms.unwrap_or_default();
        terms.sort_unstable_by_key(|&term| self.term_frequency[term]);
        let admission = self.admission(filter);
        if admission.is_impossible() {
            terms.clear();
        }
        let mut firsts: Option<Vec<u32>> = None;
        for term in terms {
            let mut known = firsts.as_deref().map(|it| it.iter().peekable());
            let mut with: Vec<u32> = Vec::new();
            // Passages of a node stand one after the other, and postings in the order of passages, so
            // both lists are sorted.
            for posting in &self.postings[term] {
                let first = posting.entry - self.entries[posting.entry as usize].n;
                if with.last() == Some(&first) || !admission.admits(posting.entry as usize) {
                    continue;
                }
                if let Some(known) = &mut known {
                    while known.next_if(|&&it| it < first).is_some() {}
                    if known.peek() != Some(&&first) {
                        continue;
                    }
                }
                with.push(first);
            }
            firsts = Some(with);
        }
        WithAllWords {
            index: self,
            firsts: firsts.unwrap_or_default(),
        }
    }
}
