//! Time zones: offsets, and names with their history.

use super::print::Offset;
use crate::error::{Error, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// So many seconds ahead of UTC.
    Offset(i32),
    /// One of the time zone database.
    Named(TimeZone),
}

impl Zone {
    pub(crate) const UTC: Self = Self::Offset(0);

    /// The zone that a text names: `Z`, `+01:00`, `Europe/Stockholm`.
    ///
    /// # Errors
    ///
    /// There is no such zone.
    pub fn from_name(name: &str) -> Result<Self> {
        let name = name.trim();
        if let Some(offset) = super::parse::offset(name) {
            return Ok(Self::Offset(offset));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
        let known = (!name.is_empty() && name.len() <= 64 && name.chars().all(plain))
            .then(|| TimeZone::get(name).ok())
            .flatten();
        known.map(Self::Named).ok_or_else(|| {
            let message = format!(
                "unknown time zone `{name}`: expected an offset such as `+01:00` or a name such as \
                 `Europe/Stockholm`"
            );
            Error::argument(message)
        })
    }

    /// The offset of an instant.
    pub(crate) fn offset_at(&self, seconds: i64) -> i32 {
        match self {
            Self::Offset(it) => *it,
            Self::Named(zone) => zone.to_offset(timestamp(seconds)).seconds(),
        }
    }

    /// The offset of a local time, given in seconds since 1970 as if in UTC.
    pub(crate) fn offset_of_local(&self, seconds: i64) -> i32 {
        match self {
            Self::Offset(it) => *it,
            Self::Named(zone) => {
                let utc = jiff::tz::Offset::UTC;
                let local = utc.to_datetime(timestamp(seconds));
                zone.to_ambiguous_timestamp(local)
                    .compatible()
                    .map_or(0, |it| {
                        let wanted = timestamp(seconds).as_second();
                        i32::try_from(wanted - it.as_second()).unwrap_or(0)
                    })
            }
        }
    }
}

/// Years that the database does not reach have the rules of its first and last.
fn timestamp(seconds: i64) -> Timestamp {
    const DAY: i64 = super::DAY_SECONDS;
    let min = Timestamp::MIN.as_second() + 3 * DAY;
    let max = Timestamp::MAX.as_second() - 3 * DAY;
    Timestamp::from_second(seconds.clamp(min, max)).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl fmt::Display for Zone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(it) => write!(out, "{}", Offset(*it)),
            Self::Named(zone) => out.write_str(zone.iana_name().unwrap_or("Z")),
        }
    }
}
