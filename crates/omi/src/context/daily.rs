//! The daily logs.

use super::{Place, checksums};
use crate::Omi;
use jiff::Span;
use jiff::civil::Date;
use kenning_core::{Code, Error, Result, Space};
use kenning_kernel::FileNode;
use kenning_kernel::files::{Writing, read_text};
use kenning_kernel::{Bucket, Caller, Text, roots};
use kenning_memory::daily;
use kenning_search::passages;
use kenning_store::Passage;
use kenning_text::hex;
use kenning_vault::Dir;
use std::cell::Cell;

/// The key-value bucket of logs that were changed from outside and then appended to, until somebody
/// accepts them.
pub(super) const SUSPECTS: Bucket<Text> = Bucket::new("context.suspects");

/// The most bytes of a daily log.
pub(super) const BYTES_MAX: u64 = 8 * 1024 * 1024;

impl Omi {
    fn log_of(&self, caller: &Caller, day: Date) -> Result<FileNode> {
        let place = self.place(caller)?;
        Ok(self.file_at(&place, &daily::file_name(day), BYTES_MAX))
    }

    /// Adds an entry to the log of today and returns the log's name.
    pub fn daily_append(&self, caller: &Caller, text: &str) -> Result<String> {
        if text.trim().is_empty() {
            return Err(Error::invalid("`content` is empty").hint("say what happened"));
        }
        let dir = self.context_to_write(caller)?;
        let at = self.local_now();
        let file = self.log_of(caller, at.date())?;
        self.remember_project(caller)?;
        let entry = daily::entry(at, text);
        let too_large = || {
            let message = format!(
                "`content`: with these {} bytes `{}` would have more than {BYTES_MAX}",
                text.len(),
                file.name
            );
            Error::too_large(message).hint("shorten it, or write it to a note")
        };
        let appended = |before: &str| format!("{before}{entry}");
        self.change_log(caller, &dir, &file, appended, too_large)?;
        Ok(file.name)
    }

    /// Changes the text of a log. If somebody else had changed it before, that is remembered until it
    /// is accepted.
    fn change_log(
        &self,
        caller: &Caller,
        dir: &Dir,
        file: &FileNode,
        change: impl Fn(&str) -> String,
        too_large: impl Fn() -> Error,
    ) -> Result<()> {
        let is_suspect = Cell::new(false);
        let writing = |before: Option<&str>| {
            let before = before.unwrap_or_default();
            is_suspect.set(is_changed(dir, &file.name, before));
            let content = change(before);
            if content.len() as u64 > BYTES_MAX {
                return Err(too_large());
            }
            Ok(Writing::new(content, "DailyAppended"))
        };
        self.write_context_file(caller, dir, file, writing)?;
        if is_suspect.get() {
            // The new checksum covers the whole file, so without this the change would no longer be
            // reported.
            self.suspect(&caller.principal.space, &file.name)?;
        }
        Ok(())
    }

    fn suspect(&self, space: &Space, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.kernel.log().write(space, move |tx| {
            let fault = format!("`{name}` was changed by somebody else before its last entry");
            SUSPECTS.set(tx, &name, &fault.into())
        })
    }

    /// The log of this many days ago; empty if there is none.
    pub fn daily_read(&self, caller: &Caller, days_ago: u32) -> Result<String> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(String::new());
        };
        let today = self.local_now().date();
        let Some(day) = days_before(today, i64::from(days_ago)) else {
            return Ok(String::new());
        };
        Ok(read_text(&dir, &self.log_of(caller, day)?)?.unwrap_or_default())
    }

    /// The log of a day that is named as its file is: `2026-11-16`.
    pub fn daily_read_of(&self, caller: &Caller, date: &str) -> Result<String> {
        let name = date.trim().trim_end_matches(".md");
        let day = daily::day_of(&format!("{name}.md")).ok_or_else(|| {
            let shown: String = date.chars().take(40).collect();
            Error::invalid(format!("`date`: `{shown}` is not a date"))
                .hint("write it as 2026-11-16; `omi daily list` names the logs")
        })?;
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(String::new());
        };
        Ok(read_text(&dir, &self.log_of(caller, day)?)?.unwrap_or_default())
    }

    /// The names of the logs of the last days, today's included, newest first.
    pub fn daily_list(&self, caller: &Caller, days: u32) -> Result<Vec<String>> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(Vec::new());
        };
        let today = self.local_now().date();
        let oldest = days_before(today, i64::from(days) - 1);
        let place = self.place(caller)?;
        let mut found: Vec<Date> = match dir.list(&place.name(daily::FOLDER)) {
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
        let names = found.into_iter().rev().map(daily::file_name);
        Ok(names.map(|it| place.name(&it)).collect())
    }
}

/// Whether a node is the log of a day, by its key.
pub fn is_daily_log(key: &str) -> bool {
    let name = Place::split_key(key)
        .and_then(|it| it.1.strip_prefix(daily::FOLDER))
        .and_then(|it| it.strip_prefix('/'));
    name.is_some_and(|it| daily::day_of(it).is_some())
}

/// Files of an import.
impl Omi {
    /// NOW.md or a log.
    pub(crate) fn imported_file<'a>(&self, key: &'a str) -> Option<&'a str> {
        let name = key.strip_prefix(roots::OMI.name)?.strip_prefix(':')?;
        let is_now = Place::split(name).1 == kenning_memory::now::FILE;
        (is_now || is_daily_log(key)).then_some(name)
    }

    pub(crate) fn has_imported_file(&self, caller: &Caller, name: &str) -> Result<bool> {
        let dir = self.context_to_write(caller)?;
        let there = read_text(&dir, &self.kernel.omi().file(name, BYTES_MAX))?;
        Ok(there.is_some())
    }

    pub(crate) fn write_imported_file(
        &self,
        caller: &Caller,
        name: &str,
        text: &str,
    ) -> Result<()> {
        let dir = self.context_to_write(caller)?;
        let file = self.kernel.omi().file(name, BYTES_MAX);
        let _lock = self
            .kernel
            .lock_file(&file, std::time::Duration::from_secs(2))?;
        if read_text(&dir, &file)?.is_none() {
            dir.write(&file.name, text.as_bytes())?;
            checksums::record(&dir, &file, text)?;
        }
        Ok(())
    }

    /// Puts the entries of an imported log before those of the existing log. NOW.md is left alone: it
    /// describes the work here.
    pub(crate) fn add_imported_file(&self, caller: &Caller, name: &str, text: &str) -> Result<()> {
        let dir = self.context_to_write(caller)?;
        let file = self.kernel.omi().file(name, BYTES_MAX);
        let there = read_text(&dir, &file)?.unwrap_or_default();
        if !is_daily_log(&file.key) || there.contains(text.trim()) {
            return Ok(());
        }
        let too_large = || {
            Error::too_large(format!("`{name}` would have more than {BYTES_MAX} bytes"))
                .hint("move the existing log first")
        };
        let joined = |before: &str| format!("{}\n\n{}", text.trim_end(), before.trim_start());
        self.change_log(caller, &dir, &file, joined, too_large)
    }
}

/// The passages of a log. Entries of one day are unrelated, so each has its own passages. The end of
/// a session has none: nobody searches for it, and it repeats the words of its task. The date is not
/// part of an entry's words, otherwise `Postgres 16` would find the 16th; a query for the whole date
/// finds the log by its name.
pub fn passages_of_log(body: &str) -> Vec<Passage> {
    let mut ends = daily::starts(body);
    // The text before the first entry is mostly an empty line.
    if ends.first().is_some_and(|&it| body[..it].trim().is_empty()) {
        ends.remove(0);
    }
    ends.push(body.len());
    let mut all = Vec::new();
    let mut start = 0;
    for end in ends {
        let entry = &body[start..end];
        if daily::parse(entry).iter().all(daily::is_session_end) {
            start = end;
            continue;
        }
        for mut passage in passages("", entry) {
            passage.n = u32::try_from(all.len()).unwrap_or(u32::MAX);
            passage.start += start as u64;
            all.push(passage);
        }
        start = end;
    }
    all
}

/// The entry of a log that contains a passage, by its first byte. `None` for the end of a session,
/// which is not a memory.
pub(crate) fn entry_at(body: &str, at: usize) -> Option<String> {
    let starts = daily::starts(body);
    let start = starts.iter().rfind(|&&it| it <= at).copied();
    // The empty line before the first entry is a part of its passage.
    let start = match start {
        None if body
            .get(at..)
            .is_some_and(|it| it.trim_start().starts_with("## [")) =>
        {
            starts.first().copied()
        }
        start => start,
    };
    let end = starts.iter().find(|&&it| it > start.unwrap_or(at)).copied();
    let text = body.get(start.unwrap_or(0)..end.unwrap_or(body.len()))?;
    let entry = daily::parse(text).into_iter().next()?;
    let is_empty = entry.text.trim().is_empty();
    (!is_empty && !daily::is_session_end(&entry)).then(|| entry.text.trim().to_owned())
}

/// Whether a log differs from its checksum. A checksum that cannot be read is reported by the check.
fn is_changed(dir: &Dir, name: &str, text: &str) -> bool {
    let (place, name) = Place::split(name);
    let sums = checksums::of_logs(dir, &place).unwrap_or_default();
    let recorded = sums.logs.into_iter().find(|it| it.0 == name);
    recorded.is_some_and(|it| it.1 != hex::sha256(text.as_bytes()))
}

/// `None` before the first day of the calendar.
fn days_before(day: Date, n: i64) -> Option<Date> {
    let span = Span::new().try_days(n).ok()?;
    day.checked_sub(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{DateTime, datetime};

    const AT: DateTime = datetime(2026, 11, 15, 2, 11, 0, 0);

    #[test]
    fn every_entry_of_a_log_has_passages_of_its_own_and_they_joined_are_the_log() {
        let long = "the long story of the leak\n\n".repeat(200);
        let body: String = ["found the leak", long.as_str(), "went home"]
            .iter()
            .map(|it| daily::entry(AT, it))
            .collect();
        let end = daily::entry(AT, &daily::session_end("2026-11-15T02:10:00", "the leak"));
        let with_end = passages_of_log(&format!("{body}{end}"));
        assert_eq!(with_end.len(), passages_of_log(&body).len());
        let all = passages_of_log(&body);
        assert!(all.len() > 4, "{}", all.len());
        let joined: String = all.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(joined, body);
        for (n, passage) in all.iter().enumerate() {
            assert_eq!(passage.n as usize, n);
            let start = usize::try_from(passage.start).unwrap();
            assert!(body[start..].starts_with(&passage.text));
            let entry = entry_at(&body, start).unwrap();
            let expected = match n {
                0 => "found the leak",
                n if n + 1 == all.len() => "went home",
                _ => long.trim(),
            };
            assert_eq!(entry, expected, "passage {n}");
        }
    }

    #[test]
    fn the_end_of_a_session_is_no_memory() {
        let body = daily::entry(AT, &daily::session_end("2026-11-15T02:10:00", "x"));
        assert_eq!(entry_at(&body, 0), None);
        assert_eq!(entry_at("", 0), None);
        assert_eq!(entry_at("# My day\n", 0), Some("# My day".to_owned()));
    }

    #[test]
    fn only_logs_of_days_are_daily_logs() {
        assert!(is_daily_log("omi:memory/2026-11-15.md"));
        assert!(is_daily_log("omi:projects/shop-12/memory/2026-11-15.md"));
        for other in [
            "omi:NOW.md",
            "vault:memory/2026-11-15.md",
            "omi:memory/x.md",
            "omi:projects/shop-12/NOW.md",
            "omi:projects/memory/2026-11-15.md",
        ] {
            assert!(!is_daily_log(other), "{other}");
        }
    }
}
