//! Names of documents that a text mentions without linking to them.
//!
//! Names and texts are compared word by word and folded, so case, spaces and hyphens do not matter,
//! and a name is never found inside a longer word. Scripts without spaces have a word for each
//! character.

use crate::context::{self, Lines};
use crate::{body, frontmatter};
use kenning_text::fold;
use kenning_text::phrases::{self, Phrases};
use std::collections::HashMap;
use std::ops::Range;

/// A shorter name is more often an ordinary word than a mention.
const LETTERS_MIN: usize = 4;
/// At most this many words of a name: so many words of the text are compared at each place.
const WORDS_MAX: usize = 12;
/// A name that more documents have, such as `Overview`, identifies none of them.
const SHARED_MAX: usize = 3;

/// A document that is mentioned without a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The document.
    pub doc: u32,
    /// The name as it is in the text.
    pub text: String,
    /// The line of the first mention, from 1.
    pub line: u32,
    /// The words around it, in one line of at most 200 characters.
    pub context: String,
    /// The number of mentions.
    pub count: u32,
}

/// The names to look for.
#[derive(Debug)]
pub struct Mentions(Phrases);

struct Word {
    folded: String,
    range: Range<usize>,
}

impl Mentions {
    /// Names of documents: titles and aliases. Of these only names of two words or of four letters count.
    #[must_use]
    pub fn new(names: &[(u32, String)]) -> Self {
        let mut it = Self(Phrases::new(SHARED_MAX));
        for (doc, name) in names {
            it.insert(*doc, name);
        }
        it
    }

    fn insert(&mut self, doc: u32, name: &str) {
        let words = words(name, &(0..name.len()));
        let is_word = |it: &&Word| it.folded.starts_with(char::is_alphanumeric);
        let n_words = words.iter().filter(is_word).count();
        let n_letters = name.chars().filter(|it| it.is_alphanumeric()).count();
        let counts = n_words > 1 || n_words == 1 && n_letters >= LETTERS_MIN;
        if !counts || words.len() > WORDS_MAX {
            return;
        }
        self.0.insert(doc, words.into_iter().map(|it| it.folded));
    }

    /// Each document whose name occurs in a text outside code and links, in the order of first
    /// mention. Where names overlap, the longest counts.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Mention> {
        let body = body::walk(text, frontmatter::read(text).body_start);
        let lines = Lines::of(text);
        let mut found: Vec<Mention> = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        for (words, block) in passages(text, &body.prose) {
            for (range, docs) in self.matches(&words) {
                for &doc in docs {
                    let at = *known.entry(doc).or_insert(found.len());
                    if let Some(mention) = found.get_mut(at) {
                        mention.count += 1;
                        continue;
                    }
                    found.push(Mention {
                        doc,
                        text: context::one_line(&text[range.clone()], false),
                        line: lines.at(range.start),
                        context: context::around(text, &block, &range),
                        count: 1,
                    });
                }
            }
        }
        found
    }

    fn matches(&self, words: &[Word]) -> Vec<(Range<usize>, &[u32])> {
        let found = self.0.find(words.iter().map(|it| it.folded.as_str()));
        let with_place = found.into_iter().map(|phrase| {
            let (first, last) = (&words[phrase.words.start], &words[phrase.words.end - 1]);
            (first.range.start..last.range.end, phrase.ids)
        });
        with_place.collect()
    }
}

/// The words of runs that only white space separates, such as the end of a line.
fn passages(text: &str, prose: &[(Range<usize>, Range<usize>)]) -> Vec<(Vec<Word>, Range<usize>)> {
    let mut out: Vec<(Vec<Word>, Range<usize>)> = Vec::new();
    let mut end = 0;
    for (run, block) in prose {
        let gap = text.get(end..run.start).unwrap_or("-");
        let is_gap = |c: char| c.is_whitespace() || c == '>';
        let words = words(text, run);
        match out.last_mut() {
            Some((passage, of)) if of == block && gap.chars().all(is_gap) => passage.extend(words),
            _ => out.push((words, block.clone())),
        }
        end = run.end;
    }
    out
}

/// Words, and the punctuation between them that separates sentences.
fn words(text: &str, run: &Range<usize>) -> Vec<Word> {
    let ranges = phrases::words(text, run.clone(), |_, _| false);
    let words = ranges.into_iter().map(|range| Word {
        folded: fold::title(&text[range.clone()]),
        range,
    });
    words.filter(|it| !it.folded.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(u32, &str)] = &[
        (1, "Auth"),
        (2, "Auth Service"),
        (3, "API"),
        (4, "Node.js"),
        (5, "日本"),
        (6, "Größe"),
        (7, "rate limit"),
        (8, "Rate-Limit"),
        (9, "C++"),
        (10, "  "),
        (11, "Bob's Guide"),
    ];

    fn found(text: &str) -> Vec<(u32, String)> {
        let names: Vec<(u32, String)> = NAMES.iter().map(|it| (it.0, it.1.to_owned())).collect();
        let found = Mentions::new(&names).find(text);
        found.into_iter().map(|it| (it.doc, it.text)).collect()
    }

    #[test]
    fn names_are_found_in_prose() {
        for (text, expected) in [
            ("see AUTH here", &[(1, "AUTH")][..]),
            (
                "the auth service and auth",
                &[(2, "auth service"), (1, "auth")],
            ),
            ("the auth\nservice", &[(2, "auth service")]),
            ("> the auth\n> service", &[(2, "auth service")]),
            ("auth-service", &[(2, "auth-service")]),
            ("auth. Service", &[(1, "auth")]),
            ("author, authentic, preauth", &[]),
            ("an API, C++", &[]),
            ("use node.js!", &[(4, "node.js")]),
            ("node js", &[]),
            ("来日本語", &[(5, "日本")]),
            ("GRÖSSE gro\u{308}ße", &[(6, "GRÖSSE")]),
            ("rate_limit", &[(7, "rate_limit"), (8, "rate_limit")]),
            ("**auth** service", &[(1, "auth")]),
            ("bob's guide", &[(11, "bob's guide")]),
            ("`auth` [[auth]] [auth](x.md) <!-- auth --> $auth$", &[]),
            ("```\nauth\n```", &[]),
            ("---\ntitle: auth\n---\nnone", &[]),
            ("", &[]),
        ] {
            let expected: Vec<(u32, String)> =
                expected.iter().map(|it| (it.0, it.1.to_owned())).collect();
            assert_eq!(found(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_mention_says_where_and_how_often() {
        let mentions = Mentions::new(&[(7, "Auth".to_owned())]);
        let it = mentions.find("---\na: b\n---\n# T\n\n- one\n- about auth, twice\n\nAuth.");
        let expected = Mention {
            doc: 7,
            text: "auth".to_owned(),
            line: 7,
            context: "about auth, twice".to_owned(),
            count: 2,
        };
        assert_eq!(it, [expected]);
        assert!(Mentions::new(&[]).find("auth").is_empty());
        for (n, n_found) in [(3, 3), (4, 0), (14_000, 0)] {
            let names: Vec<(u32, String)> = (0..n).map(|it| (it, "Overview".to_owned())).collect();
            assert_eq!(Mentions::new(&names).find("an overview").len(), n_found);
        }
    }

    #[test]
    fn names_that_begin_alike_do_not_multiply() {
        let names: Vec<(u32, String)> = (0..14_000).map(|it| (it, format!("page {it}"))).collect();
        let found = Mentions::new(&names).find(&"page ".repeat(50_000));
        assert!(found.is_empty());
        let nested: Vec<(u32, String)> = (1..40).map(|it| (it, "a ".repeat(it as usize))).collect();
        let found = Mentions::new(&nested).find(&"a ".repeat(24));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].doc, found[0].count), (12, 2));
    }
}
