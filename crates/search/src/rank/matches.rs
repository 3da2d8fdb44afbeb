//! How often, and how well, each word of the query occurs in the passages that are looked at.

use super::asked::Asked;
use super::parse::Term;
use crate::index::Index;
use kenning_embed::{Probe, TokenId};
use std::collections::HashMap;

/// From which similarity on another token counts as an occurrence, partly.
const SIMILAR: f32 = 0.3;

/// What all parts of an identifier count for in a passage that has another number than it.
const BROKEN: f64 = 0.4;

/// Occurrences of the query's tokens and literals in passages, computed once for each passage.
pub(super) struct Matches {
    width: usize,
    rows: HashMap<u32, usize>,
    frequency: Vec<f64>,
    best: Vec<f64>,
}

impl Matches {
    pub(super) fn new(asked: &Asked<'_>, passages: &[u32]) -> Self {
        let mut out = Self {
            width: asked.parsed.weight.len(),
            rows: HashMap::with_capacity(passages.len()),
            frequency: Vec::new(),
            best: Vec::new(),
        };
        let mut similarities = Similarities::new(asked);
        for &at in passages {
            let next = out.rows.len();
            if *out.rows.entry(at).or_insert(next) == next
                && out.frequency.len() == next * out.width
            {
                out.push(asked, at, &mut similarities);
            }
        }
        out
    }

    /// Soft frequency and best similarity of each word of the query in one passage. A part with a digit
    /// or in several pieces must stand there literally, or counts little or less.
    fn push(&mut self, asked: &Asked<'_>, at: u32, similarities: &mut Similarities<'_>) {
        let (parsed, index) = (&asked.parsed, asked.index);
        let n = parsed.soft.len();
        let (mut frequency, mut best) = (vec![0.0_f64; n], vec![0.0_f64; n]);
        for &id in index.tokens(at) {
            let (cosines, parts) = similarities.row(id);
            let sums = frequency.iter_mut().zip(&mut best);
            for ((frequency, best), (part, cosine)) in sums.zip(parts.iter().zip(cosines)) {
                *frequency += f64::from(*part);
                *best = best.max(f64::from(*cosine));
            }
        }
        let lacks_number =
            |it: &&(usize, Vec<Term>)| it.1.iter().any(|&term| count(index, term, at) == 0);
        let broken: Vec<usize> = parsed
            .numbers
            .iter()
            .filter(lacks_number)
            .map(|it| it.0)
            .collect();
        for (k, token) in parsed.soft.iter().enumerate() {
            if token.share < 1.0 {
                if count(index, token.term, at) > 0 {
                    (frequency[k], best[k]) = (frequency[k].max(1.0), 1.0);
                } else {
                    frequency[k] *= token.share;
                    best[k] *= token.share;
                }
            }
            if broken.contains(&token.group) {
                frequency[k] *= BROKEN;
                best[k] *= BROKEN;
            }
        }
        let literals = parsed
            .literals
            .iter()
            .map(|&term| f64::from(count(index, term, at)));
        let literals: Vec<f64> = literals.collect();
        self.frequency.extend(frequency);
        self.frequency.extend(&literals);
        self.best.extend(best);
        self.best.extend(literals.iter().map(|it| it.min(1.0)));
    }

    /// How often each word of the query occurs in a passage.
    pub(super) fn frequency(&self, at: u32) -> &[f64] {
        self.rows
            .get(&at)
            .map_or(&[], |row| &self.frequency[row * self.width..][..self.width])
    }

    /// The best similarity of each word of the query to one of the passage.
    pub(super) fn best(&self, at: u32) -> &[f64] {
        self.rows
            .get(&at)
            .map_or(&[], |row| &self.best[row * self.width..][..self.width])
    }
}

/// How often a term stands in a passage.
pub(super) fn count(index: &Index, term: Term, at: u32) -> u32 {
    let postings = term.map_or(&[][..], |term| index.postings[term].as_slice());
    let found = postings.binary_search_by_key(&at, |it| it.entry);
    found.map_or(0, |i| postings[i].count)
}

const NO_ROW: u32 = u32::MAX;

/// How like each token of the query other tokens are.
struct Similarities<'a> {
    table: &'a kenning_embed::Table,
    probes: Vec<Probe>,
    /// The row of each token of the table, or [`NO_ROW`]: a look-up for every token of every passage.
    rows: Vec<u32>,
    n_rows: u32,
    cosines: Vec<f32>,
    parts: Vec<f32>,
}

impl<'a> Similarities<'a> {
    fn new(asked: &Asked<'a>) -> Self {
        let table = asked.index.table;
        Self {
            table,
            probes: asked
                .parsed
                .soft
                .iter()
                .map(|it| table.probe(it.id))
                .collect(),
            rows: vec![NO_ROW; table.len()],
            n_rows: 0,
            cosines: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The cosines with each token of the query, and how much of an occurrence each is.
    fn row(&mut self, id: TokenId) -> (&[f32], &[f32]) {
        let width = self.probes.len();
        let known = &mut self.rows[usize::from(id)];
        if *known == NO_ROW {
            *known = self.n_rows;
            self.n_rows += 1;
            let probe = self.table.probe(id);
            for mine in &self.probes {
                let cosine = mine.similarity(&probe);
                let above = (cosine - SIMILAR).max(0.0) / (1.0 - SIMILAR);
                self.cosines.push(cosine);
                self.parts.push(above * above);
            }
        }
        let row = self.rows[usize::from(id)] as usize;
        (
            &self.cosines[row * width..][..width],
            &self.parts[row * width..][..width],
        )
    }
}
