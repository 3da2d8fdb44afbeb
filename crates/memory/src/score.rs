//! How memories are ranked: relevance, recency and centrality.

use kenning_text::round::{self, Ties};

/// The weight of relevance in the final score; recency has the rest.
const RELEVANCE_SHARE: f64 = 0.7;

/// The time constant when the configuration names none, in days.
pub const RECENCY_DAYS_DEFAULT: f64 = 30.0;

/// A day in milliseconds.
const DAY_MS: f64 = 86_400_000.0;

/// Days between two times, with their fraction. A time in the future counts as now: clocks differ.
pub fn days_between(then_ms: u64, now_ms: u64) -> f64 {
    now_ms.saturating_sub(then_ms) as f64 / DAY_MS
}

/// 1 for a new memory, falling by a factor of e every `time_constant_days`.
///
/// The setting is called a half-life, but the contract's formula is this one: after 30 days 0.368
/// remain, not a half.
pub fn recency(days_ago: f64, time_constant_days: f64) -> f64 {
    (-days_ago.max(0.0) / time_constant_days).exp()
}

/// The sort key of recall.
pub fn final_score(relevance: f64, recency: f64) -> f64 {
    RELEVANCE_SHARE * relevance + (1.0 - RELEVANCE_SHARE) * recency
}

/// How central a memory is: its edges, how often it was read, how new it is. Rounded.
pub fn centrality(degree: usize, access_count: u64, days_ago: f64) -> f64 {
    let edges = (degree as f64 / 100.0).min(1.0);
    let reads = ((1.0 + access_count as f64).ln() / 101_f64.ln()).min(1.0);
    let fresh = recency(days_ago, RECENCY_DAYS_DEFAULT);
    rounded(0.40 * edges + 0.35 * reads + 0.25 * fresh)
}

/// To four decimals, as the contract's examples round.
pub fn rounded(value: f64) -> f64 {
    round::rounded(value, 4, Ties::Even)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recency_follows_the_formula_and_not_the_word_half_life() {
        for (days, expected) in [
            (0.0, 1.0),
            (30.0, 0.3679),
            (20.794_415_416_798_36, 0.5),
            (0.5, 0.9835),
            (60.0, 0.1353),
            (-3.0, 1.0),
        ] {
            assert_eq!(rounded(recency(days, 30.0)), expected, "{days} days");
        }
        assert_eq!(rounded(recency(7.0, 7.0)), 0.3679);
    }

    #[test]
    fn a_timestamp_of_the_future_counts_as_now() {
        assert_eq!(days_between(2_000, 1_000), 0.0);
        assert_eq!(days_between(0, 43_200_000), 0.5);
    }

    #[test]
    fn the_final_score_is_seven_parts_relevance_and_three_parts_recency() {
        assert_eq!(rounded(final_score(1.0, 1.0)), 1.0);
        assert_eq!(rounded(final_score(0.85, 0.0)), 0.595);
        assert_eq!(
            rounded(final_score(0.85, recency(26.309, 30.0))),
            rounded(0.595 + 0.3 * 0.416)
        );
    }

    #[test]
    fn centrality_has_three_parts_that_each_have_an_end() {
        for (degree, accesses, days, expected) in [
            (0, 0, 0.0, 0.25),
            (100, 100, 0.0, 1.0),
            (5_000, 1_000_000, 0.0, 1.0),
            (10, 9, 15.0, 0.3663),
            (0, 0, 100_000.0, 0.0),
        ] {
            assert_eq!(
                centrality(degree, accesses, days),
                expected,
                "{degree} {accesses} {days}"
            );
        }
    }
}
