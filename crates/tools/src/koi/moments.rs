//! Timestamps as the original writes them: microseconds, in UTC.

use kenning_engine::timestamp;

/// Without a zone, as most of its columns.
pub fn naive(ms: u64) -> String {
    let text = timestamp(ms);
    match text.strip_suffix('Z') {
        Some(text) => format!("{text}000"),
        None => text,
    }
}

/// With the zone, as the others.
pub fn zoned(ms: u64) -> String {
    format!("{}+00:00", naive(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_six_digits_of_a_second() {
        assert_eq!(naive(1_001), "1970-01-01T00:00:01.001000");
        assert_eq!(zoned(1_001), "1970-01-01T00:00:01.001000+00:00");
    }
}
