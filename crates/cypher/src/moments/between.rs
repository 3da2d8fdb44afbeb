//! How long it is from one point in time to another.

use super::arithmetic::add_date;
use crate::error::{Error, Result};
use crate::temporal::{Date, DateTime, Duration, LocalDateTime, LocalTime, NANOS, Zone};
use crate::value::Value;

/// What the answer is counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Months, then days, then seconds.
    All,
    Months,
    Days,
    Seconds,
}

/// What is known of a point in time.
struct Point {
    date: Option<Date>,
    time: Option<LocalTime>,
    zone: Option<Zone>,
}

fn point(value: &Value) -> Result<Point> {
    let (date, time, zone) = match value {
        Value::Date(it) => (Some(*it), None, None),
        Value::LocalTime(it) => (None, Some(*it), None),
        Value::Time(it) => (None, Some(it.local), Some(Zone::Offset(it.offset))),
        Value::LocalDateTime(it) => (Some(it.date), Some(it.time), None),
        Value::DateTime(it) => (
            Some(it.local.date),
            Some(it.local.time),
            Some(it.zone.clone()),
        ),
        other => {
            let message = format!("expected a point in time, found {}", other.type_name());
            return Err(Error::type_error(message));
        }
    };
    Ok(Point { date, time, zone })
}

/// What one of them lacks is taken from the other.
pub(crate) fn between(from: &Value, to: &Value, unit: Unit) -> Result<Duration> {
    let (a, b) = (point(from)?, point(to)?);
    let has_dates = a.date.is_some() && b.date.is_some();
    let date_a = a.date.or(b.date).unwrap_or(Date { days: 0 });
    let date_b = b.date.or(a.date).unwrap_or(Date { days: 0 });
    let midnight = LocalTime { nanos: 0 };
    let local_a = LocalDateTime {
        date: date_a,
        time: a.time.unwrap_or(midnight),
    };
    let local_b = LocalDateTime {
        date: date_b,
        time: b.time.unwrap_or(midnight),
    };
    let zone_a = a
        .zone
        .clone()
        .or_else(|| b.zone.clone())
        .unwrap_or(Zone::UTC);
    let zone_b = b.zone.or(a.zone).unwrap_or(Zone::UTC);
    let start = exact(local_a, zone_a.clone(), from);
    let end = exact(local_b, zone_b, to).in_zone(zone_a);
    let (months, rest_months) = if has_dates {
        months_between(&start, &end)?
    } else {
        (0, start.clone())
    };
    match unit {
        Unit::Months => Duration::new(months, 0, 0, 0),
        Unit::Days if has_dates => Duration::new(0, days_between(&start, &end), 0, 0),
        Unit::Days => Duration::new(0, 0, 0, 0),
        Unit::Seconds => {
            let (seconds, nanos) = seconds_between(&start, &end);
            Duration::new(0, 0, seconds, nanos)
        }
        Unit::All => {
            let days = if has_dates {
                days_between(&rest_months, &end)
            } else {
                0
            };
            let moved = move_by(&rest_months, 0, days)?;
            let (seconds, nanos) = seconds_between(&moved, &end);
            Duration::new(months, days, seconds, nanos)
        }
    }
}

/// A point that knows its instant keeps it, also where its clock shows a time twice.
fn exact(local: LocalDateTime, zone: Zone, value: &Value) -> DateTime {
    match value {
        Value::DateTime(it) => (**it).clone(),
        _ => DateTime::new(local, zone),
    }
}

fn move_by(from: &DateTime, months: i64, days: i64) -> Result<DateTime> {
    let moved = add_date(from.local, Duration::new(months, days, 0, 0)?)?;
    if months == 0 && days == 0 {
        return Ok(from.clone());
    }
    Ok(DateTime::new(moved, from.zone.clone()))
}

fn months_between(start: &DateTime, end: &DateTime) -> Result<(i64, DateTime)> {
    let months_of = |it: &DateTime| {
        let (year, month, _) = it.local.date.ymd();
        year * 12 + month
    };
    let day_time = |date_time: &DateTime| (date_time.local.date.ymd().2, date_time.local.time);
    let mut months = months_of(end) - months_of(start);
    if months > 0 && day_time(end) < day_time(start) {
        months -= 1;
    } else if months < 0 && day_time(end) > day_time(start) {
        months += 1;
    }
    Ok((months, move_by(start, months, 0)?))
}

fn days_between(start: &DateTime, end: &DateTime) -> i64 {
    let days = end.local.date.days - start.local.date.days;
    if days > 0 && end.local.time < start.local.time {
        days - 1
    } else if days < 0 && end.local.time > start.local.time {
        days + 1
    } else {
        days
    }
}

fn seconds_between(start: &DateTime, end: &DateTime) -> (i64, i64) {
    let (a, b) = (start.instant(), end.instant());
    let nanos = i64::from(b.nanos) - i64::from(a.nanos);
    (b.seconds - a.seconds, nanos.clamp(-NANOS, NANOS))
}
