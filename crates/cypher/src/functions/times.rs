//! Points in time and durations.

use super::{Entry, Give, Take, arg, between, int, strict, text, wrong};
use crate::context::Context;
use crate::error::Result;
use crate::moments::{self, Kind, Unit};
use crate::temporal::{self, Moment, Zone};
use crate::value::{Map, Value};

macro_rules! kind {
    ($name:literal, $kind:ident) => {
        between($name, 0, 1, Give::Temporal, |context, it| {
            create(context, Kind::$kind, it)
        })
    };
}

macro_rules! clock {
    ($name:literal, $kind:ident) => {
        between($name, 0, 1, Give::Temporal, |context, it| {
            now(context, Kind::$kind, it)
        })
    };
}

macro_rules! truncate {
    ($name:literal, $kind:ident) => {
        between($name, 2, 3, Give::Temporal, |context, it| {
            truncate(context, Kind::$kind, it)
        })
    };
}

macro_rules! between_units {
    ($name:literal, $unit:ident) => {
        strict($name, 2, Take::Any, Give::Duration, |_, it| {
            let duration = moments::between(arg(it, 0), arg(it, 1), Unit::$unit)?;
            Ok(Value::Duration(duration))
        })
    };
}

pub(super) const TABLE: &[Entry] = &[
    kind!("date", Date),
    kind!("localtime", LocalTime),
    kind!("time", Time),
    kind!("localdatetime", LocalDateTime),
    kind!("datetime", DateTime),
    clock!("date.transaction", Date),
    clock!("date.statement", Date),
    clock!("date.realtime", Date),
    clock!("localtime.transaction", LocalTime),
    clock!("localtime.statement", LocalTime),
    clock!("localtime.realtime", LocalTime),
    clock!("time.transaction", Time),
    clock!("time.statement", Time),
    clock!("time.realtime", Time),
    clock!("localdatetime.transaction", LocalDateTime),
    clock!("localdatetime.statement", LocalDateTime),
    clock!("localdatetime.realtime", LocalDateTime),
    clock!("datetime.transaction", DateTime),
    clock!("datetime.statement", DateTime),
    clock!("datetime.realtime", DateTime),
    truncate!("date.truncate", Date),
    truncate!("localtime.truncate", LocalTime),
    truncate!("time.truncate", Time),
    truncate!("localdatetime.truncate", LocalDateTime),
    truncate!("datetime.truncate", DateTime),
    between("datetime.fromepoch", 1, 2, Give::Temporal, from_epoch),
    strict(
        "datetime.fromepochmillis",
        1,
        Take::Any,
        Give::Temporal,
        from_millis,
    ),
    strict("duration", 1, Take::Any, Give::Duration, duration),
    between_units!("duration.between", All),
    between_units!("duration.inmonths", Months),
    between_units!("duration.indays", Days),
    between_units!("duration.inseconds", Seconds),
];

fn create(context: &Context<'_>, kind: Kind, arguments: &[Value]) -> Result<Value> {
    match arguments.first() {
        None => Ok(kind.of_moment(context.now, context.zone.clone())),
        Some(Value::Str(it)) => moments::from_text(kind, it),
        Some(Value::Map(it)) => {
            // `{timezone: …}` alone asks for the present there.
            let only_zone = it.entries().keys().all(|it| &**it == "timezone");
            if let (true, Some(Value::Str(zone))) = (only_zone, it.get("timezone")) {
                return Ok(kind.of_moment(context.now, Zone::from_name(zone)?));
            }
            moments::from_map(kind, it, context.now, &context.zone)
        }
        Some(other) => moments::select(kind, other),
    }
}

fn now(context: &Context<'_>, kind: Kind, arguments: &[Value]) -> Result<Value> {
    let zone = match arguments.first() {
        None => context.zone.clone(),
        Some(Value::Str(name)) => Zone::from_name(name)?,
        Some(other) => return Err(wrong(kind.name(), "a time zone as String", other)),
    };
    Ok(kind.of_moment(context.now, zone))
}

fn truncate(context: &Context<'_>, kind: Kind, arguments: &[Value]) -> Result<Value> {
    let unit = text("truncate", arguments, 0)?;
    let none = Map::default();
    let map = match arguments.get(2) {
        None => &none,
        Some(Value::Map(it)) => &**it,
        Some(other) => return Err(wrong("truncate", "a Map of fields", other)),
    };
    moments::truncate(kind, unit, arg(arguments, 1), map, &context.zone)
}

fn at(seconds: i64, nanos: i64) -> Result<Value> {
    let nanos_max = 1_000_000_000;
    let total = seconds.checked_add(nanos.div_euclid(nanos_max));
    // Years that the calendar has.
    let in_range = |it: &i64| it.unsigned_abs() < 31_556_889_864_403_199;
    let seconds = total.filter(in_range).ok_or_else(temporal::too_long)?;
    let moment = Moment {
        seconds,
        nanos: u32::try_from(nanos.rem_euclid(nanos_max)).unwrap_or(0),
    };
    Ok(Kind::DateTime.of_moment(moment, Zone::UTC))
}

fn from_epoch(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let seconds = int("datetime.fromepoch", arguments, 0)?;
    let nanos = if arguments.len() > 1 {
        int("datetime.fromepoch", arguments, 1)?
    } else {
        0
    };
    at(seconds, nanos)
}

fn from_millis(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    let millis = int("datetime.fromepochmillis", arguments, 0)?;
    at(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000)
}

fn duration(_: &Context<'_>, arguments: &[Value]) -> Result<Value> {
    match arg(arguments, 0) {
        it @ Value::Duration(_) => Ok(it.clone()),
        Value::Str(it) => Ok(Value::Duration(moments::duration_from_text(it)?)),
        Value::Map(it) => Ok(Value::Duration(moments::duration_from_map(it)?)),
        other => Err(wrong("duration", "a String, a Map or a Duration", other)),
    }
}
