//! Names of several words that stand in a text.
//!
//! A text is cut into words ([`words`]), each caller folds them as its names need it ([`crate::fold`]), and
//! [`Phrases`] finds the longest names among them, so that a name is never found inside a longer word. However
//! many names there are, a text is read once.

use crate::script::{is_combining_mark, is_without_spaces};
use std::collections::HashMap;
use std::ops::Range;

/// Names, as sequences of words, and the numbers of those that have each.
#[derive(Debug)]
pub struct Phrases {
    words: HashMap<Box<str>, u32>,
    /// From a beginning of a name and a word to a longer beginning. 0 is the empty one.
    steps: HashMap<(u32, u32), u32>,
    /// For each beginning, who has it as a whole name.
    ids: Vec<Vec<u32>>,
    shared_max: usize,
}

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Which words of the text.
    pub words: Range<usize>,
    /// Who has the name.
    pub ids: &'a [u32],
}

impl Phrases {
    /// An empty set of names. A name that more than `shared_max` have is not found: it distinguishes none of them.
    #[must_use]
    pub fn new(shared_max: usize) -> Self {
        Self {
            words: HashMap::new(),
            steps: HashMap::new(),
            ids: vec![Vec::new()],
            shared_max,
        }
    }

    /// Adds a name. One without words is not found.
    pub fn insert(&mut self, id: u32, words: impl IntoIterator<Item = impl Into<Box<str>>>) {
        let mut at = 0;
        for word in words {
            let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
            let word = *self.words.entry(word.into()).or_insert(next);
            let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
            at = *self.steps.entry((at, word)).or_insert(next);
            if at == next {
                self.ids.push(Vec::new());
            }
        }
        let ids = &mut self.ids[at as usize];
        // One more than is of use tells that too many have the name.
        if ids.len() <= self.shared_max && !ids.contains(&id) {
            ids.push(id);
        }
    }

    /// Every place where a name stands, in the order of the text. Of names that overlap the first counts, and
    /// of those that begin together the longest.
    pub fn find<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<Found<'_>> {
        let numbers = words.into_iter().map(|it| self.words.get(it).copied());
        let numbers: Vec<Option<u32>> = numbers.collect();
        let mut found = Vec::new();
        let mut start = 0;
        while start < numbers.len() {
            let Some((n_words, ids)) = self.longest(&numbers[start..]) else {
                start += 1;
                continue;
            };
            let words = start..start + n_words;
            start = words.end;
            found.push(Found { words, ids });
        }
        found
    }

    fn longest(&self, words: &[Option<u32>]) -> Option<(usize, &[u32])> {
        let mut best = None;
        let mut at = 0;
        for (n_before, word) in words.iter().enumerate() {
            let Some(next) = word.and_then(|it| self.steps.get(&(at, it))) else {
                break;
            };
            at = *next;
            let ids = self.ids[at as usize].as_slice();
            if !ids.is_empty() && ids.len() <= self.shared_max {
                best = Some((n_before + 1, ids));
            }
        }
        best
    }
}

/// Where the words of a part of a text stand, and the marks between them that part sentences. Hyphens,
/// underscores and spaces part nothing. Scripts without spaces have a word for each character.
///
/// `joins` is asked about a character inside a word that is no letter and no digit: whether it belongs to the
/// word, by the character before it and by the text from it on.
pub fn words(
    text: &str,
    part: Range<usize>,
    joins: impl Fn(char, &str) -> bool,
) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut start = None;
    let mut last = ' ';
    for (at, it) in text[part.clone()].char_indices() {
        let at = part.start + at;
        let end = at + it.len_utf8();
        let before = std::mem::replace(&mut last, it);
        let is_mark = is_combining_mark(it);
        // A mark makes another character of the one before it.
        if is_mark
            && is_without_spaces(before)
            && start.is_none()
            && let Some(word) = out.last_mut()
        {
            word.end = end;
            continue;
        }
        let is_alone = is_without_spaces(it);
        let is_of_word =
            it.is_alphanumeric() || is_mark || start.is_some() && joins(before, &text[at..]);
        if is_of_word && !is_alone {
            start.get_or_insert(at);
            continue;
        }
        if let Some(start) = start.take() {
            out.push(start..at);
        }
        if !(it.is_whitespace() || matches!(it, '-' | '_')) {
            out.push(at..end);
        }
    }
    if let Some(start) = start {
        out.push(start..part.end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        let joins = |before: char, rest: &str| before.is_ascii_digit() && rest.starts_with('.');
        let words = words(text, 0..text.len(), joins);
        words.into_iter().map(|it| &text[it]).collect()
    }

    #[test]
    fn words_and_the_marks_that_part_sentences() {
        for (text, expected) in [
            ("one-two_three four", &["one", "two", "three", "four"][..]),
            ("a, b.", &["a", ",", "b", "."]),
            ("r3.0 c.d", &["r3.0", "c", ".", "d"]),
            ("日本x", &["日", "本", "x"]),
            ("ハ\u{3099}ンク", &["ハ\u{3099}", "ン", "ク"]),
            ("ช้าง", &["ช้", "า", "ง"]),
            ("e\u{301}te", &["e\u{301}te"]),
            ("\u{301}", &["\u{301}"]),
            ("", &[]),
        ] {
            assert_eq!(cut(text), expected, "{text:?}");
        }
        assert_eq!(words("ab cd ef", 1..5, |_, _| false), [1..2, 3..5]);
    }

    #[test]
    fn the_longest_name_counts_unless_too_many_have_it() {
        let mut phrases = Phrases::new(2);
        for (id, name) in [
            (1, "a"),
            (2, "a b"),
            (2, "a b"),
            (3, "c"),
            (4, "c"),
            (5, "c"),
            (6, ""),
        ] {
            phrases.insert(id, name.split_whitespace());
        }
        let found = phrases.find("a a b c x a".split(' '));
        let found: Vec<_> = found.into_iter().map(|it| (it.words, it.ids)).collect();
        assert_eq!(found, [(0..1, &[1][..]), (1..3, &[2]), (5..6, &[1])]);
    }

    #[test]
    fn names_that_begin_alike_do_not_multiply() {
        let mut phrases = Phrases::new(usize::MAX);
        for n in 0..20_000 {
            phrases.insert(n, ["page".to_owned(), n.to_string()]);
        }
        let text = "page ".repeat(50_000);
        assert!(phrases.find(text.split_whitespace()).is_empty());
        assert_eq!(phrases.find(["see", "page", "19999"]).len(), 1);
    }
}
