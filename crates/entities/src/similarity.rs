//! How alike two texts are, by their letters and by their words.

/// Jaro-Winkler similarity over characters, from 0 to 1: window of half the longer one, four letters of
/// common beginning count.
#[must_use]
pub fn jaro_winkler(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let jaro = jaro(&a, &b);
    let n_common = a.iter().zip(&b).take(4).take_while(|(a, b)| a == b).count();
    jaro + small(n_common) * 0.1 * (1.0 - jaro)
}

/// Counts of letters in a name are small, so the conversion is exact.
fn small(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn jaro(a: &[char], b: &[char]) -> f64 {
    if a == b {
        return 1.0;
    }
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let window = (a.len().max(b.len()) / 2).saturating_sub(1);
    let mut is_taken = vec![false; b.len()];
    let mut of_a = Vec::new();
    for (at, letter) in a.iter().enumerate() {
        let from = at.saturating_sub(window);
        let to = (at + window + 1).min(b.len());
        let found = (from..to).find(|&it| !is_taken[it] && b[it] == *letter);
        if let Some(found) = found {
            is_taken[found] = true;
            of_a.push(*letter);
        }
    }
    if of_a.is_empty() {
        return 0.0;
    }
    let of_b = b.iter().zip(&is_taken).filter(|it| *it.1).map(|it| it.0);
    let n_moved = of_a.iter().zip(of_b).filter(|(a, b)| a != b).count() / 2;
    let n = small(of_a.len());
    (n / small(a.len()) + n / small(b.len()) + (n - small(n_moved)) / n) / 3.0
}

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
    (small(n_shared) / small(n_shorter), n_shared)
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

/// Letters put in, left out, taken for others or swapped with the next, if no more than `max`.
#[must_use]
pub fn edits(a: &str, b: &str, max: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let other = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + other);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|it| *it <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, expected) in [
            ("", "", Some(0)),
            ("abc", "abc", Some(0)),
            ("abc", "acb", Some(1)),
            ("abc", "ab", Some(1)),
            ("abc", "xbc", Some(1)),
            ("abcd", "badc", Some(2)),
            ("abc", "xyz", None),
            ("a", "abcd", None),
        ] {
            assert_eq!(edits(a, b, 2), expected, "{a} {b}");
            assert_eq!(edits(b, a, 2), expected, "{b} {a}");
        }
    }

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
