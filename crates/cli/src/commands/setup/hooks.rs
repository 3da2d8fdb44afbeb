//! `kenning setup claude-code --hooks`: hooks at the turns of a session.

use super::{Entry, left_alone, read_config};
use crate::commands::hook;
use crate::output;
use kenning_core::Result;
use kenning_vault::Dir;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The client's file, in the project.
const FILE: &str = ".claude/settings.json";

/// The client gives up on a hook after this many seconds. Ours gives up long before.
const TIMEOUT_SECONDS: u64 = 5;

/// The same for a hook that it does not wait for.
const PATIENT_TIMEOUT_SECONDS: u64 = 30;

pub(super) fn run(entry: &Entry, write: bool) -> Result<u8> {
    if !write {
        output::say(&format!(
            "put this into {FILE}, or say `kenning setup claude-code --hooks --write`:\n"
        ));
        output::print(&format!("{:#}", json!({ "hooks": block(entry) })));
        return Ok(0);
    }
    let dir = Dir::open(Path::new("."))?;
    let old = read_config(&dir, FILE)?;
    let new = merged(&old, entry).ok_or_else(|| left_alone(FILE))?;
    dir.write(FILE, new.as_bytes())?;
    output::say(&format!("wrote `{FILE}`; restart the client"));
    Ok(0)
}

/// The client's name of each turn, with what is run.
pub(super) fn block(entry: &Entry) -> Map<String, Value> {
    let turns = hook::TURNS.iter().map(|turn| {
        let mut command = json!({
            "type": "command", "command": entry.shell(&["hook", turn.name]),
            "timeout": TIMEOUT_SECONDS,
        });
        if turn.is_patient {
            // The client goes on meanwhile.
            command["async"] = true.into();
            command["timeout"] = PATIENT_TIMEOUT_SECONDS.into();
        }
        (turn.event.to_owned(), json!([{ "hooks": [command] }]))
    });
    turns.collect()
}

/// The old settings with our hooks, once, and everything else unchanged.
fn merged(old: &str, entry: &Entry) -> Option<String> {
    let known = super::jsonc::get(old, &["hooks"]);
    if known.is_some_and(|it| !it.is_object()) {
        return None;
    }
    let mut text = old.to_owned();
    for (event, groups) in block(entry) {
        // Each turn separately, so that everything between them and in them stays.
        let keys = ["hooks", event.as_str()];
        for group in groups.as_array().into_iter().flatten() {
            text = super::jsonc::put_in_list(&text, &keys, is_ours, group)?;
        }
    }
    Some(text)
}

/// Whether an earlier setup wrote it.
fn is_ours(group: &Value) -> bool {
    let commands = group["hooks"].as_array().into_iter().flatten();
    let commands: Vec<&str> = commands.filter_map(|it| it["command"].as_str()).collect();
    let ours = |text: &&str| {
        text.contains("kenning")
            && hook::TURNS
                .iter()
                .any(|turn| text.contains(&format!(" hook {}", turn.name)))
    };
    !commands.is_empty() && commands.iter().all(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hooks_stay_and_ours_stand_once() {
        let entry = Entry {
            flags: Vec::new(),
            command: "/opt/my tools/kenning".to_owned(),
            env: Map::new(),
        };
        let old = r#"{"model": "x", "hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "say bye"}]}]}}"#;
        let once = merged(old, &entry).unwrap();
        assert_eq!(merged(&once, &entry).unwrap(), once);
        let new: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(new["model"], "x");
        let end = new["hooks"]["SessionEnd"].as_array().unwrap();
        assert_eq!(end.len(), 2, "{once}");
        assert_eq!(end[0]["hooks"][0]["command"], "say bye");
        assert_eq!(
            new["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"],
            "'/opt/my tools/kenning' hook prompt"
        );
        let noted = r#"{
  // mine
  "hooks": {
    // before the end
    "SessionEnd": [
      // polite
      {"hooks": [{"type": "command", "command": "say bye"}]}, /* and */
    ],
    "Notification": [
      // rings a bell
      {"hooks": [{"type": "command", "command": "ring"}]} /* last */
    ]
  }
}"#;
        let kept = merged(noted, &entry).unwrap();
        for comment in [
            "// mine",
            "// before the end",
            "// polite",
            "/* and */",
            "// rings a bell",
            "/* last */",
        ] {
            assert!(kept.contains(comment), "{comment} is lost: {kept}");
        }
        assert!(
            kept.contains("hook session-end") && kept.contains("say bye"),
            "{kept}"
        );
        assert_eq!(merged(&kept, &entry).unwrap(), kept);
        for bad in ["[]", r#"{"hooks": 5}"#, r#"{"hooks": {"PreCompact": 1}}"#] {
            assert!(merged(bad, &entry).is_none(), "{bad}");
        }
    }
}
