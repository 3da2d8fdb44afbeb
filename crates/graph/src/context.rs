//! The line of a place in a text, and the words around it.

use std::ops::Range;

/// Characters of a context, at most.
pub(crate) const CONTEXT_CHARS_MAX: usize = 200;
/// How far around a link its block is looked at: white space and four-byte characters included.
const REACH_BYTES: usize = 4 * CONTEXT_CHARS_MAX;

/// Where lines begin.
pub(crate) struct Lines {
    ends: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|it| it.1 == b'\n');
        Self {
            ends: ends.map(|it| it.0).collect(),
        }
    }

    /// The line of a byte, from 1.
    pub(crate) fn at(&self, byte: usize) -> u32 {
        let line = self.ends.partition_point(|it| *it < byte) + 1;
        u32::try_from(line).unwrap_or(u32::MAX)
    }
}

/// What surrounds `place` in its block, in one line, with the place in the middle.
pub(crate) fn around(text: &str, block: &Range<usize>, place: &Range<usize>) -> String {
    let start = block.start.min(place.start);
    let end = block.end.max(place.end);
    let from = text
        .floor_char_boundary(place.start.saturating_sub(REACH_BYTES))
        .max(start);
    let until = text
        .floor_char_boundary(place.end.saturating_add(REACH_BYTES))
        .min(end);
    let middle_end = text
        .floor_char_boundary(place.start.saturating_add(REACH_BYTES))
        .min(place.end);
    let before = one_line(&text[from..place.start], from == start);
    let before = if from == start {
        without_marker(&before)
    } else {
        &before
    };
    let middle = one_line(&text[place.start..middle_end], false);
    let after = one_line(&text[place.end..until], false);
    centered(before, &middle, &after)
}

/// White space becomes one space, and the marks of a quotation go.
pub(crate) fn one_line(text: &str, is_line_start: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at_line_start = is_line_start;
    for it in text.chars() {
        if it == '\n' {
            at_line_start = true;
        }
        if it.is_whitespace() || it.is_control() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !(at_line_start && it == '>') {
            at_line_start = false;
            out.push(it);
        }
    }
    out
}

/// Without what makes a line an item or a heading.
fn without_marker(text: &str) -> &str {
    let text = text.trim_start();
    let rest = text.trim_start_matches(|it: char| it.is_ascii_digit());
    let rest = if rest.len() < text.len() {
        rest.strip_prefix(['.', ')'])
    } else {
        let heading = text.trim_start_matches('#');
        let is_heading = heading.len() < text.len();
        let item = || text.strip_prefix(['-', '*', '+']);
        if is_heading { Some(heading) } else { item() }
    };
    match rest {
        Some(it) if it.is_empty() || it.starts_with(' ') => it.trim_start(),
        _ => text,
    }
}

fn centered(before: &str, middle: &str, after: &str) -> String {
    let middle: String = middle.chars().take(CONTEXT_CHARS_MAX).collect();
    let room = CONTEXT_CHARS_MAX - middle.chars().count();
    let n_before = before.chars().count();
    let n_after = after.chars().count();
    let left = n_before.min((room / 2).max(room.saturating_sub(n_after)));
    let skipped = before.chars().skip(n_before - left);
    let rest = after.chars().take(room - left);
    let line: String = skipped.chain(middle.chars()).chain(rest).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(text: &str, place: &str) -> String {
        let start = text.find(place).unwrap();
        around(text, &(0..text.len()), &(start..start + place.len()))
    }

    #[test]
    fn a_context_is_one_line_without_marks() {
        for (text, expected) in [
            ("a [[x]] b", "a [[x]] b"),
            ("a\n  b\t[[x]]\r\nc", "a b [[x]] c"),
            ("- a [[x]]", "a [[x]]"),
            ("12. [[x]]", "[[x]]"),
            ("## a [[x]]", "a [[x]]"),
            ("> a\n> > [[x]] b > c", "a [[x]] b > c"),
            ("2024 [[x]]", "2024 [[x]]"),
            ("-a [[x]]", "-a [[x]]"),
        ] {
            assert_eq!(context(text, "[[x]]"), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_context_has_its_place_in_the_middle() {
        for word in ["é", "日", "𝒳"] {
            let long = word.repeat(1_000);
            let line = context(&format!("{long}[[x]]{long}"), "[[x]]");
            assert_eq!(line.chars().count(), CONTEXT_CHARS_MAX);
            let before = line.split("[[x]]").next().unwrap();
            assert_eq!(before.chars().count(), 97);
            let line = context(&format!("a [[x]]{long}"), "[[x]]");
            assert!(line.starts_with("a [[x]]"), "{line}");
            assert_eq!(line.chars().count(), CONTEXT_CHARS_MAX);
            let whole = context(&long, &long);
            assert_eq!(whole.chars().count(), CONTEXT_CHARS_MAX);
        }
    }

    #[test]
    fn lines_count_from_one() {
        let lines = Lines::of("a\nb\r\n\nc");
        let found: Vec<u32> = [0, 1, 2, 5, 6, 99].map(|it| lines.at(it)).to_vec();
        assert_eq!(found, [1, 1, 2, 3, 4, 4]);
    }
}
