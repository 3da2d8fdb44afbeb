//! Arithmetic of durations, and durations of parts that may be fractions.

use super::{DAY_SECONDS, Duration, MONTH_SECONDS, NANOS, too_long};
use crate::error::Result;

impl Duration {
    pub(crate) fn plus(self, other: Self) -> Result<Self> {
        let add = |a: i64, b: i64| a.checked_add(b).ok_or_else(too_long);
        Self::new(
            add(self.months, other.months)?,
            add(self.days, other.days)?,
            add(self.seconds, other.seconds)?,
            i64::from(self.nanos) + i64::from(other.nanos),
        )
    }

    pub(crate) fn negated(self) -> Result<Self> {
        let negate = |it: i64| it.checked_neg().ok_or_else(too_long);
        Self::new(
            negate(self.months)?,
            negate(self.days)?,
            negate(self.seconds)?,
            -i64::from(self.nanos),
        )
    }

    /// Each part scaled; what is left of months becomes days, and of days seconds.
    pub(crate) fn scaled(self, factor: f64) -> Result<Self> {
        let mut parts = Fraction::default();
        let seconds = self.seconds as f64 + f64::from(self.nanos) / NANOS as f64;
        parts.add("months", self.months as f64 * factor);
        parts.add("days", self.days as f64 * factor);
        parts.add("seconds", seconds * factor);
        parts.duration()
    }
}

/// Parts of a duration that may be fractions; what is left of a unit goes into the next smaller one.
#[derive(Default)]
pub(crate) struct Fraction {
    months: i128,
    days: i128,
    nanos: i128,
    /// A part was not finite or beyond all bounds.
    broken: bool,
}

impl Fraction {
    pub(crate) fn add(&mut self, unit: &str, amount: f64) {
        // Durations beyond this are refused at the end anyway; within it, integers are exact.
        if !amount.is_finite() || amount.abs() > 1e24 {
            self.broken = true;
            return;
        }
        let whole = amount.trunc();
        self.add_whole(unit, whole as i128);
        self.add_rest(unit, amount - whole);
    }

    pub(crate) fn add_whole(&mut self, unit: &str, whole: i128) {
        if whole.abs() > 1 << 80 {
            self.broken = true;
            return;
        }
        let nanos = i128::from(NANOS);
        match unit {
            "years" => self.months += whole * 12,
            "quarters" => self.months += whole * 3,
            "months" => self.months += whole,
            "weeks" => self.days += whole * 7,
            "days" => self.days += whole,
            "hours" => self.nanos += whole * 3600 * nanos,
            "minutes" => self.nanos += whole * 60 * nanos,
            "seconds" => self.nanos += whole * nanos,
            "milliseconds" => self.nanos += whole * 1_000_000,
            "microseconds" => self.nanos += whole * 1000,
            _ => self.nanos += whole,
        }
    }

    fn add_rest(&mut self, unit: &str, rest: f64) {
        if rest == 0.0 {
            return;
        }
        let nanos = NANOS as f64;
        match unit {
            "years" => self.add("months", rest * 12.0),
            "quarters" => self.add("months", rest * 3.0),
            "months" => {
                let days = rest * MONTH_SECONDS as f64 / DAY_SECONDS as f64;
                self.add("days", days);
            }
            "weeks" => self.add("days", rest * 7.0),
            "days" => self.add("seconds", rest * DAY_SECONDS as f64),
            "hours" => self.add("seconds", rest * 3600.0),
            "minutes" => self.add("seconds", rest * 60.0),
            "seconds" => self.nanos += (rest * nanos).round() as i128,
            "milliseconds" => self.nanos += (rest * 1e6).round() as i128,
            "microseconds" => self.nanos += (rest * 1e3).round() as i128,
            _ => self.nanos += rest.round() as i128,
        }
    }

    /// A number in digits: exact where it is whole, and for seconds also after the point.
    pub(crate) fn add_text(
        &mut self,
        unit: &str,
        sign: i64,
        whole: &str,
        after: &str,
    ) -> Option<()> {
        let number: i128 = whole.get(..whole.len().min(20))?.parse().ok()?;
        if whole.len() > 20 {
            self.broken = true;
        }
        self.add_whole(unit, number * i128::from(sign));
        if after.is_empty() {
            return Some(());
        }
        if unit == "seconds" {
            let short = after.get(..after.len().min(9))?;
            let nanos: i128 = format!("{short:0<9}").parse().ok()?;
            self.nanos += nanos * i128::from(sign);
            return Some(());
        }
        let rest: f64 = format!("0.{after}").parse().ok()?;
        self.add_rest(unit, rest * sign as f64);
        Some(())
    }

    pub(crate) fn duration(self) -> Result<Duration> {
        if self.broken {
            return Err(too_long());
        }
        let narrow = |it: i128| i64::try_from(it).map_err(|_| too_long());
        let nanos = i128::from(NANOS);
        Duration::new(
            narrow(self.months)?,
            narrow(self.days)?,
            narrow(self.nanos.div_euclid(nanos))?,
            narrow(self.nanos.rem_euclid(nanos))?,
        )
    }
}
