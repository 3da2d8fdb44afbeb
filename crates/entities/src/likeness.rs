//! Decides whether two names of one type name the same thing.
//!
//! Similarity of letters alone merges names that differ in one important letter and separates names
//! that are only spelled differently. So names are read first: a person's by its parts ([`person`]),
//! any other word by word ([`wording`]), and only the rest must be explained as a typing error.

mod person;
mod slip;
mod wording;

use crate::names::normalized;
use crate::ontology::EntityType;
use kenning_text::script::without_emoji;
use kenning_text::similarity::jaro_winkler;
use std::borrow::Cow;

/// The same name, spelled differently.
const SAME_FORM: f64 = 0.97;
/// The same words, written together or apart.
const SAME_LETTERS: f64 = 0.96;
/// Names of one word must be at least this similar by letters.
const ONE_WORD_MIN: f64 = 0.95;

/// Types whose names are compared by their distinctive words.
const DISTINCTIVE: &[&str] = &["Organization", "Project", "Concept"];

/// What showed that two names are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Letters and words.
    Letters,
    /// How they sound.
    Sound,
}

/// Why a name matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// It is the entity's name.
    Name,
    /// It is an alias of the entity.
    Alias,
    /// Case, accents, small words or legal forms differ.
    Writing,
    /// Words are written together or apart, or in the plural.
    Spacing,
    /// The family name stands first.
    Order,
    /// First names are forms of one, such as `Bill` and `William`.
    ShortForm,
    /// An initial stands for the first name.
    Initial,
    /// A name between first and last is missing.
    MissingName,
    /// A slip of the fingers.
    Slip,
    /// They sound alike.
    Sound,
    /// It was mentioned together with the same entities.
    Company,
    /// They mean about the same.
    Meaning,
}

impl Because {
    /// Whether only the spelling differs, so that whoever uses both means one thing.
    #[must_use]
    pub const fn is_writing(self) -> bool {
        matches!(
            self,
            Self::Name | Self::Alias | Self::Writing | Self::Spacing
        )
    }

    /// A description for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Name => "same name",
            Self::Alias => "known alias",
            Self::Writing => "same name in another spelling",
            Self::Spacing => "same words written together or apart, or in the plural",
            Self::Order => "same names in another order",
            Self::ShortForm => "same family name, and forms of one first name",
            Self::Initial => "same family name, and an initial that fits",
            Self::MissingName => "same first and last name, one with a middle name",
            Self::Slip => "names differ by a typing slip",
            Self::Sound => "names sound alike",
            Self::Company => "seen in the same company",
            Self::Meaning => "names mean about the same",
        }
    }
}

/// How sure it is that two names are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// From 0 to 1.
    pub confidence: f64,
    /// What showed it.
    pub by: By,
    /// How the names differ.
    pub because: Because,
    /// Whether one name contains the whole of the other, however it is spelled. False where an
    /// initial, a short form or a missing middle name was accepted: names of several people would
    /// match then.
    pub is_sure: bool,
}

impl Likeness {
    const fn of(confidence: f64, because: Because) -> Option<Self> {
        Some(Self {
            confidence,
            by: By::Letters,
            because,
            is_sure: true,
        })
    }
}

/// Whether two names of things of a type are names of one thing, and how sure that is.
#[must_use]
pub fn likeness(kind: &EntityType, a: &str, b: &str) -> Option<Likeness> {
    let (a, b) = &without_lone_emoji(a, b);
    let similarity = jaro_winkler(&normalized(a), &normalized(b));
    if kind.key == "Person" {
        person::likeness(kind, a, b, similarity)
    } else {
        wording::likeness(kind, a, b, similarity)
    }
}

/// Two names without emoji that only one of them has: people leave out what decorates the name of a
/// note. Where both have some, they count.
fn without_lone_emoji<'a>(a: &'a str, b: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    let whole = |it: &'a str| Cow::Borrowed(it);
    match (without_emoji(a), without_emoji(b)) {
        (Some(bare), None) => (Cow::Owned(bare), whole(b)),
        (None, Some(bare)) => (whole(a), Cow::Owned(bare)),
        _ => (whole(a), whole(b)),
    }
}

/// Whether somebody with this name cannot be meant by the label. Then no other name of that entity
/// matches the label either: an entity called `J. Smith` and `Joan Smith` is not John Smith.
#[must_use]
pub fn contradicts(kind: &EntityType, label: &str, name: &str) -> bool {
    kind.key == "Person" && person::contradicts(kind, label, name)
}

/// Whether the label could be short for this name. Context only chooses among such candidates.
#[must_use]
pub fn could_be_called(kind: &EntityType, label: &str, name: &str) -> bool {
    let (label, name) = &without_lone_emoji(label, name);
    if kind.key == "Person" {
        person::could_be_called(kind, label, name)
    } else {
        wording::could_be_called(label, name)
    }
}

/// Whether a similar meaning may make two names one: never for people; for organizations and projects
/// only if they share a distinctive word; and never if numbers or symbols differ.
#[must_use]
pub fn may_mean_the_same(kind: &EntityType, a: &str, b: &str) -> bool {
    let (a, b) = &without_lone_emoji(a, b);
    if !wording::have_the_same_signs(a, b) {
        return false;
    }
    match kind.key.as_str() {
        "Person" => likeness(kind, a, b).is_some(),
        "Organization" | "Project" => wording::share_a_distinctive_word(a, b),
        _ => true,
    }
}

/// Whether the names differ only in words that are written together. A space may be missing, but not
/// moved, and not between digits: `1 12` is neither `11 2` nor `112`.
fn are_written_together(a: &[String], b: &[String]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut parts = many.iter();
    let is_letter = |it: Option<char>| it.is_some_and(char::is_alphabetic);
    let is_digit = |it: Option<char>| it.is_some_and(|it| it.is_ascii_digit());
    let is_joined = |word: &String| {
        let Some(mut rest) = parts.next().and_then(|it| word.strip_prefix(it.as_str())) else {
            return false;
        };
        while !rest.is_empty() {
            let before = word[..word.len() - rest.len()].chars().next_back();
            let next = rest.chars().next();
            let is_seam = is_letter(before) && (is_letter(next) || is_digit(next))
                || is_digit(before) && is_letter(next);
            let Some(after) = parts.next().and_then(|it| rest.strip_prefix(it.as_str())) else {
                return false;
            };
            if !is_seam {
                return false;
            }
            rest = after;
        }
        true
    };
    few.iter().all(is_joined) && parts.next().is_none()
}

fn is_distinctive(kind: &EntityType) -> bool {
    DISTINCTIVE.contains(&kind.key.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_between_words_may_be_missing_but_not_elsewhere() {
        let words = |it: &str| -> Vec<String> { it.split(' ').map(str::to_owned).collect() };
        for (a, b, expected) in [
            ("open civics", "opencivics", true),
            ("maria de souza", "maria desouza", true),
            ("a b c", "abc", true),
            ("open civics", "open civics", true),
            ("ann alee", "anna lee", false),
            ("pen island", "penis land", false),
            ("site 1 12", "site 11 2", false),
            ("site 1 12", "site 112", false),
            ("site 1 12", "site 1 12", true),
            ("open civics lab", "opencivics", false),
            ("open", "opencivics", false),
            ("c ++", "c++", false),
            ("cop 26", "cop26", true),
        ] {
            let (a, b) = (words(a), words(b));
            assert_eq!(are_written_together(&a, &b), expected, "{a:?} {b:?}");
            assert_eq!(are_written_together(&b, &a), expected, "{b:?} {a:?}");
        }
    }
}
