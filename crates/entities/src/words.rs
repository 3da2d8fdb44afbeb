//! Word lists: given names, common words, words without weight.
//!
//! A typing error rarely makes another word. So of two tokens that differ by a letter, `policy` and
//! `police` are different because both are known words, and `netwrok` is `network` because it is not
//! a word.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Common words and names that are one typing error away from another, sorted.
const WORDS: &str = include_str!("../assets/words.txt");
/// Given names, and short and other forms of each, a line each.
const GIVEN: &str = include_str!("../assets/given.txt");

static SORTED: LazyLock<Vec<&str>> = LazyLock::new(|| WORDS.lines().collect());

static FORMS: LazyLock<HashMap<&str, Vec<usize>>> = LazyLock::new(|| {
    let mut forms: HashMap<&str, Vec<usize>> = HashMap::new();
    for (line, names) in GIVEN.lines().enumerate() {
        for name in names.split(' ') {
            forms.entry(name).or_default().push(line);
        }
    }
    forms
});

/// Whether a folded token is a common word or name, or several of them.
pub(crate) fn is_known(word: &str) -> bool {
    let is_listed = |text: &str| SORTED.binary_search(&text).is_ok() || is_given_name(text);
    is_listed(word) || word.strip_suffix('s').is_some_and(is_listed)
}

/// Whether a folded token is a given name.
pub(crate) fn is_given_name(word: &str) -> bool {
    FORMS.contains_key(word)
}

/// Whether two given names are forms of one, such as `bill` and `william`.
pub(crate) fn are_forms_of_one_name(a: &str, b: &str) -> bool {
    match (FORMS.get(a), FORMS.get(b)) {
        (Some(a), Some(b)) => a.iter().any(|it| b.contains(it)),
        _ => false,
    }
}

/// Titles before a name.
pub(crate) const TITLES: &[&str] = &[
    "dr",
    "prof",
    "professor",
    "mr",
    "mrs",
    "ms",
    "mx",
    "miss",
    "sir",
    "dame",
    "rev",
    "reverend",
    "hon",
    "lord",
    "lady",
    "herr",
    "frau",
    "mme",
    "mlle",
    "chief",
    "elder",
];

/// Honors after a name.
pub(crate) const HONORS: &[&str] = &[
    "phd", "md", "dbe", "obe", "mbe", "cbe", "esq", "msc", "mba", "jd", "dds", "rn", "frs", "qc",
    "kc",
];

/// Suffixes of generations.
pub(crate) const GENERATIONS: &[&str] = &["jr", "sr", "junior", "senior", "ii", "iii", "iv"];

/// Words that do not distinguish names.
pub(crate) const SMALL: &[&str] = &[
    "the", "of", "and", "for", "a", "an", "in", "on", "at", "to", "de", "la", "le", "les", "du",
    "des", "del", "der", "die", "das", "und", "et", "y", "e", "da", "do", "di",
];

/// Legal forms, at the end of a name.
pub(crate) const LEGAL: &[&str] = &[
    "inc",
    "incorporated",
    "ltd",
    "limited",
    "llc",
    "llp",
    "gmbh",
    "corp",
    "corporation",
    "co",
    "company",
    "plc",
    "ag",
    "sa",
    "bv",
    "nv",
    "ab",
    "oy",
    "srl",
    "spa",
    "pty",
    "kg",
    "se",
    "ev",
    "eg",
    "ggmbh",
    "mbh",
    "ug",
    "gbr",
    "ohg",
    "kgaa",
    "sarl",
    "sas",
    "asbl",
    "vzw",
    "aps",
    "asa",
    "kft",
    "cic",
];

/// Legal forms that are written as letters with periods, which folding takes for words.
const LEGAL_LETTERS: &[&[&str]] = &[
    &["e", "v"],
    &["e", "g"],
    &["s", "a"],
    &["s", "l"],
    &["s", "p", "a"],
    &["s", "r", "l"],
    &["s", "a", "r", "l"],
    &["sp", "z", "o", "o"],
    &["b", "v"],
    &["n", "v"],
    &["a", "g"],
    &["l", "l", "c"],
    &["l", "l", "p"],
    &["p", "l", "c"],
    &["c", "i", "c"],
    &["g", "gmbh"],
];

/// The number of words before the legal form, at least one. The words are folded.
pub(crate) fn without_legal_form(words: &[&str]) -> usize {
    let mut n = words.len();
    loop {
        let rest = &words[..n];
        let letters = LEGAL_LETTERS.iter().filter(|it| rest.ends_with(it));
        let n_letters = letters.map(|it| it.len()).max();
        let last = rest.last().copied().unwrap_or_default();
        // `GmbH & Co. KG`
        let is_joint = n < words.len() && last == "and" && rest.len() > 2 && {
            LEGAL.contains(&rest[rest.len() - 2])
        };
        let n_form = n_letters.or((LEGAL.contains(&last) || is_joint).then_some(1));
        match n_form {
            Some(n_form) if n_form < n => n -= n_form,
            _ => return n,
        }
    }
}

/// A folded name with `co-op`, which folding splits, as one word again.
pub(crate) fn joined_coop(name: &str) -> std::borrow::Cow<'_, str> {
    if !name.contains("co op") {
        return name.into();
    }
    let mut words: Vec<&str> = name.split(' ').collect();
    let mut at = 0;
    while at + 1 < words.len() {
        let joined = match (words[at], words[at + 1]) {
            ("co", "op") => "coop",
            ("co", "ops") => "coops",
            ("co", "operative") => "cooperative",
            ("co", "operatives") => "cooperatives",
            ("co", "operation") => "cooperation",
            _ => {
                at += 1;
                continue;
            }
        };
        words[at] = joined;
        words.remove(at + 1);
    }
    words.join(" ").into()
}

/// Kinds of organizations and projects: alone they distinguish nothing.
pub(crate) const GENERIC: &[&str] = &[
    "institute",
    "university",
    "foundation",
    "network",
    "association",
    "society",
    "center",
    "group",
    "organization",
    "project",
    "initiative",
    "trust",
    "council",
    "department",
    "ministry",
    "agency",
    "alliance",
    "board",
    "bank",
    "school",
    "college",
    "cooperative",
    "committee",
    "commission",
    "federation",
    "union",
    "program",
    "fund",
    "national",
    "international",
    "global",
    "research",
    "club",
    "lab",
    "laboratory",
];

/// Abbreviations and British spellings, and the form that is compared.
const SPELLINGS: &[(&str, &str)] = &[
    ("univ", "university"),
    ("uni", "university"),
    ("dept", "department"),
    ("intl", "international"),
    ("natl", "national"),
    ("assn", "association"),
    ("assoc", "association"),
    ("inst", "institute"),
    ("govt", "government"),
    ("centre", "center"),
    ("theatre", "theater"),
    ("defence", "defense"),
    ("programme", "program"),
    ("organisation", "organization"),
    ("labour", "labor"),
    ("harbour", "harbor"),
    ("neighbourhood", "neighborhood"),
    ("coop", "cooperative"),
    ("coops", "cooperatives"),
    ("mt", "mount"),
    ("ft", "fort"),
];

/// A token in the spelling that is used for comparing.
pub(crate) fn in_full(word: &str) -> &str {
    let found = SPELLINGS.iter().find(|it| it.0 == word);
    found.map_or(word, |it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_in_small_letters() {
        assert!(SORTED.len() > 10_000);
        assert!(SORTED.is_sorted());
        let is_plain = |text: &&str| text.bytes().all(|it| it.is_ascii_lowercase());
        assert!(SORTED.iter().all(is_plain));
        assert!(is_known("policy") && is_known("police") && !is_known("polciy"));
    }

    #[test]
    fn a_legal_form_stands_at_the_end() {
        for (name, expected) in [
            ("kelpforum e v", 1),
            ("kelpforum ev", 1),
            ("kelp gmbh and co kg", 1),
            ("kelp and co", 2),
            ("inc", 1),
            ("e v", 2),
            ("kelp", 1),
            ("vitamin e", 2),
        ] {
            let words: Vec<&str> = name.split(' ').collect();
            assert_eq!(without_legal_form(&words), expected, "{name}");
        }
        assert_eq!(
            joined_coop("food co op and co operatives"),
            "food coop and cooperatives"
        );
    }

    #[test]
    fn forms_of_a_name_are_found_both_ways() {
        for (a, b, expected) in [
            ("bill", "william", true),
            ("liz", "betty", true),
            ("alex", "alexandra", true),
            ("maria", "mario", false),
            ("daniel", "danielle", false),
            ("kwaxala", "kwaxala", false),
        ] {
            assert_eq!(are_forms_of_one_name(a, b), expected, "{a} {b}");
            assert_eq!(are_forms_of_one_name(b, a), expected, "{b} {a}");
        }
    }
}
