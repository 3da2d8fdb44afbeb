//! Proposes similar names, so that a typing error costs one call and not a search.

/// The least similarity of two names, from 0 to 1.
const LIKENESS_MIN: f64 = 0.75;
/// At most this many are proposed.
const PROPOSED_MAX: usize = 3;
/// A longer text is not a name.
const NAME_CHARS_MAX: usize = 100;

/// The known names most similar to an unknown one, best first.
pub fn names(asked: &str, known: impl IntoIterator<Item = String>) -> Vec<String> {
    if asked.is_empty() || asked.chars().nth(NAME_CHARS_MAX).is_some() {
        return Vec::new();
    }
    // `kg-query` and `KG_Query` are similar to `kg_query` too.
    let plain = |text: &str| text.to_lowercase().replace(['-', ' ', '.'], "_");
    let wanted = plain(asked);
    let alike = |name: &str| strsim::normalized_damerau_levenshtein(&wanted, &plain(name));
    let mut found: Vec<(f64, String)> = known
        .into_iter()
        .map(|name| (alike(&name), name))
        .filter(|it| it.0 >= LIKENESS_MIN)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    found
        .into_iter()
        .take(PROPOSED_MAX)
        .map(|it| it.1)
        .collect()
}

/// ` Did you mean \`a\` or \`b\`?`, or nothing.
pub fn sentence(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    format!(" Did you mean {}?", quoted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_finds_none() {
        let known = ["kg_query", "kg_stats", "memory_recall", "koi_search"];
        let near = |asked: &str| names(asked, known.map(ToOwned::to_owned));
        assert_eq!(near("kg_querry"), ["kg_query"]);
        assert_eq!(near("KG-Query"), ["kg_query"]);
        assert_eq!(near("memory_recal"), ["memory_recall"]);
        for other in ["", "banana", "search everything", &"x".repeat(500)] {
            assert!(near(other).is_empty(), "{other}");
        }
        assert_eq!(sentence(&near("kg_querry")), " Did you mean `kg_query`?");
        assert_eq!(sentence(&[]), "");
    }
}
