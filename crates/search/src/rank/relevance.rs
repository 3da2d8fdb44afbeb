//! From scores to a relevance that means the same for every query.

use super::asked::Asked;
use super::matches::{Matches, count};
use super::model::logistic;
use super::parse::{NUMBER, Term};
use super::{Candidate, Hit, THRESHOLD};
use std::collections::HashSet;

/// Cosine, coverage, ln(1 + tokens), constant: fitted on judged pairs and off-topic questions.
const CALIBRATION: [f64; 4] = [9.374, 10.258, -0.676, -4.326];
/// What the coverage of literal terms counts for in place of a cosine, which they have none of.
const LITERAL_COSINE: f64 = 0.6;
/// What a question just before counts for in the relevance of a reply.
const REPLY: f64 = 0.8;
/// A query that asks for nothing may find, but never pass.
const FILLER_Z_MAX: f64 = -2.0;

/// An identifier that at most so many passages have is rare enough to be meant.
const RARE_IDENTIFIER: usize = 10;

/// About so many answers reach the threshold.
const SHOWN: usize = 10;
/// The least and the greatest closeness that may be the mark.
const MARK: (f64, f64) = (0.4, 0.85);
/// How steeply relevance falls behind the mark.
const STEEP: i32 = 8;
/// The closeness of others where something is called exactly as was asked.
const UNNAMED: f64 = 0.85;

/// What recency adds where answers are ordered by relevance: it decides among near-equals.
const NEWER: f64 = 0.05;
const RECENCY_DAYS: f64 = 30.0;
const DAY_MS: f64 = 86_400_000.0;

/// What answers are ordered by where nothing else is asked for: relevance, and among near-equals the
/// newer one. What is called exactly as was asked stays first.
pub fn order_by_relevance(hits: &mut [Hit], now_ms: u64) {
    let key = |hit: &Hit| {
        let age_days = now_ms.saturating_sub(hit.created_ms) as f64 / DAY_MS;
        hit.relevance + NEWER * (-age_days / RECENCY_DAYS).exp()
    };
    hits.sort_by(|a, b| (b.is_named.cmp(&a.is_named)).then(key(b).total_cmp(&key(a))));
}

impl Asked<'_> {
    /// The calibrated value of one passage by itself, between 0 and 1: 0.7 is where answers and the best
    /// of unrelated texts part.
    pub(super) fn calibrated(&self, at: u32, matches: &Matches) -> f64 {
        let parsed = &self.parsed;
        if parsed.is_empty() {
            return 0.0;
        }
        let mut best = matches.best(at).to_vec();
        let mut cosine = self.table_cosine(at as usize);
        if let Some(question) = self.question_before(at) {
            for (own, asked) in best.iter_mut().zip(matches.best(question)) {
                *own = own.max(REPLY * asked);
            }
            cosine = cosine.max(REPLY * self.table_cosine(question as usize));
        }
        let n = parsed.soft.len();
        let part = |k: usize| parsed.weight[k] * best[k] / parsed.weight_sum;
        let by_literals: f64 = (n..best.len()).map(part).sum();
        let coverage = (0..n.min(best.len())).map(part).sum::<f64>() + by_literals;
        let lost = parsed.soft.iter().zip(&best).zip(&parsed.weight);
        let lost = lost.filter(|((token, best), _)| token.share == NUMBER && **best < 1.0);
        let lost: f64 = lost.map(|(_, weight)| weight / parsed.weight_sum).sum();
        let cosine = (1.0 - parsed.foreign) * (1.0 - lost) * cosine + LITERAL_COSINE * by_literals;
        let [a, b, c, d] = CALIBRATION;
        let length = (1.0 + self.index.tokens(at).len() as f64).ln();
        let mut z = a * cosine + b * coverage + c * length + d;
        if parsed.terms().all(|term| count(self.index, term, at) > 0) {
            z = z.max(0.0);
        }
        if !parsed.has_content {
            z = z.min(FILLER_Z_MAX);
        }
        let by_model = self.other.as_ref().filter(|_| parsed.has_content);
        let by_model =
            by_model.and_then(|other| Some(other.relevance(self.model_cosine(at as usize)?)));
        logistic(z).max(by_model.unwrap_or(0.0))
    }

    /// Whether a rare identifier of the query stands in a passage to the letter: however much else is
    /// said around it, that is what was asked for.
    fn has_rare_identifier(&self, at: u32) -> bool {
        let is_rare = |term: &usize| self.index.postings[*term].len() <= RARE_IDENTIFIER;
        let stands_here = |terms: &Vec<Term>| {
            terms.iter().all(|&term| count(self.index, term, at) > 0)
                && terms.iter().flatten().any(is_rare)
        };
        self.parsed.identifiers.iter().any(stands_here)
    }

    /// The answers in their order, each with its relevance. `found` is best first; `named` are those that
    /// are called exactly as was asked, and come before all others.
    pub(super) fn hits(&self, named: &[u32], found: &[Candidate], matches: &Matches) -> Vec<Hit> {
        let best = found
            .iter()
            .map(|it| it.score)
            .fold(f64::NEG_INFINITY, f64::max);
        let is_named = |it: &&Candidate| named.contains(&it.at);
        let first = named
            .iter()
            .filter_map(|at| found.iter().find(|it| it.at == *at));
        let order: Vec<&Candidate> = first
            .chain(found.iter().filter(|it| !is_named(it)))
            .collect();
        let n = named.len();
        // The tenth node, and not the tenth passage, marks the end: a long text has many passages.
        let mut seen = HashSet::new();
        let last = order.iter().take_while(|it| {
            let is_new = !seen.contains(&self.index.entries[it.at as usize].node);
            let goes_on = seen.len() < SHOWN || !is_new;
            seen.insert(self.index.entries[it.at as usize].node);
            goes_on
        });
        let shown = last.count();
        let mut raised: Vec<f64> = order
            .iter()
            .map(|it| self.calibrated(it.at, matches))
            .collect();
        raised.iter_mut().take(n).for_each(|value| *value = 1.0);
        for i in (1..shown).rev() {
            raised[i - 1] = raised[i - 1].max(raised[i]);
        }
        let closeness = |i: usize| match i {
            _ if i < n => 1.0,
            _ if n > 0 => UNNAMED * order[i].score / best.max(1e-9),
            _ => 1.0 - (best - order[i].score) / best.max(1e-9),
        };
        let mark = shown.checked_sub(1).map_or(MARK.0, closeness);
        let mark = mark.clamp(MARK.0, MARK.1);
        let hit = |(i, it): (usize, &&Candidate)| {
            let entry = &self.index.entries[it.at as usize];
            Hit {
                node: entry.node,
                n: entry.n,
                score: it.score,
                relevance: match self.has_rare_identifier(it.at) {
                    true => spread(raised[i], closeness(i), mark).max(THRESHOLD),
                    false => spread(raised[i], closeness(i), mark),
                },
                cosine: it.cosine,
                created_ms: entry.created.ms(),
                is_named: i < n,
            }
        };
        order.iter().enumerate().map(hit).collect()
    }
}

/// The best answer keeps its calibrated value, about ten reach the threshold, and a lead in the score
/// is a lead that age seldom undoes. Values that are only raised would all be near 1.
fn spread(raised: f64, closeness: f64, mark: f64) -> f64 {
    let behind = (closeness / mark).clamp(0.0, 1.0).powi(STEEP);
    if raised < THRESHOLD {
        raised * behind
    } else if closeness < mark {
        THRESHOLD * behind
    } else {
        THRESHOLD + (raised - THRESHOLD) * (closeness - mark) / (1.0 - mark)
    }
}
