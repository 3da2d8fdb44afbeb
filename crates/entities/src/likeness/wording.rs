//! Compares names of anything but people, word by word.
//!
//! Small words and legal forms do not count. All other words must agree in their order, except for
//! typing errors: one distinctive word makes another organization.

use super::slip::is_slip;
use super::{
    Because, Likeness, ONE_WORD_MIN, SAME_FORM, SAME_LETTERS, are_written_together, is_distinctive,
};
use crate::names::normalized;
use crate::ontology::EntityType;
use crate::similarity::share_enough_words;
use crate::words::{GENERIC, SMALL, in_full, is_known, joined_coop, without_legal_form};
use kenning_text::fold::{self, spellings};
use kenning_text::similarity::jaro_winkler;

/// One word in this many may have a typing error.
const WORDS_PER_SLIP: usize = 4;
/// A misspelled word must be at least this similar.
const MEANT_MIN: f64 = 0.9;

pub(super) fn likeness(kind: &EntityType, a: &str, b: &str, similarity: f64) -> Option<Likeness> {
    let telling = |it: &str| -> Vec<Vec<String>> {
        let initials = initials(it);
        let spellings = spellings(it);
        let words = spellings.iter().map(|it| telling_words(it, &initials));
        words.collect()
    };
    let (all_a, all_b) = (telling(a), telling(b));
    for words_a in &all_a {
        for words_b in &all_b {
            if words_a == words_b {
                return Likeness::of(SAME_FORM, Because::Writing);
            }
            if are_written_together(words_a, words_b) || are_one_or_many(words_a, words_b) {
                return Likeness::of(SAME_LETTERS, Because::Spacing);
            }
        }
    }
    let (words_a, words_b) = (&all_a[0], &all_b[0]);
    let is_close = similarity >= kind.similarity_threshold
        && (words_a.len() > 1 || similarity >= ONE_WORD_MIN)
        && differ_by_slips(words_a, words_b);
    let shares = is_distinctive(kind)
        || !kind.require_token_overlap
        || share_enough_words(&normalized(a), &normalized(b));
    (is_close && shares).then_some(())?;
    Likeness::of(similarity, Because::Slip)
}

/// Single letters of a name that are initials, although they look like an article or an "and":
/// followed by a period, at the end (`Plan A`), or a capital within the name (`Type A Personality`).
/// Before a single word nothing distinguishes `A Smith` from `A. Smith`, so it counts as an initial
/// too.
fn initials(name: &str) -> Vec<String> {
    let words: Vec<&str> = name
        .split(|c: char| c.is_whitespace() || matches!(c, '-' | '_'))
        .filter(|it| it.contains(char::is_alphanumeric))
        .collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let folded = fold::name(word);
        let is_first = at == 0;
        let is_capital = word.chars().any(char::is_uppercase);
        let is_initial = word.contains('.')
            || at + 1 == words.len()
            || is_first && words.len() == 2
            || is_capital && !is_first
            // Only `a` is an article; `e` and `y` mean "and".
            || is_first && folded != "a";
        let letters = folded.split(' ').filter(|it| it.chars().count() == 1);
        found.extend(letters.filter(|_| is_initial).map(str::to_owned));
    }
    found
}

/// The significant words of a name, in its first spelling.
fn telling_words_of(name: &str) -> Vec<String> {
    telling_words(&fold::name(name), &initials(name))
}

/// The words that distinguish a name; all words if none does.
fn telling_words(name: &str, initials: &[String]) -> Vec<String> {
    let name = joined_coop(name);
    let mut words: Vec<&str> = name.split(' ').map(in_full).collect();
    words.truncate(without_legal_form(&words));
    let telling: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !SMALL.contains(word) || initials.iter().any(|initial| initial == word))
        .collect();
    let words = if telling.is_empty() { words } else { telling };
    words.into_iter().map(str::to_owned).collect()
}

fn differ_by_slips(a: &[String], b: &[String]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let others: Vec<(&String, &String)> = a.iter().zip(b).filter(|(a, b)| a != b).collect();
    let n_max = a.len().div_ceil(WORDS_PER_SLIP);
    others.len() <= n_max && others.iter().all(|(a, b)| is_plural(a, b) || is_slip(a, b))
}

/// Whether the words differ only in singular and plural.
fn are_one_or_many(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || is_plural(a, b))
}

fn is_plural(a: &str, b: &str) -> bool {
    let (one, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let is_regular = many
        .strip_prefix(one)
        .is_some_and(|ending| ending == "s" || ending == "es");
    let stem = one.strip_suffix('y');
    one.len() > 2
        && one.ends_with(char::is_alphabetic)
        && (is_regular || stem.is_some_and(|it| many.strip_prefix(it) == Some("ies")))
}

/// Whether two names share a word that is not the kind of what they name.
pub(super) fn share_a_distinctive_word(a: &str, b: &str) -> bool {
    let (a, b) = (telling_words_of(a), telling_words_of(b));
    let distinctive = |it: &&String| !GENERIC.contains(&it.as_str());
    a.iter().filter(distinctive).any(|it| b.contains(it))
}

/// Whether all words of one occur in the other, in their order, at least one of them distinctive.
///
/// If each name has a word that the other does not have, they are different: `Kelp Guild` is not
/// `Kelp Atlas`.
pub(super) fn could_be_called(label: &str, name: &str) -> bool {
    let (a, b) = (telling_words_of(label), telling_words_of(name));
    let (few, many) = if a.len() <= b.len() {
        (&a, &b)
    } else {
        (&b, &a)
    };
    let mut rest = many.iter();
    let is_among = |it: &String| rest.any(|other| is_meant_by(it, other));
    let distinguishes = |text: &String| {
        let is_generic = GENERIC.contains(&text.as_str());
        !is_generic && text.contains(char::is_alphanumeric)
    };
    let do_distinguish = a.iter().any(distinguishes) && b.iter().any(distinguishes);
    are_written_together(&a, &b) || do_distinguish && few.iter().all(is_among)
}

fn is_meant_by(a: &str, b: &str) -> bool {
    let is_word = |it: &str| it.chars().all(char::is_alphabetic);
    let is_alike = || {
        is_word(a) && is_word(b) && !(is_known(a) && is_known(b)) && jaro_winkler(a, b) >= MEANT_MIN
    };
    a == b || is_plural(a, b) || is_slip(a, b) || is_alike()
}

/// Whether two names have the same numbers and the same symbols, in the same order.
pub(super) fn have_the_same_signs(a: &str, b: &str) -> bool {
    let signs = |text: &str| -> Vec<String> {
        let folded = fold::name(text);
        let groups = folded.split(|c: char| c == ' ' || c.is_alphabetic());
        let signs = groups.filter(|it| !it.is_empty());
        signs.map(str::to_owned).collect()
    };
    signs(a) == signs(b)
}

#[cfg(test)]
mod tests {
    use crate::ontology::Ontology;

    #[test]
    fn words_tell_things_apart() {
        let ontology = Ontology::default();
        for (kind, a, b, expected) in [
            ("Organization", "Regen Network", "Regen Netwrok", true),
            (
                "Organization",
                "Regen Network",
                "The Regen Network, Inc.",
                true,
            ),
            ("Organization", "OpenCivics", "Open Civics", true),
            (
                "Organization",
                "University of Guelph",
                "University of Melbourne",
                false,
            ),
            (
                "Organization",
                "University of Washington",
                "Washington University",
                false,
            ),
            ("Organization", "Regen Network", "Regen Foundation", false),
            (
                "Organization",
                "Royal Society",
                "Royal Society of Canada",
                false,
            ),
            // The original asks practices for two words in common, and its answers are recorded.
            ("Practice", "Herring Monitring", "Herring Monitoring", false),
            (
                "Practice",
                "Community Herring Monitring",
                "Community Herring Monitoring",
                true,
            ),
            ("Concept", "Food Forest", "Food Forests", true),
            ("Concept", "Holarchy", "Holarchies", true),
            ("Meeting", "Sync 1", "Sync 2", false),
            ("unknown", "Bil Baue", "Bill Baue", false),
            ("unknown", "Zoë", "zoe", true),
            ("Concept", "The", "Of", false),
            ("unknown", "A. Smith", "Smith", false),
            ("unknown", "A Smith", "Smith", false),
            ("Organization", "E. Smith & Co.", "Smith & Co.", false),
            ("Organization", "J.A. Jones", "J. Jones", false),
            ("Organization", "The Acme Company", "Acme Company", true),
            ("Organization", "A Better World", "Better World", true),
            ("Organization", "Y Combinator", "Combinator", false),
            ("Organization", "Ortega y Gasset", "Ortega Gasset", true),
            ("Organization", "Kelp e Alga", "Kelp Alga", true),
            ("Concept", "Hepatitis A", "Hepatitis", false),
            ("Concept", "Vitamin E", "Vitamin", false),
            ("Concept", "Type A Personality", "Type Personality", false),
            ("Concept", "Once upon a time", "Once upon time", true),
            ("Project", "Plan-A", "Plan", false),
            ("Concept", "C++", "C#", false),
            ("Concept", "C", "C++", false),
            ("Concept", "A*", "A", false),
            ("Concept", "ขาว", "ข่าว", false),
            ("Concept", "1990", "1990s", false),
            ("Organization", "ハンク", "バンク", false),
            ("Organization", "ﾊﾞﾝｸ", "バンク", true),
            ("Organization", "🐟 Club", "🐠 Club", false),
            ("Organization", "🐟 Club", "Club", true),
            ("Organization", "🌱 Food Coop", "Food Co-op", true),
            ("Organization", "Food Coop", "Food Co-op", true),
            ("Organization", "Food Co-operative", "Food Coop", true),
            ("Organization", "Food Co-op", "Foot Co-op", false),
            ("Organization", "Kelpforum e.V.", "Kelpforum", true),
            ("Organization", "Kelpforum eV", "Kelpforum e. V.", true),
            (
                "Organization",
                "Kelp Werke GmbH & Co. KG",
                "Kelp Werke",
                true,
            ),
            ("Organization", "Kelp S.A.", "Kelp S.r.l.", true),
            ("Organization", "Vitamin E", "Vitamin V", false),
            ("Organization", "Pen Island", "Penis Land", false),
            ("Meeting", "Sync 2026-1-11", "Sync 2026-11-1", false),
            ("Meeting", "Sync 2026-1-11", "sync 2026 1 11", true),
            ("Location", "Site 1 12", "Site 11 2", false),
            ("Project", "Lot 1-12", "Lot 11-2", false),
            ("Project", "Lot 1-12", "Lot 112", false),
        ] {
            let kind = ontology.kind(kind).unwrap_or(ontology.unknown());
            let found = super::super::likeness(kind, a, b).is_some();
            assert_eq!(found, expected, "{a} / {b}");
            assert_eq!(super::super::likeness(kind, b, a).is_some(), expected);
        }
    }

    #[test]
    fn what_means_the_same_shares_a_word_that_distinguishes() {
        let ontology = Ontology::default();
        let may =
            |kind: &str, a, b| super::super::may_mean_the_same(ontology.kind(kind).unwrap(), a, b);
        assert!(may("Organization", "Salmon Trust", "Trust for Salmon"));
        assert!(!may("Organization", "Salmon Trust", "Herring Trust"));
        assert!(may("Concept", "Car", "Automobile"));
        assert!(!may("Person", "Ann Lee", "Bo Chan"));
        assert!(!may("Concept", "C++", "C#"));
        assert!(!may("Meeting", "Sync 1", "Sync 2"));
        assert!(may("Concept", "World War 2", "WW2"));
    }

    #[test]
    fn company_calls_things_by_words_of_their_names() {
        for (label, name, expected) in [
            ("Kelp", "Kelp Atlas", true),
            ("Kelp Atlass", "Kelp Atlas", true),
            ("The Kelp Atlas", "Kelp Atlas 2026", true),
            ("KelpAtlas", "Kelp Atlas", true),
            ("Kwaksala", "Kwaxala", true),
            ("Kelp Guild", "Kelp Atlas", false),
            ("Herring Trust", "Salmon Trust", false),
            ("Trust", "Salmon Trust", false),
            ("University of Guelph", "University of Melbourne", false),
            ("University of Washington", "Washington University", false),
            ("Kelp Phase 1", "Kelp Phase 2", false),
            ("C++", "C#", false),
            ("🐟 Club", "🐠 Club", false),
            ("--", "Kelp", false),
        ] {
            assert_eq!(
                super::could_be_called(label, name),
                expected,
                "{label} / {name}"
            );
            assert_eq!(
                super::could_be_called(name, label),
                expected,
                "{name} / {label}"
            );
        }
    }
}
