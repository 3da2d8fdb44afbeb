//! Text to tokens of the table.
//!
//! Words are runs of letters and digits. A known word is one token; otherwise a word with CJK
//! characters goes character by character, a mixed-case ASCII word is split like an identifier, and
//! whatever remains is covered by the longest known pieces, or gives nothing.

use super::{TOKENS_MAX, Table, TokenId};
use kenning_text::fold::{self, Marks};
use kenning_text::script::is_combining_mark;
use unicode_normalization::UnicodeNormalization;

/// The longest word, in characters, that is covered by pieces.
const WORD_CHARS_MAX: usize = 40;

impl Table {
    /// The tokens of a text, in order, at most [`TOKENS_MAX`].
    pub fn ids(&self, text: &str) -> Vec<TokenId> {
        let mut out = Vec::new();
        if text.is_ascii() {
            self.push_text(text, &mut out);
        } else {
            // Composed and decomposed letters are the same.
            self.push_text(&text.nfc().collect::<String>(), &mut out);
        }
        out.truncate(TOKENS_MAX);
        out
    }

    fn push_text(&self, text: &str, out: &mut Vec<TokenId>) {
        let mut folded = String::new();
        for word in text
            .split(|c: char| !is_word(c))
            .filter(|it| !it.is_empty())
        {
            fold::word_into(word, Marks::All, &mut folded);
            self.push_word(word, &folded, out);
            if out.len() >= TOKENS_MAX {
                return;
            }
        }
    }

    fn push_word(&self, word: &str, folded: &str, out: &mut Vec<TokenId>) {
        if let Some(id) = self.token(folded.as_bytes()) {
            out.push(id);
        } else if folded.chars().any(is_cjk) {
            self.push_characters(folded, out);
        } else if word.is_ascii() && !is_lower(word) {
            let parts = self.identifier_parts(word);
            if parts.len() > 1 {
                parts
                    .iter()
                    .for_each(|part| self.push_known_or_pieces(&part.to_ascii_lowercase(), out));
            } else {
                self.push_pieces(folded, out);
            }
        } else {
            self.push_pieces(folded, out);
        }
    }

    /// A word of a script that the table knows as it was written, or what it is split into, each part
    /// with its tokens. A part that cannot be covered has none.
    pub fn parts<'a>(&self, word: &'a str) -> Vec<(&'a str, Vec<TokenId>)> {
        let mut folded = String::new();
        fold::word_into(word, Marks::All, &mut folded);
        let known = self.token(folded.as_bytes());
        if known.is_none() && word.is_ascii() && !is_lower(word) {
            let parts = self.identifier_parts(word);
            if parts.len() > 1 {
                let with_tokens = |part: &'a str| {
                    let mut ids = Vec::new();
                    self.push_known_or_pieces(&part.to_ascii_lowercase(), &mut ids);
                    (part, ids)
                };
                return parts.into_iter().map(with_tokens).collect();
            }
        }
        let mut ids = Vec::new();
        match known {
            Some(id) => ids.push(id),
            None => self.push_pieces(&folded, &mut ids),
        }
        vec![(word, ids)]
    }

    /// One CJK character at a time; what stands between them as a word.
    fn push_characters(&self, folded: &str, out: &mut Vec<TokenId>) {
        let mut rest = folded;
        while let Some(first) = rest.chars().next() {
            let end = if stands_alone(first) {
                first.len_utf8()
            } else {
                rest.find(stands_alone).unwrap_or(rest.len())
            };
            let (run, after) = rest.split_at(end);
            rest = after;
            match self.token(run.as_bytes()) {
                Some(id) => out.push(id),
                None if run.chars().nth(1).is_some() => self.push_pieces(run, out),
                None => {}
            }
        }
    }

    fn push_known_or_pieces(&self, word: &str, out: &mut Vec<TokenId>) {
        match self.token(word.as_bytes()) {
            Some(id) => out.push(id),
            None => self.push_pieces(word, out),
        }
    }

    /// `parseHTTPRequest2` is parse, HTTP, Request, 2; a run of letters that is known stays whole.
    fn identifier_parts<'a>(&self, word: &'a str) -> Vec<&'a str> {
        let mut parts = Vec::new();
        let mut rest = word;
        while let Some(first) = rest.bytes().next() {
            let digits = first.is_ascii_digit();
            let end = rest
                .bytes()
                .position(|b| b.is_ascii_digit() != digits)
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if digits || self.token(run.to_ascii_lowercase().as_bytes()).is_some() {
                parts.push(run);
            } else {
                push_camel_parts(run, &mut parts);
            }
        }
        parts
    }

    /// The longest known piece, then the longest continuation …; a word that cannot be covered gives
    /// nothing.
    fn push_pieces(&self, word: &str, out: &mut Vec<TokenId>) {
        if word.chars().count() > WORD_CHARS_MAX {
            return;
        }
        let first_new = out.len();
        let mut piece = Vec::with_capacity(word.len() + 2);
        let mut start = 0;
        while start < word.len() {
            let found = (start + 1..=word.len())
                .rev()
                .filter(|&end| word.is_char_boundary(end))
                .find_map(|end| {
                    piece.clear();
                    if start > 0 {
                        piece.extend_from_slice(b"##");
                    }
                    piece.extend_from_slice(&word.as_bytes()[start..end]);
                    Some((self.token(&piece)?, end))
                });
            let Some((id, end)) = found else {
                out.truncate(first_new);
                return;
            };
            out.push(id);
            start = end;
        }
    }
}

/// `HTTPRequest` is HTTP, Request; the word has ASCII letters only.
fn push_camel_parts<'a>(run: &'a str, parts: &mut Vec<&'a str>) {
    let bytes = run.as_bytes();
    let mut start = 0;
    for i in 1..bytes.len() {
        let begins = bytes[i].is_ascii_uppercase()
            && (bytes[i - 1].is_ascii_lowercase()
                || bytes.get(i + 1).is_some_and(u8::is_ascii_lowercase));
        if begins {
            parts.push(&run[start..i]);
            start = i;
        }
    }
    parts.push(&run[start..]);
}

/// Letters and digits, without marks and without letters that are signs (circled, squared).
fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    let is_sign = matches!(u32::from(c), 0x24b6..=0x24e9 | 0x1f130..=0x1f189);
    c.is_alphanumeric() && !is_combining_mark(c) && !is_sign
}

/// Has a letter, and none of its letters is a capital.
fn is_lower(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_lowercase()) && !word.bytes().any(|b| b.is_ascii_uppercase())
}

/// A word with one of these goes character by character.
fn is_cjk(c: char) -> bool {
    let is_rare = matches!(u32::from(c), 0x20000..=0x2fa1f);
    is_rare || (stands_alone(c) && !matches!(u32::from(c), 0x4dc0..=0x4dff))
}

/// The characters that such a word is cut at; those beyond the first plane stay in runs.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff)
}
