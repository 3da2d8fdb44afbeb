//! Texts in one line, how they begin, and what stands around a place in them.

use std::ops::Range;

/// The words of a text with one space between them.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The first characters of a text.
#[must_use]
pub fn beginning(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max);
    end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// The first characters of a text, and `…` if there are more.
#[must_use]
pub fn dotted(text: &str, chars_max: usize) -> String {
    let kept = beginning(text, chars_max);
    let dots = if kept.len() < text.len() { "…" } else { "" };
    format!("{kept}{dots}")
}

/// A text of at most so many characters, a `…` at its end included if there are more.
#[must_use]
pub fn fitted(text: &str, chars_max: usize) -> String {
    if beginning(text, chars_max).len() == text.len() {
        return text.to_owned();
    }
    dotted(text, chars_max.saturating_sub(1))
}

/// A place in a text with so many characters before and after it.
#[must_use]
pub fn widened(text: &str, place: &Range<usize>, chars: usize) -> Range<usize> {
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    let start = chars.checked_sub(1).map_or(Some(place.start), |it| {
        before.char_indices().rev().nth(it).map(|it| it.0)
    });
    start.unwrap_or(0)..place.end + beginning(after, chars).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_space_between_words() {
        assert_eq!(one_line("  a\r\n\tb\u{a0}c "), "a b c");
        assert_eq!(one_line(" \n "), "");
    }

    #[test]
    fn what_stands_around_a_place_is_whole_characters() {
        for (chars, expected) in [(0, "x"), (1, "ñxé"), (2, "añxéb"), (9, "añxéb")] {
            let text = "añxéb";
            assert_eq!(&text[widened(text, &(3..4), chars)], expected);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, n, first, with_dots, within) in [
            ("añb", 2, "añ", "añ…", "a…"),
            ("añb", 3, "añb", "añb", "añb"),
            ("añb", 9, "añb", "añb", "añb"),
            ("añb", 0, "", "…", "…"),
            ("", 0, "", "", ""),
        ] {
            assert_eq!(beginning(text, n), first, "{text} {n}");
            assert_eq!(dotted(text, n), with_dots, "{text} {n}");
            assert_eq!(fitted(text, n), within, "{text} {n}");
        }
    }
}
