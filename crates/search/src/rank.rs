//! From a query to an answer.
//!
//! The constants are a flat optimum over four judged collections: a third more or less in one of them
//! moves the mean by less than a hundredth.

use crate::index::{Filter, Index};
use crate::tokens;
use kenning_core::NodeId;
use kenning_embed::{Probe, TokenId};
use std::collections::HashMap;

/// BM25 of the full text.
const TEXT_K1: f64 = 1.2;
const TEXT_B: f64 = 0.75;
/// The share of full text in the fusion.
const TEXT_SHARE: f64 = 0.4;
/// How many are re-ranked, unless more are asked for.
const DEPTH: usize = 100;
/// How many the scan proposes before the exact cosine decides.
const PROPOSED: usize = 400;
/// From which similarity on another token counts as an occurrence, partly.
const SIMILAR: f32 = 0.3;
/// Soft BM25.
const SOFT_K1: f64 = 0.6;
const SOFT_B: f64 = 0.5;
/// The share of soft BM25 in the final order.
const SOFT_SHARE: f64 = 0.7;
/// What a passage gains from the score of its neighbors.
const NEIGHBOUR_SHARE: f64 = 0.3;
/// Relevance of the built-in table: cosine, coverage, ln(1 + tokens), constant.
const RELEVANCE: [f64; 4] = [9.374, 10.258, -0.676, -4.326];
/// Where answers and the best of unrelated texts part.
pub(crate) const THRESHOLD: f64 = 0.7;

/// Passages that a model's cosines are looked at in, to know how they spread.
const SAMPLE: usize = 500;
/// So many deviations above unrelated passages an answer stands, by a model other than the table.
const MODEL_STANDS_OUT: f64 = 3.0;
const MODEL_SLOPE: f64 = 1.5;

/// Words of a query that count: nobody asks in more, and each is compared with every candidate's.
const QUERY_TOKENS_MAX: usize = 128;
const QUERY_BYTES_MAX: usize = 4_096;

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
    /// In any words.
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
    /// Whose.
    pub node: NodeId,
    /// Which passage of it.
    pub n: u32,
    /// What decided the order; comparable within one answer.
    pub score: f64,
    /// Between 0 and 1, never greater than that of a hit before it.
    pub relevance: f64,
    /// The cosine of query and passage.
    pub cosine: f64,
    /// When the node was made, in milliseconds since 1970.
    pub created_ms: u64,
}

/// The scores of every admitted passage, stage by stage, for measuring.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// Which passages.
    pub passages: Vec<(NodeId, u32)>,
    /// BM25.
    pub full_text: Vec<f64>,
    /// Cosine.
    pub vectors: Vec<f64>,
    /// Both.
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
    /// The best passages, best first.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit> {
        let asked = Asked::new(self, query);
        let mut found = asked.candidates();
        let depth = DEPTH.max(query.limit).min(found.len());
        if query.mode == Mode::Hybrid {
            found.truncate(depth);
            asked.rerank(&mut found);
        } else {
            for it in &mut found {
                it.score = it.by(query.mode);
            }
            found.retain(|it| query.mode == Mode::Fused || it.score > 0.0);
            sort(&mut found, |it| it.score);
            found.truncate(depth);
        }
        let mut hits = asked.hits(&found);
        hits.truncate(query.limit);
        hits
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
            .map(|other| (other, &self.entries[other as usize]))
            .filter(|(_, it)| it.n == 0 && it.node != node && admission.admits(it))
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

    /// How well a node answers a query, by its best passage, whatever else there is.
    pub fn relevance(&self, query: &Query<'_>, node: NodeId) -> f64 {
        let asked = Asked::new(self, query);
        let passages = self.passages_of(node).iter().map(|&at| Candidate {
            at,
            text: 0.0,
            cosine: asked.table_cosine(at as usize),
            fused: 0.0,
            score: 0.0,
        });
        let passages: Vec<Candidate> = passages.collect();
        let similar = Similarities::new(&asked, &passages);
        let each = passages.iter().map(|it| asked.relevance(it, &similar));
        each.fold(0.0, f64::max)
    }

    /// The scores of every admitted passage after each stage.
    pub fn stages(&self, query: &Query<'_>) -> Stages {
        let asked = Asked::new(self, query);
        let mut all = asked.all();
        asked.refine(&mut all);
        sort(&mut all, |it| it.fused);
        let depth = DEPTH.min(all.len());
        for it in &mut all[depth..] {
            it.score = it.fused - 10.0;
        }
        asked.rerank(&mut all[..depth]);
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

/// A query in the numbers of one index.
struct Asked<'a> {
    index: &'a Index,
    query: &'a Query<'a>,
    ids: Vec<TokenId>,
    /// How much each of `ids` tells: its rarity here times the length of its row.
    importance: Vec<f64>,
    vector: Vec<f32>,
    /// Distinct terms of the query, with how often each is there.
    terms: Vec<(String, u32)>,
    /// The chosen model, where it has seen enough to answer.
    other: Option<Other>,
}

/// What is known of the chosen model's cosines with this query.
struct Other {
    /// Mean and deviation of its cosines, and of the table's with the same passages.
    by_model: Spread,
    by_table: Spread,
    /// What its cosines are between passages that have nothing to do with each other.
    unrelated: Option<Spread>,
}

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
        Self {
            mean,
            deviation: variance.sqrt().max(1e-6),
        }
    }

    /// How many deviations above the mean.
    fn height(self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }
}

impl Other {
    /// Where the chosen model has seen nine passages in ten; until then the table answers.
    fn of(asked: &Asked<'_>) -> Option<Self> {
        asked.query.vector?;
        let index = asked.index;
        if !index.is_mostly_embedded() {
            return None;
        }
        let step = (index.entries.len() / SAMPLE).max(1);
        let sampled = (0..index.entries.len())
            .step_by(step)
            .filter(|&at| index.is_alive(at));
        let pairs =
            sampled.filter_map(|at| Some((asked.model_cosine(at)?, asked.table_cosine(at))));
        let (by_model, by_table): (Vec<f64>, Vec<f64>) = pairs.unzip();
        if by_model.is_empty() {
            return None;
        }
        Some(Self {
            by_model: Spread::of(&by_model),
            by_table: Spread::of(&by_table),
            unrelated: index.unrelated(),
        })
    }

    fn cosine(&self, asked: &Asked<'_>, at: usize) -> Option<f64> {
        asked.model_cosine(at)
    }

    /// What the model would say of a passage that it has not seen yet, by what the table says.
    fn estimate(&self, by_table: f64) -> f64 {
        self.by_model.mean + self.by_table.height(by_table) * self.by_model.deviation
    }

    /// Relevance by the model's cosine alone: 0.7 where it stands out from unrelated passages.
    fn relevance(&self, cosine: f64) -> f64 {
        self.unrelated.map_or(0.0, |it| {
            logistic(MODEL_SLOPE * (it.height(cosine) - MODEL_STANDS_OUT))
        })
    }
}

/// z = 0 becomes the threshold.
fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z - (THRESHOLD / (1.0 - THRESHOLD)).ln()).exp())
}

impl<'a> Asked<'a> {
    fn new(index: &'a Index, query: &'a Query<'a>) -> Self {
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
    fn model_cosine(&self, at: usize) -> Option<f64> {
        let query = self.query.vector?;
        let (other, found) = self.index.other_vector(at)?;
        (other.model.dimensions == query.len())
            .then(|| f64::from(other.vectors.cosine(found, query)))
    }

    /// The best by the fused score, with exact cosines, best first.
    fn candidates(&self) -> Vec<Candidate> {
        let mut all = self.all();
        let wanted = PROPOSED.max(4 * self.query.limit);
        if all.len() > wanted {
            let lowest = all
                .iter()
                .copied()
                .min_by(|a, b| a.cosine.total_cmp(&b.cosine));
            let key = |it: &Candidate| it.by(self.query.mode);
            all.select_nth_unstable_by(wanted, |a, b| key(b).total_cmp(&key(a)));
            all.truncate(wanted);
            // What the scores are scaled by must stay, or the fused score would change.
            all.extend(lowest);
        }
        self.refine(&mut all);
        sort(&mut all, |it| it.fused);
        all
    }

    /// Every admitted passage, with its text score and a rough cosine.
    fn all(&self) -> Vec<Candidate> {
        let index = self.index;
        let mut rough = Vec::new();
        index.vectors.scan(&self.vector, &mut rough);
        let text = self.text_scores();
        let admission = index.admission(self.query.filter);
        let entries = index
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| admission.admits(entry));
        let mut all: Vec<Candidate> = entries
            .map(|(i, _)| Candidate {
                at: u32::try_from(i).unwrap_or(u32::MAX),
                text: text[i],
                cosine: self.cosine(i, f64::from(rough[i])),
                fused: 0.0,
                score: 0.0,
            })
            .collect();
        fuse(&mut all);
        all
    }

    fn refine(&self, all: &mut [Candidate]) {
        for it in all.iter_mut() {
            let at = it.at as usize;
            it.cosine = self.cosine(at, self.table_cosine(at));
        }
        fuse(all);
    }

    fn table_cosine(&self, at: usize) -> f64 {
        f64::from(self.index.vectors.cosine(at, &self.vector))
    }

    /// The cosine that counts: by the chosen model where there is one, otherwise by the table.
    fn cosine(&self, at: usize, by_table: f64) -> f64 {
        match &self.other {
            None => by_table,
            Some(other) => other
                .cosine(self, at)
                .unwrap_or_else(|| other.estimate(by_table)),
        }
    }

    /// BM25 of every passage; a word that the query repeats counts again.
    fn text_scores(&self) -> Vec<f64> {
        let index = self.index;
        let mut scores = vec![0.0; index.entries.len()];
        let mean = index.mean_terms().max(1e-9);
        for (word, times) in &self.terms {
            let Some((term, frequency)) = index.term(word) else {
                continue;
            };
            let weight = index.rarity(frequency) * f64::from(*times) * (TEXT_K1 + 1.0);
            for posting in &index.postings[term] {
                let length = f64::from(index.entries[posting.entry as usize].terms);
                let count = f64::from(posting.count);
                let norm = TEXT_K1 * (1.0 - TEXT_B + TEXT_B * length / mean);
                scores[posting.entry as usize] += weight * count / (count + norm);
            }
        }
        scores
    }

    /// Whether the passage has every term of the query literally.
    fn has_every_term(&self, at: u32) -> bool {
        let index = self.index;
        !self.terms.is_empty()
            && self.terms.iter().all(|(word, _)| {
                index.term(word).is_some_and(|(term, _)| {
                    index.postings[term]
                        .binary_search_by_key(&at, |it| it.entry)
                        .is_ok()
                })
            })
    }

    /// Puts the candidates in their final order.
    fn rerank(&self, found: &mut [Candidate]) {
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
    fn add_neighbours(&self, found: &mut [Candidate]) {
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
    fn soft_bm25(&self, at: u32, similar: &Similarities) -> f64 {
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
    fn relevance(&self, it: &Candidate, similar: &Similarities) -> f64 {
        let ids = self.index.tokens(it.at);
        let literal = if self.has_every_term(it.at) {
            THRESHOLD
        } else {
            0.0
        };
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
    fn hits(&self, found: &[Candidate]) -> Vec<Hit> {
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

/// How like each token of the query every token of the candidates is, computed once.
struct Similarities {
    width: usize,
    row: HashMap<TokenId, usize>,
    cosines: Vec<f32>,
    parts: Vec<f32>,
}

impl Similarities {
    fn new(asked: &Asked<'_>, found: &[Candidate]) -> Self {
        let table = asked.index.table;
        let probes: Vec<Probe> = asked.ids.iter().map(|&id| table.probe(id)).collect();
        let mut out = Self {
            width: probes.len(),
            row: HashMap::new(),
            cosines: Vec::new(),
            parts: Vec::new(),
        };
        for &id in found.iter().flat_map(|it| asked.index.tokens(it.at)) {
            let next = out.row.len();
            if *out.row.entry(id).or_insert(next) == next && out.cosines.len() == next * out.width {
                let probe = table.probe(id);
                out.cosines
                    .extend(probes.iter().map(|it| it.similarity(&probe)));
            }
        }
        out.parts = out.cosines.iter().map(|&it| part(it)).collect();
        out
    }

    fn cosines(&self, id: TokenId) -> &[f32] {
        self.row
            .get(&id)
            .map_or(&[], |row| &self.cosines[row * self.width..][..self.width])
    }

    fn parts(&self, id: TokenId) -> &[f32] {
        self.row
            .get(&id)
            .map_or(&[], |row| &self.parts[row * self.width..][..self.width])
    }
}

/// As much of a query as counts.
fn beginning(text: &str) -> &str {
    let end = (0..=QUERY_BYTES_MAX.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i));
    &text[..end.unwrap_or(0)]
}

/// How much of an occurrence a similar token is.
fn part(similarity: f32) -> f32 {
    let above = (similarity - SIMILAR).max(0.0) / (1.0 - SIMILAR);
    above * above
}

fn fuse(all: &mut [Candidate]) {
    let text = Scale::of(all.iter().map(|it| it.text));
    let cosine = Scale::of(all.iter().map(|it| it.cosine));
    for it in all {
        let (text, cosine) = (text.apply(it.text), cosine.apply(it.cosine));
        it.fused = TEXT_SHARE * text + (1.0 - TEXT_SHARE) * cosine;
    }
}

/// Moves scores to 0..1.
struct Scale {
    low: f64,
    range: f64,
}

impl Scale {
    fn of(scores: impl Iterator<Item = f64>) -> Self {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = scores.fold(ends, |(low, high), it| (low.min(it), high.max(it)));
        Self {
            low,
            range: (high - low).max(1e-9),
        }
    }

    fn apply(&self, score: f64) -> f64 {
        (score - self.low) / self.range
    }
}

/// Best first; equals in the order in which they came.
fn sort(found: &mut [Candidate], key: impl Fn(&Candidate) -> f64) {
    found.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.at.cmp(&b.at)));
}
