//! A tool's fields as flags.

use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_tools::AnyTool;
use serde_json::{Map, Value};
use std::io::Read;

/// Names that every command has; a field of the same name gets `arg-` before it.
const TAKEN: &[&str] = &[
    "data",
    "vault",
    "project",
    "database",
    "space",
    "toolsets",
    "tools",
    "exclude-tools",
    "read-only",
    "safe-names",
    "json",
    "verbose",
    "quiet",
    "omi-path",
    "data-dir",
    "allow-root",
    "database-ca",
    "yes",
    "help",
];

/// The subcommand of a tool.
pub(crate) fn command(tool: &dyn AnyTool) -> Command {
    let schema = tool.input_schema();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut command = Command::new(tool.name()).about(tool.description());
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        let help = property["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let arg = Arg::new(format!("field:{field}"))
            .long(flag(field))
            .value_name(kind(property).to_uppercase())
            .help(help)
            .required(required.iter().any(|it| it == field))
            .action(if kind(property) == "array" {
                ArgAction::Append
            } else {
                ArgAction::Set
            });
        // Who names a switch means that it is on.
        let arg = if kind(property) == "boolean" {
            arg.num_args(0..=1).default_missing_value("true")
        } else {
            arg.allow_hyphen_values(true)
        };
        // As the contract writes it, for whoever copies it from there.
        let is_free = flag(field) != *field && !TAKEN.contains(&field.as_str());
        let arg = if is_free {
            arg.alias(field.clone())
        } else {
            arg
        };
        command = command.arg(arg);
    }
    let examples = tool
        .examples()
        .iter()
        .map(|it| example(tool, it.title, it.input));
    command.after_help(format!(
        "`-` as a text reads standard input.\n\nExamples:\n{}",
        examples.collect::<String>()
    ))
}

fn flag(field: &str) -> String {
    let mut name = String::new();
    for c in field.chars() {
        match c {
            '_' => name.push('-'),
            c if c.is_ascii_uppercase() => {
                name.push('-');
                name.push(c.to_ascii_lowercase());
            }
            c => name.push(c),
        }
    }
    if TAKEN.contains(&name.as_str()) {
        format!("arg-{name}")
    } else {
        name
    }
}

/// The JSON type that a field wants, `text` for strings.
fn kind(property: &Value) -> &str {
    let kinds = match &property["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    match kinds.into_iter().find(|it| *it != "null") {
        Some("string") => "text",
        Some(other) => other,
        None if is_word(property) => "text",
        None => "json",
    }
}

/// Whether a field takes one of some words: each may have a description of its own.
fn is_word(property: &Value) -> bool {
    let is_text = |it: &Value| it.is_string();
    let words = property["enum"].as_array();
    let choices = property["oneOf"]
        .as_array()
        .or(property["anyOf"].as_array());
    words.is_some_and(|all| all.iter().all(is_text))
        || choices.is_some_and(|all| {
            let mut all = all.iter().filter(|it| it["type"] != "null").peekable();
            all.peek().is_some() && all.all(|it| it["type"] == "string" || is_text(&it["const"]))
        })
}

fn example(tool: &dyn AnyTool, title: &str, input: &str) -> String {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let mut line = format!("  kenning {} {}", tool.toolset().as_str(), tool.name());
    for (field, value) in input.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        line += &format!(" --{} {}", flag(field), quoted(&text));
    }
    format!("  # {title}\n{line}\n")
}

/// A word for a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The arguments that the flags say.
pub(crate) fn arguments(tool: &dyn AnyTool, matches: &ArgMatches) -> Result<Value> {
    let schema = tool.input_schema();
    let mut arguments = Map::new();
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        let id = format!("field:{field}");
        if kind(property) == "array" {
            if let Some(texts) = matches.get_many::<String>(&id) {
                arguments.insert(field.clone(), list(field, property, texts)?);
            }
            continue;
        }
        let Some(text) = matches.get_one::<String>(&id) else {
            continue;
        };
        arguments.insert(field.clone(), value(field, kind(property), text)?);
    }
    Ok(Value::Object(arguments))
}

/// A list is one JSON array, or its flag for each entry: `--tags security --tags api`.
fn list<'a>(
    field: &str,
    property: &Value,
    texts: impl Iterator<Item = &'a String>,
) -> Result<Value> {
    let mut all = Vec::new();
    for text in texts {
        match serde_json::from_str(text) {
            Ok(Value::Array(items)) => all.extend(items),
            _ if text.trim_start().starts_with('[') => {
                return value(field, "array", text);
            }
            _ => {
                let entry = match kind(&property["items"]) {
                    // What the schema leaves open is a text, unless it is written as something else.
                    "json" => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
                    entry => value(field, entry, text)?,
                };
                all.push(entry);
            }
        }
    }
    Ok(Value::Array(all))
}

fn value(field: &str, kind: &str, text: &str) -> Result<Value> {
    if kind == "text" {
        return Ok(Value::String(if text == "-" {
            read_stdin()?
        } else {
            text.to_owned()
        }));
    }
    serde_json::from_str(text).map_err(|_| {
        Error::invalid(format!(
            "`--{}`: `{text}` is not a JSON {kind}",
            flag(field)
        ))
    })
}

/// All of standard input, as text.
pub(crate) fn read_stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|cause| Error::invalid("standard input is not UTF-8 text").because(cause))?;
    Ok(text)
}
