//! The one way from a query to what answers it.
//!
//! A call makes a [`Question`] of its query: the model that was chosen is asked then, once, and before any
//! transaction. In a transaction [`Kernel::search`] gives a [`Search`] over the index as it is in that
//! snapshot, and [`Search::find`] answers. What one caller wants otherwise than another is a [`Policy`].

pub mod policy;

pub use policy::Policy;

use crate::Kernel;
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_embed::Model;
use kenning_search::{Filter, Hit, Index, IndexState, Mode, Query, Searcher, order_by_relevance};
use kenning_store::{Passage, ReadTx};
use policy::{AllWords, Each, Order};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// The passage of a hit that ranking made nothing of.
pub const UNRANKED: u32 = u32::MAX;

/// Whoever writes a text of this size takes it into the index before the call is answered.
const LONG_TEXT_BYTES: usize = 64 * 1024;

/// A query, and what the model that was chosen makes of it.
#[derive(Clone, Debug, Default)]
pub struct Question {
    text: String,
    model: Option<Model>,
    vector: Option<Vec<f32>>,
    remark: Option<String>,
}

impl Question {
    /// A query that no model is asked about.
    pub fn of_words(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// In the caller's words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its vector by the model that was chosen.
    pub fn vector(&self) -> Option<&[f32]> {
        self.vector.as_deref()
    }

    /// Whether a model was chosen, whether it answered or not.
    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Why the built-in table answers in place of the model, if it does.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }
}

/// How relevant a hit is, where something counts that ranking does not know.
pub type Weigh<'a> = &'a dyn Fn(&Hit) -> Result<f64>;

/// What to find.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Among which passages: what one of these admits is found.
    pub filters: &'a [Filter],
    /// So many answers are wanted. More may be found.
    pub limit: usize,
    /// By which ways.
    pub mode: Mode,
    /// What is found, and in which order.
    pub policy: &'a Policy,
    /// For the age of a hit, in milliseconds since 1970.
    pub now_ms: u64,
    /// Whether a node may be found that the filters admit.
    pub admits: Option<&'a dyn Fn(NodeId) -> bool>,
    /// Changes the relevance of a hit before hits are put in order.
    pub weigh: Option<Weigh<'a>>,
}

impl<'a> Wanted<'a> {
    /// By words and meanings.
    pub fn new(policy: &'a Policy, filters: &'a [Filter], limit: usize, now_ms: u64) -> Self {
        Self {
            filters,
            limit,
            mode: Mode::Hybrid,
            policy,
            now_ms,
            admits: None,
            weigh: None,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// In the order of the policy.
    pub hits: Vec<Hit>,
    /// Whether a node has every word of the query.
    pub has_all_words: bool,
    /// Passages that ranking found, before the policy left some out.
    pub n_ranked: usize,
}

/// The index of a space as it is in one snapshot, and a question to it.
pub struct Search<'a> {
    index: &'a Index,
    question: &'a Question,
}

/// Finds nodes whose texts are alike. Cheap to clone, for work in the background.
#[derive(Clone)]
pub struct Alike(Arc<Searcher>);

impl Alike {
    /// Nodes that are at least so similar to one, by the built-in table, the most similar first.
    pub fn find(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        node: NodeId,
        wanted: (&Filter, usize),
        similarity_min: f64,
    ) -> Result<Vec<(NodeId, f64)>> {
        let (filter, limit) = wanted;
        let search = |index: &Index| index.alike(node, filter, limit);
        let mut found = self.0.with(space, tx, None, search)?;
        found.retain(|it| it.1 >= similarity_min);
        Ok(found)
    }
}

impl Kernel {
    /// What finds nodes whose texts are alike.
    pub fn alike(&self) -> Alike {
        Alike(Arc::clone(self.searcher()))
    }

    /// The vector of a node by the built-in table.
    pub fn table_vector(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        node: NodeId,
    ) -> Result<Option<Vec<f32>>> {
        self.searcher()
            .with(space, tx, None, |index| index.table_vector(node))
    }

    /// Of these nodes, how many passages the model has not embedded yet.
    pub fn n_lacking(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        model: &Model,
        is_counted: impl Fn(NodeId) -> bool,
    ) -> Result<u64> {
        self.searcher().with(space, tx, Some(model), |index| {
            let lacking = index.lacking(usize::MAX);
            lacking.iter().filter(|it| is_counted(it.0)).count() as u64
        })
    }

    /// Makes a question of a query. If a model was chosen it is asked here, and may take seconds: so no
    /// transaction may be open.
    pub fn question(&self, text: &str) -> Question {
        debug_assert!(
            !kenning_audit::is_in_transaction(),
            "a model is asked while a transaction is open"
        );
        let model = self.chosen_model();
        let (vector, remark) = self.query_vector(text);
        Question {
            text: text.to_owned(),
            model,
            vector,
            remark,
        }
    }

    /// Prepares the passages of a document of so many bytes, which is about to be written, if it is long and this
    /// process searches the space: from the moment on that it is stored, whoever searches must take it in.
    pub(crate) fn prepare_search(
        &self,
        space: &Space,
        title: &str,
        passages: &[Passage],
        n_bytes: usize,
    ) {
        if n_bytes >= LONG_TEXT_BYTES {
            self.searcher()
                .prepare(space, Kind::Document, title, passages);
        }
    }

    /// Takes a text of so many bytes, which was just written, into the index if it is long and this process
    /// searches the space: so whoever writes much takes the time for it, and not the next who searches.
    pub fn catch_up(&self, space: &Space, n_bytes: usize) {
        if n_bytes < LONG_TEXT_BYTES {
            return;
        }
        let model = self.chosen_model();
        let done = self.log().read(space, |tx| {
            self.searcher().catch_up(space, tx, model.as_ref())
        });
        // What was written is safe: the next search takes it in.
        if let Err(error) = done {
            tracing::debug!("space {space}: the index was not brought up to date: {error}");
        }
    }

    /// Runs `work` with a question to the index of a space as it is in this snapshot.
    pub fn search<T>(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        question: &Question,
        work: impl FnOnce(&Search<'_>) -> T,
    ) -> Result<T> {
        let done = self.search_until(space, tx, question, None, work)?;
        Ok(done.0)
    }

    /// As [`Kernel::search`], for a caller who cannot wait: after `until` what has been taken in so far is
    /// searched, and the answer says how far that is.
    pub fn search_until<T>(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        question: &Question,
        until: Option<Instant>,
        work: impl FnOnce(&Search<'_>) -> T,
    ) -> Result<(T, IndexState)> {
        let model = question.model.as_ref();
        let work = |index: &Index| work(&Search { index, question });
        self.searcher().with_until(space, tx, model, until, work)
    }
}

impl Search<'_> {
    /// What answers the question.
    pub fn find(&self, wanted: &Wanted<'_>) -> Result<Found> {
        let policy = wanted.policy;
        let limit = policy.passages(wanted.limit);
        let admits = |node: NodeId| wanted.admits.is_none_or(|admits| admits(node));
        let mut found = Found::default();
        let mut last: Vec<Hit> = Vec::new();
        let mut seen = HashSet::new();
        for filter in wanted.filters {
            let complete = match policy.all_words {
                AllWords::Ignored => None,
                _ => Some(self.index.nodes_with_all_words(&self.question.text, filter)),
            };
            let has_all_words =
                |node: NodeId| complete.as_ref().is_some_and(|it| it.contains(node));
            let is_any_complete = match (&complete, wanted.admits) {
                (None, _) => false,
                (Some(complete), None) => !complete.is_empty(),
                (Some(complete), Some(_)) => complete.iter().any(admits),
            };
            found.has_all_words |= is_any_complete;
            let only_complete = policy.all_words == AllWords::Only && is_any_complete;
            let ranked = self.index.search(&Query {
                text: &self.question.text,
                mode: wanted.mode,
                filter,
                limit,
                vector: self.question.vector(),
            });
            found.n_ranked += ranked.len();
            let mut ranked_nodes = HashSet::new();
            for mut hit in ranked {
                let node = hit.node;
                let is_relevant = !only_complete && policy.is_relevant(hit.relevance);
                if !(is_relevant || has_all_words(node)) || !admits(node) {
                    continue;
                }
                ranked_nodes.insert(node);
                if policy.each == Each::NodeByScore && !seen.insert(node) {
                    continue;
                }
                if let Some(weigh) = wanted.weigh {
                    hit.relevance = weigh(&hit)?;
                }
                found.hits.push(hit);
            }
            // Words that ranking makes nothing of are found all the same, where they stand.
            let rest = complete.iter().flat_map(|it| it.iter());
            let rest = rest.filter(|node| !ranked_nodes.contains(node) && admits(*node));
            match policy.all_words {
                AllWords::Ignored => {}
                AllWords::AmongRanked => {
                    let rest = rest.take(limit);
                    found
                        .hits
                        .extend(rest.map(|it| unranked(it, policy.relevance_min)));
                }
                AllWords::AfterRanked | AllWords::Only => {
                    let is_new = |it: &NodeId| policy.each == Each::Passage || seen.insert(*it);
                    last.extend(rest.filter(is_new).map(|it| unranked(it, 0.0)));
                }
            }
        }
        if policy.order == Order::RelevanceAndAge {
            order_by_relevance(&mut found.hits, wanted.now_ms);
        }
        if policy.each == Each::NodeByOrder {
            let mut seen = HashSet::new();
            found.hits.retain(|it| seen.insert(it.node));
        }
        found.hits.extend(last);
        Ok(found)
    }

    /// Nodes of these kinds that have every word of a text.
    pub fn nodes_with_all_words(&self, text: &str, kinds: &[Kind]) -> Vec<NodeId> {
        let filter = Filter {
            kinds: kinds.to_vec(),
            ..Filter::default()
        };
        let found = self.index.nodes_with_all_words(text, &filter);
        found.iter().collect()
    }

    /// The nodes nearest to the question by the model that was chosen, with their cosines; none if it did not
    /// answer. The built-in table does not stand in for it.
    pub fn nearest_by_model(&self, filter: &Filter, limit: usize) -> Vec<(NodeId, f64)> {
        match self.question.vector() {
            Some(vector) => self.index.nearest_by_model(vector, filter, limit),
            None => Vec::new(),
        }
    }

    /// Whether a node has a word of the question.
    pub fn shares_a_word(&self, node: NodeId) -> bool {
        self.index.shares_a_word(&self.question.text, node)
    }

    /// The nodes around a passage in its thread, at most so many on each side, and how far they stand.
    pub fn around(
        &self,
        node: NodeId,
        passage: u32,
        reach: usize,
        filter: &Filter,
    ) -> Vec<(NodeId, i32)> {
        let near = self.index.around(node, passage, reach, filter);
        let mut seen = HashSet::from([node]);
        let others = near.into_iter().filter(|it| seen.insert(it.0));
        others.map(|(node, _, step)| (node, step)).collect()
    }

    /// Whether a rough look at all vectors came before the exact one.
    pub fn is_sketched(&self) -> bool {
        self.index.is_sketched()
    }
}

fn unranked(node: NodeId, relevance: f64) -> Hit {
    Hit {
        node,
        n: UNRANKED,
        score: 0.0,
        relevance,
        cosine: 0.0,
        created_ms: 0,
        is_named: false,
    }
}
