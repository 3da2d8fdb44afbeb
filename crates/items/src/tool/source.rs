//! The fields in a source file: module constants in Python, leading comments in shell and JavaScript.

use super::literal;
use crate::{Faults, yaml};
use kenning_text::line::one_line;
use serde_json::{Map, Value};

/// Names in a source file, and the manifest fields that they set.
const NAMES: &[(&str, &str)] = &[
    ("__tool_id__", "tool_id"),
    ("__version__", "version"),
    ("__tool_type__", "tool_type"),
    ("__executor_id__", "executor_id"),
    ("__executor__", "executor_id"),
    ("__category__", "category"),
    ("__description__", "description"),
    ("__tool_description__", "description"),
    ("__dependencies__", "dependencies"),
    ("__requires__", "requires"),
    ("__mutates_state__", "mutates_state"),
    ("__required_scope__", "required_scope"),
    ("__permissions__", "permissions"),
    ("__parameters__", "parameters"),
    ("CONFIG", "config"),
    ("CONFIG_SCHEMA", "config_schema"),
    ("ENV_CONFIG", "env_config"),
    ("DEPENDENCIES", "dependencies"),
    ("PARAMETERS", "parameters"),
    ("PERMISSIONS", "permissions"),
];

fn field_of(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// The fields from a Python module's constants; its docstring is the description.
pub(super) fn python(faults: &mut Faults, text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while !rest.is_empty() {
        let statement = &rest[..statement_length(rest)];
        rest = &rest[statement.len()..];
        if literal::starts_text(statement) {
            if let Ok((docstring, _)) = literal::read_text(statement) {
                let docstring = paragraph(&docstring);
                fields
                    .entry("description")
                    .or_insert_with(|| docstring.into());
            }
        } else if let Some((name, value)) = assignment(statement) {
            take(faults, &mut fields, name, value);
        }
    }
    fields
}

/// The name and the value of `NAME = value`, with or without a type.
fn assignment(statement: &str) -> Option<(&str, &str)> {
    let end = statement.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, rest) = statement.split_at(end);
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix(':') {
        Some(annotated) => &annotated[annotated.find('=')?..],
        None => rest,
    };
    let value = rest.strip_prefix('=')?;
    (!value.starts_with('=')).then_some((name, value))
}

fn take(faults: &mut Faults, fields: &mut Map<String, Value>, name: &str, value: &str) {
    let Some(field) = field_of(name) else { return };
    let read = literal::read(value).and_then(|(value, rest)| {
        let rest = rest.trim();
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            Ok(value)
        } else {
            Err("is followed by more than a literal".to_owned())
        }
    });
    match read {
        Ok(value) => {
            fields.insert(field.to_owned(), value);
        }
        Err(why) => faults.add(
            name,
            format!("cannot be read without running it: {why}"),
            "write it as a literal: strings, numbers, lists and dicts",
        ),
    }
}

/// The length of the statement that begins here: to the end of its line, outside strings and
/// brackets.
fn statement_length(text: &str) -> usize {
    let mut at = 0;
    let mut depth = 0_usize;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\n' if depth == 0 => return at + 1,
            '#' => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            '"' | '\'' => {
                // An unterminated string ends with the text: nothing after it can be trusted.
                at += literal::text_length(&text[at..]).unwrap_or(text.len() - at);
                continue;
            }
            '\\' => {
                let escaped = text[at + 1..].chars().next();
                at += 1 + escaped.map_or(0, char::len_utf8);
                continue;
            }
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += c.len_utf8();
    }
    text.len()
}

/// The first paragraph, on one line.
fn paragraph(text: &str) -> String {
    let first = text.trim().split("\n\n").next().unwrap_or_default();
    one_line(first)
}

/// The fields from the comments at the start of a file; their first plain words are the description.
pub(super) fn comments(faults: &mut Faults, text: &str, prefix: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut prose = Vec::new();
    for line in leading_comments(text, prefix) {
        let name_end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, rest) = line.split_at(name_end.unwrap_or(line.len()));
        let rest = rest.trim_start();
        if field_of(name).is_some() && rest.starts_with('=') {
            take(faults, &mut fields, name, &rest[1..]);
        } else if is_field(name) && rest.starts_with(':') {
            match yaml::fields(name, line) {
                Ok(read) => fields.extend(read),
                Err(wrong) => faults.0.extend(wrong.0),
            }
        } else if !line.is_empty() && fields.is_empty() {
            prose.push(line);
        }
    }
    if !prose.is_empty() {
        let prose = prose.join(" ");
        fields.entry("description").or_insert_with(|| prose.into());
    }
    fields
}

fn is_field(name: &str) -> bool {
    name == "executor" || NAMES.iter().any(|it| it.1 == name)
}

/// The texts of the comments before the first line of code.
fn leading_comments<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut is_in_block = false;
    text.lines()
        .skip_while(|line| line.starts_with("#!"))
        .map_while(move |line| {
            let line = line.trim();
            if is_in_block {
                is_in_block = !line.contains("*/");
                let line = line.trim_end_matches("*/").trim_start_matches('*');
                return Some(line.trim());
            }
            if prefix == "//" && line.starts_with("/*") {
                is_in_block = !line.contains("*/");
                let line = line.trim_start_matches("/*").trim_start_matches('*');
                return Some(line.trim_end_matches("*/").trim());
            }
            if line.is_empty() {
                return Some("");
            }
            line.strip_prefix(prefix)
                .map(|it| it.trim_start_matches('#').trim())
        })
}
