//! Names of people, organizations and the like without case, accents and marks between words.
//!
//! Only what is a matter of spelling goes. An accent over a Latin letter is left out by who has no such key;
//! a mark of an Indic, Thai or Japanese letter is a vowel or another sound, so it makes another name.
//! Likewise marks that part words go, and symbols stay: `C++` is not `C#`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// In small Latin letters where it can be, words apart by one space, without accents and without the marks
/// between words.
///
/// A point within a number stays, since `r3.0` and `r30` are two names, and so does one before a word, since
/// `.NET` is no net. A symbol stays where it stands; a `+` between words is an `and`, and a `#` before a word
/// says only that it is a tag.
#[must_use]
pub fn name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let seen = name.chars().filter(|it| !is_left_out(*it));
    let mut letters = seen.nfkd().filter(|it| !is_left_out(*it)).peekable();
    let mut base = ' ';
    while let Some(it) = letters.next() {
        if is_combining_mark(it) {
            if is_telling_mark(base, it) {
                out.push(it);
            }
            continue;
        }
        let next = letters.peek().copied().unwrap_or(' ');
        match it {
            '.' if is_telling_point(base, next) => out.push('.'),
            '#' if is_separator(base) && next.is_alphanumeric() => continue,
            '&' => out.push_str(" and "),
            'ß' | 'ẞ' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'þ' | 'Þ' => out.push_str("th"),
            _ if it.is_alphanumeric() => out.extend(it.to_lowercase().map(plain)),
            _ if is_separator(it) => out.push(' '),
            _ => out.push(it),
        }
        base = if it == '&' { ' ' } else { it };
    }
    let words = out.split(' ').filter(|it| !it.is_empty());
    let mut words: Vec<&str> = words.collect();
    if let [_, between @ .., _] = words.as_mut_slice() {
        let lone = between.iter_mut().filter(|it| **it == "+");
        lone.for_each(|it| *it = "and");
    }
    not_bold(&words.join(" ")).nfc().collect()
}

/// A name without the stars that make it bold in Markdown.
fn not_bold(name: &str) -> &str {
    let bare = name.trim_matches(['*', ' ']);
    let is_bold = name.starts_with('*') && name.ends_with('*') && !bare.is_empty();
    if is_bold { bare } else { name }
}

/// What is never part of a name: apostrophes, signs of registration, and what is not seen.
fn is_left_out(it: char) -> bool {
    let is_apostrophe = matches!(
        it,
        '\'' | '’' | '‘' | '‛' | '′' | '`' | '´' | '＇' | 'ʹ' | 'ʻ' | 'ʼ' | 'ʾ' | 'ʿ'
    );
    let is_registered = matches!(it, '™' | '℠' | '®' | '©');
    let is_unseen = matches!(
        u32::from(it),
        0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff
    );
    is_apostrophe || is_registered || is_unseen
}

/// Whether a point is part of the word or number that it stands in.
fn is_telling_point(before: char, next: char) -> bool {
    let is_letter = next.is_alphabetic() && !is_combining_mark(next);
    before.is_ascii_digit() && next.is_ascii_digit() || before.is_whitespace() && is_letter
}

/// Whether a mark says which letter, vowel or symbol is meant, and is not an accent that may be left out.
fn is_telling_mark(base: char, mark: char) -> bool {
    let is_of_glyph = matches!(u32::from(mark), 0xfe00..=0xfe0f | 0xe0100..=0xe01ef);
    if is_of_glyph || is_separator(base) || base == '*' {
        return false;
    }
    match u32::from(base) {
        // Cyrillic: `й` and `ї` are letters of their own, while `ё` is mostly written `е`.
        0x0400..=0x052f => {
            let is_stress = matches!(mark, '\u{300}' | '\u{301}') && !"гкГК".contains(base);
            !(is_stress || mark == '\u{308}' && "еЕ".contains(base))
        }
        // Hebrew and Arabic points and the hamza that a letter carries are optional.
        0x0590..=0x08ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff => false,
        // Latin and Greek.
        0x0370..=0x03ff | 0x2c60..=0x2c7f | 0xa720..=0xa7ff => false,
        it => !(it < 0x0300 && base.is_alphanumeric()),
    }
}

/// Whether a character only parts words.
fn is_separator(it: char) -> bool {
    it.is_whitespace()
        || it.is_control()
        || matches!(
            it,
            '.' | ',' | ':' | ';' | '!' | '?' | '-' | '_' | '/' | '\\' | '|' | '@' | '"'
        )
        || matches!(it, '(' | ')' | '[' | ']' | '{' | '}')
        || matches!(it, '¡' | '¿' | '«' | '»' | '·' | '§' | '¶' | '−')
        || is_punctuation_of_script(it)
}

/// Full stops, commas, dashes, quotes and brackets beyond ASCII.
fn is_punctuation_of_script(it: char) -> bool {
    matches!(
        u32::from(it),
        0x055a..=0x055f | 0x0589..=0x058a | 0x05be | 0x05c0 | 0x05c3 | 0x05c6 | 0x05f3..=0x05f4
            | 0x060c..=0x060d | 0x061b | 0x061d..=0x061f | 0x066a..=0x066d | 0x06d4
            | 0x0964..=0x0965 | 0x0e2f | 0x0e5a..=0x0e5b | 0x104a..=0x104f | 0x1361..=0x1368
            | 0x17d4..=0x17da | 0x2010..=0x2043 | 0x2045..=0x2051 | 0x2053..=0x205e
            | 0x2e00..=0x2e5d | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301f | 0x30a0
            | 0x30fb | 0xfe10..=0xfe19 | 0xfe30..=0xfe52 | 0xff64..=0xff65
    )
}

/// Letters that have no accent to be taken off but are written without their stroke, and the small sigma at
/// the end of a word.
fn plain(letter: char) -> char {
    match letter {
        'ø' => 'o',
        'ł' => 'l',
        'đ' | 'ð' => 'd',
        'ħ' => 'h',
        'ı' => 'i',
        'ŧ' => 't',
        'ς' => 'σ',
        _ => letter,
    }
}

/// As [`name`], with `ä`, `ö`, `ü`, `ø` and `å` in two letters, as who has no such keys writes them.
#[must_use]
pub fn name_in_two_letters(name: &str) -> String {
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
    self::name(&out)
}

/// The spellings in which a name is compared, each once.
#[must_use]
pub fn spellings(name: &str) -> Vec<String> {
    let mut out = vec![self::name(name)];
    if !name.is_ascii() {
        let other = name_in_two_letters(name);
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
            assert_eq!(name(a), name(b), "{a} {b}");
        }
        assert_ne!(name("r3.0"), name("r30"));
        assert_eq!(name("東京 大学"), "東京 大学");
        assert_eq!(name("--"), "");
    }

    #[test]
    fn what_may_be_left_out_is() {
        for (a, b) in [
            ("Σωκράτης", "ΣΩΚΡΑΤΗΣ"),
            ("Артём", "Артем"),
            ("Росси\u{301}я", "Россия"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("أحمد", "احمد"),
            ("ﾊﾞﾝｸ", "バンク"),
            ("ハ\u{3099}ンク", "バンク"),
            ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
            ("Hawaiʻi", "Hawai'i"),
            ("O´Brien", "OBrien"),
            ("Acme®", "Acme"),
            ("#regen", "Regen"),
            ("**Bill Baue**", "Bill Baue"),
            ("Issue #12", "Issue 12"),
            ("Rock + Roll", "Rock & Roll"),
            ("H₂O", "H2O"),
            ("❤\u{fe0f} Club", "❤ Club"),
            ("森林・組合", "森林 組合"),
            ("“Salmon” – Nation", "Salmon Nation"),
            ("Coope\u{ad}rative", "Cooperative"),
        ] {
            assert_eq!(name(a), name(b), "{a} {b}");
        }
    }

    #[test]
    fn what_makes_another_name_stays() {
        for (a, b) in [
            ("किरण", "करण"),
            ("राम", "रमा"),
            ("ハンク", "バンク"),
            ("パン", "バン"),
            ("ขาว", "ข่าว"),
            ("เขา", "เข้า"),
            ("செல்வன்", "செல்வி"),
            ("Андрей", "Андреи"),
            ("Київ", "Киів"),
            ("C++", "C#"),
            ("C++", "C"),
            ("C#", "C"),
            ("A*", "A"),
            (".NET", "Net"),
            ("+1", "-1"),
            ("¬A", "A"),
            ("🐟 Club", "🐠 Club"),
            ("🐟 Club", "Club"),
            ("Project X+", "Project X"),
            ("a ≠ b", "a = b"),
        ] {
            assert_ne!(name(a), name(b), "{a} {b}");
        }
        assert_eq!(name("C++"), "c++");
        assert_eq!(name("バンク"), "バンク");
    }

    #[test]
    fn umlauts_may_be_two_letters() {
        assert_eq!(name_in_two_letters("Jürgen Möller"), "juergen moeller");
        assert_eq!(name_in_two_letters("Ju\u{308}rgen"), "juergen");
        assert_eq!(name_in_two_letters("Zoe"), "zoe");
    }
}
