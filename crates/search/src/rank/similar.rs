//! How like the query's words the candidates' are.

use super::Candidate;
use super::asked::Asked;
use kenning_embed::{Probe, TokenId};
use std::collections::HashMap;

/// From which similarity on another token counts as an occurrence, partly.
const SIMILAR: f32 = 0.3;

/// How like each token of the query every token of the candidates is, computed once.
pub(super) struct Similarities {
    pub(super) width: usize,
    pub(super) row: HashMap<TokenId, usize>,
    pub(super) cosines: Vec<f32>,
    pub(super) parts: Vec<f32>,
}

impl Similarities {
    pub(super) fn new(asked: &Asked<'_>, found: &[Candidate]) -> Self {
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

    pub(super) fn cosines(&self, id: TokenId) -> &[f32] {
        self.row
            .get(&id)
            .map_or(&[], |row| &self.cosines[row * self.width..][..self.width])
    }

    pub(super) fn parts(&self, id: TokenId) -> &[f32] {
        self.row
            .get(&id)
            .map_or(&[], |row| &self.parts[row * self.width..][..self.width])
    }
}

/// How much of an occurrence a similar token is.
fn part(similarity: f32) -> f32 {
    let above = (similarity - SIMILAR).max(0.0) / (1.0 - SIMILAR);
    above * above
}
