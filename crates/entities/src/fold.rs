//! Names without what people spell differently: case, accents, marks between words.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// In small Latin letters where it can be, words apart by one space, without marks and accents.
///
/// A point within a number stays, since `r3.0` and `r30` are two names.
#[must_use]
pub fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut letters = name.nfkd().filter(|it| !is_combining_mark(*it)).peekable();
    while let Some(it) = letters.next() {
        let is_in_number = it == '.'
            && out.ends_with(|it: char| it.is_ascii_digit())
            && letters.peek().is_some_and(char::is_ascii_digit);
        match it {
            _ if is_in_number => out.push('.'),
            '\'' | '’' | '‘' | 'ʼ' | '`' => {}
            '&' => out.push_str(" and "),
            'ß' | 'ẞ' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'þ' | 'Þ' => out.push_str("th"),
            _ if it.is_alphanumeric() => out.extend(it.to_lowercase().map(plain)),
            _ if !out.ends_with(' ') => out.push(' '),
            _ => {}
        }
    }
    let words: Vec<&str> = out.split(' ').filter(|it| !it.is_empty()).collect();
    words.join(" ")
}

/// Letters that have no accent to be taken off but are written without their stroke.
fn plain(letter: char) -> char {
    match letter {
        'ø' => 'o',
        'ł' => 'l',
        'đ' | 'ð' => 'd',
        'ħ' => 'h',
        'ı' => 'i',
        'ŧ' => 't',
        _ => letter,
    }
}

/// As [`folded`], with `ä`, `ö`, `ü`, `ø` and `å` in two letters, as who has no such keys writes them.
#[must_use]
pub fn folded_in_two_letters(name: &str) -> String {
    let composed: String = name.nfc().collect();
    let mut out = String::with_capacity(composed.len());
    for it in composed.to_lowercase().chars() {
        match it {
            'ä' => out.push_str("ae"),
            'ö' | 'ø' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'å' => out.push_str("aa"),
            _ => out.push(it),
        }
    }
    folded(&out)
}

/// The spellings in which a name is compared, each once.
pub(crate) fn spellings(name: &str) -> Vec<String> {
    let mut out = vec![folded(name)];
    if !name.is_ascii() {
        let other = folded_in_two_letters(name);
        if other != out[0] {
            out.push(other);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_one() {
        for (a, b) in [
            ("  Bill_Baue ", "bill-baue"),
            ("Zoë Saldaña", "Zoe Saldana"),
            ("Łukasz", "lukasz"),
            ("O'Brien", "O’Brien"),
            ("Straße", "STRASSE"),
            ("Ben & Jerry", "ben and jerry"),
            ("J.R.R. Tolkien", "J R R Tolkien"),
            ("Baue, Bill", "baue bill"),
            ("ﬁle", "file"),
        ] {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        assert_ne!(folded("r3.0"), folded("r30"));
        assert_eq!(folded("東京 大学"), "東京 大学");
        assert_eq!(folded("--"), "");
    }

    #[test]
    fn umlauts_may_be_two_letters() {
        assert_eq!(folded_in_two_letters("Jürgen Möller"), "juergen moeller");
        assert_eq!(folded_in_two_letters("Ju\u{308}rgen"), "juergen");
        assert_eq!(folded_in_two_letters("Zoe"), "zoe");
    }
}
