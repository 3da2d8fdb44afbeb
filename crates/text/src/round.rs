//! Numbers in answers, with so many decimals.

/// What becomes of a number that lies in the middle between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The exact value is rounded, a tie to the even digit, as `round` does in Python.
    Even,
    /// The number is multiplied first and a tie goes away from zero, as `Math.round(100 * x) / 100` does in
    /// JavaScript for numbers above zero.
    Away,
}

/// A number with so many decimals. What is not finite stays what it is.
#[must_use]
pub fn rounded(value: f64, decimals: u8, ties: Ties) -> f64 {
    match ties {
        // Printing rounds the exact binary value; multiplying first would round twice.
        Ties::Even => {
            let decimals = usize::from(decimals);
            format!("{value:.decimals$}").parse().unwrap_or(value)
        }
        Ties::Away => {
            let factor = 10_f64.powi(i32::from(decimals));
            (value * factor).round() / factor
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_goes_where_the_contract_says() {
        for (value, decimals, even, away) in [
            (0.125, 2, 0.12, 0.13),
            (0.375, 2, 0.38, 0.38),
            (2.5, 0, 2.0, 3.0),
            (0.123_449_999, 4, 0.1234, 0.1234),
            (0.123_45, 4, 0.1235, 0.1235),
            (0.000_05, 4, 0.0001, 0.0001),
            (0.438_586_4, 4, 0.4386, 0.4386),
            (-0.125, 2, -0.12, -0.13),
            (7.0, 4, 7.0, 7.0),
        ] {
            assert_eq!(rounded(value, decimals, Ties::Even), even, "{value}");
            assert_eq!(rounded(value, decimals, Ties::Away), away, "{value}");
        }
        for ties in [Ties::Even, Ties::Away] {
            assert!(rounded(f64::NAN, 2, ties).is_nan());
            assert_eq!(rounded(f64::INFINITY, 2, ties), f64::INFINITY);
        }
    }
}
