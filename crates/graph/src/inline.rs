//! Fields in the text, as Dataview for Obsidian writes them: a line `key:: value`, or `[key:: value]` and
//! `(key:: value)` within one.

use crate::{body, frontmatter};
use serde_json::{Map, Value};

/// Fields that are read of one text.
const FIELDS_MAX: usize = 200;
const KEY_CHARS_MAX: usize = 60;
const VALUE_CHARS_MAX: usize = 2_000;
/// At most this many marks are looked at in one text, and this many bytes before and after each, so
/// that the time is linear in the length of the text.
const MARKS_MAX: usize = 10_000;
const BEFORE_BYTES: usize = 400;
const AFTER_BYTES: usize = 4 * VALUE_CHARS_MAX;

/// What is before a value.
const MARK: &str = "::";

/// The fields that stand in a Markdown text outside code and comments. The values of a key that stands there
/// more than once are joined by commas.
#[must_use]
pub fn inline_fields(text: &str) -> Map<String, Value> {
    // Most texts have none, and to tell prose from code takes much longer than to see that.
    if !text.contains(MARK) {
        return Map::new();
    }
    let body = body::walk(text, frontmatter::read(text).body_start);
    let mut fields: Map<String, Value> = Map::new();
    let mut n_marks = 0;
    for (run, _) in &body.prose {
        for (at, _) in text[run.clone()].match_indices(MARK) {
            n_marks += 1;
            if n_marks > MARKS_MAX {
                return fields;
            }
            let Some((key, value)) = field(text, run.start, run.start + at) else {
                continue;
            };
            let has_room = fields.len() < FIELDS_MAX;
            match fields.get_mut(key) {
                Some(Value::String(before)) if before.chars().count() < VALUE_CHARS_MAX => {
                    before.push_str(", ");
                    before.push_str(&value);
                }
                Some(_) => {}
                None if has_room => {
                    fields.insert(key.to_owned(), value.into());
                }
                None => return fields,
            }
        }
    }
    fields
}

/// The field whose mark stands at `at`, in a run of prose that begins at `run_start`.
fn field(text: &str, run_start: usize, at: usize) -> Option<(&str, String)> {
    let first = text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES));
    let line_start = match text[first..at].rfind('\n') {
        Some(it) => first + it + 1,
        // The line began too far before: there is no key here.
        None if first > 0 => return None,
        None => 0,
    };
    let rest = &text[at + MARK.len()..];
    let rest = &rest[..rest.floor_char_boundary(AFTER_BYTES)];
    let rest = rest.split(['\n', '\r']).next().unwrap_or(rest);
    // `std::vector` is not a field.
    if !(rest.is_empty() || rest.starts_with([' ', '\t', '[', '"'])) {
        return None;
    }
    let before = &text[run_start.max(line_start)..at];
    let bracket = before
        .rfind(['[', '(', ']', ')'])
        .map(|at| (at, before.as_bytes()[at]));
    let (key, value) = match bracket {
        Some((open, b'[')) => (&before[open + 1..], enclosed(rest, '[', ']')?),
        Some((open, b'(')) => (&before[open + 1..], enclosed(rest, '(', ')')?),
        _ => (line_key(&text[line_start..at])?, rest),
    };
    let key = key.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_'));
    let value = value.trim();
    let is_key = key.starts_with(char::is_alphabetic)
        && key.chars().count() <= KEY_CHARS_MAX
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let value: String = value.chars().take(VALUE_CHARS_MAX).collect();
    (is_key && !value.is_empty()).then_some((key, value))
}

/// A line up to its mark, without what begins a list, a quotation or a task.
fn line_key(line: &str) -> Option<&str> {
    let mut key = line.trim_start();
    loop {
        let digits = key.trim_start_matches(|it: char| it.is_ascii_digit());
        let ordered = digits
            .strip_prefix(". ")
            .filter(|_| digits.len() < key.len());
        let marked = ["- ", "+ ", "* ", "> ", ">", "[ ] ", "[x] ", "[X] "];
        let marked = marked.iter().find_map(|it| key.strip_prefix(it));
        match ordered.or(marked) {
            Some(rest) => key = rest.trim_start(),
            None => return (!key.contains(MARK)).then_some(key),
        }
    }
}

/// What stands before the bracket that closes the one before it.
fn enclosed(rest: &str, open: char, close: char) -> Option<&str> {
    let mut depth = 1_u32;
    for (at, it) in rest.char_indices() {
        if it == open {
            depth += 1;
        } else if it == close {
            depth -= 1;
            if depth == 0 {
                return Some(&rest[..at]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_of_marks_is_read_in_a_time_that_grows_with_its_length() {
        // With quadratic time each of these took minutes.
        for text in [
            "::".repeat(500_000),
            "[x:: ".repeat(200_000),
            "a:: ".repeat(200_000),
        ] {
            assert!(inline_fields(&text).len() <= 1);
        }
    }

    #[test]
    fn fields_in_the_text_are_read() {
        for (text, expected) in [
            (
                "affiliation:: [[r3.0]]",
                json!({ "affiliation": "[[r3.0]]" }),
            ),
            ("- **Role**:: host\n", json!({ "Role": "host" })),
            ("1. see-also:: a\n", json!({ "see-also": "a" })),
            ("> - [ ] due:: today", json!({ "due": "today" })),
            (
                "met [with:: [[Ann Lee]], [[Bo]]] and (mood:: good (very))",
                json!({ "with": "[[Ann Lee]], [[Bo]]", "mood": "good (very)" }),
            ),
            ("knows:: Ann\nknows:: Bo", json!({ "knows": "Ann, Bo" })),
            ("a:: b:: c", json!({ "a": "b:: c" })),
            ("---\nx:: y\n---\nz::\n", json!({})),
            ("`a:: b`\n\n```\nc:: d\n```\n%%e:: f%%", json!({})),
            ("use std::vec; it says:: x", json!({})),
            ("std::fmt", json!({})),
            ("see https://x.org/a:: b", json!({})),
            ("[open:: never", json!({})),
        ] {
            assert_eq!(Value::Object(inline_fields(text)), expected, "{text:?}");
        }
    }
}
