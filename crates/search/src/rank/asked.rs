//! A query in the numbers of one index: every score that a passage gets.

use super::model::{Other, logistic};
use super::rough::{Rough, Scale, fused};
use super::similar::Similarities;
use super::{Candidate, Hit, Query, THRESHOLD, sort};
use crate::index::Index;
use crate::tokens;
use kenning_embed::TokenId;
use std::collections::HashMap;

/// BM25 of the full text.
const TEXT_K1: f64 = 1.2;
const TEXT_B: f64 = 0.75;
/// How many the scan proposes before the exact cosine decides.
const PROPOSED: usize = 400;
/// Soft BM25.
const SOFT_K1: f64 = 0.6;
const SOFT_B: f64 = 0.5;
/// The share of soft BM25 in the final order.
const SOFT_SHARE: f64 = 0.7;
/// What a passage gains from the score of its neighbors.
const NEIGHBOUR_SHARE: f64 = 0.3;
/// Relevance of the built-in table: cosine, coverage, ln(1 + tokens), constant.
const RELEVANCE: [f64; 4] = [9.374, 10.258, -0.676, -4.326];

/// Words of a query that count: nobody asks in more, and each is compared with every candidate's.
const QUERY_TOKENS_MAX: usize = 128;
const QUERY_BYTES_MAX: usize = 4_096;

/// A query in the numbers of one index.
pub(super) struct Asked<'a> {
    pub(super) index: &'a Index,
    pub(super) query: &'a Query<'a>,
    pub(super) ids: Vec<TokenId>,
    /// How much each of `ids` tells: its rarity here times the length of its row.
    pub(super) importance: Vec<f64>,
    pub(super) vector: Vec<f32>,
    /// Distinct terms of the query, with how often each is there.
    pub(super) terms: Vec<(String, u32)>,
    /// The chosen model, where it has seen enough to answer.
    pub(super) other: Option<Other>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(index: &'a Index, query: &'a Query<'a>) -> Self {
        let text = beginning(query.text);
        let mut ids = index.table.ids(text);
        ids.truncate(QUERY_TOKENS_MAX);
        let rarity: Vec<f64> = ids.iter().map(|&id| index.token_rarity(id)).collect();
        let weights: Vec<f32> = rarity.iter().map(|it| it.sqrt() as f32).collect();
        let importance = ids
            .iter()
            .zip(&rarity)
            .map(|(&id, rarity)| rarity * f64::from(index.table.norm(id)))
            .collect();
        let vector = index.table.query(&ids, &weights).to_vec();
        let mut terms: Vec<(String, u32)> = Vec::new();
        for word in tokens(text) {
            match terms.iter_mut().find(|it| it.0 == word) {
                Some(known) => known.1 += 1,
                None => terms.push((word, 1)),
            }
        }
        let mut asked = Self {
            index,
            query,
            ids,
            importance,
            vector,
            terms,
            other: None,
        };
        asked.other = Other::of(&asked);
        asked
    }

    /// The cosine by the model that was chosen, where both vectors are there.
    pub(super) fn model_cosine(&self, at: usize) -> Option<f64> {
        let query = self.query.vector?;
        let (other, found) = self.index.other_vector(at)?;
        (other.model.dimensions == query.len())
            .then(|| f64::from(other.vectors.cosine(found, query)))
    }

    /// The best by what the mode orders by, with exact cosines, best first.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let rough = Rough::of(self);
        let wanted = PROPOSED.max(4 * self.query.limit);
        let chosen = rough.best(wanted, self.query.mode);
        let mut found = self.exactly(&rough, &chosen);
        sort(&mut found, |it| it.fused);
        found
    }

    /// Candidates with exact cosines, their scores scaled as over all that were admitted.
    pub(super) fn exactly(&self, rough: &Rough, chosen: &[u32]) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = chosen
            .iter()
            .map(|&at| Candidate {
                at,
                text: f64::from(rough.text[at as usize]),
                cosine: self.cosine(at as usize, self.table_cosine(at as usize)),
                fused: 0.0,
                score: 0.0,
            })
            .collect();
        let mut by_cosine = Scale::of(found.iter().map(|it| it.cosine));
        if chosen.len() < rough.admitted.len() {
            by_cosine = by_cosine.down_to(rough.by_cosine.low);
        }
        for it in &mut found {
            it.fused = fused(rough.by_text.apply(it.text), by_cosine.apply(it.cosine));
        }
        found
    }

    pub(super) fn table_cosine(&self, at: usize) -> f64 {
        f64::from(self.index.vectors.cosine(at, &self.vector))
    }

    /// Puts the chosen model's rough cosines in place of the table's, where it answers.
    pub(super) fn put_model_cosines(&self, cosines: &mut [f32]) {
        let (Some(model), Some(query)) = (&self.other, self.query.vector) else {
            return;
        };
        let Some(other) = &self.index.other else {
            return;
        };
        let mut by_place = Vec::new();
        other.vectors.scan(query, &mut by_place);
        for (at, cosine) in cosines.iter_mut().enumerate() {
            *cosine = match self.index.other_vector(at) {
                Some((_, place)) => by_place[place],
                None => model.estimate(f64::from(*cosine)) as f32,
            };
        }
    }

    /// The cosine that counts: by the chosen model where there is one, otherwise by the table.
    pub(super) fn cosine(&self, at: usize, by_table: f64) -> f64 {
        match &self.other {
            None => by_table,
            Some(other) => {
                let by_model = self.model_cosine(at);
                by_model.unwrap_or_else(|| other.estimate(by_table))
            }
        }
    }

    /// BM25 of every passage; a word that the query repeats counts again.
    pub(super) fn text_scores(&self) -> Vec<f32> {
        let index = self.index;
        let mut scores = vec![0.0_f32; index.entries.len()];
        let per_term = TEXT_K1 * TEXT_B / index.mean_terms().max(1e-9);
        let (fixed, per_term) = ((TEXT_K1 * (1.0 - TEXT_B)) as f32, per_term as f32);
        for (word, times) in &self.terms {
            let Some((term, frequency)) = index.term(word) else {
                continue;
            };
            let weight = index.rarity(frequency) * f64::from(*times) * (TEXT_K1 + 1.0);
            let weight = weight as f32;
            for posting in &index.postings[term] {
                let at = posting.entry as usize;
                let count = posting.count as f32;
                let norm = fixed + per_term * index.lengths[at];
                scores[at] += weight * count / (count + norm);
            }
        }
        scores
    }

    /// How relevant the words alone make a passage.
    ///
    /// One that has every term of the query literally is an answer. Where the table knows no word of the
    /// query at all (another script, symbols), the words are all there is: the share of them that the
    /// passage has counts, and the more of the passage they are, the better.
    fn literal(&self, at: u32) -> f64 {
        let index = self.index;
        let has = |word: &str| {
            index.term(word).is_some_and(|(term, _)| {
                let postings = &index.postings[term];
                postings.binary_search_by_key(&at, |it| it.entry).is_ok()
            })
        };
        let (asked, found) = (
            self.terms.len(),
            self.terms.iter().filter(|it| has(&it.0)).count(),
        );
        let share = found as f64 / asked.max(1) as f64;
        if !self.ids.is_empty() {
            return if asked > 0 && found == asked {
                THRESHOLD
            } else {
                0.0
            };
        }
        let of_passage = found as f64 / f64::from(index.entries[at as usize].distinct.max(1));
        if found == asked && asked > 0 {
            THRESHOLD + (1.0 - THRESHOLD) * of_passage.min(1.0)
        } else {
            THRESHOLD * share
        }
    }

    /// Puts the candidates in their final order.
    pub(super) fn rerank(&self, found: &mut [Candidate]) {
        let similar = Similarities::new(self, found);
        let soft: Vec<f64> = found
            .iter()
            .map(|it| self.soft_bm25(it.at, &similar))
            .collect();
        let by_soft = Scale::of(soft.iter().copied());
        let by_fused = Scale::of(found.iter().map(|it| it.fused));
        for (it, soft) in found.iter_mut().zip(soft) {
            let (soft, fused) = (by_soft.apply(soft), by_fused.apply(it.fused));
            it.score = SOFT_SHARE * soft + (1.0 - SOFT_SHARE) * fused;
        }
        self.add_neighbours(found);
        sort(found, |it| it.score);
    }

    /// Where passages follow one another, the right one often stands beside another good one.
    pub(super) fn add_neighbours(&self, found: &mut [Candidate]) {
        let alone: HashMap<u32, f64> = found.iter().map(|it| (it.at, it.score)).collect();
        for it in found {
            for step in [-1, 1] {
                let beside = self
                    .index
                    .neighbour(it.at, step)
                    .and_then(|at| alone.get(&at));
                it.score += NEIGHBOUR_SHARE * beside.copied().unwrap_or(0.0);
            }
        }
    }

    /// BM25 in which a token also occurs, partly, wherever a similar token does.
    pub(super) fn soft_bm25(&self, at: u32, similar: &Similarities) -> f64 {
        let ids = self.index.tokens(at);
        if ids.is_empty() {
            return 0.0;
        }
        let relative = ids.len() as f64 / self.index.mean_tokens().max(1e-9);
        let norm = SOFT_K1 * (1.0 - SOFT_B + SOFT_B * relative);
        let mut sums = vec![0.0_f64; self.ids.len()];
        for &id in ids {
            for (sum, part) in sums.iter_mut().zip(similar.parts(id)) {
                *sum += f64::from(*part);
            }
        }
        let terms = sums.iter().zip(&self.importance);
        terms
            .map(|(tf, importance)| importance * tf * (SOFT_K1 + 1.0) / (tf + norm))
            .sum()
    }

    /// The relevance of one passage by itself, between 0 and 1.
    pub(super) fn relevance(&self, it: &Candidate, similar: &Similarities) -> f64 {
        let ids = self.index.tokens(it.at);
        let literal = self.literal(it.at);
        if self.ids.is_empty() || ids.is_empty() {
            return literal;
        }
        let mut best = vec![0.0_f32; self.ids.len()];
        for &id in ids {
            for (best, cosine) in best.iter_mut().zip(similar.cosines(id)) {
                *best = best.max(*cosine);
            }
        }
        let weight: f64 = self.importance.iter().sum();
        let covered: f64 = best
            .iter()
            .zip(&self.importance)
            .map(|(best, weight)| f64::from(*best) * weight)
            .sum();
        let coverage = covered / weight.max(1e-9);
        let [a, b, c, d] = RELEVANCE;
        let length = (1.0 + ids.len() as f64).ln();
        let z = a * self.table_cosine(it.at as usize) + b * coverage + c * length + d;
        let by_model = self
            .other
            .as_ref()
            .and_then(|other| Some(other.relevance(self.model_cosine(it.at as usize)?)));
        logistic(z).max(literal).max(by_model.unwrap_or(0.0))
    }

    /// Relevance never rises along the ranking, so that sorting by it keeps the order.
    pub(super) fn hits(&self, found: &[Candidate]) -> Vec<Hit> {
        let similar = Similarities::new(self, found);
        let mut hits: Vec<Hit> = found
            .iter()
            .map(|it| {
                let entry = &self.index.entries[it.at as usize];
                Hit {
                    node: entry.node,
                    n: entry.n,
                    score: it.score,
                    relevance: self.relevance(it, &similar),
                    cosine: it.cosine,
                    created_ms: entry.created_ms,
                }
            })
            .collect();
        let mut below = 0.0_f64;
        for hit in hits.iter_mut().rev() {
            below = below.max(hit.relevance);
            hit.relevance = below;
        }
        hits
    }
}

/// As much of a query as counts.
fn beginning(text: &str) -> &str {
    let end = (0..=QUERY_BYTES_MAX.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i));
    &text[..end.unwrap_or(0)]
}
