//! Whether two names of one type are names of one thing.
//!
//! Similarity of letters alone joins what differs in one telling letter and parts what is only written
//! otherwise. So names are read first: a person's by its parts ([`person`]), any other word by word
//! ([`wording`]), and only what is left unexplained must be a slip of the fingers.

mod person;
mod slip;
mod wording;

use crate::names::normalized;
use crate::ontology::EntityType;
use crate::similarity::jaro_winkler;

/// Written otherwise, the same name.
const SAME_FORM: f64 = 0.97;
/// Written together or apart.
const SAME_LETTERS: f64 = 0.96;
/// One word that differs by letters must differ by few.
const ONE_WORD_MIN: f64 = 0.95;

/// Types of which a distinctive word decides.
const DISTINCTIVE: &[&str] = &["Organization", "Project", "Concept"];

/// By what two names were found to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Letters and words.
    Letters,
    /// How they sound.
    Sound,
}

/// How sure it is that two names are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// From 0 to 1.
    pub confidence: f64,
    /// What tells.
    pub by: By,
}

impl Likeness {
    const fn of(confidence: f64) -> Option<Self> {
        Some(Self {
            confidence,
            by: By::Letters,
        })
    }
}

/// Whether two names of things of a type are names of one thing, and how sure that is.
#[must_use]
pub fn likeness(kind: &EntityType, a: &str, b: &str) -> Option<Likeness> {
    let similarity = jaro_winkler(&normalized(a), &normalized(b));
    if kind.key == "Person" {
        person::likeness(kind, a, b, similarity)
    } else {
        wording::likeness(kind, a, b, similarity)
    }
}

/// Whether a meaning that is alike may make two names one: never of people, and of organizations and
/// projects only if they share a word that distinguishes them.
#[must_use]
pub fn may_mean_the_same(kind: &EntityType, a: &str, b: &str) -> bool {
    match kind.key.as_str() {
        "Person" => likeness(kind, a, b).is_some(),
        "Organization" | "Project" => wording::share_a_distinctive_word(a, b),
        _ => true,
    }
}

fn is_distinctive(kind: &EntityType) -> bool {
    DISTINCTIVE.contains(&kind.key.as_str())
}
