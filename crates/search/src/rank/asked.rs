//! A query on one index: every score that a passage gets.

use super::matches::Matches;
use super::model::Other;
use super::parse::{Parsed, beginning};
use super::rough::{Rough, Scale, fused};
use super::{Candidate, DEPTH, Mode, Query, sort};
use crate::index::{Admission, Index};
use crate::tokens;
use std::collections::{HashMap, HashSet};

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
/// What another model's cosine adds to the final order.
const MODEL_SHARE: f64 = 0.5;
/// So many of the nearest by another model are candidates too.
const MODEL_PROPOSED: usize = 100;

/// What a question just before a passage counts for in it.
const ASKED: f64 = 0.7;
/// What the passage before and the one after count for; half of it with each further step.
const BEFORE: f64 = 0.3;
const AFTER: f64 = 0.15;
const FADE: f64 = 0.5;
const REACH: usize = 3;
/// A passage with more tokens needs less of what stands around it.
const SHORT: f64 = 40.0;
/// Cosines of two passages from which on, and from which on fully, one counts in the other.
const ALIKE: (f64, f64) = (0.2, 0.5);
/// The share of the best score among so many before and after.
const NEAR: f64 = 0.2;
const NEAR_REACH: usize = 6;

/// A query on one index.
pub(super) struct Asked<'a> {
    pub(super) index: &'a Index,
    pub(super) query: &'a Query<'a>,
    pub(super) parsed: Parsed,
    pub(super) admission: Admission<'a>,
    /// Distinct terms of the query, with how often each is there.
    terms: Vec<(String, u32)>,
    /// The chosen model, where it has seen something to compare with.
    pub(super) other: Option<Other>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(index: &'a Index, query: &'a Query<'a>) -> Self {
        let text = beginning(query.text);
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
            parsed: Parsed::new(index, text),
            admission: index.admission(query.filter),
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

    /// The best by what the mode orders by, with exact cosines, best first; then, where they are
    /// re-ranked, those beside them in their threads and the nearest by another model. Also how many the
    /// former are.
    pub(super) fn candidates(&self, depth: usize) -> (Vec<Candidate>, usize) {
        let rough = Rough::of(self);
        let wanted = PROPOSED.max(4 * self.query.limit);
        let chosen = rough.best(wanted, self.query.mode);
        let scales = self.scales(&rough, &chosen);
        let mut found = self.exactly(&rough, &scales, &chosen);
        sort(&mut found, |it| it.by(self.query.mode));
        found.truncate(depth);
        let n = found.len();
        if self.query.mode == Mode::Hybrid {
            let further = self.further(&found);
            found.extend(self.exactly(&rough, &scales, &further));
        }
        (found, n)
    }

    /// What is re-ranked beside the best: their neighbors, and the nearest by another model.
    fn further(&self, found: &[Candidate]) -> Vec<u32> {
        let known: HashSet<u32> = found.iter().map(|it| it.at).collect();
        let beside = found.iter().flat_map(|it| self.same_thread(it.at, 1));
        let mut further: Vec<u32> = beside.map(|(at, _)| at).collect();
        further.extend(self.nearest_by_other_model());
        further.retain(|at| !known.contains(at) && self.admission.admits(*at as usize));
        further.sort_unstable();
        further.dedup();
        further
    }

    fn nearest_by_other_model(&self) -> Vec<u32> {
        let (Some(other), Some(query)) = (&self.index.other, self.query.vector) else {
            return Vec::new();
        };
        if other.model.dimensions != query.len() {
            return Vec::new();
        }
        let mut by_place = Vec::new();
        other.vectors.scan(query, &mut by_place);
        let places = other.places.iter().zip(0_u32..);
        let mut near: Vec<(f32, u32)> = places
            .filter(|(_, at)| self.admission.admits(*at as usize))
            .filter_map(|(place, at)| Some((*by_place.get(*place as usize)?, at)))
            .collect();
        near.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        near.truncate(MODEL_PROPOSED);
        near.into_iter().map(|it| it.1).collect()
    }

    /// What full text and cosines of all that were admitted are scaled by.
    pub(super) fn scales(&self, rough: &Rough, chosen: &[u32]) -> (Scale, Scale) {
        let n = rough.admitted.len();
        let cosines = chosen.iter().map(|&at| self.table_cosine(at as usize));
        let lowest_of_all = (chosen.len() < n).then_some(rough.lowest_cosine);
        let by_cosine = Scale::of(cosines.chain(lowest_of_all), n);
        (rough.by_text, by_cosine)
    }

    /// Candidates with exact cosines.
    pub(super) fn exactly(
        &self,
        rough: &Rough,
        scales: &(Scale, Scale),
        chosen: &[u32],
    ) -> Vec<Candidate> {
        let candidate = |&at: &u32| {
            let text = f64::from(rough.text[at as usize]);
            let by_table = self.table_cosine(at as usize);
            Candidate {
                at,
                text,
                cosine: self.cosine(at as usize, by_table),
                fused: fused(scales.0.apply(text), scales.1.apply(by_table)),
                score: 0.0,
            }
        };
        chosen.iter().map(candidate).collect()
    }

    pub(super) fn table_cosine(&self, at: usize) -> f64 {
        f64::from(self.index.vectors.cosine(at, &self.parsed.vector))
    }

    /// Puts the chosen model's rough cosines in place of the table's, where it has seen enough.
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

    /// The cosine that is told: by the chosen model where there is one, otherwise by the table.
    fn cosine(&self, at: usize, by_table: f64) -> f64 {
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

    /// Everything that scores of these passages are made of, their neighbors included.
    pub(super) fn matches(&self, found: &[Candidate]) -> Matches {
        let mut passages: Vec<u32> = found.iter().map(|it| it.at).collect();
        let around = found.iter().flat_map(|it| self.same_thread(it.at, REACH));
        passages.extend(around.map(|(at, _)| at));
        Matches::new(self, &passages)
    }

    /// Puts the candidates in their final order. Scores are scaled from the lowest of the first `n`.
    pub(super) fn rerank(&self, found: &mut [Candidate], n: usize, matches: &Matches) {
        let soft: Vec<f64> = found
            .iter()
            .map(|it| self.soft_bm25(it.at, matches))
            .collect();
        let by_soft = Scale::of_first(&soft, n);
        let all_fused: Vec<f64> = found.iter().map(|it| it.fused).collect();
        let by_fused = Scale::of_first(&all_fused, n);
        for (it, soft) in found.iter_mut().zip(soft) {
            it.score =
                SOFT_SHARE * by_soft.apply(soft) + (1.0 - SOFT_SHARE) * by_fused.apply(it.fused);
        }
        self.add_near(found);
        self.add_model(found);
        sort(found, |it| it.score);
    }

    /// Where passages follow one another, the right one often stands beside another good one.
    fn add_near(&self, found: &mut [Candidate]) {
        let own: HashMap<u32, f64> = found
            .iter()
            .map(|candidate| (candidate.at, candidate.score))
            .collect();
        for it in found {
            let near = self.same_thread(it.at, NEAR_REACH).into_iter();
            let near = near.filter_map(|(at, _)| own.get(&at).copied());
            it.score += NEAR * near.fold(it.score, f64::max);
        }
    }

    /// Another model is one more signal. A passage that it has not seen yet lacks it.
    fn add_model(&self, found: &mut [Candidate]) {
        let cosines: Vec<Option<f64>> = found
            .iter()
            .map(|it| self.model_cosine(it.at as usize))
            .collect();
        let known: Vec<f64> = cosines.iter().flatten().copied().collect();
        if known.is_empty() {
            return;
        }
        let scale = Scale::of_first(&known, known.len());
        for (it, cosine) in found.iter_mut().zip(cosines) {
            it.score += MODEL_SHARE * cosine.map_or(0.0, |cosine| scale.apply(cosine));
        }
    }

    /// The passages around one in its thread that were there at the moment that is asked for.
    fn same_thread(&self, at: u32, reach: usize) -> Vec<(u32, i32)> {
        let holds = |other: u32| self.admission.holds(other as usize);
        self.index.same_thread(at, reach, holds)
    }

    /// The passage just before one in its thread, if it holds a question.
    pub(super) fn question_before(&self, at: u32) -> Option<u32> {
        let near = self.same_thread(at, 1).into_iter();
        let mut before = near.filter(|&(other, step)| self.is_question_before(other, step));
        before.next().map(|it| it.0)
    }

    fn is_question_before(&self, other: u32, step: i32) -> bool {
        step == -1 && self.index.entries[other as usize].asks
    }

    /// What stands around a passage, and what it counts for there: less the further away and the less
    /// alike; a question just before counts most.
    fn around(&self, at: u32) -> Vec<(u32, f64)> {
        let beside = self.same_thread(at, REACH);
        if beside.is_empty() {
            return Vec::new();
        }
        let need = (SHORT / (self.index.tokens(at).len() as f64).max(1.0)).min(1.0);
        let vector = self.index.vectors.get(at as usize);
        let weight = |(other, step): (u32, i32)| {
            if self.is_question_before(other, step) {
                return (other, need * ASKED);
            }
            let cosine = f64::from(self.index.vectors.cosine(other as usize, &vector));
            let alike = ((cosine - ALIKE.0) / (ALIKE.1 - ALIKE.0)).clamp(0.0, 1.0);
            let side = if step < 0 { BEFORE } else { AFTER };
            (other, need * side * FADE.powi(step.abs() - 1) * alike)
        };
        beside.into_iter().map(weight).collect()
    }

    /// BM25 in which a token also occurs, partly, wherever a similar token does, and where a neighbor
    /// has it.
    fn soft_bm25(&self, at: u32, matches: &Matches) -> f64 {
        let mut frequency = matches.frequency(at).to_vec();
        let mut length = self.index.tokens(at).len() as f64;
        for (other, weight) in self.around(at) {
            for (own, near) in frequency.iter_mut().zip(matches.frequency(other)) {
                *own += weight * near;
            }
            length += weight * self.index.tokens(other).len() as f64;
        }
        let relative = length / self.index.mean_tokens().max(1e-9);
        let norm = SOFT_K1 * (1.0 - SOFT_B + SOFT_B * relative);
        let terms = frequency.iter().zip(&self.parsed.weight);
        terms
            .map(|(frequency, weight)| weight * frequency * (SOFT_K1 + 1.0) / (frequency + norm))
            .sum()
    }

    /// How many are re-ranked.
    pub(super) fn depth(&self) -> usize {
        DEPTH.max(self.query.limit)
    }
}
