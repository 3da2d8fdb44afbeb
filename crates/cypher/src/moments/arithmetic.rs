//! Adding durations to points in time.

use crate::error::Result;
use crate::temporal::{
    DAY_NANOS, DAY_SECONDS, DateTime, Duration, LocalDateTime, LocalTime, NANOS, Time, too_long,
};
use crate::value::Value;
use std::sync::Arc;

/// A point in time and a duration; none if the value is no point in time.
pub(crate) fn add(value: &Value, duration: Duration) -> Result<Option<Value>> {
    Ok(Some(match value {
        Value::Date(it) => {
            let days = duration.days.checked_add(duration.seconds / DAY_SECONDS);
            let moved = it.plus_months(duration.months)?;
            Value::Date(moved.plus_days(days.ok_or_else(too_long)?)?)
        }
        Value::LocalTime(it) => Value::LocalTime(add_to_time(*it, duration)),
        Value::Time(it) => Value::Time(Time {
            local: add_to_time(it.local, duration),
            offset: it.offset,
        }),
        Value::LocalDateTime(it) => {
            let moved = add_date(*it, duration)?;
            Value::LocalDateTime(add_seconds(moved, duration)?)
        }
        Value::DateTime(it) => Value::DateTime(Arc::new(add_to_zoned(it, duration)?)),
        Value::Duration(it) => Value::Duration(it.plus(duration)?),
        _ => return Ok(None),
    }))
}

fn add_to_time(time: LocalTime, duration: Duration) -> LocalTime {
    let seconds = duration.seconds % DAY_SECONDS;
    let moved = time.nanos + seconds * NANOS + i64::from(duration.nanos);
    LocalTime {
        nanos: moved.rem_euclid(DAY_NANOS),
    }
}

pub(super) fn add_date(local: LocalDateTime, duration: Duration) -> Result<LocalDateTime> {
    let date = local.date.plus_months(duration.months)?;
    Ok(LocalDateTime {
        date: date.plus_days(duration.days)?,
        time: local.time,
    })
}

fn add_seconds(local: LocalDateTime, duration: Duration) -> Result<LocalDateTime> {
    let (seconds, nanos) = local.seconds();
    let nanos = nanos + i64::from(duration.nanos);
    let seconds = seconds
        .checked_add(duration.seconds)
        .and_then(|it| it.checked_add(nanos / NANOS))
        .ok_or_else(too_long)?;
    let moved = LocalDateTime::from_seconds(seconds, nanos % NANOS);
    moved.date.plus_days(0)?;
    Ok(moved)
}

fn add_to_zoned(it: &DateTime, duration: Duration) -> Result<DateTime> {
    let moved = DateTime::new(add_date(it.local, duration)?, it.zone.clone());
    let instant = moved.instant();
    let utc = LocalDateTime::from_seconds(instant.seconds, i64::from(instant.nanos));
    let (seconds, nanos) = add_seconds(utc, duration)?.seconds();
    Ok(DateTime::at(seconds, nanos, it.zone.clone()))
}
