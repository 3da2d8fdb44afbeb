//! Where sentences begin and end. Code is left out.

use crate::words::TITLES;
use std::ops::Range;

/// A longer sentence is cut: it is a list, or not prose at all.
const BYTES_MAX: usize = 2_000;

/// The sentences of a text in their order, as ranges of bytes. A line ends a sentence.
pub(super) fn of(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut is_code = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            of_line(text, range, &mut out);
        }
    }
    out
}

fn of_line(text: &str, line: Range<usize>, out: &mut Vec<Range<usize>>) {
    let mut start = line.start;
    let mut letters = text[line.clone()].char_indices().peekable();
    while let Some((at, it)) = letters.next() {
        let at = line.start + at;
        let end = at + it.len_utf8();
        let is_wide = matches!(it, '。' | '！' | '？');
        let is_mark = matches!(it, '.' | '!' | '?');
        let is_followed = letters.peek().is_none_or(|it| it.1.is_whitespace());
        let is_end =
            is_wide || is_mark && is_followed && !(it == '.' && is_short(&text[start..at]));
        let is_long = end - start >= BYTES_MAX && it.is_whitespace();
        if is_end || is_long {
            out.push(start..end);
            start = end;
        }
    }
    if !text[start..line.end].trim().is_empty() {
        out.push(start..line.end);
    }
}

/// Whether the word before a period is a title or an initial, so that a name goes on after it.
fn is_short(before: &str) -> bool {
    let word = before
        .rsplit(|it: char| !it.is_alphanumeric())
        .next()
        .unwrap_or(before);
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || TITLES.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_ends_a_sentence_and_not_a_title() {
        for (text, expected) in [
            ("One. Two! Three?", vec!["One.", "Two!", "Three?"]),
            (
                "Dr. Rao met J. Smith. Fine.",
                vec!["Dr. Rao met J. Smith.", "Fine."],
            ),
            ("r3.0 is a name", vec!["r3.0 is a name"]),
            ("# Title\n\ntext", vec!["# Title", "text"]),
            ("a\n```\ncode. more\n```\nb", vec!["a", "b"]),
            ("一。二。", vec!["一。", "二。"]),
            ("", vec![]),
        ] {
            let found: Vec<&str> = of(text).into_iter().map(|it| text[it].trim()).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
