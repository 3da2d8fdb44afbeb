//! How many results a caller wants.

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

/// The contract's default for nothing and for 0; what is out of bounds is drawn into them.
pub(super) fn limit(wanted: Option<Limit>) -> usize {
    let wanted = wanted.map_or(0.0, |it| it.0);
    if wanted == 0.0 {
        return DEFAULT;
    }
    (1..MAX).find(|it| *it as f64 >= wanted).unwrap_or(MAX)
}

/// To four decimals, as the contract's answers have it.
pub(super) fn rounded(similarity: f64) -> f64 {
    (similarity * 10_000.0).round() / 10_000.0
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
            assert_eq!(limit(wanted.map(Limit)), expected, "{wanted:?}");
        }
    }
}
