//! Words of a query that stand nowhere, spelled as they stand somewhere.
//!
//! `Krueger` is written for `Krüger` where a keyboard has no `ü`, and the other way round; German makes
//! verbs of borrowed words (`deployen`). A word that stands in some passage is never changed.
//!
//! A German question where nobody writes German is its names, numbers and identifiers: of its other words the
//! table has only pieces, which would hide what the names find.

use crate::index::Index;
use crate::tokens;
use std::borrow::Cow;

/// How letters are written out.
const WRITTEN_OUT: [(&str, &str); 4] = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")];
/// Of shorter words too little is left to be sure of.
const LETTERS_MIN: usize = 4;
/// A verb without its ending has at least so many letters.
const STEM_LETTERS_MIN: usize = 5;
/// German words with which somebody asks.
const FILLER: &[&str] = &[
    "wann",
    "wie",
    "wo",
    "wer",
    "was",
    "warum",
    "wohin",
    "welche",
    "welcher",
    "welches",
    "ich",
    "du",
    "er",
    "sie",
    "es",
    "wir",
    "ihr",
    "man",
    "der",
    "die",
    "das",
    "den",
    "dem",
    "ein",
    "eine",
    "ist",
    "sind",
    "wird",
    "werden",
    "soll",
    "sollen",
    "muss",
    "kann",
    "können",
    "und",
    "oder",
    "auf",
    "in",
    "zu",
    "im",
    "denn",
    "eigentlich",
    "unser",
    "unsere",
    "unseren",
];
/// Those of them that are words of other languages too, so that they tell no German.
const SHARED: &[&str] = &[
    "was", "du", "er", "sie", "es", "man", "die", "den", "dem", "ein", "soll", "auf", "in", "zu",
    "im", "wo",
];
/// Longer queries are not looked through.
const WORDS_MAX: usize = 64;

impl Index {
    /// The query, in which words that no passage has are spelled as some passage spells them.
    pub(crate) fn respelled<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out: Option<String> = None;
        let (mut done, mut is_german) = (0, self.is_foreign_german(text));
        let words = text.split(|it: char| !it.is_alphabetic());
        let words = words.filter(|it| it.chars().count() >= LETTERS_MIN);
        for word in words.take(WORDS_MAX) {
            let Some((other, is_verb)) = self.other_spelling(word) else {
                continue;
            };
            is_german |= is_verb;
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let out = out.get_or_insert_default();
            out.push_str(&text[done..at]);
            out.push_str(&other);
            done = at + word.len();
        }
        if let Some(out) = &mut out {
            out.push_str(&text[done..]);
        }
        match out {
            Some(out) if is_german => Cow::Owned(self.without_filler(&out)),
            Some(out) => Cow::Owned(out),
            None if is_german => Cow::Owned(self.without_filler(text)),
            None => Cow::Borrowed(text),
        }
    }

    /// Whether it is a German question to passages of which none is German: its words that ask stand nowhere.
    fn is_foreign_german(&self, text: &str) -> bool {
        let words = text.split(|it: char| !it.is_alphabetic()).take(WORDS_MAX);
        let words = words.map(str::to_lowercase);
        let mut asking = words
            .filter(|word| FILLER.contains(&word.as_str()) && !SHARED.contains(&word.as_str()))
            .peekable();
        asking.peek().is_some() && asking.all(|it| !self.has_all_terms(&it))
    }

    /// A German question without the words that ask: the table has only pieces of them, and where nobody
    /// writes German no passage has them.
    fn without_filler(&self, text: &str) -> String {
        let is_filler = |word: &str| {
            let word = word
                .trim_matches(|it: char| !it.is_alphabetic())
                .to_lowercase();
            FILLER.contains(&word.as_str()) && !self.has_all_terms(&word)
        };
        let kept: Vec<&str> = text
            .split_whitespace()
            .filter(|it| !is_filler(it))
            .collect();
        // A word with a digit, or with a capital inside, is meant as it is written.
        let is_plain = |word: &str| {
            let inner = word.trim_matches(|it: char| !it.is_alphanumeric());
            let mut rest = inner.chars().skip(1);
            inner.chars().all(char::is_alphabetic) && !rest.any(char::is_uppercase)
        };
        let is_unknown = |word: &str| {
            let lower = word.to_lowercase();
            is_plain(word) && !self.has_all_terms(&lower) && !self.knows_whole(&lower)
        };
        let known: Vec<&str> = kept.iter().copied().filter(|it| !is_unknown(it)).collect();
        let is_found = |it: &&str| it.chars().count() > 2 && self.has_all_terms(&it.to_lowercase());
        match known.iter().any(is_found) {
            true => known.join(" "),
            false => kept.join(" "),
        }
    }

    /// How a word that stands nowhere is spelled where it stands, and whether it is a verb made German.
    fn other_spelling(&self, word: &str) -> Option<(String, bool)> {
        let lower = word.to_lowercase();
        let mut spellings: Vec<(String, bool)> = Vec::new();
        let is_umlaut = |it: &(&str, &str)| lower.contains(it.0);
        if WRITTEN_OUT.iter().any(is_umlaut) {
            let out = WRITTEN_OUT.iter();
            let other = out.fold(lower.clone(), |word, it| word.replace(it.0, it.1));
            spellings.push((other, false));
        }
        let vowels = &WRITTEN_OUT[..3];
        if vowels.iter().any(|it| lower.contains(it.1)) {
            let out = vowels.iter();
            let other = out.fold(lower.clone(), |word, it| word.replace(it.1, it.0));
            spellings.push((other, false));
        }
        let stem = lower.strip_suffix("en");
        let stem = stem.filter(|it| it.len() >= STEM_LETTERS_MIN && !self.knows_whole(&lower));
        spellings.extend(stem.map(|it| (it.to_owned(), true)));
        if spellings.is_empty() || self.has_all_terms(&lower) {
            return None;
        }
        spellings.into_iter().find(|it| self.has_all_terms(&it.0))
    }

    fn has_all_terms(&self, word: &str) -> bool {
        let terms = tokens(word);
        let stands = |term: &String| self.term(term).is_some_and(|it| it.1 > 0);
        !terms.is_empty() && terms.iter().all(stands)
    }

    /// Whether the table has a word of its own for this, so that words like it are found anyway.
    fn knows_whole(&self, word: &str) -> bool {
        let parts = self.table.parts(word);
        parts.iter().all(|(_, ids)| ids.len() == 1)
    }
}
