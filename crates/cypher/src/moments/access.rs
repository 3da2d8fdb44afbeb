//! The parts of points in time and durations: `date.year`, `duration.minutesOfHour`.

use crate::temporal::{Date, DateTime, Duration, LocalTime, NANOS, Offset};
use crate::value::Value;

/// A part by its name; none if the value is no point in time or has no such part.
pub(crate) fn component(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Date(it) => of_date(*it, name),
        Value::LocalTime(it) => of_time(*it, name),
        Value::Time(it) => of_time(it.local, name).or_else(|| of_offset(it.offset, name)),
        Value::LocalDateTime(it) => of_date(it.date, name).or_else(|| of_time(it.time, name)),
        Value::DateTime(it) => of_date_time(it, name),
        Value::Duration(it) => of_duration(it, name),
        _ => None,
    }
}

fn of_date(date: Date, name: &str) -> Option<Value> {
    let (year, month, day) = date.ymd();
    Some(Value::Int(match name {
        "year" => year,
        "quarter" => (month - 1) / 3 + 1,
        "month" => month,
        "week" => date.week().1,
        "weekYear" => date.week().0,
        "dayOfQuarter" | "quarterDay" => date.day_of_quarter(),
        "day" => day,
        "ordinalDay" => date.ordinal(),
        "dayOfWeek" | "weekDay" => date.day_of_week(),
        _ => return None,
    }))
}

fn of_time(time: LocalTime, name: &str) -> Option<Value> {
    let (seconds, nanos) = (time.nanos / NANOS, time.nanos % NANOS);
    Some(Value::Int(match name {
        "hour" => seconds / 3600,
        "minute" => seconds / 60 % 60,
        "second" => seconds % 60,
        "millisecond" => nanos / 1_000_000,
        "microsecond" => nanos / 1000,
        "nanosecond" => nanos,
        _ => return None,
    }))
}

fn of_offset(offset: i32, name: &str) -> Option<Value> {
    Some(match name {
        "timezone" | "offset" => Value::str(Offset(offset).to_string()),
        "offsetMinutes" => Value::Int(i64::from(offset / 60)),
        "offsetSeconds" => Value::Int(i64::from(offset)),
        _ => return None,
    })
}

fn of_date_time(it: &DateTime, name: &str) -> Option<Value> {
    let instant = it.instant();
    match name {
        "timezone" => Some(Value::str(it.zone.to_string())),
        "epochSeconds" => Some(Value::Int(instant.seconds)),
        "epochMillis" => {
            let millis = instant.seconds.checked_mul(1000)?;
            Some(Value::Int(millis + i64::from(instant.nanos / 1_000_000)))
        }
        _ => of_date(it.local.date, name)
            .or_else(|| of_time(it.local.time, name))
            .or_else(|| of_offset(it.offset, name)),
    }
}

fn of_duration(it: &Duration, name: &str) -> Option<Value> {
    let nanos = i64::from(it.nanos);
    let scaled = |factor: i64| {
        let scaled = it.seconds.checked_mul(factor)?;
        scaled.checked_add(nanos / (NANOS / factor))
    };
    Some(Value::Int(match name {
        "years" => it.months / 12,
        "quarters" => it.months / 3,
        "months" => it.months,
        "weeks" => it.days / 7,
        "days" => it.days,
        "hours" => it.seconds / 3600,
        "minutes" => it.seconds / 60,
        "seconds" => it.seconds,
        "milliseconds" => scaled(1000)?,
        "microseconds" => scaled(1_000_000)?,
        "nanoseconds" => scaled(NANOS)?,
        "quartersOfYear" => it.months / 3 % 4,
        "monthsOfQuarter" => it.months % 3,
        "monthsOfYear" => it.months % 12,
        "daysOfWeek" => it.days % 7,
        "minutesOfHour" => it.seconds / 60 % 60,
        "secondsOfMinute" => it.seconds % 60,
        "millisecondsOfSecond" => nanos / 1_000_000,
        "microsecondsOfSecond" => nanos / 1000,
        "nanosecondsOfSecond" => nanos,
        _ => return None,
    }))
}
