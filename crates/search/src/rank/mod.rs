//! From a query to an answer.
//!
//! 0. [`respell`] spells words that stand nowhere as they stand somewhere (`Krueger`, `Krüger`).
//! 1. [`parse`] turns the query into tokens of the table and literal terms, with their weights.
//! 2. [`rough`] looks at every passage: full text and a rough cosine, fused.
//! 3. [`asked`] re-ranks the first hundred and those beside them in their threads by soft BM25, in which
//!    a word also occurs, partly, wherever a similar word does ([`matches`]) and where a neighbor has it.
//! 4. [`relevance`] makes of the scores a number between 0 and 1 that means the same for every query.
//!
//! The constants of fusion and re-ranking are a flat optimum: a third more or less in one of them moves
//! the mean over judged collections by less than a hundredth. Those of the spread matter most.

mod asked;
mod matches;
mod model;
mod parse;
mod relevance;
mod respell;
mod rough;

pub use parse::asks_for_something;
pub use relevance::order_by_relevance;

use crate::index::{Filter, Index};
use asked::Asked;
use kenning_core::NodeId;
use rough::Rough;
use std::collections::HashMap;

/// How many are re-ranked, unless more are asked for.
const DEPTH: usize = 100;

/// Where answers and the best of unrelated texts part.
const THRESHOLD: f64 = 0.7;

/// Which of the two ways finds candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Both, fused and re-ranked.
    #[default]
    Hybrid,
    /// Both, fused, and no more.
    Fused,
    /// Vectors only.
    Semantic,
    /// Full text only.
    FullText,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The search text, free form.
    pub text: &'a str,
    /// By which ways.
    pub mode: Mode,
    /// Among which passages.
    pub filter: &'a Filter,
    /// At most so many passages.
    pub limit: usize,
    /// The vector of the text by the model that was chosen, if there is one.
    pub vector: Option<&'a [f32]>,
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The node that has the passage.
    pub node: NodeId,
    /// Which passage of it.
    pub n: u32,
    /// What decided the order; comparable within one answer.
    pub score: f64,
    /// Between 0 and 1; 0.7 is where answers and the best of unrelated texts part.
    pub relevance: f64,
    /// The cosine of query and passage.
    pub cosine: f64,
    /// When the node was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Whether its node is called exactly as was asked, by its title or an alias.
    pub is_named: bool,
}

/// The scores of every admitted passage, stage by stage, for measuring.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// Which passages.
    pub passages: Vec<(NodeId, u32)>,
    /// Scores of the full text (BM25).
    pub full_text: Vec<f64>,
    /// Cosines of the vectors.
    pub vectors: Vec<f64>,
    /// The two fused.
    pub fused: Vec<f64>,
    /// The final order; what was not re-ranked stays behind.
    pub ranked: Vec<f64>,
}

/// What was found out about one passage.
#[derive(Clone, Copy)]
struct Candidate {
    at: u32,
    text: f64,
    cosine: f64,
    fused: f64,
    score: f64,
}

impl Candidate {
    /// Of a passage that was found otherwise than by its scores.
    fn unscored(at: u32, cosine: f64) -> Self {
        Self {
            at,
            text: 0.0,
            cosine,
            fused: 0.0,
            score: 0.0,
        }
    }

    /// What a mode orders by, before re-ranking.
    fn by(&self, mode: Mode) -> f64 {
        match mode {
            Mode::Hybrid | Mode::Fused => self.fused,
            Mode::Semantic => self.cosine,
            Mode::FullText => self.text,
        }
    }
}

impl Index {
    /// The best passages, best first. What is called exactly as was asked comes before all others.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit> {
        let text = self.respelled(query.text);
        let query = &Query {
            text: &text,
            ..*query
        };
        let asked = Asked::new(self, query);
        let (mut found, n) = asked.candidates(asked.depth());
        let named = match query.mode {
            Mode::Hybrid => self.named_and_found(&asked, &mut found),
            Mode::Fused | Mode::Semantic | Mode::FullText => Vec::new(),
        };
        let matches = asked.matches(&found);
        if query.mode == Mode::Hybrid {
            asked.rerank(&mut found, n, &matches);
        } else {
            for it in &mut found {
                it.score = it.by(query.mode);
            }
            found.retain(|it| query.mode == Mode::Fused || it.score > 0.0);
        }
        let mut hits = asked.hits(&named, &found, &matches);
        hits.truncate(query.limit);
        hits
    }

    /// Those that are called as was asked, each among the candidates.
    fn named_and_found(&self, asked: &Asked<'_>, found: &mut Vec<Candidate>) -> Vec<u32> {
        let mut named: Vec<u32> = self.named(asked.query.text).collect();
        named.retain(|&at| asked.admission.admits(at as usize));
        named.sort_unstable();
        for &at in &named {
            if !found.iter().any(|it| it.at == at) {
                found.push(Candidate::unscored(at, asked.table_cosine(at as usize)));
            }
        }
        named
    }

    /// The passages around one in its thread, at most so many on each side, in order: which, and how far
    /// before (negative) or after it stands.
    pub fn around(
        &self,
        node: NodeId,
        n: u32,
        reach: usize,
        filter: &Filter,
    ) -> Vec<(NodeId, u32, i32)> {
        let all = self.passages_of(node).iter();
        let Some(&at) = all.clone().find(|&&at| self.entries[at as usize].n == n) else {
            return Vec::new();
        };
        let admission = self.admission(filter);
        let mut near = self.same_thread(at, reach, |other| admission.admits(other as usize));
        near.sort_by_key(|it| it.1);
        let near = near
            .into_iter()
            .map(|(at, step)| (&self.entries[at as usize], step));
        near.map(|(entry, step)| (entry.node, entry.n, step))
            .collect()
    }

    /// Nodes whose beginnings are most like that of `node`, by the built-in table, with their cosines.
    pub fn alike(&self, node: NodeId, filter: &Filter, limit: usize) -> Vec<(NodeId, f64)> {
        let Some(at) = self.first_passage(node) else {
            return Vec::new();
        };
        let vector = self.vectors.get(at as usize);
        let admission = self.admission(filter);
        let mut near: Vec<(NodeId, f64)> = self
            .sharing_rare_terms(at)
            .into_iter()
            .filter(|&other| admission.admits(other as usize))
            .map(|other| (other, &self.entries[other as usize]))
            .filter(|(_, it)| it.n == 0 && it.node != node)
            .map(|(other, it)| {
                (
                    it.node,
                    f64::from(self.vectors.cosine(other as usize, &vector)),
                )
            })
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        near.truncate(limit);
        near
    }

    /// The nodes that are nearest to a vector of the chosen model, with their cosines, best first. The
    /// built-in table does not stand in for those that it has not seen.
    pub fn nearest_by_model(
        &self,
        vector: &[f32],
        filter: &Filter,
        limit: usize,
    ) -> Vec<(NodeId, f64)> {
        let Some(other) = &self.other else {
            return Vec::new();
        };
        if other.model.dimensions != vector.len() {
            return Vec::new();
        }
        let mut rough = Vec::new();
        other.vectors.scan(vector, &mut rough);
        let admission = self.admission(filter);
        let admitted = (0..self.entries.len()).filter(|&at| admission.admits(at));
        let mut near: Vec<(usize, usize)> = admitted
            .filter_map(|at| Some((at, self.other_vector(at)?.1)))
            .collect();
        near.sort_by(|a, b| rough[b.1].total_cmp(&rough[a.1]).then(a.0.cmp(&b.0)));
        near.truncate(limit.saturating_mul(4));
        let mut best: Vec<(NodeId, f64)> = Vec::new();
        for (at, place) in near {
            let node = self.entries[at].node;
            let cosine = f64::from(other.vectors.cosine(place, vector));
            match best.iter_mut().find(|it| it.0 == node) {
                Some(it) => it.1 = it.1.max(cosine),
                None => best.push((node, cosine)),
            }
        }
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.truncate(limit);
        best
    }

    /// How well a node answers a query, by its best passage, whatever else there is.
    pub fn relevance(&self, query: &Query<'_>, node: NodeId) -> f64 {
        let text = self.respelled(query.text);
        let query = &Query {
            text: &text,
            ..*query
        };
        let asked = Asked::new(self, query);
        let passages = self.passages_of(node).iter();
        let passages: Vec<Candidate> = passages
            .map(|&at| Candidate::unscored(at, asked.table_cosine(at as usize)))
            .collect();
        let matches = asked.matches(&passages);
        let each = passages.iter().map(|it| asked.calibrated(it.at, &matches));
        each.fold(0.0, f64::max)
    }

    /// The scores of every admitted passage after each stage.
    pub fn stages(&self, query: &Query<'_>) -> Stages {
        let asked = Asked::new(self, query);
        let rough = Rough::of(&asked);
        let scales = asked.scales(&rough, &rough.admitted);
        let mut all = asked.exactly(&rough, &scales, &rough.admitted);
        let (mut found, n) = asked.candidates(DEPTH);
        let matches = asked.matches(&found);
        asked.rerank(&mut found, n, &matches);
        let ranked: HashMap<u32, f64> = found
            .iter()
            .map(|candidate| (candidate.at, candidate.score))
            .collect();
        for it in &mut all {
            it.score = ranked.get(&it.at).copied().unwrap_or(it.fused - 10.0);
        }
        all.sort_by_key(|it| it.at);
        let mut out = Stages::default();
        for it in &all {
            let entry = &self.entries[it.at as usize];
            out.passages.push((entry.node, entry.n));
            out.full_text.push(it.text);
            out.vectors.push(it.cosine);
            out.fused.push(it.fused);
            out.ranked.push(it.score);
        }
        out
    }
}

/// Best first; equals in the order in which they came.
fn sort(found: &mut [Candidate], key: impl Fn(&Candidate) -> f64) {
    found.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.at.cmp(&b.at)));
}
