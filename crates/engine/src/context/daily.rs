//! The daily logs.

use super::checksums;
use crate::files::{FileNode, Writing, read_text};
use crate::{Caller, Engine};
use jiff::Span;
use jiff::civil::Date;
use kenning_core::{Code, Error, Result, Space};
use kenning_memory::{daily, digest};
use kenning_vault::Dir;
use std::cell::Cell;

/// The key-value bucket of logs that were changed and appended to since, until somebody accepts them.
pub(super) const SUSPECTS: &str = "context.suspects";

/// The largest log of a day.
pub(super) const BYTES_MAX: u64 = 8 * 1024 * 1024;

impl Engine {
    fn log_of(&self, day: Date) -> FileNode {
        self.omi.file(&daily::file_name(day), BYTES_MAX)
    }

    /// Adds an entry to the log of today and returns the log's name.
    pub fn daily_append(&self, caller: &Caller, text: &str) -> Result<String> {
        if text.trim().is_empty() {
            return Err(Error::invalid("`content` is empty").hint("say what happened"));
        }
        let dir = self.context_to_write(caller)?;
        let at = self.local_now();
        let file = self.log_of(at.date());
        let entry = daily::entry(at, text);
        let changed = Cell::new(false);
        let writing = |before: Option<&str>| {
            changed.set(is_changed(&dir, &file.name, before.unwrap_or_default()));
            let content = format!("{}{entry}", before.unwrap_or_default());
            if content.len() as u64 > BYTES_MAX {
                return Err(Error::too_large(format!(
                    "`content`: with its {} bytes `{}` would have more than {BYTES_MAX}",
                    text.len(),
                    file.name
                ))
                .hint("shorten it, or write it to a note"));
            }
            Ok(Writing::new(content, "DailyAppended"))
        };
        self.write_context_file(caller, &dir, &file, writing)?;
        if changed.get() {
            // The new checksum covers the whole file: without this nobody would be told any more.
            self.suspect(&caller.principal.space, &file.name)?;
        }
        Ok(file.name)
    }

    fn suspect(&self, space: &Space, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.log.write(space, move |tx| {
            let fault = format!("`{name}` was changed by somebody else before its last entry");
            tx.set(SUSPECTS, &name, fault.as_bytes())
        })
    }

    /// The log of so many days ago; empty if there is none.
    pub fn daily_read(&self, caller: &Caller, days_ago: u32) -> Result<String> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(String::new());
        };
        let today = self.local_now().date();
        let Some(day) = days_before(today, i64::from(days_ago)) else {
            return Ok(String::new());
        };
        Ok(read_text(&dir, &self.log_of(day))?.unwrap_or_default())
    }

    /// The names of the logs of the last so many days, today's included, newest first.
    pub fn daily_list(&self, caller: &Caller, days: u32) -> Result<Vec<String>> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(Vec::new());
        };
        let today = self.local_now().date();
        let oldest = days_before(today, i64::from(days) - 1);
        let mut found: Vec<Date> = match dir.list(daily::FOLDER) {
            Ok(entries) => entries
                .iter()
                .filter(|it| it.is_file)
                .filter_map(|it| daily::day_of(&it.name))
                .filter(|day| oldest.is_none_or(|oldest| *day >= oldest))
                .collect(),
            Err(error) if error.code == Code::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        found.sort_unstable();
        Ok(found.into_iter().rev().map(daily::file_name).collect())
    }
}

/// Whether a log is not what was recorded of it. A record that cannot be read is the check's to tell.
fn is_changed(dir: &Dir, name: &str, text: &str) -> bool {
    let sums = checksums::of_logs(dir).unwrap_or_default();
    let recorded = sums.logs.into_iter().find(|it| it.0 == name);
    recorded.is_some_and(|it| it.1 != digest::sha256_hex(text.as_bytes()))
}

/// `None` before the first day of the calendar.
fn days_before(day: Date, n: i64) -> Option<Date> {
    let span = Span::new().try_days(n).ok()?;
    day.checked_sub(span).ok()
}
