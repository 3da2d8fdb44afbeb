//! Moments as pydantic writes them: UTC with `Z`, and no fraction or six digits of one.
//!
//! The reference verifies what it parsed and wrote again, so any other form breaks a signature.

/// Milliseconds since 1970 as a manifest has them.
pub fn written(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(i64::try_from(days).unwrap_or(i64::MAX));
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    let fraction = if milli == 0 {
        String::new()
    } else {
        format!(".{milli:03}000")
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// A moment in microseconds since 1970; other forms of ISO 8601 with a zone are read too.
pub fn read(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digits = |from: usize, n: usize| -> Option<i64> {
        let part = text.get(from..from + n)?;
        part.bytes()
            .all(|it| it.is_ascii_digit())
            .then(|| part.parse().ok())?
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|it| any.contains(it));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"T ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let is_valid = (1..=12).contains(&month) && day >= 1 && hour < 24 && minute < 60 && second < 61;
    let days = days_of(year, month, day);
    if !is_valid || civil(days) != (year, month, day) {
        return None;
    }
    let mut at = 19;
    let mut micros = 0;
    if is(at, b".") {
        let fraction: String = text
            .get(20..)?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if fraction.is_empty() || fraction.len() > 9 {
            return None;
        }
        at = 20 + fraction.len();
        micros = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    }
    let offset = match text.get(at..)? {
        // Octo's columns without a zone are UTC.
        "Z" | "" => 0,
        zone if zone.len() == 6 && is(at, b"+-") && is(at + 3, b":") => {
            let minutes = digits(at + 1, 2)? * 60 + digits(at + 4, 2)?;
            if is(at, b"-") { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = days * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

/// Year, month and day of a day since 1970 (Howard Hinnant's algorithm).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_pydantic_does_and_read_in_other_forms_too() {
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(written(1_767_323_045_678), "2026-01-02T03:04:05.678000Z");
        let micros = Some(1_767_323_045_678_901);
        assert_eq!(read("2026-01-02T03:04:05.678901Z"), micros);
        assert_eq!(read("2026-01-02T04:34:05.678901+01:30"), micros);
        assert_eq!(read("2026-01-02T03:04:05.678901234Z"), micros);
        assert_eq!(read("2026-01-02T03:04:05"), Some(1_767_323_045_000_000));
        for bad in [
            "",
            "2026-01-02",
            "2026-13-02T03:04:05Z",
            "2026-02-30T00:00:00Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05+1",
            "２026-01-02T03:04:05Z",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        for ms in [951_782_400_000, 1_709_251_199_999, 4_102_444_800_001] {
            assert_eq!(read(&written(ms)), Some(i64::try_from(ms).unwrap() * 1_000));
        }
    }
}
