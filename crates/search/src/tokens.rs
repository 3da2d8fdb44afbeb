//! Words, parts of identifiers, pairs of CJK characters, symbols.

use unicode_normalization::UnicodeNormalization;

/// The longest token that is kept; more of it tells nothing more.
const TOKEN_BYTES_MAX: usize = 64;

/// The tokens of a text, in order, repetitions included.
///
/// A word is a run of letters, digits and marks; an identifier (`camelCase`, `snake_case`) gives
/// itself and its parts; a run of CJK characters gives its pairs; a symbol stands for itself, so
/// that an emoji can be found.
pub fn tokens(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect();
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
        } else if c.is_alphanumeric() || is_mark(c) || c == '_' {
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
    let whole = std::mem::take(word);
    if whole.chars().all(|c| c == '_') {
        return;
    }
    let parts = identifier_parts(&whole);
    if parts.len() > 1 {
        out.extend(parts.iter().map(|part| folded(part)));
    }
    out.push(folded(&whole));
}

/// `fooBar_baz2` is `foo`, `Bar`, `baz2`; an acronym stays whole: `HTTPServer` is `HTTP`, `Server`.
fn identifier_parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for piece in word.split('_').filter(|it| !it.is_empty()) {
        let chars: Vec<(usize, char)> = piece.char_indices().collect();
        let mut start = 0;
        for i in 1..chars.len() {
            let (at, c) = chars[i];
            let before = chars[i - 1].1;
            let lower_follows = chars.get(i + 1).is_some_and(|it| it.1.is_lowercase());
            let begins = c.is_uppercase()
                && (before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && lower_follows));
            if begins {
                parts.push(&piece[start..at]);
                start = at;
            }
        }
        parts.push(&piece[start..]);
    }
    parts
}

fn folded(word: &str) -> String {
    let mut word = word.to_lowercase();
    if word.len() > TOKEN_BYTES_MAX {
        let end = (0..=TOKEN_BYTES_MAX)
            .rev()
            .find(|&i| word.is_char_boundary(i))
            .unwrap_or(0);
        word.truncate(end);
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

/// Scripts that are written without spaces between words.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30ff      // Hiragana, Katakana
        | 0x3400..=0x4dbf    // CJK extension A
        | 0x4e00..=0x9fff    // CJK
        | 0xac00..=0xd7af    // Hangul
        | 0xf900..=0xfaff    // compatibility
        | 0x0e00..=0x0eff    // Thai, Lao
        | 0x20000..=0x323af) // further extensions
}

/// Combining marks belong to the letter before them.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
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
        check("parseHTTPHeader", "parse http header parsehttpheader");
        check("snake_case_name", "snake case name snake_case_name");
        check("__init__", "__init__");
    }

    #[test]
    fn composed_and_decomposed_letters_are_the_same() {
        assert_eq!(tokens("cafe\u{301}"), tokens("café"));
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
