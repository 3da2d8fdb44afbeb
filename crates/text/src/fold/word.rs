//! Words of texts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// Which marks of letters are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Those that vary a letter, in Latin, Greek and Cyrillic; elsewhere a mark may be a vowel. Letters are
    /// composed. So search has it.
    Ornaments,
    /// All, and letters are taken apart, Korean syllables too. So the table of embeddings was made.
    All,
}

/// A word in small letters, without marks.
#[must_use]
pub fn word(word: &str, marks: Marks) -> String {
    let mut out = String::new();
    word_into(word, marks, &mut out);
    out
}

/// As [`word`], in place of what `out` held.
pub fn word_into(word: &str, marks: Marks, out: &mut String) {
    out.clear();
    if word.is_ascii() {
        out.push_str(word);
        out.make_ascii_lowercase();
        return;
    }
    let small = word.to_lowercase();
    match marks {
        Marks::Ornaments => {
            let mut is_varied = false;
            let bare = small.nfd().filter(|&it| {
                let is_mark = is_combining_mark(it);
                if !is_mark {
                    is_varied = matches!(u32::from(it), 0x41..=0x52f | 0x1e00..=0x1fff);
                }
                !(is_mark && is_varied)
            });
            out.extend(bare.nfc());
        }
        Marks::All => {
            let is_letter =
                |it: &char| canonical_combining_class(*it) == 0 && !is_combining_mark(*it);
            out.extend(small.nfd().filter(is_letter));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_where_they_are_ornaments_or_everywhere() {
        for (text, ornaments, all) in [
            ("ÉTÉ", "ete", "ete"),
            ("Ёлка", "елка", "елка"),
            ("हिन्दी", "हिन्दी", "हनद"),
            ("한", "한", "\u{1112}\u{1161}\u{11ab}"),
            ("ABC", "abc", "abc"),
        ] {
            assert_eq!(word(text, Marks::Ornaments), ornaments);
            assert_eq!(word(text, Marks::All), all);
        }
    }
}
