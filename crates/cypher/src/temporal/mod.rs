//! Days, times and durations, as the language has them.
//!
//! Years reach from -999,999,999 to 999,999,999, so the calendar is our own ([`civil`]); named time zones
//! are those of `jiff` ([`zone`]). Nothing here reads a clock: the moment comes with the query.

mod civil;
mod duration;
pub(crate) mod parse;
mod print;
mod zone;

pub(crate) use duration::Fraction;
pub(crate) use print::Offset;
pub use zone::Zone;

use crate::error::{Error, Result};
use std::cmp::Ordering;

pub(crate) const DAY_SECONDS: i64 = 86_400;
pub(crate) const DAY_NANOS: i64 = DAY_SECONDS * NANOS;
pub(crate) const NANOS: i64 = 1_000_000_000;
/// The average of the Gregorian calendar: what a fraction of a month is made of.
pub(crate) const MONTH_SECONDS: i64 = 2_629_746;

/// A day: days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    pub(crate) days: i64,
}

/// A time of day: nanoseconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime {
    pub(crate) nanos: i64,
}

/// A time of day with its offset from UTC in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Time {
    pub(crate) local: LocalTime,
    pub(crate) offset: i32,
}

/// A day and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDateTime {
    pub(crate) date: Date,
    pub(crate) time: LocalTime,
}

/// A day and a time in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateTime {
    pub(crate) local: LocalDateTime,
    pub(crate) offset: i32,
    pub(crate) zone: Zone,
}

/// Months, days and seconds, which are not converted into one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) seconds: i64,
    /// From 0 to 999,999,999, also where seconds are negative.
    pub(crate) nanos: i32,
}

/// A moment: seconds since 1970 in UTC, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00Z.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

impl Time {
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let instant = |it: &Self| it.local.nanos - i64::from(it.offset) * NANOS;
        instant(self)
            .cmp(&instant(other))
            .then(self.offset.cmp(&other.offset))
    }

    /// The same instant at another offset.
    pub(crate) fn at_offset(self, offset: i32) -> Self {
        let moved = self.local.nanos + i64::from(offset - self.offset) * NANOS;
        Self {
            local: LocalTime {
                nanos: moved.rem_euclid(DAY_NANOS),
            },
            offset,
        }
    }
}

impl LocalDateTime {
    /// Seconds since 1970 as if in UTC, and nanoseconds of the second.
    pub(crate) fn seconds(self) -> (i64, i64) {
        let seconds = self.date.days * DAY_SECONDS + self.time.nanos / NANOS;
        (seconds, self.time.nanos % NANOS)
    }

    pub(crate) fn from_seconds(seconds: i64, nanos: i64) -> Self {
        Self {
            date: Date {
                days: seconds.div_euclid(DAY_SECONDS),
            },
            time: LocalTime {
                nanos: seconds.rem_euclid(DAY_SECONDS) * NANOS + nanos,
            },
        }
    }
}

impl DateTime {
    /// A local time in a zone. Where clocks go back the earlier is meant, where they go forward the later.
    pub(crate) fn new(local: LocalDateTime, zone: Zone) -> Self {
        let (seconds, _) = local.seconds();
        let offset = zone.offset_of_local(seconds);
        // A time that the zone skips is moved on by as much as clocks are.
        let instant = seconds - i64::from(offset);
        Self::at(instant, local.time.nanos % NANOS, zone)
    }

    /// An instant in a zone.
    pub(crate) fn at(seconds: i64, nanos: i64, zone: Zone) -> Self {
        let offset = zone.offset_at(seconds);
        Self {
            local: LocalDateTime::from_seconds(seconds + i64::from(offset), nanos),
            offset,
            zone,
        }
    }

    /// The moment.
    #[must_use]
    pub fn instant(&self) -> Moment {
        let (seconds, nanos) = self.local.seconds();
        Moment {
            seconds: seconds - i64::from(self.offset),
            nanos: u32::try_from(nanos).unwrap_or(0),
        }
    }

    pub(crate) fn in_zone(&self, zone: Zone) -> Self {
        let instant = self.instant();
        Self::at(instant.seconds, i64::from(instant.nanos), zone)
    }

    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let by_instant = self.instant().cmp(&other.instant());
        by_instant
            .then(self.offset.cmp(&other.offset))
            .then_with(|| self.zone.to_string().cmp(&other.zone.to_string()))
    }
}

impl Duration {
    /// A duration of parts, with nanoseconds carried into seconds.
    ///
    /// # Errors
    ///
    /// A part is too large.
    pub fn new(months: i64, days: i64, seconds: i64, nanos: i64) -> Result<Self> {
        let carried = seconds.checked_add(nanos.div_euclid(NANOS));
        Ok(Self {
            months,
            days,
            seconds: carried.ok_or_else(too_long)?,
            nanos: i32::try_from(nanos.rem_euclid(NANOS)).unwrap_or(0),
        })
    }

    /// How long it is on average.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let length = |it: &Self| {
            let seconds = i128::from(it.months) * i128::from(MONTH_SECONDS)
                + i128::from(it.days) * i128::from(DAY_SECONDS)
                + i128::from(it.seconds);
            (seconds, it.nanos)
        };
        let parts = |it: &Self| (it.months, it.days, it.seconds, it.nanos);
        length(self)
            .cmp(&length(other))
            .then_with(|| parts(self).cmp(&parts(other)))
    }
}

pub(crate) fn too_long() -> Error {
    Error::overflow("a duration or a point in time is too large")
}
