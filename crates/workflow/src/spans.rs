//! Durations for people.

/// `950ms`, `15.00s`, `2m 5.0s`.
pub fn format_duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => {
            let hundredths = ms / 10;
            format!("{}.{:02}s", hundredths / 100, hundredths % 100)
        }
        _ => {
            let tenths = (ms % 60_000) / 100;
            format!("{}m {}.{}s", ms / 60_000, tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_the_units_that_fit_it() {
        let shown = [0, 950, 999, 1_000, 15_000, 59_999, 60_000, 125_000].map(format_duration);
        let expected = [
            "0ms", "950ms", "999ms", "1.00s", "15.00s", "59.99s", "1m 0.0s", "2m 5.0s",
        ];
        assert_eq!(shown, expected);
    }
}
