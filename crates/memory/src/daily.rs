//! The daily log: one Markdown file a day, with a heading for each entry.

use crate::lines::unix;
use crate::stamp;
use jiff::civil::{Date, DateTime};
use std::collections::BTreeSet;

/// The folder of the logs.
pub const FOLDER: &str = "memory";

/// How the entry of a session's end begins, and its second line.
const SESSION_ENDED: &str = "Session ended at ";
const LAST_TASK: &str = "Last task: ";

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was written; `None` for text before the first heading.
    pub at: Option<DateTime>,
    /// What was written.
    pub text: String,
}

/// The text to append to the file. A line that could be taken for a heading of an entry gets a
/// backslash, which Markdown does not show.
pub fn entry(at: DateTime, content: &str) -> String {
    let mut escaped = String::with_capacity(content.len());
    for line in content.split_inclusive('\n') {
        if heading(line.trim_start_matches('\\')).is_some() {
            escaped.push('\\');
        }
        escaped.push_str(line);
    }
    format!("\n\n## [{}]\n\n{escaped}\n", stamp::iso(at))
}

/// `memory/2026-11-15.md`
pub fn file_name(day: Date) -> String {
    format!("{FOLDER}/{day}.md")
}

/// The day of a log, by its file name; `None` if the file is not a log.
pub fn day_of(name: &str) -> Option<Date> {
    let day = name.strip_suffix(".md")?;
    let parsed: Date = day.parse().ok()?;
    // `20261115` is a date too, but not the name of a log.
    (parsed.to_string() == day).then_some(parsed)
}

/// The entries of a log, oldest first.
pub fn parse(text: &str) -> Vec<Entry> {
    let text = unix(text);
    let mut entries = Vec::new();
    let (mut at, mut lines) = (None, Vec::new());
    for line in text.split('\n') {
        match heading(line) {
            Some(next) => {
                entries.extend(finished(at.replace(next), &lines));
                lines.clear();
            }
            None => lines.push(line),
        }
    }
    entries.extend(finished(at, &lines));
    entries
}

/// Where the entries of a log begin, in bytes.
pub fn starts(text: &str) -> Vec<usize> {
    let mut at = 0;
    let mut starts = Vec::new();
    for line in text.split_inclusive('\n') {
        if heading(line.trim_end_matches(['\n', '\r'])).is_some() {
            starts.push(at);
        }
        at += line.len();
    }
    starts
}

/// A log with the entries of both, in the order of their times. It does not matter which one is first, and
/// joining again changes nothing.
pub fn join(one: &str, other: &str) -> String {
    let (one, other) = (unix(one), unix(other));
    if one == other {
        return one.into_owned();
    }
    let mut entries: BTreeSet<(Option<DateTime>, &str)> = BTreeSet::new();
    for text in [&one, &other] {
        let mut ends = starts(text);
        ends.push(text.len());
        let mut from = 0;
        for end in ends {
            let piece = text[from..end].trim_matches('\n');
            if !piece.is_empty() {
                let at = heading(piece.lines().next().unwrap_or_default());
                entries.insert((at, piece));
            }
            from = end;
        }
    }
    // As if they had been appended one after the other.
    let mut joined = String::new();
    for (at, piece) in entries {
        if at.is_some() || !joined.is_empty() {
            joined.push_str("\n\n");
        }
        joined.push_str(piece);
        joined.push('\n');
    }
    joined
}

/// Whether an entry only says that a session ended.
pub fn is_session_end(entry: &Entry) -> bool {
    let mut lines = entry.text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    first.starts_with(SESSION_ENDED) && second.starts_with(LAST_TASK) && lines.next().is_none()
}

/// What is appended when a session ends.
pub fn session_end(at: &str, task: &str) -> String {
    format!("{SESSION_ENDED}{at}\n{LAST_TASK}{task}")
}

/// An entry of these lines; `None` if they are empty and have no heading.
fn finished(at: Option<DateTime>, lines: &[&str]) -> Option<Entry> {
    let plain = lines.iter().map(|line| match line.strip_prefix('\\') {
        Some(rest) if heading(rest.trim_start_matches('\\')).is_some() => rest,
        _ => line,
    });
    let text = plain.collect::<Vec<_>>().join("\n");
    let text = text.trim_matches('\n').to_owned();
    (at.is_some() || !text.trim().is_empty()).then_some(Entry { at, text })
}

/// The time in `## [2026-11-15T02:11:00]`.
fn heading(line: &str) -> Option<DateTime> {
    let inner = line.strip_prefix("## [")?.trim_end().strip_suffix(']')?;
    stamp::parse(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, datetime};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const AT: DateTime = datetime(2026, 11, 15, 2, 11, 0, 0);

    #[test]
    fn two_logs_of_one_day_are_joined_in_either_order() {
        let later = datetime(2026, 11, 15, 3, 0, 0, 0);
        let base = format!("# Sunday\n{}", entry(AT, "rain"));
        let one = format!("{base}{}", entry(later, "on the laptop"));
        let other = format!("{base}{}", entry(AT, "on the workstation"));
        let joined = join(&one, &other);
        assert_eq!(joined, join(&other, &one));
        assert_eq!(joined, join(&joined, &one));
        assert_eq!(join(&one, &one), one);
        let texts: Vec<String> = parse(&joined).into_iter().map(|it| it.text).collect();
        assert_eq!(
            texts,
            ["# Sunday", "on the workstation", "rain", "on the laptop"]
        );
    }

    #[test]
    fn an_entry_has_the_form_of_the_contract() {
        assert_eq!(
            entry(AT, "Session ended at 2026-11-15T02:10:00\nLast task: none"),
            "\n\n## [2026-11-15T02:11:00]\n\n\
             Session ended at 2026-11-15T02:10:00\nLast task: none\n"
        );
    }

    #[test]
    fn entries_begin_at_their_headings() {
        let text = format!("# My day\n{}{}", entry(AT, "one"), entry(AT, "two\n## not"));
        let starts = starts(&text);
        assert_eq!(starts.len(), 2);
        for at in starts {
            assert!(text[at..].starts_with("## [2026-11-15T02:11:00]\n"), "{at}");
        }
    }

    #[test]
    fn the_end_of_a_session_is_known_and_nothing_else_is() {
        let is_end = |text: &str| {
            is_session_end(&Entry {
                at: None,
                text: text.to_owned(),
            })
        };
        assert!(is_end(&session_end("2026-11-15T02:10:00", "none")));
        for other in [
            "",
            "Session ended at noon",
            "Session ended at noon\nLast task: x\nWe found the leak",
            "Last task: x",
        ] {
            assert!(!is_end(other), "{other}");
        }
    }

    #[test]
    fn only_a_day_is_the_name_of_a_log() {
        assert_eq!(file_name(date(2026, 1, 5)), "memory/2026-01-05.md");
        assert_eq!(day_of("2026-01-05.md"), Some(date(2026, 1, 5)));
        for name in [
            "2026-13-05.md",
            "2026-1-5.md",
            "20260105.md",
            "2026-01-05.txt",
            "2026-01-05",
            "notes.md",
            ".md",
            "2026-01-05T10:00:00.md",
            "+002026-01-05.md",
            "",
        ] {
            assert_eq!(day_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_log_reads_as_its_entries_and_what_stands_before_them() {
        let text = format!(
            "# My day\n{}{}## [later]\nstill the second\n",
            entry(AT, "one"),
            entry(AT, "two\n\n## [2020-01-01T00:00:00]\nforged")
        );
        let entries = parse(&text.replace('\n', "\r\n"));
        let texts: Vec<_> = entries
            .iter()
            .map(|entry| (entry.at, entry.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (None, "# My day"),
                (Some(AT), "one"),
                (
                    Some(AT),
                    "two\n\n## [2020-01-01T00:00:00]\nforged\n## [later]\nstill the second"
                ),
            ]
        );
        assert!(parse("").is_empty());
    }

    proptest! {
        #[test]
        fn every_entry_comes_back_whatever_it_says(
            contents in vec(
                prop_oneof!["(?s).{0,40}", "(\\\\|\n|## |\\[2020-01-01\\]|\\[2020-01-01T00:00:00\\]|x){0,9}"],
                0..5,
            ),
        ) {
            let text: String = contents.iter().map(|it| entry(AT, it)).collect();
            let read: Vec<String> = parse(&text).into_iter().map(|it| it.text).collect();
            let expected: Vec<&str> = contents.iter().map(|it| it.trim_matches('\n')).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
