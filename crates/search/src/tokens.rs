//! Words, parts of identifiers, pairs of CJK characters, symbols.

use kenning_text::fold::{self, Marks};
use kenning_text::script::{self, is_combining_mark};
use pagefind_stem::{Algorithm, Stemmer};
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

static PORTER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::Porter));

/// The longest token that is kept; more of it tells nothing more.
const TOKEN_BYTES_MAX: usize = 64;

/// The tokens of a text, in order, repetitions included.
///
/// A word is a run of letters, digits and marks, without accents and reduced to its stem; one that is
/// put together of parts (`parseHeader`) gives itself and its parts; a run of CJK characters gives its
/// pairs; a symbol stands for itself, so that an emoji can be found.
pub fn tokens(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return tokens_of(text);
    }
    tokens_of(&text.nfkc().collect::<String>())
}

fn tokens_of(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word = String::new();
    let mut cjk = Vec::new();
    for c in text.chars() {
        if !is_cjk(c) {
            flush_cjk(&mut cjk, &mut out);
        }
        if is_cjk(c) {
            flush_word(&mut word, &mut out);
            cjk.push(c);
        } else if c.is_alphanumeric() || is_combining_mark(c) {
            word.push(c);
        } else {
            flush_word(&mut word, &mut out);
            if is_symbol(c) {
                out.push(c.to_string());
            }
        }
    }
    flush_word(&mut word, &mut out);
    flush_cjk(&mut cjk, &mut out);
    out
}

fn flush_word(word: &mut String, out: &mut Vec<String>) {
    if word.is_empty() {
        return;
    }
    let parts = parts(word);
    if parts.len() > 1 {
        out.extend(parts.iter().map(|part| stem(part)));
    }
    out.push(stem(word));
    word.clear();
}

/// `fooBar2` is `foo`, `Bar`, `2`; an acronym stays whole: `HTTPServer` is `HTTP`, `Server`. A word
/// without capitals is one part, digits or not: `sha256`.
fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    if !word.chars().any(char::is_uppercase) {
        parts.push(word);
        return parts;
    }
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut start = 0;
    for i in 1..chars.len() {
        let (at, c) = chars[i];
        let before = chars[i - 1].1;
        let lower_follows = chars.get(i + 1).is_some_and(|it| it.1.is_lowercase());
        let begins_capital =
            c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && lower_follows));
        if begins_capital || c.is_numeric() != before.is_numeric() {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Small letters, without accents where the alphabet has them as ornaments, reduced to the stem.
pub(crate) fn stem(word: &str) -> String {
    let mut word = folded(word);
    if word.len() > TOKEN_BYTES_MAX {
        word.truncate(word.floor_char_boundary(TOKEN_BYTES_MAX));
    }
    if word.bytes().all(|b| b.is_ascii_lowercase()) {
        let stem = PORTER.stem(&word);
        // Too short a stem is another word's: `one` is not `on`.
        if stem.len() > 2 || word.len() <= 2 && !stem.is_empty() {
            return stem.into_owned();
        }
        if word.len() > 3 && word.ends_with('s') {
            word.truncate(word.len() - 1);
        }
    }
    word
}

fn flush_cjk(run: &mut Vec<char>, out: &mut Vec<String>) {
    match run.as_slice() {
        [] => return,
        [one] => out.push(one.to_string()),
        many => out.extend(many.windows(2).map(|pair| pair.iter().collect::<String>())),
    }
    run.clear();
}

/// Letters that a term of a script without a meaning in the table has: its stem, roughly.
const LITERAL_CHARS: usize = 5;

/// What a token is looked up by: a word of a script whose words the table does not know counts by its
/// first letters, so that it is found in other forms too.
pub(crate) fn term_of(token: &str) -> &str {
    if token.is_ascii() || !is_literal(token) || token.chars().next().is_some_and(is_cjk) {
        return token;
    }
    let end = token.char_indices().nth(LITERAL_CHARS);
    end.map_or(token, |(at, _)| &token[..at])
}

/// Whether the table can give a word no meaning: it has only the letters of its script.
pub(crate) fn is_literal(word: &str) -> bool {
    let is_foreign = |c: char| u32::from(c) >= 0x370 && !matches!(u32::from(c), 0x1e00..=0x1eff);
    word.chars().any(is_foreign)
}

/// A word of a query, as [`crate::rank`] looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Composed, with its capitals and accents.
    pub(crate) text: String,
    /// Which words are written without a space between them, as in `OPS-777`.
    pub(crate) group: usize,
    /// A symbol and no word.
    pub(crate) is_symbol: bool,
}

/// The words of a text in order; a run of CJK characters stands apart from the rest of its word.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let text: String = text.nfkc().collect();
    let mut out: Vec<Word> = Vec::new();
    let (mut group, mut joined) = (0, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_word = |c: char| is_cjk(c) || c.is_alphanumeric() || is_combining_mark(c);
        if is_word(c) {
            let mut text = String::from(c);
            while let Some(next) = chars.next_if(|&next| is_word(next) && is_cjk(next) == is_cjk(c))
            {
                text.push(next);
            }
            if !joined {
                group += 1;
            }
            out.push(Word {
                text,
                group,
                is_symbol: false,
            });
            joined = true;
            continue;
        }
        let joins = matches!(c, '-' | '_' | '.' | '/' | ':' | '#');
        joined = joined && joins && chars.peek().is_some_and(|&next| is_word(next));
        if is_symbol(c) {
            group += 1;
            out.push(Word {
                text: c.to_string(),
                group,
                is_symbol: true,
            });
        }
    }
    out
}

/// The terms of a word that is literal: pairs of CJK characters, or its first letters.
pub(crate) fn literals(word: &str) -> Vec<String> {
    if word.chars().next().is_some_and(is_cjk) {
        let mut out = Vec::new();
        flush_cjk(&mut word.chars().collect(), &mut out);
        return out;
    }
    vec![term_of(&stem(word)).to_owned()]
}

/// A name as it is compared: its words, folded.
pub(crate) fn name_key(name: &str) -> String {
    let words = words(name);
    let folded = words.iter().map(|word| folded(&word.text));
    folded.collect::<Vec<_>>().join(" ")
}

/// Small letters, without accents where the alphabet has them as ornaments.
pub(crate) fn folded(word: &str) -> String {
    fold::word(word, Marks::Ornaments)
}

/// Scripts of which pairs of characters are found. Korean has spaces, but its words are put together.
fn is_cjk(c: char) -> bool {
    script::is_chinese_or_japanese(c) || script::is_hangul(c) || script::is_thai_or_lao(c)
}

/// What stands for itself: emoji and other symbols beyond ASCII.
fn is_symbol(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2bff | 0x1f000..=0x1faff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(tokens(text).join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_folded_and_punctuation_parts_them() {
        check("It's the auth-bug!", "it s the auth bug");
        check("ＦＵＬＬ ﬁne", "full fine");
    }

    #[test]
    fn identifiers_give_themselves_and_their_parts() {
        check("parseHTTPHeader", "pars http header parsehttphead");
        check("snake_case_name", "snake case name");
        check("__init__ SHA256 sha256", "init sha 256 sha256 sha256");
    }

    #[test]
    fn composed_and_decomposed_letters_are_the_same() {
        assert_eq!(tokens("cafe\u{301}"), tokens("café"));
    }

    #[test]
    fn words_are_reduced_to_their_stems_and_accents_fall_away() {
        check("running relational ponies", "run relat poni");
        check("one ones on use uses was", "one one on use use was");
        check("Ångström naïve ёлка", "angstrom naiv елка");
        check("हिन्दी", "हिन्दी");
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        check("東京タワーの会議", "東京 京タ タワ ワー ーの の会 会議");
        check("会", "会");
        check("a会議b", "a 会議 b");
    }

    #[test]
    fn an_emoji_is_a_token() {
        check("go 🚀 now", "go 🚀 now");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_no_token_has_a_space(text in "\\PC{0,200}") {
            for token in tokens(&text) {
                prop_assert!(!token.is_empty() && !token.contains(' '), "{token:?}");
            }
        }
    }
}
