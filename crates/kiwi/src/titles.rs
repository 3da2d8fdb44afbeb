//! The title of an item counts more than its text.

use kenning_search::tokens;

/// The weight of the title in an item's relevance: how many words of the query are in its title or
/// id.
const TITLE_SHARE: f64 = 0.2;

/// Words of questions that do not describe what is searched for.
const FILLER: [&str; 36] = [
    "the", "a", "an", "and", "or", "of", "to", "in", "on", "at", "is", "are", "was", "were", "do",
    "does", "did", "how", "what", "when", "where", "who", "why", "which", "for", "with", "we", "i",
    "it", "by", "my", "our", "me", "can", "you", "this",
];

/// The words of a query that a title can contain.
pub struct AskedWords(Vec<String>);

impl AskedWords {
    /// Of a query.
    pub fn of(query: &str) -> Self {
        let words = query.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|it| !it.is_empty());
        let telling: Vec<&str> = words
            .clone()
            .filter(|it| !FILLER.contains(&it.to_lowercase().as_str()))
            .collect();
        let telling = match telling.is_empty() {
            true => words.collect(),
            false => telling,
        };
        let mut all: Vec<String> = telling.iter().flat_map(|it| tokens(it)).collect();
        all.sort_unstable();
        all.dedup();
        Self(all)
    }

    /// The relevance of something with this title, whose text has this relevance.
    pub fn weigh(&self, title: &str, relevance: f64) -> f64 {
        if self.0.is_empty() {
            return relevance;
        }
        let title = tokens(title);
        let n_there = self.0.iter().filter(|it| title.contains(it)).count();
        #[expect(clippy::cast_precision_loss, reason = "a share of few words")]
        let share = n_there as f64 / self.0.len() as f64;
        (1.0 - TITLE_SHARE) * relevance + TITLE_SHARE * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_has_the_words_outweighs_a_text_that_repeats_them() {
        let asked = AskedWords::of("How do we deploy?");
        let called = asked.weigh("000 Deploys to production", 0.92);
        let mentioned = asked.weigh("013 Postgres tuning", 1.0);
        assert!(called > mentioned + 0.1, "{called} {mentioned}");
        let asked = AskedWords::of("incident response handling");
        let half = asked.weigh("incident_response", 0.7);
        assert!(half > asked.weigh("backup", 0.8), "{half}");
        // Of filler alone all words count, and of nothing none.
        assert!(AskedWords::of("what is it").weigh("what is it", 1.0) > 0.99);
        assert!((AskedWords::of("--").weigh("x", 0.5) - 0.5).abs() < 1e-9);
    }
}
