//! Words that reverse the meaning of a sentence.

use std::collections::BTreeSet;

/// Negating words of a few languages.
const NEGATIONS: &[&str] = &[
    "no",
    "not",
    "never",
    "none",
    "nobody",
    "nothing",
    "nowhere",
    "neither",
    "nor",
    "without",
    "cannot",
    "unless",
    "except",
    "hardly",
    "barely",
    "rarely",
    "seldom",
    "lacks",
    "lack",
    "dont",
    "doesnt",
    "didnt",
    "isnt",
    "arent",
    "wasnt",
    "werent",
    "cant",
    "couldnt",
    "wont",
    "wouldnt",
    "shouldnt",
    "hasnt",
    "havent",
    "hadnt",
    "mustnt",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "nie",
    "niemals",
    "ohne",
    "ne",
    "pas",
    "jamais",
    "sans",
    "aucun",
    "nunca",
    "sin",
    "ningún",
    "não",
    "sem",
    "non",
    "mai",
    "senza",
    "не",
    "нет",
    "без",
    "никогда",
    "nie",
    "bez",
    "niet",
    "geen",
    "zonder",
    "inte",
    "aldrig",
    "ikke",
];

/// Negating characters and endings of scripts without spaces.
const NEGATING_SIGNS: &[&str] = &[
    "不",
    "没",
    "沒",
    "无",
    "無",
    "未",
    "勿",
    "ない",
    "なし",
    "ません",
    "않",
    "없",
    "아니",
];

/// Words between a negation and what it negates.
const FILLERS: &[&str] = &[
    "a", "an", "the", "any", "ever", "be", "been", "to", "really", "yet", "ein", "eine", "le",
    "la", "les", "de",
];

/// Pairs of opposites.
const OPPOSITES: &[(&str, &str)] = &[
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("enables", "disables"),
    ("enables", "blocks"),
    ("increases", "decreases"),
    ("increase", "decrease"),
    ("increased", "decreased"),
    ("causes", "prevents"),
    ("always", "sometimes"),
    ("all", "some"),
    ("all", "few"),
    ("true", "false"),
    ("yes", "no"),
    ("on", "off"),
    ("in", "out"),
    ("up", "down"),
    ("before", "after"),
    ("above", "below"),
    ("over", "under"),
    ("more", "less"),
    ("more", "fewer"),
    ("most", "least"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("higher", "lower"),
    ("high", "low"),
    ("faster", "slower"),
    ("fast", "slow"),
    ("better", "worse"),
    ("best", "worst"),
    ("good", "bad"),
    ("left", "right"),
    ("open", "closed"),
    ("start", "stop"),
    ("starts", "stops"),
    ("started", "stopped"),
    ("add", "remove"),
    ("added", "removed"),
    ("allow", "deny"),
    ("allow", "forbid"),
    ("allowed", "denied"),
    ("allowed", "forbidden"),
    ("allows", "forbids"),
    ("accept", "reject"),
    ("accepted", "rejected"),
    ("accepts", "rejects"),
    ("pass", "fail"),
    ("passes", "fails"),
    ("passed", "failed"),
    ("works", "fails"),
    ("worked", "failed"),
    ("works", "broken"),
    ("succeeded", "failed"),
    ("success", "failure"),
    ("win", "lose"),
    ("first", "last"),
    ("old", "new"),
    ("public", "private"),
    ("required", "optional"),
    ("read", "write"),
    ("client", "server"),
    ("love", "hate"),
    ("loves", "hates"),
    ("likes", "dislikes"),
];

/// Prefixes that reverse a word.
const OPPOSING_PREFIXES: &[&str] = &["un", "in", "im", "il", "ir", "dis", "non", "non-", "anti"];

/// Each negation with what it negates, in order. The kind of negation does not matter: `never use` is
/// `do not use`.
pub(super) fn negations(text: &str) -> Vec<String> {
    let words = words(text);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if is_negation(word) {
            let rest = words.iter().skip(at + 1);
            let negated = rest.into_iter().find(|it| !FILLERS.contains(&it.as_str()));
            found.push(negated.cloned().unwrap_or_default());
        }
    }
    for sign in NEGATING_SIGNS {
        found.extend(text.matches(sign).map(str::to_owned));
    }
    found
}

fn is_negation(word: &str) -> bool {
    NEGATIONS.contains(&word) || word.ends_with("n't")
}

/// Whether one text has a word whose opposite is in the other.
pub(super) fn has_opposites(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let one: BTreeSet<&str> = one.iter().map(String::as_str).collect();
    let other: BTreeSet<&str> = other.iter().map(String::as_str).collect();
    let only_one: Vec<&str> = one.difference(&other).copied().collect();
    let only_other: Vec<&str> = other.difference(&one).copied().collect();
    let mut pairs = only_one
        .iter()
        .flat_map(|a| only_other.iter().map(move |b| (*a, *b)));
    pairs.any(|(a, b)| are_opposite(a, b) || are_opposite(b, a))
}

fn are_opposite(a: &str, b: &str) -> bool {
    let is_negated = OPPOSING_PREFIXES
        .iter()
        .any(|it| b.strip_prefix(it) == Some(a));
    OPPOSITES.contains(&(a, b)) || a.len() > 2 && is_negated
}

/// In lower case, with ASCII apostrophes, without punctuation around them.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\u{2019}', '\u{02bc}'], "'");
    let between = |c: char| !(c.is_alphanumeric() || c == '\'' || c == '-');
    let words = text.split(between).map(|it| it.trim_matches(['\'', '-']));
    words
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negation_is_known_by_what_it_negates() {
        for (text, expected) in [
            ("all is well", &[][..]),
            ("Do NOT use tabs", &["use"]),
            ("we don\u{2019}t ever use 'tabs'", &["use"]),
            ("never. ever", &[""]),
            ("not this, not that", &["this", "that"]),
            ("knot and nothing-like", &[]),
        ] {
            assert_eq!(negations(text), expected, "{text}");
        }
    }

    #[test]
    fn opposites_count_only_where_the_texts_differ() {
        for (one, other, opposite) in [
            ("it is on", "it is off", true),
            ("on or off", "off or on", false),
            ("a valid name", "an invalid name", true),
            ("it is done", "it is undone", true),
            ("art", "inert", false),
            ("we agree", "they disagree", true),
        ] {
            assert_eq!(has_opposites(one, other), opposite, "{one} / {other}");
            assert_eq!(has_opposites(other, one), opposite, "{other} / {one}");
        }
    }
}
