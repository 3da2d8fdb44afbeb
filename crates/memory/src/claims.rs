//! Sentences that state something, and pairs of them that cannot both be right.
//!
//! A claim is a sentence reduced to the words that carry meaning. Two claims contradict each other if they say
//! the same of the same thing, one affirming and the other denying it, or with other numbers. Only sentences
//! with the very same words are compared, so that what is found is worth a look: a sentence about something
//! else, or under another condition, has another word.

use std::collections::{BTreeSet, HashMap};

/// A longer sentence says several things.
const WORDS_MAX: usize = 40;
/// A shorter one says nothing of anything.
const WORDS_MIN: usize = 2;
/// Claims of one text that are looked at.
const CLAIMS_MAX: usize = 5_000;

/// A sentence that states something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The sentence.
    pub text: String,
    /// Its line in the text, from 1.
    pub line: u32,
    words: BTreeSet<String>,
    is_denied: bool,
    /// Numbers before the verb name what it is about; those after it are what is said.
    of: Vec<String>,
    said: Vec<String>,
}

/// Two claims that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opposed {
    /// The position of the first among the claims that were given.
    pub one: usize,
    /// The position of the other.
    pub other: usize,
    /// In what they differ.
    pub why: String,
}

const DENYING: &[&str] = &[
    "not",
    "never",
    "no",
    "cannot",
    "isn't",
    "aren't",
    "wasn't",
    "doesn't",
    "don't",
    "didn't",
    "won't",
    "can't",
    "shouldn't",
    "mustn't",
    "hasn't",
    "haven't",
    "nothing",
    "none",
];

/// Words of which the second denies the first.
const OPPOSITES: &[(&str, &str)] = &[
    ("enabled", "disabled"),
    ("enables", "disables"),
    ("enable", "disable"),
    ("required", "optional"),
    ("mandatory", "optional"),
    ("allowed", "forbidden"),
    ("allowed", "prohibited"),
    ("permitted", "forbidden"),
    ("public", "private"),
    ("synchronous", "asynchronous"),
    ("true", "false"),
    ("supported", "unsupported"),
    ("increases", "decreases"),
    ("encrypted", "unencrypted"),
    ("mutable", "immutable"),
    ("stateful", "stateless"),
    ("safe", "unsafe"),
    ("reliable", "unreliable"),
    ("accepts", "rejects"),
    ("succeeds", "fails"),
    ("includes", "excludes"),
];

/// Words that carry no meaning of their own here.
const LIGHT: &[&str] = &[
    "a",
    "an",
    "the",
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "do",
    "does",
    "did",
    "will",
    "shall",
    "should",
    "must",
    "can",
    "may",
    "has",
    "have",
    "had",
    "of",
    "to",
    "in",
    "on",
    "at",
    "for",
    "by",
    "with",
    "and",
    "its",
    "our",
    "we",
    "always",
    "currently",
    "now",
    "still",
    "also",
    "just",
    "every",
    "each",
    "all",
    "any",
];

/// A sentence with one of these states something.
const VERBS: &[&str] = &[
    "is",
    "are",
    "was",
    "were",
    "be",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
    "will",
    "shall",
    "should",
    "must",
    "can",
    "may",
    "cannot",
    "uses",
    "use",
    "takes",
    "take",
    "lasts",
    "last",
    "expires",
    "expire",
    "listens",
    "runs",
    "run",
    "requires",
    "require",
    "supports",
    "support",
    "defaults",
    "holds",
    "keeps",
    "keep",
    "allows",
    "returns",
    "return",
    "costs",
    "retries",
    "waits",
    "contains",
    "equals",
    "accepts",
    "rejects",
    "needs",
    "stores",
    "sends",
    "enables",
    "disables",
    "increases",
    "decreases",
    "succeeds",
    "fails",
    "includes",
    "excludes",
    "works",
    "needs",
    "serves",
    "happens",
    "ends",
    "starts",
    "begins",
    "opens",
    "closes",
    "rotates",
];

/// What a sentence that begins so is about stands in another one.
const POINTING: &[&str] = &[
    "it",
    "this",
    "that",
    "these",
    "those",
    "they",
    "he",
    "she",
    "such",
    "there",
    "if",
    "when",
    "otherwise",
    "then",
    "but",
    "or",
    "and",
    "so",
    "which",
];

/// The claims of a text in Markdown. Code, tables and headings are left out.
pub fn claims(text: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    let (mut began, mut in_code, mut in_fields) = (1, false, false);
    for (number, line) in (1u32..).zip(text.lines()) {
        let bare = line.trim();
        if number == 1 && bare == "---" {
            in_fields = true;
            continue;
        }
        if in_fields {
            in_fields = bare != "---";
            continue;
        }
        let is_fence = bare.starts_with("```") || bare.starts_with("~~~");
        if is_fence {
            in_code = !in_code;
        }
        let is_item = bare.starts_with(['-', '*', '+']) || numbered(bare).is_some();
        let is_apart =
            is_fence || in_code || bare.is_empty() || bare.starts_with(['#', '|', '<', '>']);
        if is_apart || is_item {
            sentences(&paragraph, began, &mut found);
            paragraph.clear();
        }
        if is_apart {
            continue;
        }
        if paragraph.is_empty() {
            began = number;
        } else {
            paragraph.push('\n');
        }
        let bare = numbered(bare).unwrap_or(bare);
        paragraph.push_str(bare.trim_start_matches(['-', '*', '+', ' ']));
        if found.len() >= CLAIMS_MAX {
            break;
        }
    }
    sentences(&paragraph, began, &mut found);
    found.truncate(CLAIMS_MAX);
    found
}

/// What comes after the number of a list.
fn numbered(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|it: char| it.is_ascii_digit());
    (rest.len() < line.len())
        .then(|| rest.strip_prefix(". "))
        .flatten()
}

fn sentences(paragraph: &str, began: u32, found: &mut Vec<Claim>) {
    let mut rest = paragraph;
    let mut line = began;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .find(|(at, it)| {
                let after = rest[at + it.len_utf8()..].chars().next();
                matches!(it, '.' | '!' | '?') && after.is_none_or(char::is_whitespace)
            })
            .map_or(rest.len(), |(at, it)| at + it.len_utf8());
        let (sentence, later) = rest.split_at(end);
        let skipped = sentence.len() - sentence.trim_start().len();
        line += count_lines(&sentence[..skipped]);
        found.extend(claim(sentence.trim(), line));
        line += count_lines(&sentence[skipped..]);
        rest = later;
    }
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

/// What a sentence claims, if it does.
fn claim(sentence: &str, line: u32) -> Option<Claim> {
    if sentence.ends_with('?') || sentence.ends_with(':') {
        return None;
    }
    let plain = without_links(sentence)
        .to_lowercase()
        .replace(['\u{2019}', '\u{02bc}'], "'");
    let mut claim = Claim {
        text: sentence.split_whitespace().collect::<Vec<_>>().join(" "),
        line,
        words: BTreeSet::new(),
        is_denied: false,
        of: Vec::new(),
        said: Vec::new(),
    };
    let (mut n_words, mut has_verb) = (0, false);
    let is_part =
        |it: char| it.is_alphanumeric() || matches!(it, '\'' | '_' | '.' | '-' | ':' | '/');
    for word in plain.split(|it: char| !is_part(it)) {
        let word = word.trim_matches(|it: char| !it.is_alphanumeric());
        if word.is_empty() {
            continue;
        }
        n_words += 1;
        if n_words == 1 && POINTING.contains(&word) {
            return None;
        }
        has_verb |= VERBS.contains(&word);
        if DENYING.contains(&word) {
            has_verb |= word.ends_with("n't");
            claim.is_denied = !claim.is_denied;
        } else if word.starts_with(|it: char| it.is_ascii_digit()) {
            let (number, unit) = word.split_at(
                word.find(|it: char| it.is_alphabetic())
                    .unwrap_or(word.len()),
            );
            if !unit.is_empty() {
                claim.words.insert(stem(unit));
            }
            match has_verb {
                true => claim.said.push(number.to_owned()),
                false => claim.of.push(number.to_owned()),
            }
        } else if let Some((affirmed, _)) = OPPOSITES.iter().find(|it| it.1 == word) {
            claim.is_denied = !claim.is_denied;
            claim.words.insert(stem(affirmed));
        } else if !LIGHT.contains(&word) {
            claim.words.insert(stem(word));
        }
    }
    let is_claim = has_verb && n_words <= WORDS_MAX && claim.words.len() >= WORDS_MIN;
    is_claim.then_some(claim)
}

/// The words that readers see: `[text](address)` and `[[page|text]]` are `text`.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(']').unwrap_or(rest.len());
        let inner = rest[..end].trim_start_matches('[');
        out.push_str(inner.rsplit('|').next().unwrap_or(inner));
        rest = rest[end..].trim_start_matches(']');
        if let Some(address) = rest.strip_prefix('(') {
            rest = address.find(')').map_or("", |it| &address[it + 1..]);
        }
    }
    out.push_str(rest);
    out
}

/// Equal for most forms of one word.
fn stem(word: &str) -> String {
    let cut = |end: &str, least: usize| word.strip_suffix(end).filter(|it| it.len() >= least);
    let stem = match word {
        _ if cut("ies", 2).is_some() => return format!("{}y", cut("ies", 2).unwrap_or(word)),
        _ if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") => word,
        _ => cut("ing", 4)
            .or_else(|| cut("ed", 4))
            .or_else(|| cut("s", 3))
            .unwrap_or(word),
    };
    stem.trim_end_matches('e').to_owned()
}

/// Every pair that contradicts each other, each with the first of those that say the same.
pub fn opposed(claims: &[&Claim]) -> Vec<Opposed> {
    let mut groups: HashMap<(&BTreeSet<String>, &Vec<String>), Vec<usize>> = HashMap::new();
    for (n, claim) in claims.iter().enumerate() {
        groups.entry((&claim.words, &claim.of)).or_default().push(n);
    }
    let mut found = Vec::new();
    for group in groups.values() {
        // Of those that say the same, the first stands for all.
        let mut voices: Vec<usize> = Vec::new();
        for &n in group {
            let says = |it: &usize| {
                let (a, b) = (claims[*it], claims[n]);
                a.is_denied == b.is_denied && a.said == b.said
            };
            if !voices.iter().any(says) {
                voices.push(n);
            }
        }
        for (at, &one) in voices.iter().enumerate() {
            for &other in &voices[at + 1..] {
                found.extend(difference(claims[one], claims[other]).map(|why| Opposed {
                    one,
                    other,
                    why,
                }));
            }
        }
    }
    found.sort_by_key(|pair| (pair.one, pair.other));
    found
}

fn difference(one: &Claim, other: &Claim) -> Option<String> {
    if one.is_denied != other.is_denied {
        let is_same = one.said == other.said;
        return is_same.then(|| "one denies what the other affirms".to_owned());
    }
    let is_measure = one.said.len() == other.said.len() && !one.said.iter().any(|it| is_date(it));
    let is_measure = is_measure && !other.said.iter().any(|it| is_date(it));
    let pairs = one.said.iter().zip(&other.said).filter(|(a, b)| a != b);
    let pairs: Vec<String> = pairs.map(|(a, b)| format!("{a} vs {b}")).collect();
    (is_measure && !pairs.is_empty()).then(|| pairs.join(", "))
}

/// Things happen in several years; a port is not 2024.
fn is_date(number: &str) -> bool {
    let is_year = number.len() == 4 && matches!(number.parse(), Ok(1_900..=2_100));
    is_year || number.matches('-').count() == 2 || number.matches('.').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(one: &str, other: &str) -> Option<String> {
        let all = [claims(one), claims(other)].concat();
        let all: Vec<&Claim> = all.iter().collect();
        opposed(&all).into_iter().next().map(|it| it.why)
    }

    #[test]
    fn claims_that_cannot_both_be_right_are_found() {
        for (one, other, why) in [
            (
                "The API listens on port 8080.",
                "The API listens on port 9090.",
                "8080 vs 9090",
            ),
            (
                "A session token expires after 30 minutes.",
                "Session tokens expire after 60 minutes.",
                "30 vs 60",
            ),
            (
                "Caching is enabled by default.",
                "Caching is disabled by default.",
                "one denies",
            ),
            (
                "The worker supports retries.",
                "The worker does not support retries.",
                "one denies",
            ),
            (
                "[[Backups]] are encrypted.",
                "Backups are unencrypted.",
                "one denies",
            ),
            (
                "- A [token](t.md) must never be logged.",
                "Tokens must be logged.",
                "one denies",
            ),
            (
                "The queue holds 100MB.",
                "The queue holds 200MB.",
                "100 vs 200",
            ),
        ] {
            let found = of(one, other);
            assert!(
                found.as_deref().is_some_and(|it| it.starts_with(why)),
                "{one} {other} {found:?}"
            );
        }
    }

    #[test]
    fn what_is_about_something_else_is_no_contradiction() {
        for (one, other) in [
            (
                "The API listens on port 8080.",
                "The proxy listens on port 9090.",
            ),
            ("Step 1 takes 5 seconds.", "Step 2 takes 10 seconds."),
            ("It is not required.", "It is required."),
            (
                "The release was made in 2024.",
                "The release was made in 2025.",
            ),
            ("Is caching enabled?", "Caching is disabled."),
            ("# Caching is enabled\n", "# Caching is disabled\n"),
            (
                "```\nCaching is enabled here.\n```",
                "Caching is disabled here.",
            ),
            (
                "The worker supports retries.",
                "The worker supports retries.",
            ),
            (
                "Workers retry without a lock.",
                "Workers do not retry with a lock held by others.",
            ),
            ("| caching | is enabled |", "| caching | is disabled |"),
        ] {
            assert_eq!(of(one, other), None, "{one} {other}");
        }
    }

    #[test]
    fn a_claim_knows_its_line() {
        let text = "---\ntitle: x is y\n---\n# Head\n\nFirst one is here.\nSecond one\nis there. Third is it now.\n";
        let lines: Vec<(u32, String)> = claims(text)
            .into_iter()
            .map(|it| (it.line, it.text))
            .collect();
        let expected = [(6, "First one is here."), (7, "Second one is there.")];
        assert_eq!(
            lines[..2],
            expected.map(|(line, text)| (line, text.to_owned()))
        );
    }

    #[test]
    fn odd_texts_are_read() {
        for text in [
            "",
            "[",
            "[[",
            "](",
            "[a](b",
            "'",
            "1. ",
            "---",
            "é is ü. ß is not.",
            "\u{0}",
        ] {
            let all = claims(text);
            opposed(&all.iter().collect::<Vec<_>>());
        }
    }
}
