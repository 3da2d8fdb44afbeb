//! Timestamps in files: local time without a zone, as in the contract's own files.

use jiff::civil::DateTime;

/// `2026-11-15T02:11:00`, or with six digits of a second if there is a fraction: some readers accept
/// three or six digits only.
pub fn iso(at: DateTime) -> String {
    if at.subsec_nanosecond() / 1_000 == 0 {
        format!("{at:.0}")
    } else {
        format!("{at:.6}")
    }
}

/// Reads what [`iso`] writes; `None` for a text with an offset or in another format.
pub fn parse(text: &str) -> Option<DateTime> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::datetime;

    #[test]
    fn a_moment_reads_back_and_has_no_or_six_digits_of_a_second() {
        for (at, text) in [
            (datetime(2026, 11, 15, 2, 11, 0, 0), "2026-11-15T02:11:00"),
            (
                datetime(2026, 11, 15, 2, 11, 0, 120_000_000),
                "2026-11-15T02:11:00.120000",
            ),
            (
                datetime(1, 1, 1, 23, 59, 59, 999_999_000),
                "0001-01-01T23:59:59.999999",
            ),
        ] {
            assert_eq!(iso(at), text);
            assert_eq!(parse(text), Some(at));
        }
        for text in ["", "yesterday", "2026-13-01T00:00:00", "2026-11-15 noon"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
