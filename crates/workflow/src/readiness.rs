//! How ready a document is to be worked from.

use crate::plan::{Fact, Facts};

/// From this completeness a specification counts in full …
pub(crate) const COMPLETE: f64 = 0.8;
/// … and from this in half.
const HALF_COMPLETE: f64 = 0.5;
/// From this score a document without blockers is ready.
pub const READY_SCORE: f64 = 0.7;

/// A score and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Readiness {
    /// Between 0 and 1.
    pub score: f64,
    /// Nothing blocks it, and the score reaches the threshold.
    pub is_ready: bool,
    /// What is missing, one word or two each.
    pub missing: Vec<&'static str>,
}

/// Weighs what is known of a document: specification 0.2, its completeness 0.2, acceptance criteria 0.2, nothing in
/// the way 0.2, no gaps 0.1, a task 0.1.
pub fn readiness(facts: &Facts, threshold: f64) -> Readiness {
    let holds = |name: &str| facts.get(name) == Some(&Fact::Bool(true));
    let number = |name: &str| match facts.get(name) {
        Some(Fact::Number(it)) => *it,
        _ => 0.0,
    };
    let completeness = number("specCompleteness");
    // In hundredths, so that sums are exact.
    let parts = [
        (
            "specification",
            if holds("hasSpecification") { 20 } else { 0 },
            20,
        ),
        (
            "completeness",
            match completeness {
                it if it >= COMPLETE => 20,
                it if it >= HALF_COMPLETE => 10,
                _ => 0,
            },
            20,
        ),
        (
            "acceptance criteria",
            if holds("hasAcceptanceCriteria") {
                20
            } else {
                0
            },
            20,
        ),
        (
            "free of blockers",
            if holds("blockersFree") { 20 } else { 0 },
            20,
        ),
        (
            "no gaps",
            if number("pendingGaps") == 0.0 { 10 } else { 0 },
            10,
        ),
        ("task", if holds("taskDefined") { 10 } else { 0 }, 10),
    ];
    let hundredths: u32 = parts.iter().map(|it| it.1).sum();
    let missing = parts.iter().filter(|it| it.1 < it.2).map(|it| it.0);
    let score = f64::from(hundredths) / 100.0;
    Readiness {
        score,
        is_ready: holds("blockersFree") && score >= threshold,
        missing: missing.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(spec: bool, completeness: f64, criteria: bool, free: bool, gaps: f64) -> Facts {
        [
            ("hasSpecification", Fact::Bool(spec)),
            ("specCompleteness", Fact::Number(completeness)),
            ("hasAcceptanceCriteria", Fact::Bool(criteria)),
            ("blockersFree", Fact::Bool(free)),
            ("pendingGaps", Fact::Number(gaps)),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into()
    }

    #[test]
    fn the_score_is_the_sum_of_what_is_there_and_a_blocker_is_never_ready() {
        let full = readiness(&facts(true, 0.8, true, true, 0.0), READY_SCORE);
        assert_eq!((full.score, full.is_ready), (0.9, true));
        assert_eq!(full.missing, ["task"]);
        let half = readiness(&facts(true, 0.5, false, true, 2.0), READY_SCORE);
        assert_eq!((half.score, half.is_ready), (0.5, false));
        let blocked = readiness(&facts(true, 1.0, true, false, 0.0), 0.0);
        assert_eq!((blocked.score, blocked.is_ready), (0.7, false));
        assert_eq!(readiness(&Facts::new(), 0.7).score, 0.1);
    }
}
