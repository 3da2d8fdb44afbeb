//! How many words two names share.

/// Words that two names share, of the words of the shorter one, and how many they are.
#[must_use]
pub fn token_overlap(a: &str, b: &str) -> (f64, usize) {
    let words = |it: &str| -> Vec<String> {
        let mut words: Vec<String> = it.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (a, b) = (words(a), words(b));
    let n_shared = a.iter().filter(|it| b.contains(it)).count();
    let n_shorter = a.len().min(b.len());
    if n_shorter == 0 {
        return (0.0, 0);
    }
    (n_shared as f64 / n_shorter as f64, n_shared)
}

/// Whether names share enough words: one word is compared by its letters only.
#[must_use]
pub fn share_enough_words(a: &str, b: &str) -> bool {
    let n_words = |it: &str| it.split_whitespace().count();
    if n_words(a) <= 1 || n_words(b) <= 1 {
        return true;
    }
    let (share, n_shared) = token_overlap(a, b);
    share >= 0.5 && n_shared >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_needs_no_other() {
        assert!(share_enough_words("herring", "herring monitoring"));
        assert!(!share_enough_words(
            "herring monitoring",
            "herring monitring"
        ));
        assert!(share_enough_words(
            "herring watch group",
            "herring watch grop"
        ));
    }
}
