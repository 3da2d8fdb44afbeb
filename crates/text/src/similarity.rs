//! How alike two texts are by their letters.

/// Jaro-Winkler similarity over characters, from 0 to 1: a common beginning of up to four letters counts a
/// tenth of what is missing for each letter, however low the similarity is without it.
#[must_use]
pub fn jaro_winkler(a: &str, b: &str) -> f64 {
    // `strsim::jaro_winkler` counts a common beginning only above 0.7; the KOI contract always does.
    let jaro = if a == b { 1.0 } else { strsim::jaro(a, b) };
    let pairs = a.chars().zip(b.chars()).take(4);
    let n_common = pairs.take_while(|(a, b)| a == b).count();
    let weight = [0.0, 1.0, 2.0, 3.0, 4.0][n_common] * 0.1;
    jaro + weight * (1.0 - jaro)
}

/// Letters put in, left out, taken for others or swapped with the next, if no more than `max`.
#[must_use]
pub fn edits(a: &str, b: &str, max: usize) -> Option<usize> {
    if a.chars().count().abs_diff(b.chars().count()) > max {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|it| *it <= max)
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
            ("ca", "abc", None),
            ("abc", "xyz", None),
            ("a", "abcd", None),
        ] {
            assert_eq!(edits(a, b, 2), expected, "{a} {b}");
            assert_eq!(edits(b, a, 2), expected, "{b} {a}");
        }
    }

    #[test]
    fn a_common_beginning_counts_however_little_is_alike() {
        let similarity = jaro_winkler("mehul sangham", "miranda");
        assert!((similarity - 0.663_736_263_736).abs() < 1e-9);
        assert!(strsim::jaro_winkler("mehul sangham", "miranda") < similarity);
        assert_eq!(jaro_winkler("", ""), 1.0);
        assert_eq!(jaro_winkler("", "a"), 0.0);
    }
}
