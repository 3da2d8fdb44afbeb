//! Points in time and durations as text.

use super::{DAY_NANOS, Date, DateTime, Duration, LocalDateTime, LocalTime, NANOS, Time, Zone};
use std::fmt;

/// An offset from UTC in seconds.
pub(crate) struct Offset(pub(crate) i32);

impl fmt::Display for Offset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return out.write_str("Z");
        }
        let sign = if self.0 < 0 { '-' } else { '+' };
        let size = self.0.unsigned_abs();
        write!(out, "{sign}{:02}:{:02}", size / 3600, size / 60 % 60)?;
        if !size.is_multiple_of(60) {
            write!(out, ":{:02}", size % 60)?;
        }
        Ok(())
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.ymd();
        match year {
            ..0 => write!(out, "-{:04}", -year)?,
            0..=9999 => write!(out, "{year:04}")?,
            _ => write!(out, "+{year}")?,
        }
        write!(out, "-{month:02}-{day:02}")
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_assert!((0..DAY_NANOS).contains(&self.nanos));
        let (seconds, nanos) = (self.nanos / NANOS, self.nanos % NANOS);
        write!(out, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
        if seconds % 60 != 0 || nanos != 0 {
            write!(out, ":{:02}", seconds % 60)?;
        }
        if nanos != 0 {
            let digits = format!("{nanos:09}");
            write!(out, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.local, Offset(self.offset))
    }
}

impl fmt::Display for LocalDateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}T{}", self.date, self.time)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.local, Offset(self.offset))?;
        if let Zone::Named(_) = self.zone {
            write!(out, "[{}]", self.zone)?;
        }
        Ok(())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos);
        if self.months == 0 && self.days == 0 && whole == 0 {
            return out.write_str("PT0S");
        }
        out.write_str("P")?;
        let dates = [
            (self.months / 12, 'Y'),
            (self.months % 12, 'M'),
            (self.days, 'D'),
        ];
        for (part, unit) in dates.into_iter().filter(|it| it.0 != 0) {
            write!(out, "{part}{unit}")?;
        }
        if whole == 0 {
            return Ok(());
        }
        out.write_str("T")?;
        let seconds = whole / i128::from(NANOS);
        let nanos = (whole % i128::from(NANOS)).unsigned_abs();
        for (part, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
            if part != 0 {
                write!(out, "{part}{unit}")?;
            }
        }
        let rest = seconds % 60;
        if rest != 0 || nanos != 0 {
            if rest == 0 && whole < 0 {
                out.write_str("-")?;
            }
            write!(out, "{rest}")?;
            if nanos != 0 {
                let digits = format!("{nanos:09}");
                write!(out, ".{}", digits.trim_end_matches('0'))?;
            }
            out.write_str("S")?;
        }
        Ok(())
    }
}
