//! Finds names in a text.
//!
//! Names and texts are compared word by word and folded, so case, accents, spaces and hyphens do not
//! matter, and a name is never found inside a longer word. Scripts without spaces have a word for
//! each character. A text is read once, however many names there are.

use crate::words::{is_known, without_legal_form};
use kenning_text::fold;
use kenning_text::line::{one_line, widened};
use kenning_text::phrases::{self, Phrases};
use kenning_text::script::{is_without_spaces, without_emoji};
use std::collections::HashSet;
use std::ops::Range;

/// A shorter name is a word of the language more often than a mention.
const LETTERS_MIN: usize = 3;
/// In scripts without spaces two characters are a name.
const CHARACTERS_MIN: usize = 2;
/// Words of a name, at most: a text is compared so far from each of its words on.
const WORDS_MAX: usize = 16;
/// Characters of the text before and after a mention.
const CONTEXT_CHARS: usize = 50;

/// Where a name stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The numbers of the entities that have this name.
    pub ids: Vec<u32>,
    /// Where in the text, in bytes.
    pub range: Range<usize>,
}

/// Names to look for.
#[derive(Debug)]
pub struct Mentions(Phrases);

/// A word of a text, or a mark between words.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) folded: String,
    pub(crate) range: Range<usize>,
    pub(crate) is_mark: bool,
}

impl Mentions {
    /// Takes names with the number of the entity that has each. Names that are too short are left
    /// out.
    pub fn new<'a>(names: impl IntoIterator<Item = (u32, &'a str)>) -> Self {
        let mut it = Self(Phrases::new(usize::MAX));
        for (id, name) in names {
            it.insert(id, name);
        }
        it
    }

    fn insert(&mut self, id: u32, name: &str) {
        for form in written_forms(name) {
            self.insert_form(id, &form);
        }
    }

    fn insert_form(&mut self, id: u32, name: &str) {
        let words = words(name);
        if !(1..=WORDS_MAX).contains(&words.len()) || !is_telling(name) {
            return;
        }
        self.0.insert(id, words.into_iter().map(|it| it.folded));
    }

    /// Every place where a name occurs, in the order of the text. Where names overlap, the longest
    /// counts.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Mention> {
        let words = words(text);
        let found = self.0.find(words.iter().map(|it| it.folded.as_str()));
        let mentions = found.into_iter().map(|phrase| {
            let (first, last) = (&words[phrase.words.start], &words[phrase.words.end - 1]);
            Mention {
                ids: phrase.ids.to_vec(),
                range: first.range.start..last.range.end,
            }
        });
        mentions.collect()
    }
}

/// The ways people write a name: as it is, without emoji, without its legal form (`e.V.`), and a
/// `co-op` with and without its hyphen. Each once, the name itself first.
#[must_use]
pub fn written_forms(name: &str) -> Vec<String> {
    let mut forms = vec![name.to_owned()];
    let mut add = |form: Option<String>| {
        let form = form.map(|it| it.trim().to_owned());
        forms.extend(form.filter(|it| is_telling(it)));
    };
    let bare = without_emoji(name);
    let shown = bare.as_deref().unwrap_or(name).to_owned();
    add(bare);
    add(without_legal_form_of(&shown));
    for (from, to) in [("co-op", "coop"), ("coop", "co-op")] {
        let small = shown.to_lowercase();
        add(small.contains(from).then(|| small.replace(from, to)));
    }
    let mut known = HashSet::new();
    forms.retain(|it| known.insert(it.clone()));
    forms
}

/// A name without its legal form; `None` if it has none or if an ordinary word would be left.
fn without_legal_form_of(name: &str) -> Option<String> {
    let n_words = |it: &str| fold::name(it).split(' ').count();
    let all = fold::name(name);
    let all: Vec<&str> = all.split(' ').collect();
    let n_left = without_legal_form(&all);
    if n_left == all.len() || n_left == 1 && is_known(all.first()?) {
        return None;
    }
    let ends = name.char_indices().filter(|it| it.1.is_whitespace());
    let left = ends.map(|(at, _)| &name[..at]);
    let left = left.rev().find(|it| n_words(it) == n_left)?;
    Some(left.trim_end_matches([',', ' ']).to_owned())
}

fn is_telling(name: &str) -> bool {
    let n_letters = name.chars().filter(|it| it.is_alphanumeric()).count();
    let is_of_characters = name.chars().any(is_without_spaces);
    n_letters
        >= if is_of_characters {
            CHARACTERS_MIN
        } else {
            LETTERS_MIN
        }
}

/// The words around a place in a text, in one line.
#[must_use]
pub fn context(text: &str, range: &Range<usize>) -> String {
    one_line(&text[widened(text, range, CONTEXT_CHARS)])
}

/// Words, and the punctuation between them that separates sentences. Hyphens, underscores and spaces
/// do not separate.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let ranges = phrases::words(text, 0..text.len(), |before, rest| {
        let mut letters = rest.chars();
        let it = letters.next().unwrap_or(' ');
        let next = letters.next().unwrap_or(' ');
        it == '.' && before.is_ascii_digit() && next.is_ascii_digit()
            || matches!(it, '\'' | '’') && next.is_alphanumeric() && !is_possessive(rest)
    });
    let mut out = ranges.into_iter().map(|it| Word::new(text, it)).collect();
    join_coops(&mut out, text);
    out
}

/// Joins the parts of a `co-op` to one word.
fn join_coops(words: &mut Vec<Word>, text: &str) {
    let is_coop = |pair: &[Word]| {
        let gap = text.get(pair[0].range.end..pair[1].range.start);
        let is_hyphen = matches!(gap, Some("-" | "\u{2010}" | "\u{2011}"));
        pair[0].folded == "co" && pair[1].folded.starts_with("op") && is_hyphen
    };
    if !words.windows(2).any(is_coop) {
        return;
    }
    let mut joined: Vec<Word> = Vec::with_capacity(words.len());
    for word in words.drain(..) {
        match joined.pop() {
            Some(last) => {
                let pair = [last, word];
                let is_one = is_coop(&pair);
                let [mut last, word] = pair;
                if is_one {
                    last.folded.push_str(&word.folded);
                    last.range.end = word.range.end;
                    joined.push(last);
                } else {
                    joined.extend([last, word]);
                }
            }
            None => joined.push(word),
        }
    }
    *words = joined;
}

/// Whether an `s` after an apostrophe ends the word, so that `Ann's` mentions Ann.
fn is_possessive(rest: &str) -> bool {
    let mut letters = rest.chars().skip(1);
    let is_s = letters
        .next()
        .is_some_and(|it| it.eq_ignore_ascii_case(&'s'));
    is_s && !letters.next().is_some_and(char::is_alphanumeric)
}

impl Word {
    fn new(text: &str, range: Range<usize>) -> Self {
        let written = &text[range.clone()];
        let folded = fold::name(written);
        let is_mark = !folded.contains(char::is_alphanumeric);
        let mark = || written.replace('’', "'");
        Self {
            folded: if is_mark { mark() } else { folded },
            range,
            is_mark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(u32, &str)] = &[
        (1, "Regen"),
        (2, "Regen Network"),
        (3, "r3.0"),
        (4, "Zoë Saldaña"),
        (5, "森林組合"),
        (6, "O'Brien"),
        (7, "Bill Baue"),
        (8, "AI"),
        (9, "BILL-BAUE"),
        (10, "ช้าง"),
        (11, "Ben & Jerry's"),
        (12, "バンク"),
        (13, "किरण सिंह"),
        (14, "🌱 Food Coop"),
        (15, "Kelpforum e.V."),
        (16, "Salish Sea"),
        (17, "Salish Sea Alliance"),
        (18, "Open e.V."),
    ];

    fn found(text: &str) -> Vec<(Vec<u32>, &str)> {
        let mentions = Mentions::new(NAMES.iter().copied()).find(text);
        mentions
            .into_iter()
            .map(|mention| (mention.ids, &text[mention.range]))
            .collect()
    }

    #[test]
    fn names_are_found_as_whole_words_the_longest_first() {
        for (text, expected) in [
            (
                "the Regen Network, and regen.",
                vec![(vec![2], "Regen Network"), (vec![1], "regen")],
            ),
            ("Regen. Network", vec![(vec![1], "Regen")]),
            ("regenerate", vec![]),
            ("by the r3.0 network.", vec![(vec![3], "r3.0")]),
            ("zoe saldana", vec![(vec![4], "zoe saldana")]),
            ("地元の森林組合は", vec![(vec![5], "森林組合")]),
            ("O’Brien's", vec![(vec![6], "O’Brien")]),
            ("Ben and Jerry’s", vec![(vec![11], "Ben and Jerry’s")]),
            ("O’Brien said", vec![(vec![6], "O’Brien")]),
            ("Bill Baue's talk", vec![(vec![7, 9], "Bill Baue")]),
            ("bill-baue", vec![(vec![7, 9], "bill-baue")]),
            (
                "この\u{30cf}\u{3099}ンクは",
                vec![(vec![12], "\u{30cf}\u{3099}ンク")],
            ),
            ("このハンクは", vec![]),
            ("ช้างและชาง", vec![(vec![10], "ช้าง")]),
            ("किरण सिंह और करण सिंह", vec![(vec![13], "किरण सिंह")]),
            (
                "the food co-op, a Food Coop",
                vec![(vec![14], "food co-op"), (vec![14], "Food Coop")],
            ),
            ("the Kelpforum", vec![(vec![15], "Kelpforum")]),
            ("Kelpforum e. V. here", vec![(vec![15], "Kelpforum e. V.")]),
            ("an open door", vec![]),
            (
                "the Salish Sea Alliance of the Salish Sea",
                vec![(vec![17], "Salish Sea Alliance"), (vec![16], "Salish Sea")],
            ),
            (
                "Zoe\u{308} Saldan\u{303}a",
                vec![(vec![4], "Zoe\u{308} Saldan\u{303}a")],
            ),
            ("AI", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_context_is_one_line_of_what_stands_around() {
        let text = format!("{}\n Bill Baue \n{}", "a".repeat(80), "b".repeat(80));
        let mention = &Mentions::new([(7, "Bill Baue")]).find(&text)[0];
        let expected = format!("{} Bill Baue {}", "a".repeat(48), "b".repeat(48));
        assert_eq!(context(&text, &mention.range), expected);
    }

    #[test]
    fn many_names_that_begin_alike_cost_no_more() {
        let names: Vec<String> = (0..20_000).map(|it| format!("page {it}")).collect();
        let mentions = Mentions::new((0u32..).zip(names.iter().map(String::as_str)));
        assert!(mentions.find(&"page ".repeat(50_000)).is_empty());
        assert_eq!(mentions.find("see page 19999 now").len(), 1);
    }
}
