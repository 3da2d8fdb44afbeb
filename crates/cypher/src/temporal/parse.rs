//! Texts of ISO 8601, in their long and short forms.

use super::{Date, DateTime, Duration, Fraction, LocalDateTime, LocalTime, NANOS, Time, Zone};
use crate::error::Result;

/// Reads a text from the left.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn eat(&mut self, it: char) -> bool {
        match self.0.strip_prefix(it) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Exactly so many digits.
    fn digits(&mut self, n: usize) -> Option<i64> {
        let text = self.0.get(..n)?;
        if !text.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        self.0 = self.0.get(n..)?;
        text.parse().ok()
    }

    fn n_digits(&self) -> usize {
        self.0.bytes().take_while(u8::is_ascii_digit).count()
    }

    /// All digits here.
    fn number(&mut self) -> Option<&'a str> {
        let n = self.n_digits();
        let text = self.0.get(..n).filter(|it| !it.is_empty())?;
        self.0 = self.0.get(n..)?;
        Some(text)
    }

    fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn date(text: &str) -> Option<Result<Date>> {
    let mut it = Reader(text);
    let sign = match text.chars().next()? {
        '-' => -1,
        '+' => 1,
        _ => 0,
    };
    let year = if sign == 0 {
        it.digits(4)?
    } else {
        it.0 = it.0.get(1..)?;
        let digits = it.number().filter(|it| it.len() <= 9)?;
        sign * digits.parse::<i64>().ok()?
    };
    if it.is_done() {
        return Some(Date::from_ymd(year, 1, 1));
    }
    let dashed = it.eat('-');
    let date = if it.eat('W') {
        let week = it.digits(2)?;
        let day = if it.is_done() {
            1
        } else if dashed == it.eat('-') {
            it.digits(1)?
        } else {
            return None;
        };
        Date::from_week(year, week, day)
    } else if it.eat('Q') {
        let quarter = it.digits(1)?;
        let day = if it.is_done() {
            1
        } else if dashed == it.eat('-') {
            it.digits(2)?
        } else {
            return None;
        };
        Date::from_quarter(year, quarter, day)
    } else {
        match (dashed, it.n_digits()) {
            (_, 3) => Date::from_ordinal(year, it.digits(3)?),
            (true, 2) => {
                let month = it.digits(2)?;
                let day = if it.eat('-') { it.digits(2)? } else { 1 };
                Date::from_ymd(year, month, day)
            }
            (false, 2) => Date::from_ymd(year, it.digits(2)?, 1),
            (false, 4) => {
                let month = it.digits(2)?;
                Date::from_ymd(year, month, it.digits(2)?)
            }
            _ => return None,
        }
    };
    it.is_done().then_some(date)
}

pub(crate) fn local_time(text: &str) -> Option<LocalTime> {
    let mut it = Reader(text);
    let time = time_of(&mut it)?;
    it.is_done().then_some(time)
}

fn time_of(it: &mut Reader<'_>) -> Option<LocalTime> {
    let hour = it.digits(2)?;
    let mut minute = 0;
    let mut second = 0;
    let mut nanos = 0;
    let long = it.eat(':');
    if long || it.n_digits() >= 2 {
        minute = it.digits(2)?;
        if it.eat(':') == long && it.n_digits() >= 2 {
            second = it.digits(2)?;
            if it.eat('.') || it.eat(',') {
                nanos = fraction(it.number()?)?;
            }
        }
    }
    let valid = hour < 24 && minute < 60 && second < 60;
    valid.then_some(LocalTime {
        nanos: (hour * 3600 + minute * 60 + second) * NANOS + nanos,
    })
}

/// Digits after a point, as nanoseconds.
fn fraction(digits: &str) -> Option<i64> {
    let short = digits.get(..digits.len().min(9))?;
    format!("{short:0<9}").parse().ok()
}

/// `Z`, `+01`, `+0100`, `+01:00`, `+01:00:00`.
pub(crate) fn offset(text: &str) -> Option<i32> {
    let mut it = Reader(text);
    let offset = offset_of(&mut it)?;
    it.is_done().then_some(offset)
}

fn offset_of(it: &mut Reader<'_>) -> Option<i32> {
    if it.eat('Z') || it.eat('z') {
        return Some(0);
    }
    let sign = if it.eat('-') {
        -1
    } else if it.eat('+') {
        1
    } else {
        return None;
    };
    let hours = it.digits(2)?;
    let long = it.eat(':');
    let minutes = if long || it.n_digits() >= 2 {
        it.digits(2)?
    } else {
        0
    };
    let seconds = if it.eat(':') == long && it.n_digits() >= 2 {
        it.digits(2)?
    } else {
        0
    };
    let size = hours * 3600 + minutes * 60 + seconds;
    let valid = minutes < 60 && seconds < 60 && size <= 18 * 3600;
    valid.then(|| sign * i32::try_from(size).unwrap_or(0))
}

pub(crate) fn time(text: &str) -> Option<Time> {
    let mut it = Reader(text);
    let local = time_of(&mut it)?;
    let offset = if it.is_done() { 0 } else { offset_of(&mut it)? };
    it.is_done().then_some(Time { local, offset })
}

pub(crate) fn local_date_time(text: &str) -> Option<Result<LocalDateTime>> {
    let (day, hours) = match text.split_once('T') {
        Some((day, hours)) => (day, local_time(hours)?),
        None => (text, LocalTime { nanos: 0 }),
    };
    Some(date(day)?.map(|date| LocalDateTime { date, time: hours }))
}

pub(crate) fn date_time(text: &str) -> Option<Result<DateTime>> {
    let (day, hours) = text.split_once('T').unwrap_or((text, "00"));
    let date = match date(day)? {
        Ok(it) => it,
        Err(error) => return Some(Err(error)),
    };
    let mut it = Reader(hours);
    let time = time_of(&mut it)?;
    let local = LocalDateTime { date, time };
    let offset = match it.0.chars().next() {
        None | Some('[') => None,
        Some(_) => Some(offset_of(&mut it)?),
    };
    let name = if it.eat('[') {
        Some(it.0.strip_suffix(']')?)
    } else if it.is_done() {
        None
    } else {
        return None;
    };
    let zone = match name.map(Zone::from_name).transpose() {
        Ok(it) => it,
        Err(error) => return Some(Err(error)),
    };
    Some(Ok(match (offset, zone) {
        (None, None) => DateTime::new(local, Zone::UTC),
        (Some(offset), None) => DateTime::new(local, Zone::Offset(offset)),
        (None, Some(zone)) => DateTime::new(local, zone),
        (Some(offset), Some(zone)) => DateTime::new(local, Zone::Offset(offset)).in_zone(zone),
    }))
}

/// `P1Y2M3W4DT5H6M7.8S` with signs and fractions, or `P2012-02-02T14:37:21.545`.
pub(crate) fn duration(text: &str) -> Option<Result<Duration>> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let body = text.strip_prefix('P').filter(|it| !it.is_empty())?;
    let mut parts = Fraction::default();
    let (dates, times) = match body.split_once('T') {
        Some((_, "")) => return None,
        Some((dates, times)) => (dates, times),
        None => (body, ""),
    };
    let is_date = dates
        .get(..4)
        .is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
        && dates.get(4..5) == Some("-");
    if is_date {
        let mut it = Reader(dates);
        let year = it.digits(4)?;
        it.eat('-');
        let month = it.digits(2)?;
        let day = if it.eat('-') { it.digits(2)? } else { 0 };
        let time = if times.is_empty() {
            LocalTime { nanos: 0 }
        } else {
            local_time(times)?
        };
        if !it.is_done() || month > 12 || day > 31 {
            return None;
        }
        return Some(Duration::new(year * 12 + month, day, 0, time.nanos));
    }
    for (text, units) in [(dates, "YMWD"), (times, "HMS")] {
        let mut it = Reader(text);
        let mut units = units;
        while !it.is_done() {
            let (sign, whole, after) = signed(&mut it)?;
            let unit = it.0.chars().next()?;
            it.0 = it.0.get(1..)?;
            let place = units.find(unit)?;
            units = units.get(place + 1..)?;
            let sign = if negative { -sign } else { sign };
            let name = match (unit, text.as_ptr() == times.as_ptr()) {
                ('Y', _) => "years",
                ('M', false) => "months",
                ('W', _) => "weeks",
                ('D', _) => "days",
                ('H', _) => "hours",
                ('M', true) => "minutes",
                _ => "seconds",
            };
            parts.add_text(name, sign, whole, after)?;
        }
    }
    Some(parts.duration())
}

/// A sign, whole digits, and the digits after the point.
fn signed<'a>(it: &mut Reader<'a>) -> Option<(i64, &'a str, &'a str)> {
    let sign = if it.eat('-') {
        -1
    } else {
        it.eat('+');
        1
    };
    let whole = it.number()?;
    let after = if it.eat('.') || it.eat(',') {
        it.number()?
    } else {
        ""
    };
    Some((sign, whole, after))
}
