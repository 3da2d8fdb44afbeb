//! `kenning setup claude-code --plugin`: a plugin of Claude Code with the server, the hooks and a skill, and a
//! marketplace of one that lists it.

use super::{Entry, hooks};
use crate::{Settings, output};
use kenning_core::Result;
use kenning_vault::Dir;
use serde_json::{Value, json};

/// The folder in the data directory.
const FOLDER: &str = "claude-plugin";

/// The name of the plugin, and of its folder in the marketplace.
const NAME: &str = "kenning";

const SKILL: &str = "\
---
name: remember
description: Recall what earlier sessions decided, and store what later sessions must know. Use it before work that was probably done or decided before, and after a decision, a correction or a fix.
---

# Remember

- Before you begin, call `memory_recall` with the subject in a few words. It looks in this project, then in what is global.
- After somebody decides something, corrects you, or states a rule, call `memory_store` with one sentence that is understood without this conversation: type `decision` or `fact`.
- After an error was hard to mend, store what failed and what worked: type `experience`.
- Facts that hold for every project get `scope: global`.
- What happens is also captured at the end of each answer, without a model. Do not repeat it.
";

/// The files, by their names.
fn files(entry: &Entry) -> Vec<(String, String)> {
    let pretty = |value: Value| format!("{value:#}\n");
    let plugin = json!({
        "name": NAME, "version": env!("CARGO_PKG_VERSION"),
        "description": "Memory for agents: captured without a model, by project, on this machine",
        "hooks": "./hooks/hooks.json", "mcpServers": "./.mcp.json", "skills": "./skills",
    });
    let marketplace = json!({
        "name": "kenning-local", "owner": { "name": NAME },
        "plugins": [{ "name": NAME, "source": format!("./{NAME}"), "description": plugin["description"] }],
    });
    let servers = json!({ "mcpServers": { NAME: entry.to_json(true) } });
    let hooks = json!({ "hooks": hooks::block(entry) });
    let of_plugin = |name: &str| format!("{NAME}/{name}");
    vec![
        (
            ".claude-plugin/marketplace.json".to_owned(),
            pretty(marketplace),
        ),
        (of_plugin(".claude-plugin/plugin.json"), pretty(plugin)),
        (of_plugin(".mcp.json"), pretty(servers)),
        (of_plugin("hooks/hooks.json"), pretty(hooks)),
        (of_plugin("skills/remember/SKILL.md"), SKILL.to_owned()),
    ]
}

/// Shows the files, or writes them and prints the directory of the plugin: what a marketplace's source of type
/// `command` wants.
pub(super) fn run(settings: &Settings, entry: &Entry, write: bool) -> Result<u8> {
    let files = files(entry);
    if !write {
        output::say("`kenning setup claude-code --plugin --write` writes these files:\n");
        for (name, content) in files {
            output::print(&format!("# {name}\n{content}"));
        }
        return Ok(0);
    }
    let dir = Dir::create(&settings.data)?.create_subdir(FOLDER)?;
    for (name, content) in files {
        dir.write(&name, content.as_bytes())?;
    }
    let place = dir.path();
    output::say(&format!(
        "in Claude Code, say `/plugin marketplace add {}` and `/plugin install {NAME}@kenning-local`; or start it with \
         `claude --plugin-dir` and the directory below",
        place.display()
    ));
    output::print(&place.join(NAME).display().to_string());
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn the_plugin_names_files_that_it_has() {
        let entry = Entry {
            flags: Vec::new(),
            command: "/opt/kenning".to_owned(),
            env: Map::new(),
        };
        let files = files(&entry);
        let text = |name: &str| &files.iter().find(|it| it.0 == name).unwrap().1;
        let plugin: Value =
            serde_json::from_str(text("kenning/.claude-plugin/plugin.json")).unwrap();
        for field in ["hooks", "mcpServers", "skills"] {
            let named = plugin[field].as_str().unwrap().trim_start_matches("./");
            let is_there = |it: &(String, String)| it.0.starts_with(&format!("kenning/{named}"));
            assert!(files.iter().any(is_there), "{named}");
        }
        let hooks: Value = serde_json::from_str(text("kenning/hooks/hooks.json")).unwrap();
        for event in [
            "SessionStart",
            "UserPromptSubmit",
            "Stop",
            "PostToolUseFailure",
            "PostCompact",
        ] {
            assert!(hooks["hooks"][event].is_array(), "{event}");
        }
        assert_eq!(hooks["hooks"]["Stop"][0]["hooks"][0]["async"], true);
    }
}
