//! Words between two names that state a relationship.

use crate::ontology::{Direction, Ontology, predicate};
use crate::words::TITLES;
use kenning_text::fold;

/// If the names are further apart, the words between them are not about both.
const BETWEEN_CHARS_MAX: usize = 60;

/// Words between two names, and the predicate that they state. The first that fits the types of both
/// counts. A name of [`predicate`] that means the inverse swaps the ends.
const CUES: &[(&[&str], &str)] = &[
    (
        &[
            "founded",
            "co founded",
            "cofounded",
            "established",
            "is the founder of",
            "founder of",
            "co founder of",
            "is a founder of",
            "is co founder of",
            "started",
        ],
        "founded",
    ),
    (
        &[
            "was founded by",
            "founded by",
            "established by",
            "was co founded by",
            "co founded by",
            "was started by",
            "was established by",
        ],
        "has_founder",
    ),
    (
        &[
            "works at",
            "works for",
            "works with",
            "is a member of",
            "member of",
            "is director of",
            "director of",
            "executive director of",
            "is executive director of",
            "is the director of",
            "president of",
            "is president of",
            "ceo of",
            "is ceo of",
            "is affiliated with",
            "affiliated with",
            "professor at",
            "is professor at",
            "is a professor at",
            "researcher at",
            "is a researcher at",
            "joined",
            "leads",
            "chairs",
            "of",
            "at",
            "from",
            "represents",
            "serves on",
            "is on the board of",
        ],
        "affiliated_with",
    ),
    (
        &[
            "collaborates with",
            "collaborated with",
            "is collaborating with",
            "works with",
            "worked with",
            "is working with",
            "together with",
        ],
        "collaborates_with",
    ),
    (&["knows", "is a friend of"], "knows"),
    (
        &[
            "runs", "launched", "hosts", "manages", "leads", "started", "operates",
        ],
        "has_project",
    ),
    (
        &[
            "is run by",
            "run by",
            "led by",
            "is led by",
            "was launched by",
            "launched by",
            "in partnership with",
            "is a project of",
            "project of",
            "is funded by",
            "of",
            "by",
        ],
        "involves_organization",
    ),
    (
        &[
            "led by",
            "is led by",
            "is coordinated by",
            "coordinated by",
            "involves",
            "with",
        ],
        "involves_person",
    ),
    (
        &["attended", "spoke at", "presented at", "joined"],
        "attended",
    ),
    (
        &[
            "is located in",
            "located in",
            "is based in",
            "based in",
            "headquartered in",
            "is headquartered in",
            "lives in",
            "in",
            "on",
            "near",
        ],
        "located_in",
    ),
    (
        &[
            "is practiced in",
            "practiced in",
            "in",
            "takes place in",
            "across",
        ],
        "practiced_in",
    ),
    (
        &["aggregates into", "is an instance of", "follows"],
        "aggregates_into",
    ),
    (&["suggests", "recommends"], "suggests"),
    (
        &["is documented by", "documented by", "is documented in"],
        "documented_by",
    ),
    (&["documents", "describes"], "documents"),
    (&["supports", "confirms", "backs"], "supports"),
    (&["opposes", "contradicts", "refutes"], "opposes"),
    (&["informs"], "informs"),
    (&["generates", "raises"], "generates"),
    (&["is implemented by", "implemented by"], "implemented_by"),
    (&["implements"], "implements"),
    (&["synthesizes", "summarizes"], "synthesizes"),
    (&["is about", "concerns"], "about"),
    (
        &[
            "is part of",
            "part of",
            "is a kind of",
            "belongs to",
            "is within",
            "lies within",
        ],
        "broader",
    ),
    (&["includes", "contains", "comprises"], "narrower"),
    (
        &["was forked from", "forked from", "is a fork of"],
        "forked_from",
    ),
    (
        &["builds on", "is built on", "builds upon", "extends"],
        "builds_on",
    ),
    (
        &["is inspired by", "was inspired by", "inspired by"],
        "inspired_by",
    ),
    (&["is related to", "related to", "relates to"], "related_to"),
];

/// Words that may stand before or after a cue and change nothing.
const FILLERS: &[&str] = &[
    "the",
    "a",
    "an",
    "who",
    "which",
    "that",
    "also",
    "now",
    "currently",
    "recently",
    "first",
    "has",
    "had",
];

/// The predicate that the words between two names state, and whether the second name is its subject.
pub(super) fn predicate_between(
    ontology: &Ontology,
    before: &str,
    between: &str,
    after: &str,
) -> Option<(&'static str, bool)> {
    if between.chars().count() > BETWEEN_CHARS_MAX
        || between.contains([';', ':', '(', ')', '"', '“'])
    {
        return None;
    }
    let words = normalize_cue(between);
    for (_, name) in CUES.iter().filter(|it| it.0.contains(&words.as_str())) {
        let (predicate, direction) = predicate(name)?;
        let is_swapped = direction == Direction::Incoming;
        let (subject, object) = if is_swapped {
            (after, before)
        } else {
            (before, after)
        };
        let is_known = ontology.kind(subject).is_some() && ontology.kind(object).is_some();
        if is_known && ontology.check(predicate, subject, object).is_ok() {
            return Some((predicate.name, is_swapped));
        }
    }
    None
}

/// Whether the words between two names make them a list.
pub(super) fn joins(between: &str) -> bool {
    let words = between.replace(',', " ");
    matches!(normalize_cue(&words).as_str(), "" | "and")
        && between
            .chars()
            .any(|c| c == ',' || c.is_alphabetic() || c == '&')
}

/// Lower case, without punctuation, without fillers at either end and without the title of the next
/// name.
fn normalize_cue(between: &str) -> String {
    let folded = fold::name(between);
    let is_said = |it: &&str| it.contains(char::is_alphanumeric);
    let mut words: Vec<&str> = folded.split(' ').filter(is_said).collect();
    while words.first().is_some_and(|it| FILLERS.contains(it)) {
        words.remove(0);
    }
    while words
        .last()
        .is_some_and(|word| FILLERS.contains(word) || TITLES.contains(word))
    {
        words.pop();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cue_is_of_a_predicate_and_can_be_said() {
        for (cues, name) in CUES {
            assert!(predicate(name).is_some(), "{name}");
            for cue in *cues {
                assert_eq!(normalize_cue(cue), *cue, "{name}");
            }
        }
    }

    #[test]
    fn types_decide_what_words_mean() {
        let ontology = Ontology::default();
        for (before, between, after, expected) in [
            (
                "Person",
                "founded the",
                "Organization",
                Some(("founded", false)),
            ),
            (
                "Organization",
                ", founded by",
                "Person",
                Some(("has_founder", false)),
            ),
            (
                "Person",
                "works with",
                "Person",
                Some(("collaborates_with", false)),
            ),
            (
                "Person",
                "works with",
                "Organization",
                Some(("affiliated_with", false)),
            ),
            (
                "Playbook",
                "implements the",
                "Protocol",
                Some(("implemented_by", true)),
            ),
            (
                "Practice",
                "is documented by",
                "CaseStudy",
                Some(("documents", true)),
            ),
            (
                "Organization",
                "in",
                "Location",
                Some(("located_in", false)),
            ),
            ("Person", "never founded", "Organization", None),
            ("Person", "did not found", "Organization", None),
            ("Organization", "founded", "Organization", None),
            ("Person", "founded (allegedly)", "Organization", None),
            ("Weird", "founded", "Organization", None),
            ("Person", "", "Person", None),
        ] {
            assert_eq!(
                predicate_between(&ontology, before, between, after),
                expected,
                "{before} {between} {after}"
            );
        }
    }

    #[test]
    fn and_joins() {
        assert!(joins(" and ") && joins(", ") && joins(", and ") && joins(" & "));
        assert!(!joins(" ") && !joins(" or ") && !joins(" founded "));
    }
}
