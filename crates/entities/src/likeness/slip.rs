//! Typing errors.

use crate::words::is_known;
use kenning_text::similarity::edits;

/// A token of at least this length may have two errors.
const TWO_SLIPS_LETTERS: usize = 10;
/// In a shorter token a changed letter makes another name.
const OTHER_LETTER_MIN: usize = 5;
const LETTERS_MIN: usize = 4;

/// Prefixes that differ by one letter and mean opposites.
const BEGINNINGS: &[(&str, &str)] = &[
    ("macro", "micro"),
    ("inter", "intra"),
    ("hyper", "hypo"),
    ("meso", "mega"),
];

/// Whether one token is the other with a typing error. Only for folded tokens of alphabets with
/// vowels: elsewhere another character makes another word.
pub(super) fn is_slip(a: &str, b: &str) -> bool {
    let (n_a, n_b) = (a.chars().count(), b.chars().count());
    let (n_longer, n_shorter) = (n_a.max(n_b), n_a.min(n_b));
    if n_longer < LETTERS_MIN || n_shorter + 1 < LETTERS_MIN || !(is_spelled(a) && is_spelled(b)) {
        return false;
    }
    let n_max = if n_longer >= TWO_SLIPS_LETTERS { 2 } else { 1 };
    if edits(a, b, n_max).is_none() || is_known(a) && is_known(b) {
        return false;
    }
    if n_a == n_b && n_longer < OTHER_LETTER_MIN && !is_swap(a, b) {
        return false;
    }
    if BEGINNINGS
        .iter()
        .any(|pair| begin_with(a, b, pair) || begin_with(b, a, pair))
    {
        return false;
    }
    // People rarely mistype how a name begins.
    a.chars().next() == b.chars().next() || is_swap(a, b)
}

fn begin_with(a: &str, b: &str, (of_a, of_b): &(&str, &str)) -> bool {
    matches!((a.strip_prefix(of_a), b.strip_prefix(of_b)), (Some(a), Some(b)) if a == b)
}

/// Whether letters are the same in another order.
fn is_swap(a: &str, b: &str) -> bool {
    let sorted = |it: &str| {
        let mut letters: Vec<char> = it.chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(a) == sorted(b)
}

fn is_spelled(token: &str) -> bool {
    let is_of_alphabet = |c: char| c.is_alphabetic() && u32::from(c) < 0x0590;
    token.chars().all(is_of_alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_makes_no_other_word() {
        for (a, b, expected) in [
            ("network", "netwrok", true),
            ("monitoring", "monitring", true),
            ("regenerating", "regenrting", true),
            ("baue", "bau", true),
            ("policy", "police", false),
            ("conservation", "conversation", false),
            ("smith", "smth", true),
            ("wang", "weng", false),
            ("li", "lu", false),
            ("shiva", "shiwa", true),
            ("phase1", "phase2", false),
            ("東京大学", "東京大学院", false),
            ("किरण", "करण", false),
            ("محمد", "محمود", false),
            ("notepad", "notepad++", false),
            ("solar", "xolar", false),
        ] {
            assert_eq!(is_slip(a, b), expected, "{a} {b}");
            assert_eq!(is_slip(b, a), expected, "{b} {a}");
        }
    }
}
