//! Points in time and durations from maps, texts and other points in time; truncation.

use crate::error::{Error, Result};
use crate::temporal::{
    DAY_SECONDS, Date, DateTime, Duration, Fraction, LocalDateTime, LocalTime, Moment, NANOS, Time,
    Zone, parse,
};
use crate::value::{Map, Value};
use std::sync::Arc;

/// The five kinds of points in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Date,
    LocalTime,
    Time,
    LocalDateTime,
    DateTime,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::LocalTime => "localtime",
            Self::Time => "time",
            Self::LocalDateTime => "localdatetime",
            Self::DateTime => "datetime",
        }
    }

    fn has_date(self) -> bool {
        !matches!(self, Self::LocalTime | Self::Time)
    }

    fn has_time(self) -> bool {
        self != Self::Date
    }

    fn has_zone(self) -> bool {
        matches!(self, Self::Time | Self::DateTime)
    }

    /// A moment, as this kind shows it in a zone.
    pub(crate) fn of_moment(self, moment: Moment, zone: Zone) -> Value {
        let it = DateTime::at(moment.seconds, i64::from(moment.nanos), zone);
        self.of_parts(it)
    }

    fn of_parts(self, it: DateTime) -> Value {
        match self {
            Self::Date => Value::Date(it.local.date),
            Self::LocalTime => Value::LocalTime(it.local.time),
            Self::Time => Value::Time(Time {
                local: it.local.time,
                offset: it.offset,
            }),
            Self::LocalDateTime => Value::LocalDateTime(it.local),
            Self::DateTime => Value::DateTime(Arc::new(it)),
        }
    }
}

/// The point in time that a text says.
pub(crate) fn from_text(kind: Kind, text: &str) -> Result<Value> {
    let text = text.trim();
    let read = match kind {
        Kind::Date => parse::date(text).map(|it| it.map(Value::Date)),
        Kind::LocalTime => parse::local_time(text).map(|it| Ok(Value::LocalTime(it))),
        Kind::Time => parse::time(text).map(|it| Ok(Value::Time(it))),
        Kind::LocalDateTime => parse::local_date_time(text).map(|it| it.map(Value::LocalDateTime)),
        Kind::DateTime => {
            parse::date_time(text).map(|it| it.map(|it| Value::DateTime(Arc::new(it))))
        }
    };
    read.unwrap_or_else(|| {
        let message = format!("`{text}` is not a {} of ISO 8601", kind.name());
        Err(Error::argument(message))
    })
}

/// The duration that a text says.
pub(crate) fn duration_from_text(text: &str) -> Result<Duration> {
    parse::duration(text.trim()).unwrap_or_else(|| {
        let message = format!("`{text}` is not a duration of ISO 8601, such as `P1DT12H`");
        Err(Error::argument(message))
    })
}

/// What a point in time says: its date, its time, its zone.
fn parts(value: &Value) -> Option<(Option<Date>, Option<LocalTime>, Option<Zone>)> {
    Some(match value {
        Value::Date(it) => (Some(*it), None, None),
        Value::LocalTime(it) => (None, Some(*it), None),
        Value::Time(it) => (None, Some(it.local), Some(Zone::Offset(it.offset))),
        Value::LocalDateTime(it) => (Some(it.date), Some(it.time), None),
        Value::DateTime(it) => (
            Some(it.local.date),
            Some(it.local.time),
            Some(it.zone.clone()),
        ),
        _ => return None,
    })
}

/// Another point in time as this kind.
pub(crate) fn select(kind: Kind, value: &Value) -> Result<Value> {
    let Some((date, time, zone)) = parts(value) else {
        let message = format!("`{}` cannot be made of {}", kind.name(), value.type_name());
        return Err(Error::type_error(message));
    };
    if kind.has_date() && date.is_none() || kind.has_time() && !kind.has_date() && time.is_none() {
        let message = format!("`{}` cannot be made of {}", kind.name(), value.type_name());
        return Err(Error::type_error(message));
    }
    if let (Kind::DateTime, Value::DateTime(_)) = (kind, value) {
        return Ok(value.clone());
    }
    if let (Kind::Time, Value::DateTime(it)) = (kind, value) {
        return Ok(kind.of_parts((**it).clone()));
    }
    let local = LocalDateTime {
        date: date.unwrap_or(Date { days: 0 }),
        time: time.unwrap_or(LocalTime { nanos: 0 }),
    };
    Ok(kind.of_parts(DateTime::new(local, zone.unwrap_or(Zone::UTC))))
}

const DATE_KEYS: &[&str] = &[
    "year",
    "month",
    "day",
    "week",
    "dayOfWeek",
    "ordinalDay",
    "quarter",
    "dayOfQuarter",
    "date",
    "datetime",
];
const TIME_KEYS: &[&str] = &[
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
    "time",
    "datetime",
];

/// The point in time that a map describes: `{year: 1984, month: 10}`, `{date: other, day: 28}`.
pub(crate) fn from_map(kind: Kind, map: &Map, now: Moment, default: &Zone) -> Result<Value> {
    check_keys(kind, map)?;
    let base = |key: &str| -> Result<_> {
        let value = map.get(key).or_else(|| map.get("datetime"));
        let Some(value) = value else {
            return Ok((None, None, None));
        };
        parts(value).ok_or_else(|| {
            let message = format!("`{key}` is {}: expected a point in time", value.type_name());
            Error::type_error(message)
        })
    };
    let date = if kind.has_date() {
        let (date, _, _) = base("date")?;
        build_date(map, date)?
    } else {
        Date { days: 0 }
    };
    let (base_date, base_time, base_zone) = base("time")?;
    let time = build_time(map, base_time, false)?;
    let local = LocalDateTime { date, time };
    let wanted = zone_of(map)?;
    if !kind.has_zone() {
        return Ok(kind.of_parts(DateTime::new(local, Zone::UTC)));
    }
    if kind == Kind::Time {
        // The offset of a named zone is that of the day, if one is known, or of today.
        let day = base_date.map_or(now.seconds, |it| it.days * DAY_SECONDS);
        let source = match map.get("time").or_else(|| map.get("datetime")) {
            Some(Value::DateTime(it)) => Some(it.offset),
            _ => base_zone.as_ref().map(|it| it.offset_at(day)),
        };
        let wanted = wanted.map(|it| it.offset_at(day));
        let own = source
            .or(wanted)
            .unwrap_or_else(|| default.offset_at(now.seconds));
        let it = Time {
            local: time,
            offset: own,
        };
        return Ok(Value::Time(
            wanted.map_or(it, |wanted| it.at_offset(wanted)),
        ));
    }
    let own = base_zone
        .or_else(|| wanted.clone())
        .unwrap_or_else(|| default.clone());
    let it = DateTime::new(local, own);
    Ok(kind.of_parts(match wanted {
        Some(wanted) => it.in_zone(wanted),
        None => it,
    }))
}

fn check_keys(kind: Kind, map: &Map) -> Result<()> {
    for key in map.entries().keys() {
        let known = kind.has_date() && DATE_KEYS.contains(&&**key)
            || kind.has_time() && TIME_KEYS.contains(&&**key)
            || kind.has_zone() && &**key == "timezone";
        if !known {
            let message = format!("`{}` has no field `{key}`", kind.name());
            return Err(Error::argument(message));
        }
    }
    Ok(())
}

fn zone_of(map: &Map) -> Result<Option<Zone>> {
    match map.get("timezone") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Str(name)) => Zone::from_name(name).map(Some),
        Some(other) => {
            let message = format!("`timezone` is {}: expected a String", other.type_name());
            Err(Error::type_error(message))
        }
    }
}

fn int(map: &Map, key: &str) -> Result<Option<i64>> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(it)) => Ok(Some(*it)),
        Some(other) => {
            let message = format!("`{key}` is {}: expected an Integer", other.type_name());
            Err(Error::type_error(message))
        }
    }
}

fn build_date(map: &Map, base: Option<Date>) -> Result<Date> {
    let get = |key: &str| int(map, key);
    let year = get("year")?;
    let need_year = |base: Option<i64>| {
        year.or(base)
            .ok_or_else(|| Error::argument("`year` is missing: a date needs a year"))
    };
    let (week, day_of_week) = (get("week")?, get("dayOfWeek")?);
    if week.is_some() || day_of_week.is_some() {
        let (base_year, base_week) = base.map(Date::week).unzip();
        let week = week
            .or(base_week)
            .ok_or_else(|| missing("week", "dayOfWeek"))?;
        let day = day_of_week.or(base.map(Date::day_of_week)).unwrap_or(1);
        return Date::from_week(need_year(base_year)?, week, day);
    }
    let base_year = base.map(|it| it.ymd().0);
    if let Some(ordinal) = get("ordinalDay")? {
        return Date::from_ordinal(need_year(base_year)?, ordinal);
    }
    let (quarter, day_of_quarter) = (get("quarter")?, get("dayOfQuarter")?);
    if quarter.is_some() || day_of_quarter.is_some() {
        let year = need_year(base_year)?;
        let base_quarter = base.map(|it| (it.ymd().1 - 1) / 3 + 1);
        let quarter = quarter
            .or(base_quarter)
            .ok_or_else(|| missing("quarter", "dayOfQuarter"))?;
        return match (day_of_quarter, base) {
            (Some(day), _) => Date::from_quarter(year, quarter, day),
            (None, None) => Date::from_quarter(year, quarter, 1),
            (None, Some(base)) => {
                Date::from_quarter(year, quarter, 1)?;
                let (base_year, base_month, _) = base.ymd();
                let months = (year - base_year) * 12 + (quarter - 1 - (base_month - 1) / 3) * 3;
                base.plus_months(months)
            }
        };
    }
    let (month, day) = (get("month")?, get("day")?);
    let (base_month, base_day) = base.map(|it| (it.ymd().1, it.ymd().2)).unzip();
    if day.is_some() && month.or(base_month).is_none() {
        return Err(missing("month", "day"));
    }
    Date::from_ymd(
        need_year(base_year)?,
        month.or(base_month).unwrap_or(1),
        day.or(base_day).unwrap_or(1),
    )
}

fn missing(what: &str, given: &str) -> Error {
    Error::argument(format!("`{given}` is given without `{what}`"))
}

fn build_time(map: &Map, base: Option<LocalTime>, adds_fraction: bool) -> Result<LocalTime> {
    let seconds = base.map(|it| it.nanos / NANOS);
    let part = |key: &str, max: i64, base: Option<i64>| -> Result<i64> {
        let value = int(map, key)?.or(base).unwrap_or(0);
        if !(0..=max).contains(&value) {
            let message = format!("`{key}` is `{value}`: expected 0 to {max}");
            return Err(Error::argument(message));
        }
        Ok(value)
    };
    let hour = part("hour", 23, seconds.map(|it| it / 3600))?;
    let minute = part("minute", 59, seconds.map(|it| it / 60 % 60))?;
    let second = part("second", 59, seconds.map(|it| it % 60))?;
    let given = |key: &str| int(map, key).map(|it| it.is_some());
    let (millis, micros, nanos) = (
        given("millisecond")?,
        given("microsecond")?,
        given("nanosecond")?,
    );
    let base_nanos = base.map_or(0, |it| it.nanos % NANOS);
    let fraction = if millis || micros || nanos {
        let micros_max = if millis { 999 } else { 999_999 };
        let nanos_max = match (millis, micros) {
            (_, true) => 999,
            (true, false) => 999_999,
            (false, false) => 999_999_999,
        };
        let fraction = part("millisecond", 999, None)? * 1_000_000
            + part("microsecond", micros_max, None)? * 1000
            + part("nanosecond", nanos_max, None)?;
        fraction + if adds_fraction { base_nanos } else { 0 }
    } else {
        base_nanos
    };
    if fraction >= NANOS {
        return Err(Error::argument(
            "the fraction of a second is a second or more",
        ));
    }
    Ok(LocalTime {
        nanos: (hour * 3600 + minute * 60 + second) * NANOS + fraction,
    })
}

/// A point in time without what is finer than a unit, then with the fields of a map.
pub(crate) fn truncate(
    kind: Kind,
    unit: &str,
    value: &Value,
    map: &Map,
    default: &Zone,
) -> Result<Value> {
    let Some((date, time, zone)) = parts(value) else {
        let message = format!("expected a point in time, found {}", value.type_name());
        return Err(Error::type_error(message));
    };
    check_keys(kind, map)?;
    let time = time.unwrap_or(LocalTime { nanos: 0 });
    let date = match date {
        Some(date) => date,
        None if !kind.has_date() => Date { days: 0 },
        None => {
            let message = format!("{} has no date to truncate", value.type_name());
            return Err(Error::type_error(message));
        }
    };
    let (base_date, base_time) = truncate_parts(unit, date, time, kind)?;
    let date = if kind.has_date() {
        build_date(map, Some(base_date))?
    } else {
        base_date
    };
    let time = build_time(map, Some(base_time), true)?;
    let zone = zone_of(map)?.or(zone).unwrap_or_else(|| default.clone());
    let local = LocalDateTime { date, time };
    Ok(kind.of_parts(DateTime::new(local, zone)))
}

fn truncate_parts(
    unit: &str,
    date: Date,
    time: LocalTime,
    kind: Kind,
) -> Result<(Date, LocalTime)> {
    let (year, month, _) = date.ymd();
    let midnight = LocalTime { nanos: 0 };
    let to = |nanos: i64| LocalTime {
        nanos: time.nanos - time.nanos % nanos,
    };
    let first = |year: i64| Date::from_ymd(year, 1, 1);
    let lower = unit.to_ascii_lowercase();
    let date_unit = match lower.as_str() {
        "millennium" => Some(first(year.div_euclid(1000) * 1000)?),
        "century" => Some(first(year.div_euclid(100) * 100)?),
        "decade" => Some(first(year.div_euclid(10) * 10)?),
        "year" => Some(first(year)?),
        "weekyear" => Some(Date::from_week(date.week().0, 1, 1)?),
        "quarter" => Some(Date::from_ymd(year, (month - 1) / 3 * 3 + 1, 1)?),
        "month" => Some(Date::from_ymd(year, month, 1)?),
        "week" => Some(date.plus_days(1 - date.day_of_week())?),
        "day" => Some(date),
        _ => None,
    };
    if let Some(date) = date_unit {
        let allowed = kind.has_date() || lower == "day";
        if allowed {
            return Ok((date, midnight));
        }
    } else if kind.has_time() {
        let nanos = match lower.as_str() {
            "hour" => 3600 * NANOS,
            "minute" => 60 * NANOS,
            "second" => NANOS,
            "millisecond" => 1_000_000,
            "microsecond" => 1000,
            _ => 0,
        };
        if nanos > 0 {
            return Ok((date, to(nanos)));
        }
    }
    let message = format!("a {} cannot be truncated to `{unit}`", kind.name());
    Err(Error::argument(message))
}

const DURATION_KEYS: &[&str] = &[
    "years",
    "quarters",
    "months",
    "weeks",
    "days",
    "hours",
    "minutes",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
];

/// The duration that a map describes: `{days: 14, hours: 16.5}`.
pub(crate) fn duration_from_map(map: &Map) -> Result<Duration> {
    let mut parts = Fraction::default();
    for (key, value) in map.entries() {
        if !DURATION_KEYS.contains(&&**key) {
            return Err(Error::argument(format!("`duration` has no field `{key}`")));
        }
        match value {
            Value::Int(it) => parts.add_whole(key, i128::from(*it)),
            Value::Float(it) => parts.add(key, *it),
            other => {
                let message = format!("`{key}` is {}: expected a number", other.type_name());
                return Err(Error::type_error(message));
            }
        }
    }
    parts.duration()
}
