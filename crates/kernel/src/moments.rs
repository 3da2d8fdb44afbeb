//! Timestamps in requests and answers.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use kenning_core::{Error, Hlc, Result};

/// The milliseconds of a day in UTC.
const DAY_MS: u64 = 86_400_000;

/// Milliseconds since 1970 as `2026-01-31T12:00:00.000Z`.
pub fn timestamp(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => ms.to_string(),
    }
}

/// Reads a hybrid time: milliseconds, a point, a counter.
pub(crate) fn parse_hlc(text: &str) -> Option<Hlc> {
    let (ms, counter) = text.split_once('.')?;
    let (ms, counter): (u64, u16) = (ms.parse().ok()?, counter.parse().ok()?);
    let ms = (ms < 1 << 47).then_some(ms)?;
    Some(Hlc(Hlc::from_ms(ms).0 | u64::from(counter)))
}

/// `2026-01-31T12:00:00Z`, with any offset; without one, or as a plain date, in UTC.
pub fn parse_moment(field: &str, text: &str) -> Result<u64> {
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let civil = || {
        text.parse::<DateTime>()
            .ok()
            .or_else(|| Some(text.parse::<Date>().ok()?.at(0, 0, 0, 0)))
    };
    let moment = zoned.or_else(|| Some(civil()?.to_zoned(TimeZone::UTC).ok()?.timestamp()));
    moment
        .and_then(|it| u64::try_from(it.as_millisecond()).ok())
        .ok_or_else(|| {
            Error::invalid(format!("`{field}`: `{text}` is not a time since 1970"))
                .hint("write it as 2026-01-31T12:00:00Z or 2026-01-31")
        })
}

/// The same for the end of a range that includes it: a plain date is all of that day.
pub fn parse_end(field: &str, text: &str) -> Result<u64> {
    let start = parse_moment(field, text)?;
    // A time has a `T`, a space or a colon.
    match text.contains(['T', 't', ' ', ':']) {
        true => Ok(start),
        false => Ok(start + DAY_MS - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_with_and_without_their_zone() {
        for (text, expected) in [
            ("1970-01-02", 86_400_000),
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-01T02:00:01+02:00", 1_000),
            ("1970-01-01T00:00:01.5", 1_500),
        ] {
            assert_eq!(parse_moment("as_of", text).unwrap(), expected, "{text}");
        }
        for (text, expected) in [
            ("1970-01-02", 2 * DAY_MS - 1),
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-02T00:00", DAY_MS),
        ] {
            assert_eq!(parse_end("endTime", text).unwrap(), expected, "{text}");
        }
        for text in ["", "yesterday", "1960-01-01", "2026-13-01"] {
            assert!(
                parse_moment("as_of", text)
                    .unwrap_err()
                    .message
                    .contains("`as_of`"),
                "{text}"
            );
        }
    }
}
