//! Compares names of people by their parts.
//!
//! The first and the last name must both match: be equal, forms of one name, an initial, or a typing
//! error. Middle names may be missing but must not contradict. A single name is not enough to
//! identify a person, and suffixes of generations must be equal.

use super::slip::is_slip;
use super::{Because, By, Likeness, ONE_WORD_MIN, SAME_FORM, SAME_LETTERS, are_written_together};
use crate::ontology::EntityType;
use crate::words::{GENERATIONS, HONORS, TITLES, are_forms_of_one_name, is_given_name, is_known};
use kenning_text::fold::{self, spellings};
use kenning_text::script::{is_hangul, is_without_spaces};
use kenning_text::similarity::jaro_winkler;
use kenning_text::sound::phonetic_key;

/// Confidence for `Bill` and `William`.
const OTHER_FORM: f64 = 0.95;
/// Confidence if the family name is first.
const OTHER_ORDER: f64 = 0.93;
/// Confidence for an initial: `E. Ostrom` may be somebody else.
const INITIAL: f64 = 0.88;
/// Confidence if the names only sound alike.
const SOUND: f64 = 0.86;
/// First names that sound alike are also spelled somewhat alike.
const SOUND_SIMILARITY_MIN: f64 = 0.75;

/// Endings that distinguish given names of men and women, or two given names.
const GENDER: &[&str] = &["a", "e", "o", "i", "y", "ia", "le", "ne", "te", "na"];

/// Endings that distinguish two family names.
const FAMILY: &[&str] = &["a", "o", "s", "en", "er", "ez", "on", "sen", "son"];

#[derive(Debug, PartialEq)]
struct Parts {
    names: Vec<String>,
    generation: Option<String>,
}

/// How two parts of a name agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Equal,
    Form,
    Initial,
    Slip,
    Sound,
    None,
}

pub(super) fn likeness(kind: &EntityType, a: &str, b: &str, similarity: f64) -> Option<Likeness> {
    let all_b = parts(b);
    for a in &parts(a) {
        for b in &all_b {
            let found = of_parts(kind, a, b, similarity);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn of_parts(kind: &EntityType, a: &Parts, b: &Parts, similarity: f64) -> Option<Likeness> {
    if a.generation != b.generation {
        return None;
    }
    if a.names == b.names {
        return Likeness::of(SAME_FORM, Because::Writing);
    }
    if is_spaced_otherwise(&a.names, &b.names) {
        return Likeness::of(SAME_LETTERS, Because::Spacing);
    }
    let ([first_a, between_a @ .., last_a], [first_b, between_b @ .., last_b]) =
        (a.names.as_slice(), b.names.as_slice())
    else {
        return of_single(&a.names, &b.names, similarity);
    };
    let is_swapped = a.names.len() == 2 && first_a == last_b && last_a == first_b;
    if is_swapped && b.names.len() == 2 && !(is_given_name(first_a) && is_given_name(last_a)) {
        return Likeness::of(OTHER_ORDER, Because::Order);
    }
    if !agree(between_a, between_b) {
        return None;
    }
    let first = first_fit(kind, first_a, first_b);
    let (confidence, by, because) = match (first, last_fit(last_a, last_b)) {
        (Fit::Equal, Fit::Equal) => (SAME_LETTERS, By::Letters, Because::MissingName),
        (Fit::Form, Fit::Equal) => (OTHER_FORM, By::Letters, Because::ShortForm),
        (Fit::Initial, Fit::Equal) => (INITIAL, By::Letters, Because::Initial),
        (Fit::Sound, Fit::Equal) => (SOUND, By::Sound, Because::Sound),
        (Fit::Slip | Fit::Equal, Fit::Slip) | (Fit::Slip, Fit::Equal)
            if similarity >= kind.similarity_threshold =>
        {
            (similarity, By::Letters, Because::Slip)
        }
        _ => return None,
    };
    Some(Likeness {
        confidence,
        by,
        because,
        is_sure: !matches!(first, Fit::Form | Fit::Initial)
            && are_spelled_out(between_a, between_b),
    })
}

/// Whether the middle names are the same, with none missing and no initials.
fn are_spelled_out(a: &[String], b: &[String]) -> bool {
    let is_one = |(a, b): (&String, &String)| a == b || is_slip(a, b);
    a.len() == b.len() && a.iter().zip(b).all(is_one)
}

/// Whether only the spaces differ. In an alphabet a single name is not a full one: `Jansen` is not `Jan Sen`.
fn is_spaced_otherwise(a: &[String], b: &[String]) -> bool {
    let is_of_characters =
        |text: &String| text.chars().all(|c| is_without_spaces(c) || is_hangul(c));
    let is_full = a.len() > 1 && b.len() > 1 || a.iter().all(is_of_characters);
    is_full && are_written_together(a, b)
}

/// Whether the family names agree and the given names are spelled out and differ.
pub(super) fn contradicts(kind: &EntityType, label: &str, name: &str) -> bool {
    let is_short = |it: &String| it.chars().count() == 1;
    let do_differ = |a: &Parts, b: &Parts| match (a.names.as_slice(), b.names.as_slice()) {
        ([first_a, between_a @ .., last_a], [first_b, between_b @ .., last_b]) => {
            let is_open = is_short(first_a) || is_short(first_b) || last_a != last_b;
            let fits = first_fit(kind, first_a, first_b) != Fit::None;
            !(is_open || fits && agree(between_a, between_b))
        }
        _ => false,
    };
    let names = parts(name);
    let is_all = |label: &Parts| names.iter().all(|name| do_differ(label, name));
    parts(label).iter().all(is_all)
}

/// Whether a person of this name could be called by the label.
///
/// A single name must be the first or the last name, by letters or by sound. Of a full name both must
/// match: whoever shares only one of them is a relative, or somebody else with the same first name.
pub(super) fn could_be_called(kind: &EntityType, label: &str, name: &str) -> bool {
    let names = parts(name);
    let is_any = |label: &Parts| names.iter().any(|name| could_be(kind, label, name));
    parts(label).iter().any(is_any)
}

fn could_be(kind: &EntityType, a: &Parts, b: &Parts) -> bool {
    let are_generations = a.generation.is_some() && b.generation.is_some();
    if are_generations && a.generation != b.generation {
        return false;
    }
    let is_first = |a: &String, b: &String| {
        first_fit(kind, a, b) != Fit::None || !differ_by_ending(a, b, GENDER) && is_heard(a, b)
    };
    let is_last = |a: &String, b: &String| {
        last_fit(a, b) != Fit::None || !differ_by_ending(a, b, FAMILY) && is_heard(a, b)
    };
    match (a.names.as_slice(), b.names.as_slice()) {
        ([first_a, between_a @ .., last_a], [first_b, between_b @ .., last_b]) => {
            let is_initial = is_initial_of(last_a, last_b) || is_initial_of(last_b, last_a);
            let fits = is_first(first_a, first_b) && (is_initial || is_last(last_a, last_b));
            fits && agree(between_a, between_b) || of_parts(kind, a, b, 0.0).is_some()
        }
        ([one], [first, .., last]) | ([first, .., last], [one]) => {
            is_first(one, first) || is_last(one, last) || is_spaced_otherwise(&a.names, &b.names)
        }
        ([a], [b]) => is_first(a, b),
        _ => false,
    }
}

/// Whether two names sound the same and are not both known names.
fn is_heard(a: &str, b: &str) -> bool {
    let heard = phonetic_key(a, &[]);
    heard.len() > 1 && heard == phonetic_key(b, &[]) && !(is_known(a) && is_known(b))
}

/// Compares single names. A single name and a full one are never the same without an alias.
fn of_single(a: &[String], b: &[String], similarity: f64) -> Option<Likeness> {
    match (a, b) {
        ([a], [b]) if similarity >= ONE_WORD_MIN && is_slip(a, b) => {
            Likeness::of(similarity, Because::Slip)
        }
        _ => None,
    }
}

fn first_fit(kind: &EntityType, a: &str, b: &str) -> Fit {
    if a == b {
        return Fit::Equal;
    }
    if is_initial_of(a, b) || is_initial_of(b, a) {
        return Fit::Initial;
    }
    if are_forms_of_one_name(a, b) {
        return Fit::Form;
    }
    if differ_by_ending(a, b, GENDER) {
        return Fit::None;
    }
    if is_slip(a, b) {
        return Fit::Slip;
    }
    let sounds =
        kind.phonetic_matching && jaro_winkler(a, b) >= SOUND_SIMILARITY_MIN && is_heard(a, b);
    if sounds { Fit::Sound } else { Fit::None }
}

fn last_fit(a: &str, b: &str) -> Fit {
    if a == b {
        Fit::Equal
    } else if !differ_by_ending(a, b, FAMILY) && is_slip(a, b) {
        Fit::Slip
    } else {
        Fit::None
    }
}

/// Whether one is the first letter of the other; a character that is a syllable or a word is not an
/// initial.
fn is_initial_of(a: &str, b: &str) -> bool {
    let is_letter = |c: char| c.is_alphabetic() && u32::from(c) < 0x0e00;
    a.chars().count() == 1 && a.chars().all(is_letter) && b.starts_with(a)
}

/// Whether the names differ only in one of these endings.
fn differ_by_ending(a: &str, b: &str, endings: &[&str]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if let Some(rest) = long.strip_prefix(short) {
        return endings.contains(&rest);
    }
    let is_vowel = |it: &str| it.ends_with(['a', 'e', 'i', 'o', 'y']);
    let stem = |it: &str| it.get(..it.len() - 1).map(str::to_owned);
    a.len() == b.len() && is_vowel(a) && is_vowel(b) && stem(a) == stem(b)
}

/// Whether the middle names do not contradict: those of one are among those of the other.
fn agree(a: &[String], b: &[String]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut rest = many.iter();
    few.iter().all(|one| {
        rest.any(|it| {
            it == one || is_initial_of(it, one) || is_initial_of(one, it) || is_slip(it, one)
        })
    })
}

/// A name's parts in each of its spellings.
fn parts(name: &str) -> Vec<Parts> {
    let spellings = spellings(&given_first(name));
    spellings.iter().map(|it| parts_of(it)).collect()
}

/// Parts without titles and honors, the family name last.
fn parts_of(spelled: &str) -> Parts {
    let mut names: Vec<String> = spelled.split(' ').map(str::to_owned).collect();
    while names.len() > 2 && TITLES.contains(&names[0].as_str()) {
        names.remove(0);
    }
    let mut generation = None;
    while names.len() > 2 {
        let Some(last) = names.last() else { break };
        if GENERATIONS.contains(&last.as_str()) {
            generation = names.pop();
        } else if HONORS.contains(&last.as_str()) {
            names.pop();
        } else {
            break;
        }
    }
    Parts { names, generation }
}

/// `Ostrom, Elinor` is `Elinor Ostrom`; what follows a comma may also be a title.
fn given_first(name: &str) -> String {
    let Some((family, given)) = name.split_once(',') else {
        return name.to_owned();
    };
    let after = fold::name(given);
    let is_title = |text: &str| GENERATIONS.contains(&text) || HONORS.contains(&text);
    if after.is_empty() || after.split(' ').all(is_title) {
        return format!("{family} {given}");
    }
    format!("{given} {family}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ontology::Ontology;

    #[test]
    fn a_name_is_read_by_its_parts() {
        for (name, names, generation) in [
            ("Dr. Jane Goodall, DBE", "jane goodall", None),
            ("Ostrom, Elinor", "elinor ostrom", None),
            ("Sam Adams, Jr.", "sam adams", Some("jr")),
            ("J.R.R. Tolkien", "j r r tolkien", None),
            ("Bill", "bill", None),
            ("Dr Who", "dr who", None),
        ] {
            let parts = &parts(name)[0];
            assert_eq!(parts.names.join(" "), names, "{name}");
            assert_eq!(parts.generation.as_deref(), generation, "{name}");
        }
    }

    fn person() -> EntityType {
        Ontology::default().kind("Person").unwrap().clone()
    }

    #[test]
    fn other_letters_and_other_limits_make_other_people() {
        for (a, b, expected) in [
            ("करण सिंह", "किरण सिंह", false),
            ("राम", "रमा", false),
            ("தமிழ் செல்வன்", "தமிழ் செல்வி", false),
            ("محمد علي", "محمود علي", false),
            ("أحمد علي", "احمد علي", true),
            ("Артём Орлов", "Артем Орлов", true),
            ("Ann Alee", "Anna Lee", false),
            ("Li Na", "Lin A", false),
            ("Jan Sen", "Jansen", false),
            ("Maria De Souza", "Maria DeSouza", true),
            ("王 伟", "王伟", true),
            ("김 철수", "김철수", true),
            ("王 小明", "王小 小明", false),
        ] {
            let found = super::super::likeness(&person(), a, b).is_some();
            assert_eq!(found, expected, "{a} / {b}");
            assert_eq!(super::super::likeness(&person(), b, a).is_some(), expected);
        }
    }

    #[test]
    fn what_fits_several_people_is_not_sure() {
        for (a, b, expected) in [
            ("Bill Baue", "Bill Bau", true),
            ("Zoë Baue", "zoe baue", true),
            ("Dr. Bill Baue", "Bill Baue", true),
            ("Baue, Bill", "Bill Baue", true),
            ("Mihal Sangham", "Mehul Sangham", true),
            ("Robin Wall Kimmerer", "Robin Wall Kimerer", true),
            ("J. Smith", "John Smith", false),
            ("Joan Smith", "J. Smith", false),
            ("Bob Smith", "Robert Smith", false),
            ("John F. Kennedy", "John Fitzgerald Kennedy", false),
            ("John Quincy Adams", "John Adams", false),
        ] {
            let found = super::super::likeness(&person(), a, b).unwrap();
            assert_eq!(found.is_sure, expected, "{a} / {b}");
        }
    }

    #[test]
    fn who_is_spelled_out_otherwise_is_another() {
        for (label, name, expected) in [
            ("John Smith", "Joan Smith", true),
            ("John Q. Adams", "John R. Adams", true),
            ("John Smith", "J. Smith", false),
            ("John Smith", "Johnny Smith", false),
            ("John Smith", "John R. Smith", false),
            ("John Smith", "Joan Baez", false),
            ("John Smith", "Joan", false),
        ] {
            assert_eq!(
                contradicts(&person(), label, name),
                expected,
                "{label} / {name}"
            );
            assert_eq!(
                contradicts(&person(), name, label),
                expected,
                "{name} / {label}"
            );
        }
    }

    #[test]
    fn company_calls_people_by_their_names() {
        for (label, name, expected) in [
            ("Maren", "Maren Holm", true),
            ("Marren", "Maren Holm", true),
            ("Holm", "Maren Holm", true),
            ("Quoxala", "Kwaxala Forest", true),
            ("Bill", "William Baue", true),
            ("M. Holm", "Maren Holm", true),
            ("Maren H.", "Maren Holm", true),
            ("M. H.", "Maren Holm", true),
            ("Maren Hollm", "Maren Holm", true),
            ("Qwoxala Forrest", "Kwaxala Forest", true),
            ("Sam Adams", "Sam Adams Jr.", true),
            ("Barack Obama", "Maren Holm", false),
            ("Norman Hill", "Maren Holm", false),
            ("Sarah Holm", "Maren Holm", false),
            ("Maren Hill", "Maren Holm", false),
            ("Joan Smith", "John Smith", false),
            ("Joan", "John Smith", false),
            ("Maria", "Mario Rossi", false),
            ("Miranda", "Kwaxala Forest", false),
            ("--", "Maren Holm", false),
            ("Sam Adams Sr.", "Sam Adams Jr.", false),
        ] {
            assert_eq!(
                could_be_called(&person(), label, name),
                expected,
                "{label} / {name}"
            );
            assert_eq!(
                could_be_called(&person(), name, label),
                expected,
                "{name} / {label}"
            );
        }
    }

    #[test]
    fn how_sure_it_is_depends_on_what_differs() {
        let ontology = Ontology::default();
        let kind = ontology.kind("Person").unwrap();
        for (a, b, expected) in [
            ("Bill Baue", "Bill Bau", Some((0.9777, By::Letters))),
            ("William Baue", "Bill Baue", Some((0.95, By::Letters))),
            ("B. Baue", "Bill Baue", Some((0.88, By::Letters))),
            ("Mihal Sangham", "Mehul Sangham", Some((0.86, By::Sound))),
            ("Bill", "Bill Baue", None),
            ("Benjamin Life", "Benjamin Neal", None),
            ("", "", Some((0.97, By::Letters))),
            ("", "Bill Baue", None),
        ] {
            let found = super::super::likeness(kind, a, b);
            match (found, expected) {
                (Some(found), Some((confidence, by))) => {
                    assert!(
                        (found.confidence - confidence).abs() < 1e-3,
                        "{a} {b} {found:?}"
                    );
                    assert_eq!(found.by, by);
                }
                (found, expected) => assert_eq!(found.is_some(), expected.is_some(), "{a} {b}"),
            }
        }
    }
}
