//! A tool's fields as flags.

use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_tools::{AnyTool, TOOLS, Toolset};
use serde_json::{Map, Value};
use std::io::Read;

/// Names that every command has; a field with the same name gets `arg-` before it.
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

/// Prefixes of argument ids within clap: of a field's flag, and of its positional value.
pub(crate) const FIELD: &str = "field:";
pub(crate) const VALUE: &str = "value:";

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
        let help = match words_of(property).as_slice() {
            [] => help,
            words => format!("{help} [{}]", words.join(", ")),
        };
        let arg = Arg::new(format!("{FIELD}{field}"))
            .long(flag(field))
            .value_name(kind(property).to_uppercase())
            .help(help)
            .required(required.iter().any(|it| it == field) && kind(property) != "text")
            .action(if kind(property) == "array" {
                ArgAction::Append
            } else {
                ArgAction::Set
            });
        // Naming a switch turns it on.
        let arg = if kind(property) == "boolean" {
            arg.num_args(0..=1).default_missing_value("true")
        } else {
            arg.allow_hyphen_values(true)
        };
        // The spelling of the contract is accepted too.
        let is_free = flag(field) != *field && !TAKEN.contains(&field.as_str());
        let arg = if is_free {
            arg.alias(field.clone())
        } else {
            arg
        };
        command = command.arg(arg);
    }
    let either = match required.is_empty() {
        true => "",
        false => "; one of the two is required",
    };
    for field in plain_fields(&schema) {
        command = command.arg(
            Arg::new(format!("{VALUE}{field}"))
                .value_name(field_as_name(field))
                .help(format!("The same as --{}{either}", flag(field))),
        );
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

/// Required fields that are single texts: they may be given without their flags, in their order, as
/// in `kenning kiwi load directive summarize_notes`.
///
/// If nothing is required, the query may be given that way: `kenning kg query token`.
fn plain_fields(schema: &Value) -> Vec<&str> {
    let is_text = |it: &&str| kind(&schema["properties"][*it]) == "text";
    let required = required_fields(schema);
    if required.is_empty() {
        return ["query", "id"]
            .into_iter()
            .find(is_text)
            .into_iter()
            .collect();
    }
    required.into_iter().filter(is_text).collect()
}

fn required_fields(schema: &Value) -> Vec<&str> {
    let required = schema["required"].as_array().into_iter().flatten();
    required.filter_map(Value::as_str).collect()
}

/// `item_type` as the command line names a value: `ITEM_TYPE`.
fn field_as_name(field: &str) -> String {
    flag(field).replace('-', "_").to_uppercase()
}

/// Tools that have a command of their own, for people.
const COMMANDS: [(&str, &str); 12] = [
    ("memory_store", "omi store"),
    ("memory_store_batch", "omi store --batch FILE"),
    ("memory_recall", "omi recall"),
    ("memory_get", "omi get"),
    ("memory_forget", "omi forget"),
    ("belief_update", "omi belief update"),
    ("belief_evidence", "omi belief evidence"),
    ("belief_check_contradiction", "omi belief check"),
    ("now_read", "omi now show"),
    ("now_update", "omi now update"),
    ("daily_append", "omi daily append"),
    ("integrity_check", "omi audit"),
];

/// How a tool is called on the command line.
pub(crate) fn command_of(tool: &dyn AnyTool) -> String {
    if let Some((_, own)) = COMMANDS.iter().find(|it| it.0 == tool.name()) {
        return format!("kenning {own}");
    }
    let toolset = match tool.toolset() {
        Toolset::KgExtra => Toolset::Kg,
        other => other,
    };
    let name = short_name(tool.name());
    format!("kenning {} {name}", toolset.as_str())
}

/// What the flag of a field is called, without its dashes.
pub(crate) fn flag(field: &str) -> String {
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

/// Whether a field accepts only some words: each may have its own description.
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

/// A word, quoted for a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The tool that a command of a toolset names. Within `kenning kg` the prefix of its tools is left
/// out.
pub(crate) fn named(toolset: &str, command: &str) -> Option<&'static dyn AnyTool> {
    let is_named = |tool: &&&dyn AnyTool| {
        let name = tool.name();
        name == command || toolset.starts_with("kg") && short_name(name) == command
    };
    TOOLS.iter().find(is_named).copied()
}

/// The name of a graph tool as a command.
pub(crate) fn short_name(name: &str) -> &str {
    match name.strip_prefix("kg_").unwrap_or(name) {
        // The one verb that nobody would look for under its full name.
        "graph_generate" => "generate",
        short => short,
    }
}

/// The arguments that the flags give.
pub(crate) fn arguments(tool: &dyn AnyTool, matches: &ArgMatches) -> Result<Value> {
    let schema = tool.input_schema();
    let mut arguments = Map::new();
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        let id = format!("{FIELD}{field}");
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
    add_values(tool, &schema, matches, &mut arguments)?;
    Ok(Value::Object(arguments))
}

/// Assigns positional values to the fields that have no flag, in their order.
fn add_values(
    tool: &dyn AnyTool,
    schema: &Value,
    matches: &ArgMatches,
    arguments: &mut Map<String, Value>,
) -> Result<()> {
    let all = plain_fields(schema);
    let is_optional = required_fields(schema).is_empty();
    let given = |field: &&str| matches.get_one::<String>(&format!("{VALUE}{field}"));
    let mut values = all.iter().filter_map(given);
    let mut missing = Vec::new();
    for field in all
        .iter()
        .filter(|it| !arguments.contains_key(**it))
        .copied()
        .collect::<Vec<_>>()
    {
        match values.next() {
            Some(text) => {
                arguments.insert(field.to_owned(), value(field, "text", text)?);
            }
            None => missing.push(field),
        }
    }
    let names = all.iter().map(|it| format!(" <{}>", field_as_name(it)));
    let command = command_of(tool);
    let usage = format!("usage: `{command}{}`", names.collect::<String>());
    if let Some(text) = values.next() {
        return Err(Error::invalid(format!("unexpected value `{text}`")).hint(usage));
    }
    if missing.is_empty() || is_optional {
        return Ok(());
    }
    let flags: Vec<String> = missing
        .iter()
        .map(|it| format!("`--{}`", flag(it)))
        .collect();
    let words: Vec<String> = all
        .iter()
        .filter_map(|it| choices(it, &schema["properties"][*it]))
        .collect();
    let verb = if flags.len() == 1 { "is" } else { "are" };
    Err(
        Error::invalid(format!("{} {verb} missing", flags.join(" and ")))
            .hint([vec![usage], words].concat().join("; ")),
    )
}

fn words_of(property: &Value) -> Vec<&str> {
    let words = property["enum"].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

/// The words that a field accepts, if only some.
fn choices(field: &str, property: &Value) -> Option<String> {
    let words = words_of(property);
    let name = field_as_name(field);
    (!words.is_empty()).then(|| format!("<{name}> is one of {}", words.join(", ")))
}

/// A list is one JSON array, or its flag once for each entry: `--tags security --tags api`.
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
                    // A value without a type in the schema is text, unless it is JSON.
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
