//! Capture, driven as Claude Code drives it: its hooks with their documented messages, and its transcripts.

use crate::Place;
use crate::omi::finish;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const TRANSCRIPTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testing/capture/transcripts"
);

/// A repository, and a judged transcript that says it happened there.
fn session(place: &Place, name: &str) -> (PathBuf, PathBuf) {
    let root = place.0.path().join("src/relay");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/config"), "[core]\n").unwrap();
    let text = std::fs::read_to_string(Path::new(TRANSCRIPTS).join(name)).unwrap();
    let file = place.0.path().join(name);
    std::fs::write(
        &file,
        text.replace("/home/mara/src/relay", root.to_str().unwrap()),
    )
    .unwrap();
    (root, file)
}

fn hook(place: &Place, turn: &str, message: &Value) -> String {
    let mut command = place.command(&["hook", turn]);
    command.env("KENNING_HOOK_BUDGET_MS", "60000");
    let (code, out, err) = finish(command, &message.to_string());
    assert_eq!((code, err.as_str()), (0, ""), "{turn}");
    out
}

fn good_in(place: &Place, root: &Path, arguments: &[&str]) -> String {
    let mut command = place.command(arguments);
    command.current_dir(root);
    let (code, out, err) = finish(command, "");
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

/// Every file below a directory that contains a text.
fn files_with(root: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path)
                && bytes.windows(text.len()).any(|it| it == text.as_bytes())
            {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn what_happened_is_captured_given_back_and_undone_as_one_session() {
    let place = Place::new();
    let (root, file) = session(&place, "01-rust-deadlock.jsonl");
    let message = |event: &str, more: Value| {
        let mut message = json!({ "session_id": "s-1", "transcript_path": file, "cwd": root, "hook_event_name": event });
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        message
    };
    let stop = message(
        "Stop",
        json!({ "stop_hook_active": false, "last_assistant_message": "All of it is done." }),
    );
    assert_eq!(hook(&place, "stop", &stop), "");
    let count = |said: &str| {
        serde_json::from_str::<Value>(said).unwrap()[0]["memories"]
            .as_array()
            .unwrap()
            .len()
    };
    let listed = good_in(&place, &root, &["capture", "list", "--json"]);
    let n = count(&listed);
    assert!(n >= 5, "{listed}");
    // The same again adds nothing, a longer session replaces its summary.
    hook(&place, "stop", &stop);
    assert_eq!(
        count(&good_in(&place, &root, &["capture", "list", "--json"])),
        n
    );
    let compacted = message(
        "PostCompact",
        json!({ "trigger": "auto", "compact_summary": "1. Decision: the relay keeps one pool for each tenant." }),
    );
    hook(&place, "post-compact", &compacted);
    let shown = good_in(&place, &root, &["capture", "show", "s-1"]);
    for part in [
        "pool stays synchronous",
        "one pool for each tenant",
        "cargo test --test deadlock",
        "src/pool.rs",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(shown.matches("summary ").count(), 1, "{shown}");
    // The next session is told, and so is whoever runs into the same error.
    let prompt = message(
        "UserPromptSubmit",
        json!({ "prompt": "should the pool use tokio mutexes?" }),
    );
    assert!(hook(&place, "prompt", &prompt).contains("pool stays synchronous"));
    let failure = message(
        "PostToolUseFailure",
        json!({ "tool_name": "Bash", "tool_input": { "command": "cargo test --test deadlock" }, "tool_use_id": "t",
            "error": "thread 'two_hundred_callers_all_come_back' panicked: deadline of 5 s passed" }),
    );
    let told = hook(&place, "tool-failure", &failure);
    assert!(
        told.contains("PostToolUseFailure") && told.contains("src/pool.rs"),
        "{told}"
    );
    // Another project sees none of it.
    let elsewhere = place.0.path().join("src/other");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let listed = good_in(&place, &elsewhere, &["capture", "list", "--json"]);
    assert_eq!(listed.trim(), "[]");
    let undone = good_in(&place, &root, &["capture", "undo", "s-1", "--json"]);
    assert!(!undone.contains("\"removed\": 0"), "{undone}");
    let query = json!({ "query": "pool synchronous deadlock", "min_relevance": 0.0 });
    let found = good_in(
        &place,
        &root,
        &["call", "memory_recall", "--json", &query.to_string()],
    );
    assert_eq!(found.trim(), "[]");
    place.good(&["audit", "verify"]);
}

#[test]
fn neither_a_secret_nor_what_is_private_is_anywhere_on_disk() {
    let place = Place::new();
    let root = place.0.path().join("src/app");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    // In pieces, so that this file has none.
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let said = format!(
        "We decided to deploy with {token} from now on. <private>the safe opens with 7319</private> Always ask Ann first."
    );
    let transcript = place.0.path().join("t.jsonl");
    let line = json!({ "type": "user", "sessionId": "s-2", "cwd": root, "message": { "role": "user", "content": said } });
    std::fs::write(&transcript, format!("{line}\n")).unwrap();
    let message = |event: &str, more: Value| {
        let mut message = json!({ "session_id": "s-2", "transcript_path": transcript, "cwd": root, "hook_event_name": event });
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        message
    };
    hook(
        &place,
        "session-start",
        &message("SessionStart", json!({ "source": "startup" })),
    );
    hook(
        &place,
        "prompt",
        &message("UserPromptSubmit", json!({ "prompt": said })),
    );
    hook(
        &place,
        "stop",
        &message(
            "Stop",
            json!({ "last_assistant_message": format!("I use {token} now.") }),
        ),
    );
    hook(
        &place,
        "session-end",
        &message("SessionEnd", json!({ "reason": "other" })),
    );
    let shown = good_in(&place, &root, &["capture", "show", "s-2"]);
    assert!(
        shown.contains("We decided to deploy with [redacted]"),
        "{shown}"
    );
    assert!(shown.contains("Always ask Ann first"), "{shown}");
    let stored = "Kept. <private>the vault opens with 8420</private>";
    good_in(&place, &root, &["omi", "store", stored, "--type", "fact"]);
    std::fs::remove_file(&transcript).unwrap();
    for secret in [token.as_str(), "7319", "8420", "vault opens"] {
        assert_eq!(
            files_with(place.0.path(), secret),
            [] as [PathBuf; 0],
            "{secret}"
        );
    }
}

#[test]
fn a_transcript_is_captured_by_hand_and_looked_at_before() {
    let place = Place::new();
    for name in ["08-plain-notes.txt", "09-codex-flaky.jsonl"] {
        let file = format!("{TRANSCRIPTS}/{name}");
        let shown = place.good(&["capture", "transcript", &file, "--dry-run"]);
        assert!(shown.lines().count() >= 4, "{shown}");
        assert!(
            place
                .good(&["capture", "transcript", &file])
                .contains("0 model tokens")
        );
    }
    assert!(
        place
            .good(&["omi", "recall", "which links do the notes use?"])
            .contains("wikilinks")
    );
    let (code, err) = place.bad(&["capture", "undo", "nobody"]);
    assert!(
        code != 0 && err.contains("nobody") && err.contains("capture list"),
        "{err}"
    );
}

#[test]
fn the_plugin_of_claude_code_is_a_directory_with_server_hooks_and_a_skill() {
    let place = Place::new();
    let printed = place.good(&["setup", "claude-code", "--plugin", "--write"]);
    let plugin = PathBuf::from(printed.trim());
    for name in [
        ".claude-plugin/plugin.json",
        ".mcp.json",
        "hooks/hooks.json",
        "skills/remember/SKILL.md",
    ] {
        assert!(plugin.join(name).is_file(), "{name}");
    }
    let marketplace = plugin
        .parent()
        .unwrap()
        .join(".claude-plugin/marketplace.json");
    let marketplace: Value =
        serde_json::from_str(&std::fs::read_to_string(marketplace).unwrap()).unwrap();
    assert_eq!(marketplace["plugins"][0]["source"], "./kenning");
    let hooks = place.good(&["setup", "claude-code", "--hooks"]);
    for event in ["Stop", "PostToolUseFailure", "PostCompact", "SessionEnd"] {
        assert!(hooks.contains(event), "{event}");
    }
}
