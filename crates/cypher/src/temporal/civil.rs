//! The proleptic Gregorian calendar, and the weeks of ISO 8601.

use super::{Date, too_long};
use crate::error::{Error, Result};

pub(super) const YEAR_MAX: i64 = 999_999_999;

/// Days since 1970-01-01 of a day whose month and day are valid.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month_shifted = (month + 9) % 12;
    let day_of_year = (153 * month_shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn within(name: &str, value: i64, from: i64, to: i64) -> Result<()> {
    if (from..=to).contains(&value) {
        return Ok(());
    }
    let message = format!("`{name}` is `{value}`: expected {from} to {to}");
    Err(Error::argument(message))
}

impl Date {
    pub(crate) fn from_ymd(year: i64, month: i64, day: i64) -> Result<Self> {
        within("year", year, -YEAR_MAX, YEAR_MAX)?;
        within("month", month, 1, 12)?;
        within("day", day, 1, month_length(year, month))?;
        Ok(Self {
            days: days_of(year, month, day),
        })
    }

    pub(crate) fn from_ordinal(year: i64, ordinal: i64) -> Result<Self> {
        within("year", year, -YEAR_MAX, YEAR_MAX)?;
        within(
            "ordinalDay",
            ordinal,
            1,
            if is_leap(year) { 366 } else { 365 },
        )?;
        Ok(Self {
            days: days_of(year, 1, 1) + ordinal - 1,
        })
    }

    pub(crate) fn from_week(year: i64, week: i64, day_of_week: i64) -> Result<Self> {
        within("year", year, -YEAR_MAX, YEAR_MAX)?;
        within("week", week, 1, 53)?;
        within("dayOfWeek", day_of_week, 1, 7)?;
        let first = first_monday(year);
        if week == 53 && first + 52 * 7 >= first_monday(year + 1) {
            return Err(Error::argument(format!("year {year} has no week 53")));
        }
        Ok(Self {
            days: first + (week - 1) * 7 + day_of_week - 1,
        })
    }

    pub(crate) fn from_quarter(year: i64, quarter: i64, day: i64) -> Result<Self> {
        within("year", year, -YEAR_MAX, YEAR_MAX)?;
        within("quarter", quarter, 1, 4)?;
        let month = (quarter - 1) * 3 + 1;
        let length: i64 = (month..month + 3).map(|it| month_length(year, it)).sum();
        within("dayOfQuarter", day, 1, length)?;
        Ok(Self {
            days: days_of(year, month, 1) + day - 1,
        })
    }

    /// Year, month and day.
    pub(crate) fn ymd(self) -> (i64, i64, i64) {
        let shifted = self.days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
        let month = if month_shifted < 10 {
            month_shifted + 3
        } else {
            month_shifted - 9
        };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        (year, month, day)
    }

    /// Monday is 1.
    pub(crate) fn day_of_week(self) -> i64 {
        (self.days + 3).rem_euclid(7) + 1
    }

    pub(crate) fn ordinal(self) -> i64 {
        self.days - days_of(self.ymd().0, 1, 1) + 1
    }

    pub(crate) fn day_of_quarter(self) -> i64 {
        let (year, month, _) = self.ymd();
        self.days - days_of(year, (month - 1) / 3 * 3 + 1, 1) + 1
    }

    /// The year that its week belongs to, and the week.
    pub(crate) fn week(self) -> (i64, i64) {
        let year = self.ymd().0;
        let of = |year: i64| (year, (self.days - first_monday(year)).div_euclid(7) + 1);
        if self.days < first_monday(year) {
            of(year - 1)
        } else if self.days >= first_monday(year + 1) {
            of(year + 1)
        } else {
            of(year)
        }
    }

    /// Months later; a day that the month has not becomes its last.
    pub(crate) fn plus_months(self, months: i64) -> Result<Self> {
        let (year, month, day) = self.ymd();
        let total = (year * 12 + month - 1)
            .checked_add(months)
            .ok_or_else(too_long)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        if year.abs() > YEAR_MAX {
            return Err(too_long());
        }
        Self::from_ymd(year, month, day.min(month_length(year, month)))
    }

    pub(crate) fn plus_days(self, days: i64) -> Result<Self> {
        let days = self.days.checked_add(days).ok_or_else(too_long)?;
        let range = days_of(-YEAR_MAX, 1, 1)..=days_of(YEAR_MAX, 12, 31);
        if !range.contains(&days) {
            return Err(too_long());
        }
        Ok(Self { days })
    }
}

/// The Monday of the first week of a year: the week with January 4th.
fn first_monday(year: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}
