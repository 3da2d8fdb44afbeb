//! How many results a caller wants.

/// Unless the caller says otherwise.
const DEFAULT: usize = 10;
const MAX: usize = 100;

/// The contract's default for nothing and for 0; what is out of bounds is drawn into them.
pub(super) fn limit(wanted: Option<i64>) -> usize {
    match wanted {
        None | Some(0) => DEFAULT,
        Some(wanted) => usize::try_from(wanted).unwrap_or(1).clamp(1, MAX),
    }
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
            (Some(0), 10),
            (Some(-1), 1),
            (Some(7), 7),
            (Some(1_000), 100),
        ] {
            assert_eq!(limit(wanted), expected, "{wanted:?}");
        }
    }
}
