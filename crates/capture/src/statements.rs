//! What was said in so many words: decisions, rules and facts.

use crate::candidate::CandidateKind;
use crate::sentences::words;

/// A sentence with fewer words says too little to be understood later.
const WORDS_MIN: usize = 4;

/// A longer one is an explanation and no statement.
const WORDS_MAX: usize = 70;

/// Words that mark a decision, wherever they stand.
const DECISIONS: &[&str] = &[
    "we decided",
    "we've decided",
    "we have decided",
    "i decided",
    "i've decided",
    "decision:",
    "decided to",
    "we agreed",
    "we've agreed",
    "we chose",
    "we settled on",
    "let's go with",
    "we go with",
    "we'll go with",
    "we're going with",
    "we will use",
    "we'll use",
    "we are going to use",
    "we stick with",
    "wir haben entschieden",
    "wir haben uns entschieden",
    "haben beschlossen",
    "entscheidung:",
    "wir nehmen",
    "hemos decidido",
    "nous avons décidé",
];

/// Words that mark a rule, wherever they stand.
const RULES: &[&str] = &[
    "always",
    "never",
    "from now on",
    "going forward",
    "must not",
    "mustn't",
    "rule for",
    "rule:",
    "make sure",
    "ab jetzt",
    "immer",
    "niemals",
    "nie wieder",
    "nie",
    "next time",
    "i'd rather",
    "i prefer",
    "i would prefer",
    "we prefer",
    "please use",
    "only use",
    "under no circumstances",
    "siempre",
    "nunca",
    "toujours",
    "jamais",
];

/// Words that a rule begins with.
const RULE_BEGINNINGS: &[&str] = &[
    "don't", "do not", "no", "avoid", "stop", "bitte", "prefer", "keep",
];

/// Words that mark a fact, wherever they stand.
const FACTS: &[&str] = &[
    "remember that",
    "remember:",
    "important:",
    "note that",
    "note:",
    "keep in mind",
    "keep that in mind",
    "fyi",
    "for the record",
    "denk daran",
    "wichtig:",
    "lives in",
    "live in",
    "is located",
    "are located",
    "listens on",
    "runs on",
    "runs as",
    "moved to",
    "has moved",
    "moved:",
    "is deprecated",
    "is gone",
    "was renamed",
    "is called",
    "belongs to",
    "belong in",
    "must be",
    "has to be",
    "have to be",
    "needs to be",
    "our minimum",
    "our maximum",
    "goes to",
    "go to",
    "go through",
    "goes through",
    "comes from",
    "we use",
    "we keep",
    "we call",
    "we don't use",
    "we hide",
    "we run",
    "we deploy",
    "wir verwenden",
    "wir nutzen",
    "the limit is",
    "stays where",
    "stay where",
];

/// Words that make it a guess, a question or somebody else's.
const DOUBTS: &[&str] = &[
    "maybe",
    "perhaps",
    "might",
    "could we",
    "could you",
    "can you",
    "can we",
    "would you",
    "should we",
    "should i",
    "some day",
    "someday",
    "not sure",
    "i think",
    "i guess",
    "i wonder",
    "what if",
    "they decided",
    "they always",
    "they never",
    "vielleicht",
    "ob wir",
    "könnten",
    "könntest",
    "as if",
    "in theory",
    "for example",
];

/// Words that a question begins with, with or without its sign.
const QUESTIONS: &[&str] = &[
    "what", "why", "how", "when", "where", "who", "which", "should", "can", "could", "would",
    "does", "do", "is", "are", "did", "was", "were", "will", "was", "warum", "wie", "wann", "wo",
    "wer", "welche",
];

/// What kind of statement a person's sentence is; `None` if it is none.
pub(crate) fn kind_of(sentence: &str) -> Option<CandidateKind> {
    let all = words(sentence);
    if all.len() < WORDS_MIN || all.len() > WORDS_MAX || sentence.trim_end().ends_with('?') {
        return None;
    }
    let small = sentence.to_lowercase().replace('’', "'");
    let says = |list: &[&str]| list.iter().any(|it| has(&small, it));
    let first = all.first().map_or("", String::as_str);
    // "Do not …" is an order and no question.
    let is_order = matches!(all[..], [ref one, ref other, ..] if one == "do" && other == "not");
    if says(DOUBTS) || QUESTIONS.contains(&first) && !is_order && !says(DECISIONS) {
        return None;
    }
    if says(DECISIONS) {
        return Some(CandidateKind::Decision);
    }
    // "and don't", "please don't", "but never"
    let beginning: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .skip_while(|it| {
            matches!(
                *it,
                "and" | "but" | "also" | "so" | "please" | "ok" | "und" | "aber"
            )
        })
        .take(2)
        .collect();
    let begins = |list: &[&str]| {
        let joined = beginning.join(" ");
        list.iter()
            .any(|it| joined == *it || joined.starts_with(&format!("{it} ")))
    };
    let forbids = ["don't", "do not", "no"]
        .iter()
        .any(|it| beginning.join(" ").starts_with(it));
    if says(RULES)
        || (begins(RULE_BEGINNINGS) && (!forbids || all.len() >= 5) && first != "no")
        || says(&["so don't", "do not", "don't"]) && all.len() >= 6
    {
        return Some(CandidateKind::Rule);
    }
    if says(FACTS) || is_correction(&small) {
        return Some(CandidateKind::Fact);
    }
    None
}

/// "it listens on 8443, not 8080", "X and not Y"
fn is_correction(small: &str) -> bool {
    let is = [
        " is ",
        " are ",
        " it's ",
        " uses ",
        " runs ",
        " listens ",
        " go ",
        " goes ",
        " has ",
        " have ",
    ];
    (small.contains(", not ") || small.contains(" and not ") || small.contains(" instead of "))
        && is.iter().any(|it| small.contains(it))
}

/// Whether words stand in a text as words, and not within others.
fn has(text: &str, wanted: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'' || c == '_';
    text.match_indices(wanted).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + wanted.len()..].chars().next();
        let ends_open = wanted.ends_with(':');
        !before.is_some_and(is_letter) && (ends_open || !after.is_some_and(is_letter))
    })
}

/// Whether the assistant's sentence says why something failed, or what mended it.
pub(crate) fn explains(sentence: &str) -> bool {
    const CAUSES: &[&str] = &[
        "because",
        "the cause",
        "the reason",
        "caused by",
        "came from",
        "comes from",
        "root cause",
        "was a typing error",
        "was a typo",
        "the problem was",
        "the problem is",
        "the issue was",
        "the issue is",
        "the bug was",
        "the fix",
        "fixed by",
        "needs",
        "has to be",
        "was missing",
        "is missing",
        "had no",
        "has no",
        "the other way round",
        "outside of",
        "instead of",
        "so a",
        "so it",
        "weil",
        "dadurch",
        "ursache",
        "lag daran",
    ];
    let n = words(sentence).len();
    let small = sentence.to_lowercase();
    (6..=WORDS_MAX).contains(&n)
        && !sentence.trim_end().ends_with('?')
        && CAUSES.iter().any(|it| has(&small, it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use CandidateKind::{Decision, Fact, Rule};

    #[test]
    fn statements_are_told_from_talk() {
        for (sentence, expected) in [
            ("We decided to keep the old parser.", Some(Decision)),
            ("Decision: the cache stays in memory.", Some(Decision)),
            ("Always run the linter before you push.", Some(Rule)),
            ("And don't touch the vendored folder.", Some(Rule)),
            ("Remember that the API is on port 9000.", Some(Fact)),
            (
                "It listens on 9000 and it is TLS, not plain text.",
                Some(Fact),
            ),
            ("Should we always do that?", None),
            ("should we always do that", None),
            ("Maybe we never need it.", None),
            ("They decided to use Raft for it.", None),
            ("Looks good, thank you very much!", None),
            ("Never mind.", None),
        ] {
            assert_eq!(kind_of(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn an_explanation_has_a_cause() {
        assert!(explains(
            "The pods crash because they connect to the old port."
        ));
        assert!(!explains("I will look at the tests now."));
    }
}
