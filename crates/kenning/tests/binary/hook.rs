//! What a client runs at the turns of a session.

use crate::omi::finish;
use crate::{Client, Place};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

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
    assert_eq!(code, 0);
    assert!(err.contains("not done within its time"), "{err}");
    // The model is told, in the form that the client reads.
    let out: Value = serde_json::from_str(&out).unwrap();
    let output = &out["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "UserPromptSubmit");
    let context = output["additionalContext"].as_str().unwrap();
    assert!(context.contains("not searched"), "{context}");
    assert!(context.contains("0 ms"), "{context}");
}

#[test]
fn now_md_is_given_at_the_start_of_a_session_whatever_becomes_of_the_rest() {
    let place = Place::new();
    place.good(&["omi", "now", "update", "--task", "Deploy the rate limiter"]);
    let start = message("SessionStart", json!({ "source": "startup" })).to_string();
    let told = |budget: &str, place: &Place| {
        let mut command = place.command(&["hook", "session-start"]);
        command.env("KENNING_HOOK_BUDGET_MS", budget);
        let (code, out, err) = finish(command, &start);
        assert_eq!(code, 0);
        let out: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let output = &out["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart");
        output["additionalContext"].as_str().unwrap().to_owned()
    };
    // No time at all.
    let context = told("0", &place);
    let first = context.lines().next().unwrap();
    assert!(
        first.starts_with("Where the last session left off"),
        "{context}"
    );
    assert!(context.contains("Deploy the rate limiter"), "{context}");
    assert!(context.contains("memories were not searched"), "{context}");
    // Somebody else's NOW.md is not taken for granted, even without a store.
    let now = place.0.path().join(".openclaw/omi/NOW.md");
    let text = std::fs::read_to_string(&now).unwrap();
    std::fs::write(&now, text.replace("rate limiter", "back door")).unwrap();
    let context = told("0", &place);
    assert!(context.contains("changed by somebody else"), "{context}");
    // A store that cannot be opened. Another one: of the first, a process may be renewing the index.
    let place = Place::new();
    place.good(&["omi", "now", "update", "--task", "Deploy the rate limiter"]);
    let store = place.0.path().join("data/kenning.db");
    std::fs::write(&store, "this is not a database, and never was one").unwrap();
    for more in ["-wal", "-shm"] {
        drop(std::fs::remove_file(
            place.0.path().join(format!("data/kenning.db{more}")),
        ));
    }
    let context = told(PATIENT, &place);
    assert!(context.contains("Deploy the rate limiter"), "{context}");
    assert!(context.contains("memories were not searched"), "{context}");
}

#[test]
fn an_index_that_a_hook_has_no_time_for_is_made_by_a_process_that_nobody_waits_for() {
    let place = Place::new();
    let stored = "The ferry to Ostend leaves from pier nine";
    let lines: String = (0..3_000)
        .map(|i| {
            let text = if i == 2_999 {
                stored.to_owned()
            } else {
                format!("Crate {i} holds herring")
            };
            let node = json!({
                "id": format!("01a1e328-c4ec-7fc0-905f-{i:012x}"), "kind": "memory", "project": "",
                "key": format!("content:{i}"), "title": "", "body": text,
                "props": { "memory_type": "fact" }, "created_ms": 1_700_000_000_000_u64, "updated_ms": 1_700_000_000_000_u64,
            });
            format!("{}\n", json!({ "node": node }))
        })
        .collect();
    let (code, _, err) = finish(place.command(&["import"]), &lines);
    assert_eq!(code, 0, "{err}");
    let prompt = message(
        "UserPromptSubmit",
        json!({ "prompt": "Where does the ferry to Ostend leave from?" }),
    );
    let mut command = place.command(&["hook", "prompt"]);
    command.env("KENNING_HOOK_BUDGET_MS", "1");
    let (code, out, _) = finish(command, &prompt.to_string());
    assert_eq!(code, 0);
    assert!(out.contains("memories were not searched"), "{out}");
    let index = place.0.path().join("data/index");
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !index.join("default.idx").exists() {
        assert!(std::time::Instant::now() < patience, "no index was kept");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let entries = std::fs::read_dir(&index).unwrap();
    let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["default.idx"], "only the index is left behind");
    let told = context(&place, "prompt", &prompt).unwrap();
    assert!(told.contains(stored), "{told}");
}

#[test]
fn the_time_of_a_hook_begins_when_its_message_was_read() {
    let place = Place::new();
    let stored = "The ferry to Ostend leaves from pier nine";
    place.good(&["omi", "store", stored]);
    let mut command = place.command(&["hook", "prompt"]);
    let budget = std::time::Duration::from_millis(1_500);
    let began = std::time::Instant::now();
    let mut child = command
        .env("KENNING_HOOK_BUDGET_MS", budget.as_millis().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A client that writes later than a hook may take, and before it is given up.
    while began.elapsed() <= budget + budget / 10 {
        std::thread::yield_now();
    }
    let question = "Where does the ferry to Ostend leave from?";
    let prompt = message("UserPromptSubmit", json!({ "prompt": question }));
    let mut input = child.stdin.take().unwrap();
    input.write_all(prompt.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains(stored), "{out}");
}

#[test]
fn a_running_server_of_the_same_store_answers_hooks() {
    let place = Place::new();
    let stored = "The rate limiter uses a sliding window";
    place.good(&["omi", "store", stored, "--type", "fact"]);
    let prompt = message(
        "UserPromptSubmit",
        json!({ "prompt": "How does the rate limiter work?" }),
    );
    let mut client = Client::start(&place, &[]);
    // What the server has open is where nobody else finds it: a hook by itself would begin a new store.
    let (data, hidden) = (place.0.path().join("data"), place.0.path().join("hidden"));
    std::fs::create_dir(&hidden).unwrap();
    let files = || {
        let all = std::fs::read_dir(&data).unwrap().map(|it| it.unwrap());
        let names = all.map(|it| it.file_name().into_string().unwrap());
        names
            .filter(|it| it.starts_with("kenning.db"))
            .collect::<Vec<_>>()
    };
    for name in files() {
        std::fs::rename(data.join(&name), hidden.join(&name)).unwrap();
    }
    let told = context(&place, "prompt", &prompt).unwrap();
    assert!(told.contains(stored), "{told}");
    assert_eq!(files(), Vec::<String>::new(), "the hook opened no store");
    for name in std::fs::read_dir(&hidden).unwrap() {
        let name = name.unwrap().file_name();
        std::fs::rename(hidden.join(&name), data.join(&name)).unwrap();
    }
    // A server of another space is not asked.
    let mut command = place.command(&["hook", "prompt", "--space", "other"]);
    command.env("KENNING_HOOK_BUDGET_MS", PATIENT);
    let (code, out, _) = finish(command, &prompt.to_string());
    assert_eq!((code, out.as_str()), (0, ""));
    // One that was killed leaves its socket, and hooks go on without it.
    let sockets = || std::fs::read_dir(data.join("serving")).unwrap().count();
    assert_eq!(sockets(), 1);
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    assert_eq!(sockets(), 1);
    let told = context(&place, "prompt", &prompt).unwrap();
    assert!(told.contains(stored), "{told}");
    assert_eq!(sockets(), 0);
    // One that ends takes it along.
    let server = Client::start(&place, &[]);
    assert_eq!(sockets(), 1);
    assert_eq!(server.finish(), 0);
    assert_eq!(sockets(), 0);
}

#[test]
fn the_log_keeps_a_hash_of_a_prompt_and_its_text_only_where_that_is_asked_for() {
    let place = Place::new();
    place.good(&["omi", "store", "The deploy key is kept in the safe"]);
    let secret = "my password is hunter2-correct-horse";
    let ask = |text: &str| {
        let prompt = message("UserPromptSubmit", json!({ "prompt": text }));
        context(&place, "prompt", &prompt)
    };
    ask(secret);
    ask(secret);
    ask("Where is the deploy key kept?").unwrap();
    place.good(&["omi", "recall", secret]);
    let log = || place.good(&["audit", "export"]);
    assert!(!log().contains("hunter2"), "{}", log());
    let recalls = || {
        let log = log();
        let all = log
            .lines()
            .map(|it| serde_json::from_str::<Value>(it).unwrap());
        let all = all.filter(|it| it["kind"] == "MemoryRecalledEvent");
        all.map(|it| it["data"].clone()).collect::<Vec<_>>()
    };
    let found = recalls();
    assert_eq!(found.len(), 4);
    assert_eq!(found[0]["query_hash"], found[1]["query_hash"]);
    assert_eq!(found[0]["query_hash"], found[3]["query_hash"]);
    assert_ne!(found[0]["query_hash"], found[2]["query_hash"]);
    assert_eq!(found[0]["query_hash"].as_str().unwrap().len(), 64);
    assert_eq!(found[2]["top_results"].as_array().unwrap().len(), 1);
    // The payload of the contract has its field.
    let events = place.good(&[
        "omi",
        "events",
        "list",
        "--type",
        "memory.recalled",
        "--json",
    ]);
    let events: Vec<Value> = serde_json::from_str(&events).unwrap();
    let query = events[0]["query"].as_str().unwrap();
    assert_eq!(
        query,
        format!("hash:{}", found[0]["query_hash"].as_str().unwrap())
    );
    // Without the key nobody can tell by trying.
    let hash = kenning_core::Hash::of(secret.as_bytes()).to_string();
    assert_ne!(found[0]["query_hash"], json!(hash));
    let (code, err) = place.bad(&["omi", "config", "set", "events.queries", "everything"]);
    assert_eq!(code, 2);
    assert!(err.contains("one of hash, text"), "{err}");
    place.good(&["omi", "config", "set", "events.queries", "text"]);
    ask("Where is the deploy key kept?").unwrap();
    assert_eq!(recalls()[4]["query"], "Where is the deploy key kept?");
    assert!(!log().contains("hunter2"));
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
    let plugins = place.0.path().join(".openclaw/plugins/omi");
    let manifest = std::fs::read_to_string(plugins.join("openclaw.plugin.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["id"], "omi");
    assert!(manifest["configSchema"]["properties"]["data_dir"].is_object());
    let (code, _) = place.bad(&["setup", "openclaw", "--plugin", "--write"]);
    assert_eq!(code, 4, "it is there already");
    let (code, _) = place.bad(&["setup", "cursor", "--hooks"]);
    assert_eq!(code, 2);
}

#[test]
fn a_context_in_which_nothing_stands_is_not_told() {
    let place = Place::new();
    let start = message("SessionStart", json!({ "source": "startup" }));
    place.good(&["omi", "now", "update", "--task", ""]);
    assert_eq!(context(&place, "session-start", &start), None);
    assert!(
        place
            .good(&["omi", "status"])
            .contains("current task     none")
    );
    place.good(&["omi", "now", "update", "--pending", "which port"]);
    let told = context(&place, "session-start", &start).unwrap();
    assert!(told.contains("pending decisions: which port"), "{told}");
}
