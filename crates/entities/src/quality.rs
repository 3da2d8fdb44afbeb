//! Measures how well labels are resolved, on pairs of names that people judged.
//!
//! Each pair asks whether one name resolves to an entity that has the other. For comparison there are
//! plain Jaro-Winkler with one threshold, and the exact and fuzzy tiers of the original.

use crate::names::{normalized, phonetic_key};
use crate::ontology::Ontology;
use crate::resolve::{Candidates, Entity, Query, resolve};
use crate::similarity::share_enough_words;
use kenning_core::Error;
use kenning_text::similarity::jaro_winkler;
use std::collections::BTreeMap;

/// The usual threshold of plain Jaro-Winkler for names.
pub const JARO_WINKLER_MIN: f64 = 0.92;

/// Two names, and whether they name the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The type of both.
    pub kind: String,
    /// What the pair tests.
    pub category: String,
    /// One name.
    pub a: String,
    /// The other.
    pub b: String,
    /// The judgment.
    pub is_same: bool,
}

/// Pairs from text: type, category, two names and `same` or `different`, with tabs between them.
///
/// # Errors
/// Invalid input that names the line.
pub fn pairs(text: &str) -> Result<Vec<Pair>, Error> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split('\t').collect();
        let [kind, category, a, b, verdict @ ("same" | "different")] = cells.as_slice() else {
            return Err(
                Error::invalid(format!("line {} is not a pair: `{line}`", n + 1)).hint(
                    "write type, category, two names, and `same` or `different`, separated by tabs",
                ),
            );
        };
        out.push(Pair {
            kind: (*kind).to_owned(),
            category: (*category).to_owned(),
            a: (*a).to_owned(),
            b: (*b).to_owned(),
            is_same: *verdict == "same",
        });
    }
    Ok(out)
}

/// How often one method was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Merged, and the same thing.
    pub joined_rightly: u32,
    /// Merged, but different things.
    pub joined_wrongly: u32,
    /// Not merged, but the same thing.
    pub missed: u32,
    /// Not merged, and different things.
    pub parted_rightly: u32,
}

impl Score {
    fn count(&mut self, is_joined: bool, is_same: bool) {
        let counter = match (is_joined, is_same) {
            (true, true) => &mut self.joined_rightly,
            (true, false) => &mut self.joined_wrongly,
            (false, true) => &mut self.missed,
            (false, false) => &mut self.parted_rightly,
        };
        *counter += 1;
    }

    /// The share of merged pairs that are the same thing; 1 if none was merged.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.joined_rightly, self.joined_wrongly)
    }

    /// The share of pairs of the same thing that were merged; 1 if there are none.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.joined_rightly, self.missed)
    }
}

fn share(right: u32, wrong: u32) -> f64 {
    match right + wrong {
        0 => 1.0,
        all => f64::from(right) / f64::from(all),
    }
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many pairs.
    pub n_pairs: usize,
    /// [`resolve`].
    pub ours: Score,
    /// One threshold for everything.
    pub jaro_winkler: Score,
    /// The original's exact and fuzzy tiers.
    pub original: Score,
    /// [`resolve`], for each category.
    pub by_category: BTreeMap<String, Score>,
    /// The pairs that [`resolve`] got wrong.
    pub wrong: Vec<Pair>,
}

/// Judges every pair.
///
/// # Errors
/// What [`resolve`] fails with, such as an empty name.
pub fn quality(ontology: &Ontology, pairs: &[Pair]) -> Result<Report, Error> {
    let mut report = Report {
        n_pairs: pairs.len(),
        ..Report::default()
    };
    for pair in pairs {
        let is_joined = is_joined(ontology, pair)?;
        report.ours.count(is_joined, pair.is_same);
        let of_category = report.by_category.entry(pair.category.clone()).or_default();
        of_category.count(is_joined, pair.is_same);
        if is_joined != pair.is_same {
            report.wrong.push(pair.clone());
        }
        let (a, b) = (normalized(&pair.a), normalized(&pair.b));
        let similarity = jaro_winkler(&a, &b);
        report
            .jaro_winkler
            .count(similarity >= JARO_WINKLER_MIN, pair.is_same);
        let kind = ontology.kind(&pair.kind).unwrap_or(ontology.unknown());
        let is_joined = a == b
            || similarity >= kind.similarity_threshold
                && (!kind.require_token_overlap || share_enough_words(&a, &b));
        report.original.count(is_joined, pair.is_same);
    }
    Ok(report)
}

fn is_joined(ontology: &Ontology, pair: &Pair) -> Result<bool, Error> {
    let stopwords = ontology.kind(&pair.kind).unwrap_or(ontology.unknown());
    let only = Only {
        entity: Entity {
            uri: "orn:only".to_owned(),
            name: pair.b.clone(),
            kind: pair.kind.clone(),
            aliases: Vec::new(),
        },
        stopwords: &stopwords.phonetic_stopwords,
    };
    let query = Query {
        label: &pair.a,
        kind: Some(&pair.kind),
        ..Query::default()
    };
    Ok(resolve(ontology, &only, &query)?.chosen().is_some())
}

/// A set of candidates with one entity.
struct Only<'a> {
    entity: Entity,
    stopwords: &'a [String],
}

impl Only<'_> {
    fn entity_if(&self, holds: bool) -> Result<Vec<Entity>, Error> {
        Ok(holds.then(|| self.entity.clone()).into_iter().collect())
    }
}

impl Candidates for Only<'_> {
    fn exact(&self, key: &str) -> Result<Vec<Entity>, Error> {
        self.entity_if(normalized(&self.entity.name) == key)
    }

    fn alias(&self, _key: &str) -> Result<Vec<Entity>, Error> {
        Ok(Vec::new())
    }

    fn similar(&self, _name: &str, _limit: usize) -> Result<Vec<Entity>, Error> {
        self.entity_if(true)
    }

    fn phonetic(&self, key: &str) -> Result<Vec<Entity>, Error> {
        self.entity_if(phonetic_key(&self.entity.name, self.stopwords) == key)
    }

    fn semantic(&self, _name: &str) -> Result<Vec<(Entity, f64)>, Error> {
        Ok(Vec::new())
    }
}
