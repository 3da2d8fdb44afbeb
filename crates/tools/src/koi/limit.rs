//! Limits of results.
//!
//! The tools accept any number, with the contract's default for 0; the HTTP API accepts whole
//! numbers. Both clamp it.

use kenning_text::round::{self, Ties};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

/// Unless the caller says otherwise.
const DEFAULT: usize = 10;
const MAX: usize = 100;

/// So many results: any number, as the contract has it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Limit(f64);

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A tool's limit as a request has it: 0 means none given, and a fraction is rounded up.
fn wanted(limit: Option<Limit>) -> Option<i64> {
    let wanted = limit.map(|it| it.0).filter(|it| *it != 0.0)?;
    let bounds = i64::try_from(MAX).unwrap_or(i64::MAX);
    let least = (1..bounds).find(|it| *it as f64 >= wanted);
    Some(least.unwrap_or(bounds))
}

/// The limit of the request for a tool's call: always set, because the default of another server may
/// differ.
pub(super) fn asked(limit: Option<Limit>) -> Option<i64> {
    wanted(limit).or_else(|| i64::try_from(DEFAULT).ok())
}

/// The number of results for a request.
pub(super) fn within(wanted: Option<i64>) -> usize {
    bounded(wanted, DEFAULT, MAX)
}

/// The same where other bounds hold.
pub(super) fn bounded(wanted: Option<i64>, default: usize, max: usize) -> usize {
    wanted.map_or(default, |it| {
        usize::try_from(it.max(1)).unwrap_or(max).min(max)
    })
}

/// To four decimals, as the contract's answers have it.
pub(super) fn rounded(similarity: f64) -> f64 {
    round::rounded(similarity, 4, Ties::Even)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_drawn_into_its_bounds() {
        for (wanted, expected) in [
            (None, 10),
            (Some(0.0), 10),
            (Some(-1.0), 1),
            (Some(7.0), 7),
            (Some(6.5), 7),
            (Some(100.0), 100),
            (Some(1e300), 100),
        ] {
            let limit = super::wanted(wanted.map(Limit));
            assert_eq!(within(limit), expected, "{wanted:?}");
        }
        for (wanted, expected) in [(None, 10), (Some(0), 1), (Some(-1), 1), (Some(101), 100)] {
            assert_eq!(within(wanted), expected, "{wanted:?}");
        }
        assert_eq!(bounded(Some(i64::MAX), 500, 500), 500);
    }
}
