//! Tokens as a floor's full-text index holds them, the same on every floor.
//!
//! An index has opinions of its own: SQLite folds capital letters of ASCII and cuts at quotes and control
//! characters, PostgreSQL refuses U+0000 and long words. A lexeme gives them nothing to have an opinion
//! about. What search makes of ordinary text is a lexeme already.

use kenning_core::Hash;

/// A longer token stands as its hash.
const BYTES_MAX: usize = 1_000;

/// More of one text than this is not found; PostgreSQL holds a mebibyte for a passage.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Where a character of ASCII that an index would fold or cut at stands: for private use.
const PRIVATE: u32 = 0xf_0000;

/// A token as a lexeme. It is empty only if the token is; no control character is in it.
pub fn lexeme(token: &str) -> String {
    let plain = |c: char| {
        let sign = c.is_ascii_punctuation() && c != '\'';
        !c.is_ascii() || c.is_ascii_lowercase() || c.is_ascii_digit() || sign
    };
    if token.len() > BYTES_MAX {
        return Hash::of(token.as_bytes()).to_string();
    }
    let moved = |c: char| char::from_u32(PRIVATE + u32::from(c)).unwrap_or(c);
    let chars = token.chars();
    chars.map(|c| if plain(c) { c } else { moved(c) }).collect()
}

/// The lexemes of tokens joined by spaces.
pub fn lexemes(tokens: &str) -> impl Iterator<Item = String> {
    let all = tokens.split(' ').filter(|it| !it.is_empty()).map(lexeme);
    all.scan(0, |n_bytes, it| {
        *n_bytes += it.len() + 1;
        (*n_bytes <= TEXT_BYTES_MAX).then_some(it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_tokens_are_lexemes_and_others_stay_apart() {
        for plain in ["red", "c++", "会議", "🚀", "snake_case2", "a:b", "\"", "\\"] {
            assert_eq!(lexeme(plain), plain);
        }
        let odd = [
            "don't", "don", "t", "RED", "Red", "red", "a b", "a\0b", "ab", "\u{1}",
        ];
        let mut all: Vec<String> = odd.map(lexeme).to_vec();
        all.extend([lexeme(&"x".repeat(5_000)), lexeme(&"x".repeat(5_001))]);
        assert!(all.iter().all(|it| !it.is_empty() && it.len() <= BYTES_MAX));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), odd.len() + 2);
        assert_eq!(lexemes("  a  b ").collect::<Vec<_>>(), ["a", "b"]);
    }
}
