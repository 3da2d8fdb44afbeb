//! What a client runs at the turns of a session.

use crate::Place;
use crate::omi::finish;
use serde_json::{Value, json};

/// A busy machine is no reason to fail here.
const PATIENT: &str = "60000";

fn hook(place: &Place, turn: &str, input: &str) -> (i32, String, String) {
    let mut command = place.command(&["hook", turn]);
    command.env("KENNING_HOOK_BUDGET_MS", PATIENT);
    finish(command, input)
}

/// What the client adds to its context; nothing when nothing was said.
fn context(place: &Place, turn: &str, input: &Value) -> Option<String> {
    let (code, out, err) = hook(place, turn, &input.to_string());
    assert_eq!((code, err.as_str()), (0, ""), "{turn}");
    if out.is_empty() {
        return None;
    }
    let out: Value = serde_json::from_str(&out).unwrap();
    let output = &out["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], input["hook_event_name"]);
    Some(output["additionalContext"].as_str().unwrap().to_owned())
}

fn message(event: &str, more: Value) -> Value {
    let mut message = json!({
        "session_id": "0b3c", "transcript_path": "/t.jsonl", "cwd": "/",
        "hook_event_name": event,
    });
    let fields = message.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    message
}

#[test]
fn a_session_is_accompanied_from_its_start_to_its_end() {
    let place = Place::new();
    let start = message("SessionStart", json!({ "source": "startup" }));
    assert_eq!(
        context(&place, "session-start", &start),
        None,
        "there is nothing yet"
    );
    let stored = "The rate limiter uses a sliding window";
    place.good(&["omi", "store", stored, "--type", "fact"]);
    place.good(&[
        "omi",
        "now",
        "update",
        "--task",
        "Deploy the rate limiter",
        "--file",
        "limit.rs",
    ]);
    let told = context(&place, "session-start", &start).unwrap();
    for part in ["Deploy the rate limiter", "limit.rs", stored] {
        assert!(told.contains(part), "{told}");
    }
    let prompt = |text: &str| message("UserPromptSubmit", json!({ "prompt": text }));
    let told = context(&place, "prompt", &prompt("How does the rate limiter work?")).unwrap();
    assert!(
        told.contains(stored) && !told.contains("limit.rs"),
        "{told}"
    );
    for nothing in ["Tell me about zebras in Kenya", "", "   "] {
        assert_eq!(
            context(&place, "prompt", &prompt(nothing)),
            None,
            "{nothing}"
        );
    }
    let compact = message(
        "PreCompact",
        json!({ "trigger": "auto", "custom_instructions": "" }),
    );
    assert_eq!(context(&place, "pre-compact", &compact), None);
    let omi = place.0.path().join(".openclaw/omi");
    let copies: Vec<String> = std::fs::read_dir(&omi)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.starts_with("NOW-"))
        .collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    let copy = std::fs::read_to_string(omi.join(&copies[0])).unwrap();
    assert!(
        copy.starts_with("<!-- Checkpoint: pre-compact, auto at "),
        "{copy}"
    );
    // A compaction does not begin another session.
    let again = message("SessionStart", json!({ "source": "compact" }));
    assert!(context(&place, "session-start", &again).is_some());
    let end = message("SessionEnd", json!({ "reason": "exit" }));
    assert_eq!(context(&place, "session-end", &end), None);
    assert!(
        place
            .good(&["omi", "daily", "show"])
            .contains("Last task: Deploy the rate limiter")
    );
    let events = place.good(&["omi", "events", "list", "--json"]);
    let events: Vec<Value> = serde_json::from_str(&events).unwrap();
    let sessions: Vec<&Value> = events
        .iter()
        .filter(|it| it["session_id"] == "0b3c")
        .collect();
    let kinds: Vec<&str> = sessions
        .iter()
        .map(|it| it["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["session.started", "session.started", "session.ended"]
    );
    assert!(sessions[2]["duration_seconds"].as_f64().is_some());
}

#[test]
fn whatever_goes_wrong_the_client_goes_on() {
    let place = Place::new();
    place.good(&["omi", "store", "a memory that would be found"]);
    let found = r#"{"prompt":"a memory that would be found"}"#;
    for input in ["{", "[]", "7", "nonsense", "\u{0}"] {
        for turn in ["session-start", "prompt", "pre-compact", "session-end"] {
            let (code, out, err) = hook(&place, turn, input);
            assert_eq!((code, out.as_str()), (0, ""), "{turn} {input}");
            assert!(err.starts_with("kenning hook"), "{turn} {input}: {err}");
        }
    }
    for input in [
        "",
        "{}",
        r#"{"prompt":5}"#,
        r#"{"session_id":[],"prompt":null}"#,
    ] {
        let (code, out, err) = hook(&place, "prompt", input);
        assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""), "{input}");
    }
    std::fs::write(place.0.path().join("file"), "x").unwrap();
    for arguments in [
        &["hook"][..],
        &["hook", "no-such-turn"],
        &["hook", "prompt", "--no-such-flag"],
        &["hook", "prompt", "--space", "Not A Space"],
        &["hook", "prompt", "--data", "file"],
        &["hook", "session-end", "--read-only"],
    ] {
        let mut command = place.command(arguments);
        command.env("KENNING_HOOK_BUDGET_MS", PATIENT);
        let (code, out, err) = finish(command, found);
        assert_eq!((code, out.as_str()), (0, ""), "{arguments:?}");
        assert!(!err.is_empty(), "{arguments:?}");
    }
    let (_, out, _) = hook(&place, "prompt", found);
    assert!(out.contains("a memory that would be found"), "{out}");
    let mut command = place.command(&["hook", "prompt"]);
    command.env("KENNING_HOOK_BUDGET_MS", "0");
    let (code, out, err) = finish(command, found);
    assert_eq!((code, out.as_str()), (0, ""), "no time, no answer");
    assert!(err.contains("not done within its time"), "{err}");
}

#[test]
fn hooks_and_plugin_are_written_beside_what_is_there() {
    let place = Place::new();
    let shown: Value =
        serde_json::from_str(&place.good(&["setup", "claude-code", "--hooks"])).unwrap();
    let command = shown["hooks"]["PreCompact"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    assert!(command.contains(" hook pre-compact --data "), "{command}");
    std::fs::create_dir(place.0.path().join(".claude")).unwrap();
    let settings = place.0.path().join(".claude/settings.json");
    std::fs::write(&settings, r#"{"model":"x"}"#).unwrap();
    for _ in 0..2 {
        place.good(&["setup", "claude-code", "--hooks", "--write"]);
        let text = std::fs::read_to_string(&settings).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&written["model"], &written["hooks"]),
            (&json!("x"), &shown["hooks"])
        );
    }
    std::fs::create_dir(place.0.path().join(".openclaw")).unwrap();
    let config = place.0.path().join(".openclaw/config.yaml");
    std::fs::write(&config, "# mine\nplugins:\n  - name: other\n").unwrap();
    place.good(&["setup", "openclaw", "--plugin", "--write"]);
    let text = std::fs::read_to_string(&config).unwrap();
    assert_eq!(
        text,
        "# mine\nplugins:\n  - name: omi\n    enabled: true\n    config:\n      \
         data_dir: ~/.openclaw/omi\n      embedding_provider: builtin\n  - name: other\n"
    );
    let plugin = place.0.path().join(".openclaw/plugins/omi/plugin.json");
    let plugin: Value = serde_json::from_str(&std::fs::read_to_string(plugin).unwrap()).unwrap();
    assert_eq!(plugin["tools"].as_array().unwrap().len(), 6);
    let (code, _) = place.bad(&["setup", "openclaw", "--plugin", "--write"]);
    assert_eq!(code, 4, "it is there already");
    let (code, _) = place.bad(&["setup", "cursor", "--hooks"]);
    assert_eq!(code, 2);
}
