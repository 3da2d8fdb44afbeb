//! The block of fields before a text: YAML between `---`, TOML between `+++`.
//!
//! Only what is broken is lost: errors are reported with their line, the fields that can be read are
//! kept (`salvage`), and the text after the block is read as usual.

mod salvage;

use crate::Fault;
use kenning_text::frontmatter::{Block, Found, Head, Language, find, line_at, text_start};
use kenning_text::yaml::{self, Limits};
use serde_json::{Map, Number, Value};
use std::ops::Range;

const LIMITS: Limits = Limits::FIELDS;

/// The fields before the content.
#[derive(Debug, Default)]
pub(crate) struct Frontmatter {
    pub(crate) fields: Map<String, Value>,
    pub(crate) faults: Vec<Fault>,
    /// Where the content begins.
    pub(crate) body_start: usize,
    /// The lines between the delimiters.
    pub(crate) block: Range<usize>,
}

pub(crate) fn read(text: &str) -> Frontmatter {
    let start = text_start(text);
    let none = Frontmatter {
        body_start: start,
        block: start..start,
        ..Frontmatter::default()
    };
    // A horizontal rule is `---` too; a block of fields does not begin with an empty line.
    let is_rule = |inside: usize| text[line_at(text, inside)].trim().is_empty();
    let Block {
        language,
        inside: block,
        body_start,
    } = match find(text, Head::FirstLine) {
        Found::Closed(block) => block,
        Found::Unclosed {
            language,
            inside_start,
        } if !is_rule(inside_start) => {
            let delimiter = language.delimiter();
            let message = format!(
                "the frontmatter that begins with `{delimiter}` never ends: \
                 close it with a line `{delimiter}`"
            );
            return Frontmatter {
                faults: vec![Fault::new(1, message)],
                ..none
            };
        }
        Found::Unclosed { .. } | Found::Nothing => return none,
    };
    match fields(&text[block.clone()], language) {
        Ok(fields) => Frontmatter {
            fields,
            faults: Vec::new(),
            body_start,
            block,
        },
        Err(Broken::NoFields) if is_rule(block.start) => none,
        Err(broken) => {
            let fields = match (&broken, language) {
                (Broken::Syntax { .. }, Language::Yaml) => salvage::fields(&text[block.clone()]),
                _ => Map::new(),
            };
            Frontmatter {
                faults: vec![broken.fault(language, &fields)],
                fields,
                body_start,
                block,
            }
        }
    }
}

enum Broken {
    TooLarge(usize),
    /// Not a map of fields.
    NoFields,
    Syntax {
        /// From 1, within the block.
        line: u32,
        message: String,
    },
}

impl Broken {
    fn fault(self, language: Language, kept: &Map<String, Value>) -> Fault {
        let name = language.name();
        match self {
            Self::TooLarge(bytes) => Fault::new(
                1,
                format!(
                    "the frontmatter has {bytes} bytes, more than {}: \
                     move what is text below it",
                    LIMITS.bytes_max
                ),
            ),
            Self::NoFields => Fault::new(
                1,
                "the frontmatter has no fields: write it as `key: value`, one a line".to_owned(),
            ),
            Self::Syntax { line, message } => {
                let remedy = match language {
                    Language::Yaml => {
                        "quote a value that contains `: `, `[[` or `#`, indent with spaces, \
                         and name each key once"
                    }
                    Language::Toml => "quote texts, and name each key once",
                };
                // The opening line comes before the block.
                Fault::new(
                    line.saturating_add(1),
                    format!(
                        "the frontmatter is not valid {name} ({message}): {remedy}; {}",
                        kept_in_words(kept)
                    ),
                )
            }
        }
    }
}

/// Says which fields of a broken block are kept.
fn kept_in_words(kept: &Map<String, Value>) -> String {
    const SHOWN: usize = 20;
    if kept.is_empty() {
        return "none of its fields is read".to_owned();
    }
    let names: Vec<String> = kept
        .keys()
        .take(SHOWN)
        .map(|it| format!("`{}`", it.chars().take(60).collect::<String>()))
        .collect();
    let dots = if kept.len() > SHOWN { ", …" } else { "" };
    format!("only these fields are read: {}{dots}", names.join(", "))
}

fn fields(block: &str, language: Language) -> Result<Map<String, Value>, Broken> {
    if block.len() > LIMITS.bytes_max {
        return Err(Broken::TooLarge(block.len()));
    }
    match language {
        Language::Yaml => match read_yaml(block)? {
            Value::Object(fields) => Ok(fields),
            Value::Null => Ok(Map::new()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Broken::NoFields)
            }
        },
        Language::Toml => toml_fields(block),
    }
}

fn read_yaml(block: &str) -> Result<Value, Broken> {
    yaml::read(block, &LIMITS).map_err(|error| match error {
        yaml::Error::TooLarge(bytes) => Broken::TooLarge(bytes),
        yaml::Error::Syntax { line, message, .. } => Broken::Syntax {
            line: u32::try_from(line).unwrap_or(0),
            message: reason(&message),
        },
    })
}

/// The message of a parser, without advice about its settings and without positions that are relative
/// to something else.
fn reason(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .split(", set DuplicateKeyPolicy")
        .next()
        .unwrap_or(line);
    let line = line.rsplit_once(" at line ").map_or(line, |it| it.0);
    line.chars().take(160).collect()
}

fn toml_fields(block: &str) -> Result<Map<String, Value>, Broken> {
    let table: toml::Table = toml::from_str(block).map_err(|error| {
        let at = error.span().map_or(0, |it| it.start).min(block.len());
        let lines = block.as_bytes()[..at].iter().filter(|it| **it == b'\n');
        Broken::Syntax {
            line: u32::try_from(lines.count() + 1).unwrap_or(u32::MAX),
            message: reason(error.message()),
        }
    })?;
    Ok(table
        .into_iter()
        .map(|(key, value)| (key, json_of(value)))
        .collect())
}

/// Dates are kept as text. The parser bounds the depth.
fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(it) => Value::String(it),
        toml::Value::Integer(it) => Value::Number(it.into()),
        toml::Value::Float(it) => {
            Number::from_f64(it).map_or_else(|| Value::String(it.to_string()), Value::Number)
        }
        toml::Value::Boolean(it) => Value::Bool(it),
        toml::Value::Datetime(it) => Value::String(it.to_string()),
        toml::Value::Array(it) => Value::Array(it.into_iter().map(json_of).collect()),
        toml::Value::Table(it) => Value::Object(
            it.into_iter()
                .map(|(key, value)| (key, json_of(value)))
                .collect(),
        ),
    }
}

/// The texts of a value that is one or a list of them, lists in lists included.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(it) => vec![it.clone()],
        Value::Number(it) => vec![it.to_string()],
        Value::Bool(it) => vec![it.to_string()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields_of(text: &str) -> Value {
        let read = read(text);
        assert_eq!(read.faults, [], "{text:?}");
        Value::Object(read.fields)
    }

    #[test]
    fn fields_are_what_was_written() {
        for (text, fields, content) in [
            ("# no fields\n", json!({}), "# no fields\n"),
            ("", json!({}), ""),
            ("---\na: 1\n---\nb\n", json!({"a": 1}), "b\n"),
            ("---\r\na: 1\r\n---\r\nb\r\n", json!({"a": 1}), "b\r\n"),
            ("\u{feff}---\na: 1\n---\nb", json!({"a": 1}), "b"),
            ("\u{feff}b", json!({}), "b"),
            ("---\na: 1\n...\nb", json!({"a": 1}), "b"),
            ("---\na: 1\n---", json!({"a": 1}), ""),
            ("---\n---\nb", json!({}), "b"),
            ("---\n# a comment\n---\nb", json!({}), "b"),
            ("--- \na: 1\n--- \nb", json!({"a": 1}), "b"),
            ("----\na: 1\n----\n", json!({}), "----\na: 1\n----\n"),
            (" ---\na: 1\n---\n", json!({}), " ---\na: 1\n---\n"),
            // Rules, not fields.
            (
                "---\n\nprose\n\n---\n\nb",
                json!({}),
                "---\n\nprose\n\n---\n\nb",
            ),
            ("---\n\n# b\n", json!({}), "---\n\n# b\n"),
            ("---", json!({}), "---"),
            (
                "---\nday: 2024-01-02\nat: 12:30\nnan: .nan\nyes: yes\n---\n",
                json!({"day": "2024-01-02", "at": "12:30", "nan": ".nan", "yes": "yes"}),
                "",
            ),
            (
                "+++\nb = 'x'\nday = 2024-01-02\na = [1, 2]\nn = nan\n+++\nc",
                json!({"b": "x", "day": "2024-01-02", "a": [1, 2], "n": "NaN"}),
                "c",
            ),
            (
                "---\na: |\n  ---\n  x\n---\nb",
                json!({"a": "---\nx\n"}),
                "b",
            ),
        ] {
            assert_eq!(fields_of(text), fields, "{text:?}");
            assert_eq!(&text[read(text).body_start..], content, "{text:?}");
        }
    }

    #[test]
    fn a_broken_block_is_a_fault_with_its_line_and_loses_no_content() {
        for (text, line, part, content) in [
            ("---\na: 1\na: 2\n---\nb", 3, "duplicate", "b"),
            ("---\na:\n\tb: 1\n---\nb", 3, "tabs", "b"),
            ("---\na: [\n---\nb", 2, "YAML", "b"),
            ("---\nr: [[a]], [[b]]\n---\nb", 2, "quote", "b"),
            ("---\nprose\n---\nb", 1, "key: value", "b"),
            ("---\n- a\n---\nb", 1, "key: value", "b"),
            ("---\na: 1\n\nb", 1, "never ends", "---\na: 1\n\nb"),
            ("+++\na = 1\na = 2\n+++\nb", 3, "TOML (duplicate key)", "b"),
            ("+++\na = 1\n---\nb", 1, "`+++`", "+++\na = 1\n---\nb"),
        ] {
            let read = read(text);
            assert_eq!(read.faults.len(), 1, "{text:?}");
            assert_eq!(read.faults[0].line, line, "{text:?}: {:?}", read.faults);
            assert!(read.faults[0].message.contains(part), "{:?}", read.faults);
            assert_eq!(&text[read.body_start..], content, "{text:?}");
        }
    }

    #[test]
    fn bombs_are_faults() {
        let mut laughs = "---\na: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, of) in "bcdefgh".chars().zip("abcdefg".chars()) {
            let ten = vec![format!("*{of}"); 10].join(",");
            laughs += &format!("{name}: &{name} [{ten}]\n");
        }
        laughs += "---\nb";
        let deep = format!("---\na: {}\n---\nb", "[".repeat(5_000));
        let closed = format!("---\na: {}{}\n---\nb", "[".repeat(500), "]".repeat(500));
        let maps = format!("---\na: {}\n---\nb", "{a: ".repeat(5_000));
        let lines: String = (0..300).map(|it| " ".repeat(it) + "a:\n").collect();
        let block = format!("---\n{lines}---\nb");
        let long = format!("---\na: {}\n---\nb", "x".repeat(LIMITS.bytes_max));
        let toml = format!("+++\na = {}\n+++\nb", "[".repeat(30_000));
        let dotted = format!("+++\n{}b = 1\n+++\nb", "a.".repeat(30_000));
        for text in [laughs, deep, closed, maps, block, long, toml, dotted] {
            let read = read(&text);
            assert_eq!(read.faults.len(), 1, "{}", &text[..40]);
            assert_eq!(&text[read.body_start..], "b");
        }
    }
}
