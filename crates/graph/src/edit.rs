//! Changes of one Markdown text: its end, one section, one field before it. Everything else stays byte for byte.

use crate::{body, frontmatter};
use kenning_text::frontmatter::{Found, Head, Language, find};
use kenning_text::yaml::{self, Limits};
use serde_json::{Map, Value};
use std::ops::Range;

/// Why a text was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uneditable {
    /// It has no such heading; these are the ones that it has.
    NoHeading(Vec<String>),
    /// Several headings have this text.
    ManyHeadings(usize),
    /// Its fields cannot be read, so they are not rewritten.
    BrokenFields(String),
    /// The fields are not YAML.
    NotYaml,
    /// The new field would change others.
    BadField,
}

/// A text with more at its end, on lines of its own.
#[must_use]
pub fn append(text: &str, more: &str) -> String {
    let gap = match text {
        "" => "",
        it if it.ends_with('\n') => "",
        _ => "\n",
    };
    let end = if more.ends_with('\n') { "" } else { "\n" };
    format!("{text}{gap}{more}{end}")
}

/// What stands under a heading, deeper headings included.
///
/// # Errors
/// No heading has this text, or several have.
pub fn section<'a>(text: &'a str, heading: &str) -> Result<&'a str, Uneditable> {
    let (_, content) = place_of(text, heading)?;
    Ok(&text[content])
}

/// A text with something else under one of its headings. The heading stays.
///
/// # Errors
/// No heading has this text, or several have.
pub fn replace_section(text: &str, heading: &str, content: &str) -> Result<String, Uneditable> {
    let (line, place) = place_of(text, heading)?;
    let is_last = place.end == text.len();
    let content = content.trim_matches('\n');
    let before = &text[..line.end];
    let gap = if before.ends_with('\n') { "" } else { "\n" };
    let (space, end) = match (content.is_empty(), is_last) {
        (true, true) => ("", ""),
        (true, false) => ("", "\n"),
        (false, true) => ("\n", "\n"),
        (false, false) => ("\n", "\n\n"),
    };
    Ok(format!(
        "{before}{gap}{space}{content}{end}{}",
        &text[place.end..]
    ))
}

/// Where a heading stands, and what stands under it.
fn place_of(text: &str, heading: &str) -> Result<(Range<usize>, Range<usize>), Uneditable> {
    let key = |it: &str| body::words(it, usize::MAX).to_lowercase();
    let start = frontmatter::read(text).body_start;
    let all = body::headings(text, start);
    let wanted = key(heading.trim_start_matches('#'));
    let mut found = all.iter().enumerate().filter(|it| key(&it.1.1) == wanted);
    let Some((at, (level, _, line))) = found.next() else {
        let names = all.iter().map(|it| it.1.clone()).take(50);
        return Err(Uneditable::NoHeading(names.collect()));
    };
    let n_others = found.count();
    if n_others > 0 {
        return Err(Uneditable::ManyHeadings(n_others + 1));
    }
    let next = all[at + 1..].iter().find(|it| it.0 <= *level);
    let end = next.map_or(text.len(), |it| it.2.start);
    Ok((line.clone(), line.end..end))
}

/// A text whose field has this value, written as YAML; without one the field goes. Other fields stay as they
/// are written.
///
/// # Errors
/// The fields before the text cannot be read, or are not YAML.
pub fn set_field(text: &str, key: &str, value: Option<&str>) -> Result<String, Uneditable> {
    let key = key.trim();
    let line = value.map(|it| field_line(key, it));
    let (changed, before) = match find(text, Head::FirstLine) {
        Found::Closed(block) if block.language == Language::Toml => {
            return Err(Uneditable::NotYaml);
        }
        Found::Unclosed { .. } | Found::Nothing if frontmatter::read(text).faults.is_empty() => {
            let head = line.map(|it| format!("---\n{it}---\n"));
            (format!("{}{text}", head.unwrap_or_default()), Map::new())
        }
        Found::Unclosed { .. } | Found::Nothing => return Err(broken(text)),
        Found::Closed(block) => {
            let read = frontmatter::read(text);
            if !read.faults.is_empty() {
                return Err(broken(text));
            }
            let inside = &text[block.inside.clone()];
            let place = field_place(inside, key);
            let place = place.unwrap_or(inside.len()..inside.len());
            let new = line.unwrap_or_default();
            let inside = format!("{}{new}{}", &inside[..place.start], &inside[place.end..]);
            let (head, rest) = (&text[..block.inside.start], &text[block.inside.end..]);
            (format!("{head}{inside}{rest}"), read.fields)
        }
    };
    // Whatever the value holds, no other field may change with it.
    let after = frontmatter::read(&changed);
    let without = |mut fields: Map<String, Value>| {
        fields.remove(key);
        fields
    };
    let is_set = value.is_none_or(|_| after.fields.contains_key(key));
    if !after.faults.is_empty() || !is_set || without(after.fields) != without(before) {
        return Err(Uneditable::BadField);
    }
    Ok(changed)
}

fn broken(text: &str) -> Uneditable {
    let faults = frontmatter::read(text).faults;
    let first = faults.into_iter().next().map(|it| it.message);
    Uneditable::BrokenFields(first.unwrap_or_default())
}

/// A field with its value on one line: as it is given if that is YAML, else as a quoted text.
fn field_line(key: &str, value: &str) -> String {
    let value = value.trim();
    let is_link = value.starts_with("[[");
    let plain = format!("{key}: {value}\n");
    let is_yaml = !value.contains('\n')
        && !is_link
        && yaml::read(&plain, &Limits::FIELDS)
            .is_ok_and(|it| it.as_object().is_some_and(|it| it.len() == 1));
    match is_yaml {
        true => plain,
        // A JSON text is a quoted text of YAML.
        false => format!("{key}: {}\n", Value::from(value)),
    }
}

/// The lines of a field in a block: that of its key, and those that belong to its value.
fn field_place(inside: &str, key: &str) -> Option<Range<usize>> {
    let mut start = None;
    let mut at = 0;
    for line in inside.split_inclusive('\n') {
        match start {
            None => {
                let name = line.split_once(':').map(|it| it.0.trim_end());
                let name = name.map(|it| it.trim_matches(['"', '\'']));
                if name == Some(key) && !line.starts_with(char::is_whitespace) {
                    start = Some(at);
                }
            }
            Some(start) => {
                let is_of_value = line.starts_with([' ', '\t', '-', ']', '}']);
                if !is_of_value && !line.trim().is_empty() {
                    return Some(start..at);
                }
            }
        }
        at += line.len();
    }
    start.map(|start| start..at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_its_neighbors_stay() {
        let text = "---\na: 1\n---\n# Plan\n\nold\n\n## Deeper\n\nx\n\n# Next\n\nstays\n";
        let new = replace_section(text, "plan", "new\n").unwrap();
        assert_eq!(new, "---\na: 1\n---\n# Plan\n\nnew\n\n# Next\n\nstays\n");
        assert_eq!(section(text, "## Deeper").unwrap().trim(), "x");
        let last = replace_section(text, "Next", "gone on").unwrap();
        assert!(last.ends_with("# Next\n\ngone on\n"), "{last}");
        assert_eq!(
            replace_section(text, "None", ""),
            Err(Uneditable::NoHeading(vec![
                "Plan".into(),
                "Deeper".into(),
                "Next".into()
            ]))
        );
        assert_eq!(section("# A\n# A\n", "A"), Err(Uneditable::ManyHeadings(2)));
        assert!(section("```\n# A\n```\n", "A").is_err());
    }

    #[test]
    fn a_field_is_set_and_the_others_stay_as_they_are_written() {
        let text = "---\n# mine\nstatus:   open\ntags:\n  - a\n  - b\nlast: x\n---\nbody\n";
        for (key, value, expected) in [
            (
                "status",
                Some("done"),
                "---\n# mine\nstatus: done\ntags:\n  - a\n  - b\nlast: x\n---\nbody\n",
            ),
            (
                "tags",
                Some("[c, d]"),
                "---\n# mine\nstatus:   open\ntags: [c, d]\nlast: x\n---\nbody\n",
            ),
            (
                "tags",
                None,
                "---\n# mine\nstatus:   open\nlast: x\n---\nbody\n",
            ),
            (
                "up",
                Some("[[Home]]"),
                "---\n# mine\nstatus:   open\ntags:\n  - a\n  - b\nlast: x\nup: \"[[Home]]\"\n---\nbody\n",
            ),
            (
                "when",
                Some("a: b # c"),
                "---\n# mine\nstatus:   open\ntags:\n  - a\n  - b\nlast: x\nwhen: \"a: b # c\"\n---\nbody\n",
            ),
        ] {
            assert_eq!(set_field(text, key, value).as_deref(), Ok(expected));
        }
        assert_eq!(
            set_field("body\n", "a", Some("1")).as_deref(),
            Ok("---\na: 1\n---\nbody\n")
        );
        assert_eq!(set_field("body\n", "a", None).as_deref(), Ok("body\n"));
    }

    #[test]
    fn fields_that_cannot_be_read_are_left_alone() {
        assert_eq!(
            set_field("+++\na = 1\n+++\n", "a", Some("2")),
            Err(Uneditable::NotYaml)
        );
        assert!(matches!(
            set_field("---\na: [\n---\nb", "a", Some("2")),
            Err(Uneditable::BrokenFields(_))
        ));
        // A key that would be two lines is no key.
        assert_eq!(
            set_field("---\nb: 1\n---\n", "a: 1\nb", Some("2")),
            Err(Uneditable::BadField)
        );
    }

    #[test]
    fn what_is_appended_begins_on_a_line_of_its_own() {
        assert_eq!(append("", "a"), "a\n");
        assert_eq!(append("a", "b\n"), "a\nb\n");
        assert_eq!(append("a\n", "b"), "a\nb\n");
    }
}
