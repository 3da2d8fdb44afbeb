//! Errors, hints and remarks in the words of the terminal.
//!
//! The engine and the tools speak of fields (`docsPath`), of tools (`kg_graph_generate`) and of calls
//! (`execute(action='run', …)`): that is what models and HTTP clients have. Whoever typed a command has flags
//! and commands. [`words`] says a text again in those, for the command that was typed ([`remember`]).

use crate::tool_args::{command_of, flag, quoted};
use clap::{ArgMatches, Command};
use kenning_tools::{AnyTool, TOOLS, Toolset};
use std::sync::OnceLock;

/// The typed command.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    /// Fields of tools and of the engine, with the command's name for each.
    fields: Vec<(String, String)>,
    /// The arguments as typed: if a message quotes one, it is a value.
    values: Vec<String>,
    /// Whether it is a command of `kiwi`, whose tools have common words as names.
    is_kiwi: bool,
}

static TYPED: OnceLock<Typed> = OnceLock::new();

/// Remembers the typed command. `kenning call` takes fields, so messages keep the names of fields
/// there.
pub(crate) fn remember(command: &Command, matches: &ArgMatches, values: Vec<String>) {
    let typed = Typed::of(command, matches, values);
    if let Some(typed) = typed {
        // A process runs one command.
        let _is_first = TYPED.set(typed);
    }
}

/// Replaces fields by flags and tools by commands.
pub(crate) fn words(text: &str) -> String {
    TYPED
        .get()
        .map_or_else(|| text.to_owned(), |it| it.say(text))
}

/// Arguments of commands with other names than the fields of tools.
const OTHER_NAMES: [(&str, &str); 15] = [
    ("id", "memory_id"),
    ("id", "session_id"),
    ("type", "memory_type"),
    ("session", "session_id"),
    ("belief", "belief_id"),
    ("evidence", "evidence_memory_id"),
    ("url", "repo_url"),
    ("name", "repo_name"),
    ("doc", "input.docPath"),
    ("watch", "input.options.watchPaths"),
    ("threshold", "input.options.threshold"),
    ("auto-start", "input.options.autoStart"),
    ("timeout", "options.timeout"),
    ("retries", "options.maxRetries"),
    ("priority", "options.priority"),
];

/// The actions of `execute` that are commands of `kiwi`.
const ACTIONS: [&str; 7] = [
    "run", "sign", "create", "update", "publish", "delete", "link",
];

fn tool(name: &str) -> Option<&'static dyn AnyTool> {
    TOOLS.iter().copied().find(|it| it.name() == name)
}

/// Whether a word cannot be a word of a sentence, so that it is recognized without backticks.
fn is_identifier(word: &str) -> bool {
    let inner = |(at, c): (usize, char)| at > 0 && (c == '_' || c.is_ascii_uppercase());
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.char_indices().any(inner)
}

impl Typed {
    fn of(command: &Command, matches: &ArgMatches, values: Vec<String>) -> Option<Self> {
        let (mut command, mut matches) = (command, matches);
        let mut path = Vec::new();
        while let Some((name, inner)) = matches.subcommand() {
            path.push(name);
            (command, matches) = (command.find_subcommand(name)?, inner);
        }
        if path == ["call"] {
            return None;
        }
        let mut fields = Vec::new();
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            // Shared options have common words as names: `project`, `tools`.
            if id.starts_with(crate::tool_args::VALUE) || arg.is_global_set() {
                continue;
            }
            let shown = match (arg.get_long(), arg.get_value_names()) {
                (Some(long), _) => format!("--{long}"),
                (None, Some([name, ..])) => format!("<{name}>"),
                (None, _) => continue,
            };
            match id.strip_prefix(crate::tool_args::FIELD) {
                Some(field) => fields.push((field.to_owned(), shown)),
                None => {
                    let others = OTHER_NAMES.iter().filter(|it| it.0 == id);
                    let others = others.map(|it| (it.1.to_owned(), shown.clone()));
                    fields.extend(others);
                    fields.push((id.replace('-', "_"), shown));
                }
            }
        }
        Some(Self {
            fields,
            values,
            is_kiwi: path.contains(&"kiwi"),
        })
    }

    /// The command's name for a field.
    fn flag(&self, field: &str) -> Option<&str> {
        let found = self.fields.iter().find(|it| it.0 == field);
        found.map(|it| it.1.as_str())
    }

    fn is_value(&self, text: &str) -> bool {
        self.values.iter().any(|it| it == text)
    }

    fn say(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix('`')
                && let Some((quoted, behind)) = after.split_once('`')
            {
                out.push('`');
                out += &self.say_quoted(quoted);
                out.push('`');
                rest = behind;
                continue;
            }
            if !is_word(c) {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            // A JSON key, or a part of a path or a flag, is left alone.
            let is_part = out.ends_with(['"', '\'', '/', '.', '-', '$']) || behind.starts_with('.');
            if let Some((command, n_bytes)) = call(rest) {
                out += &format!("`{command}`");
                rest = &rest[n_bytes..];
                continue;
            }
            out += &match () {
                () if is_part || !is_identifier(word) => word.to_owned(),
                () => match (tool(word), self.flag(word)) {
                    (Some(tool), _) => format!("`{}`", command_of(tool)),
                    (None, Some(flag)) => flag.to_owned(),
                    (None, None) => word.to_owned(),
                },
            };
            rest = behind;
        }
        out
    }

    /// Text between backticks: a field, alone or with its value, a tool or a call.
    fn say_quoted(&self, quoted: &str) -> String {
        if self.is_value(quoted) {
            return quoted.to_owned();
        }
        if let Some((command, n_bytes)) = call(quoted)
            && n_bytes == quoted.len()
        {
            return command;
        }
        if let Some(flag) = self.flag(quoted) {
            return flag.to_owned();
        }
        let end = quoted.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (name, behind) = quoted.split_at(end.unwrap_or(quoted.len()));
        if let Some(flag) = self.flag(name) {
            let value = behind.strip_prefix(':').or(behind.strip_prefix('='));
            return match value.map(str::trim) {
                Some("") => format!("{flag}{behind}"),
                Some(value) => format!("{flag} {}", value.trim_matches('"')),
                None if behind.is_empty() || behind.starts_with('[') => format!("{flag}{behind}"),
                // A flag takes the whole object: there is none for a member of it.
                None if behind.starts_with('.') => format!("{}` in `{flag}", &behind[1..]),
                None => quoted.to_owned(),
            };
        }
        match tool(name) {
            Some(tool)
                if (behind.is_empty() || behind.starts_with(' '))
                    && (is_identifier(name) || self.is_kiwi && behind.is_empty()) =>
            {
                format!("{}{behind}", command_of(tool))
            }
            _ => quoted.to_owned(),
        }
    }
}

/// The command for a call such as `execute(action='run', item_id='x')` at the start of a text, and
/// the length of the call.
fn call(text: &str) -> Option<(String, usize)> {
    let open = text.find('(')?;
    let tool = tool(&text[..open])?;
    let close = open + 1 + end_of_arguments(&text[open + 1..])?;
    let arguments: Vec<(&str, &str)> = split(&text[open + 1..close])
        .into_iter()
        .filter_map(|it| it.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let text_of = |name: &str| {
        let found = arguments.iter().find(|it| it.0 == name);
        found.map(|it| it.1.trim_matches(['\'', '"']))
    };
    let action = text_of("action").filter(|it| ACTIONS.contains(it));
    let mut taken = vec!["confirm"];
    let mut command = match (tool.name(), action) {
        ("execute", Some(action)) => {
            taken.push("action");
            format!("kenning kiwi {action}")
        }
        _ => command_of(tool),
    };
    // The positional arguments of every command of `kiwi`.
    if tool.toolset() == Toolset::Kiwi
        && let (Some(item_type), Some(id)) = (text_of("item_type"), text_of("item_id"))
    {
        taken.extend(["item_type", "item_id"]);
        command += &format!(" {} {}", quoted(item_type), quoted(id));
    }
    for (name, value) in arguments.iter().filter(|it| !taken.contains(&it.0)) {
        command += &match (*name, *value) {
            ("parameters", value) if value.contains("confirm") => " --yes".to_owned(),
            ("parameters", _) => " -p NAME=VALUE".to_owned(),
            (name, "true") => format!(" --{}", flag(name)),
            (name, value) => {
                let value = value.trim_matches(['\'', '"']);
                format!(" --{} {}", flag(name), quoted(value))
            }
        };
    }
    Some((command, close + 1))
}

/// Where the parenthesis before the text is closed.
fn end_of_arguments(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits the arguments of a call at commas outside braces and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut out = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test reads the sources of the program itself"
)]
mod tests {
    use super::*;
    use std::path::Path;

    fn typed(arguments: &[&str]) -> Typed {
        let mut command = crate::command();
        let matches = command.try_get_matches_from_mut(arguments).unwrap();
        let values = arguments.iter().map(|&it| it.to_owned()).collect();
        Typed::of(&command, &matches, values).unwrap()
    }

    #[test]
    fn fields_are_flags_and_tools_are_commands() {
        for (arguments, text, expected) in [
            (
                &["kenning", "kg", "generate"][..],
                "`docsPath`: `a/b` is outside the project; run `kg_graph_generate` first",
                "`--docs-path`: `a/b` is outside the project; run `kenning kg generate` first",
            ),
            (
                &["kenning", "kg", "search", "--query", "query"],
                "no document `query`; `kg_query` lists the documents",
                "no document `query`; `kenning kg query` lists the documents",
            ),
            (
                &["kenning", "kiwi", "load", "tool", "x"],
                "Use load() to download from registry first",
                "Use `kenning kiwi load` to download from registry first",
            ),
            (
                &["kenning", "kiwi", "load", "tool", "x"],
                "`destination`: `home` is none; use `project` or `user`",
                "`--destination`: `home` is none; use `project` or `user`",
            ),
            (
                &["kenning", "kiwi", "run", "tool", "x"],
                "Provide them: execute(item_type='tool', action='run', item_id='my x', parameters={'inputs': {...}}), or not",
                "Provide them: `kenning kiwi run tool 'my x' -p NAME=VALUE`, or not",
            ),
            (
                &["kenning", "kiwi", "delete", "tool", "x"],
                "execute(item_type='tool', action='delete', item_id='x', parameters={'confirm': true})",
                "`kenning kiwi delete tool x --yes`",
            ),
            (
                &["kenning", "kiwi", "load", "tool", "x"],
                "search(item_type='tool', source='registry') lists what there is",
                "`kenning kiwi search --item-type tool --source registry` lists what there is",
            ),
            (
                &["kenning", "omi", "recall", "x"],
                "the same call with `cursor: \"answer:10\"` goes on from there",
                "the same call with `--cursor answer:10` goes on from there",
            ),
            (
                &["kenning", "omi", "memory_recall", "--query", "x"],
                "Invalid memory_type: rumor",
                "Invalid --memory-type: rumor",
            ),
            (
                &["kenning", "omi", "store", "x"],
                "`memory_id` is taken; for example {\"memory_type\": \"fact\"}",
                "`--id` is taken; for example {\"memory_type\": \"fact\"}",
            ),
            (
                &["kenning", "workflow", "start", "analysis"],
                "`input.docPath`: 5 is not a text; `input.options.threshold`: 7; `input.facts`: []",
                "`<PATH>`: 5 is not a text; `--threshold`: 7; `facts` in `--input`: []",
            ),
            (
                &["kenning", "kg", "workflow_start", "--workflow-id", "sync"],
                "`input.docPath`: 5 is not a text",
                "`docPath` in `--input`: 5 is not a text",
            ),
            (
                &["kenning", "agent", "spawn", "tester", "x"],
                "give it more time by `options.timeout`",
                "give it more time by `--timeout`",
            ),
            (
                &["kenning", "omi", "daily", "show", "x"],
                "`date`: `x` is not a date",
                "`<DATE>`: `x` is not a date",
            ),
        ] {
            assert_eq!(typed(arguments).say(text), expected, "{arguments:?}");
        }
        let mut command = crate::command();
        let matches = command.try_get_matches_from_mut(["kenning", "call", "kg_stats"]);
        assert!(Typed::of(&command, &matches.unwrap(), Vec::new()).is_none());
    }

    #[test]
    fn every_tool_has_a_command() {
        let command = crate::command();
        for it in TOOLS {
            let named = command_of(*it);
            let mut found = &command;
            for word in named
                .split(' ')
                .skip(1)
                .take_while(|it| !it.starts_with('-'))
            {
                let next = found.find_subcommand(word);
                found = next.unwrap_or_else(|| panic!("`{named}` is no command"));
            }
        }
    }

    /// Every string literal in the sources of the tools.
    fn texts() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<_> = std::fs::read_dir(root)
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| !it.ends_with("cli") && !it.ends_with("fuzz"))
            .map(|it| it.join("src"))
            .collect();
        let mut out = Vec::new();
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(folder) else {
                continue;
            };
            for path in entries.map(|it| it.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs") {
                    let source = std::fs::read_to_string(path).unwrap();
                    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
                    let lines = code.lines().filter(|it| !it.trim_start().starts_with("//"));
                    let code: Vec<&str> = lines.collect();
                    out.extend(literals(&code.join("\n")));
                }
            }
        }
        out
    }

    fn literals(code: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut rest = code;
        while let Some(start) = rest.find('"') {
            let inner = &rest[start + 1..];
            let mut end = inner.len();
            let mut is_escaped = false;
            for (at, c) in inner.char_indices() {
                match c {
                    '"' if !is_escaped => {
                        end = at;
                        break;
                    }
                    _ => is_escaped = c == '\\' && !is_escaped,
                }
            }
            out.push(inner[..end].to_owned());
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        out
    }

    #[test]
    fn no_text_of_any_tool_names_fields_tools_or_calls() {
        let texts = texts();
        let quoting = texts
            .iter()
            .filter(|text| text.contains('`') || text.contains("='"));
        // A text with an odd number of backticks is a fragment.
        let is_whole = |it: &&String| it.matches('`').count().is_multiple_of(2);
        let quoting: Vec<&String> = quoting.filter(is_whole).collect();
        let (mut n_fields, mut n_tools) = (0, 0);
        for it in TOOLS {
            let toolset = match it.toolset() {
                Toolset::KgExtra if it.name() != "kg_export" => Toolset::Kg,
                other => other,
            };
            let command = crate::tool_args::command(*it);
            let typed = Typed {
                fields: Typed::of(&command, &ArgMatches::default(), Vec::new())
                    .unwrap()
                    .fields,
                is_kiwi: toolset == Toolset::Kiwi,
                ..Typed::default()
            };
            for text in &quoting {
                let said = typed.say(text);
                for (field, flag) in &typed.fields {
                    let name = format!("`{field}`");
                    n_fields += text.matches(&name).count();
                    assert!(!said.contains(&name), "{text}: {said}");
                    assert!(!said.contains(&format!("`{field}:")), "{text}: {said}");
                    assert!(flag.starts_with("--"), "{flag}");
                }
                for other in TOOLS.iter().map(|it| it.name()) {
                    if is_identifier(other) {
                        n_tools += text.matches(&format!("`{other}`")).count();
                        assert!(!said.contains(&format!("`{other}`")), "{text}: {said}");
                    }
                    let is_call = |it: &str| it.contains(&format!("{other}(item_type"));
                    assert!(!is_call(&said), "{text}: {said}");
                }
                assert!(!said.contains("load()"), "{said}");
            }
        }
        assert!(n_fields > 100 && n_tools > 100, "{n_fields} {n_tools}");
    }
}
