//! `kenning setup openclaw --plugin`: the files of the memory contract's plugin.

use super::{Entry, read_config};
use crate::output;
use kenning_core::{Error, Result};
use kenning_tools::{TOOLS, Toolset};
use kenning_vault::Dir;
use serde_json::{Value, json};

/// The plugin itself, in the home directory.
const PLUGIN: &str = ".openclaw/plugins/omi/plugin.json";

/// What OpenClaw reads of a plugin before it starts anything: its name, and which settings it takes.
const MANIFEST: &str = ".openclaw/plugins/omi/openclaw.plugin.json";

/// The client's file that lists plugins.
const CONFIG: &str = ".openclaw/config.yaml";

const DATA_DIR: &str = "~/.openclaw/omi";

pub(super) fn run(entry: &Entry, write: bool) -> Result<u8> {
    let plugin = format!("{:#}\n", plugin(entry));
    let item = item(entry);
    if !write {
        output::say(&format!(
            "put this into ~/{PLUGIN}, or say `kenning setup openclaw --plugin --write`:\n"
        ));
        output::print(&plugin);
        output::say(&format!("this into ~/{MANIFEST}:\n"));
        output::print(&format!("{:#}", manifest()));
        output::say(&format!("and this into ~/{CONFIG}:\n"));
        output::print(&with_item("", &item)?);
        return Ok(0);
    }
    let dir = Dir::open(&super::home()?)?;
    // Checked before anything is written: the two files belong together.
    let config = with_item(&read_config(&dir, CONFIG)?, &item)?;
    dir.write(PLUGIN, plugin.as_bytes())?;
    dir.write(MANIFEST, format!("{:#}\n", manifest()).as_bytes())?;
    dir.write(CONFIG, config.as_bytes())?;
    output::say(&format!(
        "wrote `{PLUGIN}` and `{CONFIG}`; restart the client"
    ));
    Ok(0)
}

/// The manifest of the plugin. Settings that it does not name are refused by the client.
fn manifest() -> Value {
    json!({
        "id": "omi", "name": "omi", "version": env!("CARGO_PKG_VERSION"),
        "description": "Memories, beliefs and the current context of agents",
        "configSchema": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "data_dir": { "type": "string" },
                "embedding_provider": { "type": "string" },
            },
        },
    })
}

/// Exactly the tools of the contract.
fn plugin(entry: &Entry) -> Value {
    let tools = TOOLS.iter().filter(|it| it.toolset() == Toolset::Omi);
    let tools: Vec<Value> = tools
        .map(|tool| {
            json!({
                "name": tool.name(), "description": tool.description(),
                "parameters": tool.input_schema(),
            })
        })
        .collect();
    json!({
        "name": "omi", "version": env!("CARGO_PKG_VERSION"),
        "description": "Memories, beliefs and the current context of agents",
        "entry_point": {
            "type": "mcp", "transport": "stdio", "command": entry.command,
            "args": ["mcp", "--toolsets", "omi"], "env": entry.env,
        },
        "tools": tools,
    })
}

/// The plugin's entry in a list of plugins, as lines without indentation.
fn item(entry: &Entry) -> Vec<String> {
    let named = entry.env.get(crate::env_vars::OMI_BASE_PATH);
    let data_dir = named.and_then(Value::as_str).unwrap_or(DATA_DIR);
    vec![
        "- name: omi".to_owned(),
        "  enabled: true".to_owned(),
        "  config:".to_owned(),
        format!("    data_dir: {}", scalar(data_dir)),
        "    embedding_provider: builtin".to_owned(),
    ]
}

/// A text in YAML: as it is if that is safe, otherwise in JSON quotes.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._~-".contains(c);
    if text.chars().all(plain) && !text.starts_with('-') {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

/// The configuration with the plugin in its list, and everything else unchanged.
fn with_item(old: &str, item: &[String]) -> Result<String> {
    let left_alone = || {
        Error::conflict(format!(
            "`{CONFIG}` is written in a form to which the plugin cannot be added"
        ))
        .hint("run it without `--write` and copy the text")
    };
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    let is_list = |line: &String| line.starts_with("plugins:");
    if lines.iter().filter(|it| is_list(it)).count() > 1
        || lines.iter().any(|it| {
            ["{", "\"plugins\"", "'plugins'", "..."]
                .iter()
                .any(|odd| it.starts_with(odd))
        })
    {
        return Err(left_alone());
    }
    let Some(at) = lines.iter().position(is_list) else {
        if lines.last().is_some_and(|it| !it.trim().is_empty()) {
            lines.push(String::new());
        }
        lines.push("plugins:".to_owned());
        lines.extend(item.iter().map(|it| format!("  {it}")));
        return Ok(lines.join("\n") + "\n");
    };
    let value = lines[at]["plugins:".len()..]
        .split(" #")
        .next()
        .unwrap_or_default();
    if value.trim() == "[]" {
        "plugins:".clone_into(&mut lines[at]);
    } else if !value.trim().is_empty() {
        return Err(left_alone());
    }
    // The list continues as long as lines are indented, empty, comments or items.
    let goes_on = |line: &&String| {
        line.is_empty() || line.starts_with([' ', '#']) || line.starts_with("- ") || *line == "-"
    };
    let own: Vec<&String> = lines[at + 1..].iter().take_while(goes_on).collect();
    let names = ["omi", "\"omi\"", "'omi'"];
    let is_there = own.iter().any(|it| {
        let it = it.trim_start().trim_start_matches("- ").trim_start();
        it.strip_prefix("name:")
            .is_some_and(|it| names.contains(&it.split(" #").next().unwrap_or_default().trim()))
    });
    if is_there {
        return Err(
            Error::conflict(format!("`{CONFIG}` has a plugin `omi` already"))
                .hint("remove it first, or edit it by hand"),
        );
    }
    let first = own.iter().find(|it| it.trim_start().starts_with('-'));
    let indent = first.map_or(2, |it| it.len() - it.trim_start().len());
    let pad = " ".repeat(indent);
    lines.splice(at + 1..at + 1, item.iter().map(|it| format!("{pad}{it}")));
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Code;

    fn with(old: &str) -> Result<String> {
        with_item(
            old,
            &["- name: omi".to_owned(), "  enabled: true".to_owned()],
        )
    }

    #[test]
    fn the_plugin_is_added_where_it_belongs() {
        for (old, expected) in [
            ("", "plugins:\n  - name: omi\n    enabled: true\n"),
            (
                "model: x\n",
                "model: x\n\nplugins:\n  - name: omi\n    enabled: true\n",
            ),
            (
                "plugins: []  # none\nmodel: x\n",
                "plugins:\n  - name: omi\n    enabled: true\nmodel: x\n",
            ),
            (
                "plugins:\n    - name: other # mine\nmodel: omi\n",
                "plugins:\n    - name: omi\n      enabled: true\n    - name: other # mine\nmodel: omi\n",
            ),
            (
                "plugins:\n- name: other\n",
                "plugins:\n- name: omi\n  enabled: true\n- name: other\n",
            ),
        ] {
            assert_eq!(with(old).unwrap(), expected, "{old}");
        }
    }

    #[test]
    fn what_is_there_or_not_understood_is_left_alone() {
        for old in [
            "plugins:\n  - name: omi\n",
            "plugins:\n  - enabled: true\n    name: 'omi' # mine\n",
            "plugins: [{ name: other }]\n",
            "{ plugins: [] }\n",
            "\"plugins\":\n  - name: x\n",
            "plugins:\nplugins:\n",
        ] {
            assert_eq!(with(old).unwrap_err().code, Code::Conflict, "{old}");
        }
    }

    #[test]
    fn the_plugin_lists_exactly_the_six_tools() {
        let entry = Entry {
            flags: Vec::new(),
            command: "kenning".to_owned(),
            env: serde_json::Map::new(),
        };
        let plugin = plugin(&entry);
        let tools = plugin["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "memory_recall",
                "memory_store",
                "belief_update",
                "now_read",
                "now_update",
                "integrity_check"
            ]
        );
        assert!(tools.iter().all(|it| it["parameters"]["type"] == "object"));
    }
}
