//! Tags, in the frontmatter and in the text.

use crate::frontmatter::texts;
use kenning_text::script::{is_combining_mark, is_emoji};
use serde_json::Value;
use std::collections::HashSet;
use std::ops::Range;

/// Nobody writes more; more is an attack on whoever lists them.
const TAGS_MAX: usize = 1_000;
const CHARS_MAX: usize = 100;

/// Tags in their order, each once whatever its case.
#[derive(Default)]
pub(crate) struct Tags {
    list: Vec<String>,
    known: HashSet<String>,
}

impl Tags {
    pub(crate) fn push(&mut self, tag: &str) {
        let tag = tag.trim().trim_start_matches('#').trim_end_matches('/');
        let tag = tag.trim();
        if tag.is_empty() || self.list.len() >= TAGS_MAX || tag.chars().count() > CHARS_MAX {
            return;
        }
        if self.known.insert(tag.to_lowercase()) {
            self.list.push(tag.to_owned());
        }
    }

    /// The value of `tags:`: a list, or a text with commas, or words that all begin with `#`.
    pub(crate) fn push_field(&mut self, value: &Value) {
        for text in texts(value) {
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.len() > 1 && words.iter().all(|it| it.starts_with('#')) {
                words
                    .iter()
                    .for_each(|it| self.push(it.trim_end_matches(',')));
            } else if value.is_string() {
                text.split(',').for_each(|it| self.push(it));
            } else {
                self.push(&text);
            }
        }
    }

    /// The tags in prose: `text[run]` is free of code and links.
    pub(crate) fn push_prose(&mut self, text: &str, run: &Range<usize>) {
        let mut at = run.start;
        while let Some(found) = text[at..run.end].find('#') {
            let mark = at + found;
            at = mark + 1;
            if text[..mark].chars().next_back().is_some_and(is_in_word) {
                continue;
            }
            let rest = &text[at..run.end];
            let length = rest.find(|it| !is_of_tag(it)).unwrap_or(rest.len());
            let tag = rest[..length].trim_end_matches(['-', '/']);
            // What follows belongs to the same word, which was checked.
            at += length;
            if tag.chars().any(is_letter) {
                self.push(tag);
            }
        }
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}

/// Whether a `#` after this character belongs to something else: `C#`, a URL, an escape, a second
/// `#`.
fn is_in_word(before: char) -> bool {
    before.is_alphanumeric()
        || is_combining_mark(before)
        || matches!(
            before,
            '#' | '_'
                | '\\'
                | '/'
                | '&'
                | '?'
                | '='
                | '.'
                | '%'
                | '+'
                | '@'
                | '$'
                | '^'
                | ')'
                | ']'
                | '}'
                | '<'
                | ':'
                | '-'
                | '!'
        )
}

fn is_of_tag(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '-' | '/') || is_combining_mark(it) || is_emoji(it)
}

fn is_letter(it: char) -> bool {
    it.is_alphabetic() || is_emoji(it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_a_list_or_a_text() {
        for (value, expected) in [
            (json!("security"), &["security"][..]),
            (json!("a, b"), &["a", "b"]),
            (json!("a b"), &["a b"]),
            (json!("#a #b"), &["a", "b"]),
            (json!("#a, #b"), &["a", "b"]),
            (json!("#a b"), &["a b"]),
            (json!(["a", "#b", " c "]), &["a", "b", "c"]),
            (json!(["a", "A", "á", "Á"]), &["a", "á"]),
            (json!([2024, true, null, ["d"]]), &["2024", "true", "d"]),
            (json!("# ,, "), &[]),
            (json!({"a": 1}), &[]),
            (json!(null), &[]),
        ] {
            let mut tags = Tags::default();
            tags.push_field(&value);
            assert_eq!(tags.into_list(), expected, "{value}");
        }
    }

    #[test]
    fn prose_has_tags_and_other_hashes() {
        for (text, expected) in [
            ("#tag and #other.", &["tag", "other"][..]),
            ("(#a) \"#b\" *#c* #d, #e", &["a", "b", "c", "d", "e"]),
            ("#a/b #a-b #a_b", &["a/b", "a-b", "a_b"]),
            ("#日本 #größe #नमस्ते #🚀x", &["日本", "größe", "नमस्ते", "🚀x"]),
            ("#123 #12-3 #1a", &["1a"]),
            ("C# F#a a#b é#b", &[]),
            ("## #", &[]),
            ("http://a.b/#c http://a.b/c#d ?a&#b", &[]),
            ("\\#a &#35;", &[]),
            ("##a #a#b", &["a"]),
            ("#a/ #b-", &["a", "b"]),
            ("#A #a", &["A"]),
        ] {
            let mut tags = Tags::default();
            tags.push_prose(text, &(0..text.len()));
            assert_eq!(tags.into_list(), expected, "{text:?}");
        }
    }

    #[test]
    fn tags_are_bounded() {
        let mut tags = Tags::default();
        let text: String = (0..5_000).map(|it| format!("#t{it} ")).collect();
        tags.push_prose(&text, &(0..text.len()));
        tags.push(&"x".repeat(101));
        assert_eq!(tags.into_list().len(), TAGS_MAX);
    }
}
