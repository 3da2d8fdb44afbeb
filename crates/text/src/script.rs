//! What kind of character one is.

pub use unicode_normalization::char::is_combining_mark;

/// Chinese and Japanese characters: Hiragana, Katakana, and ideographs with their extensions.
#[must_use]
pub fn is_chinese_or_japanese(it: char) -> bool {
    matches!(
        u32::from(it),
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff
    )
}

/// Syllables of Korean.
#[must_use]
pub fn is_hangul(it: char) -> bool {
    matches!(u32::from(it), 0xac00..=0xd7af)
}

/// Thai and Lao letters.
#[must_use]
pub fn is_thai_or_lao(it: char) -> bool {
    matches!(u32::from(it), 0x0e00..=0x0eff)
}

/// Whether words of its script are written without spaces between them: Chinese, Japanese, Thai, Lao, Khmer
/// and Burmese.
#[must_use]
pub fn is_without_spaces(it: char) -> bool {
    is_chinese_or_japanese(it)
        || is_thai_or_lao(it)
        || matches!(u32::from(it), 0x1000..=0x109f | 0x1780..=0x17ff)
}

/// Whether a character is a picture, or part of one.
#[must_use]
pub fn is_emoji(it: char) -> bool {
    matches!(
        u32::from(it),
        0x1f000..=0x1faff | 0x1fc00..=0x1fcff | 0x2600..=0x27bf | 0x2b00..=0x2bff | 0x2300..=0x23ff
            | 0x200d | 0x20e3 | 0xfe0e..=0xfe0f | 0xe0020..=0xe007f
    )
}

/// A text without its pictures, if it has any and something else is left.
#[must_use]
pub fn without_emoji(text: &str) -> Option<String> {
    if !text.contains(is_emoji) {
        return None;
    }
    let plain = |it| if is_emoji(it) { ' ' } else { it };
    let bare: String = text.chars().map(plain).collect();
    bare.contains(char::is_alphanumeric).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_can_be_taken_off_a_name() {
        let coop = without_emoji("🌱 Food Coop 👩‍🌾").unwrap();
        assert_eq!(coop.trim(), "Food Coop");
        assert_eq!(without_emoji("Food Coop"), None);
        assert_eq!(without_emoji("🐟"), None, "nothing else is left");
        assert_eq!(without_emoji("C++"), None);
    }

    #[test]
    fn scripts_are_told_apart() {
        for (it, expected) in [
            ('a', [false, false, false]),
            ('東', [true, false, true]),
            ('タ', [true, false, true]),
            ('한', [false, true, false]),
            ('ช', [false, false, true]),
            ('ស', [false, false, true]),
        ] {
            let found = [
                is_chinese_or_japanese(it),
                is_hangul(it),
                is_without_spaces(it),
            ];
            assert_eq!(found, expected, "{it}");
        }
    }
}
