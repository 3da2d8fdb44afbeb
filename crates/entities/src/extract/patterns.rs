//! Names whose own words give their type.

use crate::mentions::{Word, words};
use crate::words::{LEGAL, TITLES, is_given_name};
use std::ops::Range;

/// Confidence if a title comes before a person's name.
const TITLED: f64 = 0.75;
/// Confidence if a given name, or the last word of a name, gives the type.
const TOLD: f64 = 0.6;
/// At most this many words and marks in a row are looked at.
const WORDS_MAX: usize = 14;

/// Last words of names, and their types.
const LAST: &[(&str, &str)] = &[
    ("university", "Organization"),
    ("institute", "Organization"),
    ("foundation", "Organization"),
    ("network", "Organization"),
    ("association", "Organization"),
    ("society", "Organization"),
    ("trust", "Organization"),
    ("council", "Organization"),
    ("alliance", "Organization"),
    ("cooperative", "Organization"),
    ("coalition", "Organization"),
    ("federation", "Organization"),
    ("agency", "Organization"),
    ("ministry", "Organization"),
    ("conservancy", "Organization"),
    ("collective", "Organization"),
    ("company", "Organization"),
    ("project", "Project"),
    ("initiative", "Project"),
    ("program", "Project"),
    ("programme", "Project"),
    ("campaign", "Project"),
    ("bioregion", "Bioregion"),
    ("watershed", "Bioregion"),
    ("island", "Location"),
    ("islands", "Location"),
    ("river", "Location"),
    ("creek", "Location"),
    ("lake", "Location"),
    ("bay", "Location"),
    ("valley", "Location"),
    ("county", "Location"),
    ("park", "Location"),
    ("protocol", "Protocol"),
    ("playbook", "Playbook"),
];

/// First words of names that go on with `of`: `University of Guelph`.
const FIRST: &[&str] = &[
    "university",
    "institute",
    "ministry",
    "department",
    "bank",
    "society",
    "council",
    "college",
];

/// Small words that a name may have inside.
const INSIDE: &[&str] = &[
    "of", "the", "for", "and", "de", "la", "del", "van", "von", "der", "du",
];

/// Words that often begin a sentence and are not names.
const BEGINNERS: &[&str] = &[
    "the", "a", "an", "this", "that", "these", "those", "in", "on", "at", "for", "when", "while",
    "if", "our", "their", "his", "her", "its", "my", "your", "with", "as", "by", "from", "after",
    "before", "since", "and", "but", "or", "meet", "see", "read", "join", "about", "why", "how",
    "what", "who",
];

/// Names in a sentence, outside what is `taken`, with their type and how sure that is.
pub(super) fn find(
    sentence: &str,
    taken: &[Range<usize>],
) -> Vec<(Range<usize>, &'static str, f64)> {
    let words = words(sentence);
    let is_taken = |word: &Word| {
        let overlaps = |of: &Range<usize>| of.start < word.range.end && word.range.start < of.end;
        taken.iter().any(overlaps)
    };
    let mut out = Vec::new();
    for free in words.split(is_taken) {
        let mut at = 0;
        while at < free.len() {
            let n_words = run(sentence, &free[at..]).max(1);
            for part in parts(&free[at..at + n_words]) {
                if let Some((from, to, kind, confidence)) = find_name(part) {
                    let range = part[from].range.start..part[to - 1].range.end;
                    out.push((range, kind, confidence));
                }
            }
            at += n_words;
        }
    }
    out
}

/// Splits a run of words into names: `X of the Y` are two names, and so are both sides of an `and`
/// that joins people. The name of an organization may contain such words.
fn parts(run: &[Word]) -> Vec<&[Word]> {
    let is_small = |it: &Word| has_small(std::slice::from_ref(it));
    if let Some(at) = run.iter().position(is_small)
        && find_name(&run[..at]).is_some_and(|it| it.2 == "Person")
    {
        let after = run[at..].iter().position(|it| !is_small(it));
        let rest = after.map(|it| parts(&run[at + it..]));
        return std::iter::once(&run[..at])
            .chain(rest.into_iter().flatten())
            .collect();
    }
    let parts: Vec<&[Word]> = run.split(|it| it.folded == "and").collect();
    let is_person = |it: &&[Word]| find_name(it).is_some_and(|it| it.2 == "Person");
    if parts.iter().any(is_person) {
        parts
    } else {
        vec![run]
    }
}

/// The number of words in a row with capitals, small words between them included.
fn run(sentence: &str, words: &[Word]) -> usize {
    let has_capital = |it: &Word| sentence[it.range.clone()].starts_with(char::is_uppercase);
    let mut n_words = 0;
    for (at, word) in words.iter().enumerate().take(WORDS_MAX) {
        let is_title_point = word.folded == "." && at > 0 && is_short(&words[at - 1].folded);
        if has_capital(word) {
            n_words = at + 1;
        } else if at == 0 || !(INSIDE.contains(&word.folded.as_str()) || is_title_point) {
            break;
        }
    }
    n_words
}

/// Whether this is a title or an initial, after which a period does not end the sentence.
fn is_short(word: &str) -> bool {
    TITLES.contains(&word) || word.chars().count() == 1
}

/// The words of a run that are a name, and its type.
fn find_name(run: &[Word]) -> Option<(usize, usize, &'static str, f64)> {
    let is = |at: usize, list: &[&str]| {
        run.get(at)
            .is_some_and(|it| list.contains(&it.folded.as_str()))
    };
    let mut from = 0;
    while is(from, BEGINNERS) || is(from, INSIDE) {
        from += 1;
    }
    let name = run.get(from..).filter(|it| !it.is_empty())?;
    if is(from, TITLES) {
        let is_name = |word: &&Word| !word.is_mark && !TITLES.contains(&word.folded.as_str());
        let n_names = name.iter().filter(is_name).count();
        let first = from + name.iter().position(|it| is_name(&it))?;
        return (n_names >= 2 && !has_small(name)).then_some((first, run.len(), "Person", TITLED));
    }
    if name
        .iter()
        .any(|token| token.is_mark && token.folded != ".")
        || name.len() < 2
    {
        return None;
    }
    let last = run.last()?.folded.as_str();
    if let Some((_, kind)) = LAST.iter().find(|it| it.0 == last) {
        return Some((from, run.len(), kind, TOLD));
    }
    if LEGAL.contains(&last) && last.len() > 2 {
        return Some((from, run.len(), "Organization", TOLD));
    }
    if is(from, FIRST) && is(from + 1, &["of"]) {
        return Some((from, run.len(), "Organization", TOLD));
    }
    let is_person = is_given_name(&name[0].folded)
        && (2..=4).contains(&name.iter().filter(|it| !it.is_mark).count())
        && !has_small(name);
    is_person.then_some((from, run.len(), "Person", TOLD))
}

/// Whether this contains a small word that names of people do not have.
fn has_small(name: &[Word]) -> bool {
    name.iter()
        .any(|it| matches!(it.folded.as_str(), "of" | "the" | "for" | "and"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_text::fold;

    fn kinds(sentence: &str) -> Vec<(&str, &'static str)> {
        let found = find(sentence, &[]);
        found
            .into_iter()
            .map(|it| (&sentence[it.0], it.1))
            .collect()
    }

    #[test]
    fn names_tell_what_they_are() {
        for (sentence, expected) in [
            (
                "said Dr. Anjali Rao, who leads",
                vec![("Anjali Rao", "Person")],
            ),
            (
                "Volunteers with the Salish Stewardship Society counted",
                vec![("Salish Stewardship Society", "Organization")],
            ),
            (
                "The University of Guelph and others",
                vec![("University of Guelph", "Organization")],
            ),
            ("Thomas Okafor spoke", vec![("Thomas Okafor", "Person")]),
            (
                "met Dr. Nadia Cole of the Harbor Stewardship Society today",
                vec![
                    ("Nadia Cole", "Person"),
                    ("Harbor Stewardship Society", "Organization"),
                ],
            ),
            (
                "Thomas Okafor of the University of Guelph spoke",
                vec![
                    ("Thomas Okafor", "Person"),
                    ("University of Guelph", "Organization"),
                ],
            ),
            (
                "near Gorge Creek this week",
                vec![("Gorge Creek", "Location")],
            ),
            (
                "the Front Range Bioregion",
                vec![("Front Range Bioregion", "Bioregion")],
            ),
            (
                "Acme Robotics Inc. grew",
                vec![("Acme Robotics Inc", "Organization")],
            ),
            ("Our Network is down", vec![]),
            ("Society matters", vec![]),
            ("Quarterly Report Results", vec![]),
            ("Ignore all previous instructions", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(kinds(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn the_tables_are_folded() {
        assert!(LAST.iter().all(|it| fold::name(it.0) == it.0));
        assert!(
            FIRST
                .iter()
                .chain(INSIDE)
                .chain(BEGINNERS)
                .all(|it| fold::name(it) == *it)
        );
    }
}
