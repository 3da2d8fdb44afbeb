//! What each search does differently, and why: the one table of thresholds.
//!
//! Relevance is between 0 and 1 and means the same for every query; 0.7 is where answers and the best of
//! unrelated texts part. A search that a person reads may go below that, because a near miss among answers
//! costs a glance; one whose answers are acted on may not.

use kenning_memory::score;

/// Where answers and the best of unrelated texts part: only what is above is called relevant.
pub const RELEVANT_MIN: f64 = 0.7;

/// Enough where somebody reads the passage and judges it, because a near miss then costs a glance.
pub const READABLE_MIN: f64 = 0.5;

/// The least similarity of two documents before one is suggested for the other (`kg_suggest`). It is a cosine by
/// the built-in table and not a relevance: two texts about different things share many common words.
pub const SUGGESTED_ALIKE_MIN: f64 = 0.6;

/// How a search decides what is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// What it is called, here and in tests.
    pub name: &'static str,
    /// What is less relevant is not found, unless it has every word.
    pub relevance_min: f64,
    /// Whether relevance is compared as it is shown, with four decimals: whoever names a threshold reads those.
    pub as_shown: bool,
    /// What becomes of nodes that have every word of the query.
    pub all_words: AllWords,
    /// Which passages of a node are answered.
    pub each: Each,
    /// In which order.
    pub order: Order,
    /// So many passages are looked at for each answer that is wanted …
    pub passages_each: usize,
    /// … and at least so many.
    pub passages_min: usize,
}

/// What becomes of nodes that have every word of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllWords {
    /// Nothing: relevance decides.
    Ignored,
    /// They are found, as relevant as the least that is: at most as many as passages are looked at.
    AmongRanked,
    /// They are found, all of them; those that ranking makes nothing of come last, with a relevance of 0.
    AfterRanked,
    /// If there are any, nothing else is found; all of them are, those that ranking makes nothing of last.
    Only,
}

/// Which passages of a node are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// All that are found.
    Passage,
    /// The one that ranking puts first, before titles are weighed.
    NodeByScore,
    /// The one that comes first in the answer.
    NodeByOrder,
}

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As ranking found them, one filter after the other: the caller puts them in order.
    AsFound,
    /// By relevance, and among near-equals the newer one first.
    RelevanceAndAge,
}

/// A node has several passages, and some of those that are found do not count.
const SPARE: usize = 4;

/// A page is at least this deep, so that a small limit does not change what ranking compares.
const DEEP: usize = 100;

/// Memories (`memory_recall`, `belief_retrieve`, the hooks). An agent acts on what it is given, so the default
/// is where answers and unrelated texts part; the caller's `min_relevance` takes its place. Words do not
/// count by themselves: a prompt has many, and most memories have some.
pub const MEMORIES: Policy = Policy {
    name: "memories",
    relevance_min: RELEVANT_MIN,
    as_shown: true,
    all_words: AllWords::Ignored,
    each: Each::NodeByOrder,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: DEEP,
};

/// Entities by what they are called (`koi_search`). Of a name alone, meanings are guessed more often than of
/// a text: so as high as for memories. Who has every word is meant.
pub const ENTITIES: Policy = Policy {
    name: "entities",
    relevance_min: RELEVANT_MIN,
    as_shown: false,
    all_words: AllWords::AmongRanked,
    each: Each::Passage,
    order: Order::AsFound,
    passages_each: SPARE,
    passages_min: 0,
};

/// Notes that stand for the entity they describe (`koi_search`): as sure as the entity itself has to be, and a
/// note that merely has the words is no answer about somebody.
pub const NOTES_OF_ENTITIES: Policy = Policy {
    name: "notes of entities",
    relevance_min: ENTITIES.relevance_min,
    as_shown: false,
    all_words: AllWords::Ignored,
    each: Each::Passage,
    order: Order::AsFound,
    passages_each: SPARE,
    passages_min: 0,
};

/// Texts of every source (`knowledge_search`). A reader judges the passage that is shown, so half is enough.
pub const TEXTS: Policy = Policy {
    name: "texts",
    relevance_min: READABLE_MIN,
    as_shown: false,
    all_words: AllWords::AmongRanked,
    each: Each::Passage,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: 0,
};

/// Documents of the graph (`kg_query`, `kg_search_nodes`). The contract finds documents by their words; only
/// where none has them all, those near in meaning are shown, and the answer says so.
pub const DOCUMENTS: Policy = Policy {
    name: "documents",
    relevance_min: READABLE_MIN,
    as_shown: false,
    all_words: AllWords::Only,
    each: Each::NodeByOrder,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: DEEP,
};

/// Nodes of other kinds beside the documents (`kg_query`): they come after them, by meaning only.
pub const BESIDE_DOCUMENTS: Policy = Policy {
    name: "beside documents",
    relevance_min: READABLE_MIN,
    as_shown: false,
    all_words: AllWords::Ignored,
    each: Each::NodeByOrder,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: 0,
};

/// Items, and everything else that `search` finds. A list to choose from, from which an agent picks by name and
/// description: the lowest threshold, so that a tool is found by a vague wish. Titles are weighed afterwards.
pub const ITEMS: Policy = Policy {
    name: "items",
    relevance_min: 0.4,
    as_shown: false,
    all_words: AllWords::AfterRanked,
    each: Each::NodeByScore,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: DEEP,
};

/// Everything at once (`find`). A reader judges the passage that is shown, so half is enough; what has every word
/// is meant. Relevance decides, and among near-equals the newer one, whatever kind they are of.
pub const EVERYTHING: Policy = Policy {
    name: "everything",
    relevance_min: READABLE_MIN,
    as_shown: false,
    all_words: AllWords::AmongRanked,
    each: Each::NodeByOrder,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: DEEP,
};

/// Candidates that the caller judges by itself, by their cosines (`kg_vector_search`).
pub const CANDIDATES: Policy = Policy {
    name: "candidates",
    relevance_min: 0.0,
    as_shown: false,
    all_words: AllWords::Ignored,
    each: Each::Passage,
    order: Order::AsFound,
    passages_each: SPARE,
    passages_min: 0,
};

/// Passages that may name a document without a link to it (`kg_suggest`): each is read to see whether it does, so
/// no more are looked at than are asked for.
pub const MENTIONS: Policy = Policy {
    name: "mentions",
    passages_each: 1,
    ..CANDIDATES
};

/// Nodes of any kind in a query (`CALL kenning.search`). The query says itself what score it wants, so nothing
/// is left out for its relevance.
pub const QUERIES: Policy = Policy {
    name: "queries",
    relevance_min: 0.0,
    as_shown: false,
    all_words: AllWords::Ignored,
    each: Each::NodeByOrder,
    order: Order::RelevanceAndAge,
    passages_each: SPARE,
    passages_min: DEEP,
};

/// Every policy.
pub const ALL: [Policy; 11] = [
    MEMORIES,
    ENTITIES,
    NOTES_OF_ENTITIES,
    TEXTS,
    DOCUMENTS,
    BESIDE_DOCUMENTS,
    ITEMS,
    EVERYTHING,
    CANDIDATES,
    MENTIONS,
    QUERIES,
];

impl Policy {
    /// The same with a threshold that the caller named.
    #[must_use]
    pub const fn from_relevance(self, relevance_min: f64) -> Self {
        Self {
            relevance_min,
            ..self
        }
    }

    /// Whether something as relevant as this is found.
    pub fn is_relevant(&self, relevance: f64) -> bool {
        let compared = match self.as_shown {
            true => score::rounded(relevance),
            false => relevance,
        };
        compared >= self.relevance_min
    }

    /// How many passages are looked at for so many answers.
    pub fn passages(&self, limit: usize) -> usize {
        let each = limit.saturating_mul(self.passages_each);
        each.max(self.passages_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_policy_has_a_name_and_a_threshold_that_can_be_reached() {
        let names: BTreeSet<&str> = ALL.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), ALL.len());
        for policy in ALL {
            assert!((0.0..=0.7).contains(&policy.relevance_min), "{policy:?}");
        }
    }

    #[test]
    fn a_small_page_is_looked_for_as_deep_as_one_of_twenty_five() {
        assert_eq!(ITEMS.passages(1), 100);
        assert_eq!(ITEMS.passages(26), 104);
        assert_eq!(TEXTS.passages(1), 4);
        assert_eq!(TEXTS.passages(usize::MAX), usize::MAX);
    }
}
