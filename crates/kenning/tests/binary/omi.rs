//! The program `omi`.

use crate::{Place, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

/// What came of it: exit code, standard output, standard error.
fn run(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    told(place, arguments, "")
}

fn told(place: &Place, arguments: &[&str], input: &str) -> (i32, String, String) {
    finish(place.omi(arguments), input)
}

pub(crate) fn finish(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input may be gone already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn good(place: &Place, arguments: &[&str]) -> String {
    let (code, out, err) = run(place, arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

fn good_json(place: &Place, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    serde_json::from_str(&good(place, &all)).unwrap()
}

#[test]
fn nothing_is_read_where_nothing_was_made() {
    let place = Place::new();
    for arguments in [
        &["recall", "x"][..],
        &["now", "show"],
        &["daily", "show"],
        &["belief", "evidence", "b"],
        &["status"],
        &["audit"],
        &["config", "show"],
        &["events", "list"],
        &["graph", "export"],
    ] {
        let (code, out, err) = run(&place, arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert_eq!(err, "Error: OMI not initialized. Run 'omi init' first.\n");
    }
    let (code, _, err) = run(&place, &["--json", "recall", "x"]);
    let err: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, &err["error"]["code"]), (1, &json!("not_found")));
    assert!(good(&place, &["init"]).starts_with("✓ OMI initialized in "));
    let config = place.0.path().join(".openclaw/omi/config.yaml");
    std::fs::write(&config, "# mine\n").unwrap();
    assert_eq!(
        good_json(&place, &["init"])["made"],
        json!([]),
        "what is there stays"
    );
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# mine\n");
    assert_eq!(
        good_json(&place, &["now", "show"]),
        json!({}),
        "the default is nothing"
    );
    assert_eq!(good_json(&place, &["audit"])["intact"], true);
}

#[test]
fn what_is_stored_is_found_by_meaning_and_by_words() {
    let place = Place::new();
    let out = good(
        &place,
        &[
            "store",
            "SQLite supports full-text search via FTS5",
            "--type",
            "fact",
            "--tags",
            "db,search",
            "--id",
            "fts",
        ],
    );
    assert_eq!(out, "✓ Memory stored\nfts\n");
    let out = good(
        &place,
        &[
            "-q",
            "store",
            "it's C++ code: auth-bug AND",
            "--related-to",
            "fts",
        ],
    );
    assert!(out.starts_with("mem_") && out.lines().count() == 1, "{out}");
    for mode in ["semantic", "fts", "hybrid"] {
        let out = good(
            &place,
            &["recall", "full-text search", "--mode", mode, "-l", "1"],
        );
        assert!(
            out.starts_with("Search Results (1 found)\n"),
            "{mode}: {out}"
        );
        assert!(out.contains("fts\tSQLite supports"), "{mode}: {out}");
    }
    for query in ["auth-bug", "it's", "C++", "foo AND", "\"", "*", "NEAR("] {
        let (code, _, err) = run(&place, &["recall", query, "--mode", "fts"]);
        assert_eq!(code, 0, "{query}: {err}");
    }
    let found = good_json(
        &place,
        &["recall", "search", "--tags", "db", "--min-relevance", "0"],
    );
    assert_eq!(found[0]["memory_id"], "fts");
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let none = good(&place, &["recall", "search", "--type", "decision"]);
    assert_eq!(none, "No memories found. Try a different query.\n");
    let past = good_json(
        &place,
        &[
            "recall",
            "search",
            "--as-of",
            "2001-01-01",
            "--min-relevance",
            "0",
        ],
    );
    assert_eq!(past, json!([]), "nothing was known then");
    good(
        &place,
        &[
            "store",
            "FTS5 is in every build now",
            "--supersedes",
            "fts",
            "--id",
            "new",
        ],
    );
    let found = good_json(&place, &["recall", "FTS5", "--mode", "fts"]);
    assert_eq!(found[0]["memory_id"], "new");
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    // The tools of the contract keep their names, here and under `kenning`.
    for program in [
        place.omi(&["memory_recall", "--query", "FTS5"]),
        place.command(&["omi", "memory_recall", "--query", "FTS5"]),
    ] {
        let (code, out, err) = finish(program, "");
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(r#""memory_id":"new""#), "{out}");
    }
    let status = good_json(&place, &["status"]);
    assert_eq!(
        (&status["memories"], &status["embedding_provider"]),
        (&json!(3), &json!("builtin"))
    );
}

#[test]
fn a_file_of_memories_is_stored_as_a_whole_or_not_at_all() {
    let place = Place::new();
    let lines = "{\"content\":\"one\",\"memory_type\":\"fact\"}\n\n{\"content\":\"two\"}\n";
    let (code, out, err) = told(&place, &["store", "--batch", "-"], lines);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("✓ 2 memories stored\nmem_"), "{out}");
    std::fs::write(
        place.0.path().join("more.jsonl"),
        "{\"content\":\"one\",\"memory_type\":\"fact\"}\n{\"content\":\"three\"}",
    )
    .unwrap();
    let stored = good_json(&place, &["store", "--batch", "more.jsonl"]);
    assert_eq!(
        (&stored["count"], &stored["memories"][0]["duplicate"]),
        (&json!(2), &json!(true))
    );
    for (bad, part) in [
        ("{\"content\":\"x\"}\nnonsense\n", "line 2"),
        ("{\"content\":\"x\"}\n{\"contents\":\"y\"}\n", "contents"),
        ("{\"content\":\"x\"}\n{\"content\":\"\"}\n", "memory 2"),
        (
            "{\"content\":\"x\"}\n{\"content\":\"y\",\"related_to\":[\"no\"]}\n",
            "`no`",
        ),
    ] {
        let (code, out, err) = told(&place, &["store", "--batch", "-"], bad);
        assert!(code == 2 || code == 3, "{bad}: {code} {err}");
        assert_eq!(out, "", "{bad}");
        assert!(err.contains(part), "{bad}: {err}");
    }
    assert_eq!(good_json(&place, &["status"])["memories"], 3);
}

#[test]
fn every_mistake_has_its_exit_code_and_its_field() {
    let place = Place::new();
    good(&place, &["store", "a fact", "--type", "fact", "--id", "f"]);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["store"], 2, "CONTENT"),
        (&["store", ""], 2, "`<CONTENT>`"),
        (&["store", "x", "--type", "rumor"], 2, "rumor"),
        (&["store", "x", "--confidence", "2"], 2, "confidence"),
        (&["store", "x", "--confidence", "high"], 2, "high"),
        (&["store", "x", "--related-to", "no"], 3, "`no`"),
        (
            &["store", "other", "--id", "f"],
            4,
            "`f` is the id of another memory",
        ),
        (&["store", "x", "--batch", "y"], 2, "--batch"),
        (&["store", "--batch", "missing.jsonl"], 3, "missing.jsonl"),
        (&["recall", ""], 2, "`<QUERY>`"),
        (&["recall", "x", "--mode", "magic"], 2, "magic"),
        (&["recall", "x", "--limit", "0"], 2, "0"),
        (&["recall", "x", "--limit", "101"], 2, "101"),
        (
            &["recall", "x", "--min-relevance", "1.5"],
            2,
            "min-relevance",
        ),
        (&["recall", "x", "--as-of", "yesterday"], 2, "yesterday"),
        (
            &[
                "belief",
                "update",
                "f",
                "f",
                "--supports",
                "--strength",
                "0.5",
            ],
            2,
            "not a belief",
        ),
        (
            &[
                "belief",
                "update",
                "no",
                "f",
                "--supports",
                "--strength",
                "0.5",
            ],
            3,
            "`no`",
        ),
        (
            &["belief", "update", "f", "f", "--strength", "0.5"],
            2,
            "--contradicts",
        ),
        (&["belief", "evidence", "no"], 3, "`no`"),
        (&["now", "update"], 2, "nothing to change"),
        (&["daily", "append", " "], 2, "`<CONTENT>`"),
        (&["session-start", "--id", "a b"], 2, "`--id`"),
        (&["config", "get", "vault.enable"], 2, "vault.enabled"),
        (&["config", "set", "vault.enabled", "maybe"], 2, "maybe"),
        (
            &["events", "list", "--type", "memory.lost"],
            2,
            "memory.lost",
        ),
        (&["events", "list", "--since", "soon"], 2, "soon"),
        (&["graph", "export", "--format", "png"], 2, "png"),
        (&["--read-only", "store", "x"], 5, "--read-only"),
        (&["--read-only", "session-start"], 5, "--read-only"),
        (&["fly"], 2, "fly"),
        (&[], 2, "Usage"),
    ];
    for (arguments, code, text) in cases {
        let (actual, out, err) = run(&place, arguments);
        assert_eq!((actual, out.as_str()), (*code, ""), "{arguments:?}: {err}");
        assert!(err.contains(text), "{arguments:?}: {err}");
    }
    assert_eq!(good_json(&place, &["status"])["memories"], 1);
}

#[test]
fn beliefs_move_and_say_why() {
    let place = Place::new();
    good(
        &place,
        &[
            "store",
            "Caching should always be on",
            "--type",
            "belief",
            "--confidence",
            "0.5",
            "--id",
            "b",
        ],
    );
    good(&place, &["store", "It was faster", "--id", "for"]);
    good(
        &place,
        &["store", "Caching should never be on", "--id", "against"],
    );
    let up = good_json(
        &place,
        &[
            "belief",
            "update",
            "b",
            "for",
            "--supports",
            "--strength",
            "0.9",
        ],
    );
    assert_eq!(up["new_confidence"], 0.5675);
    let down = good(
        &place,
        &[
            "belief",
            "update",
            "b",
            "against",
            "--contradicts",
            "--strength",
            "0.6",
        ],
    );
    assert_eq!(down, "✓ Belief updated: 0.5675 → 0.4654\n");
    let chain = good_json(&place, &["belief", "evidence", "b"]);
    assert_eq!(
        (&chain[0]["memory_id"], &chain[0]["supports"]),
        (&json!("for"), &json!(true))
    );
    assert_eq!(
        (&chain[1]["memory_id"], &chain[1]["supports"]),
        (&json!("against"), &json!(false))
    );
    let found = good_json(&place, &["belief", "check", "b", "against"]);
    assert_eq!(
        found[0]["contradiction_pattern"],
        "should always vs should never"
    );
    let events = good_json(
        &place,
        &["events", "list", "--type", "belief.contradiction_detected"],
    );
    assert_eq!(events[0]["memory_id_1"], "b", "{events}");
}

#[test]
fn context_sessions_and_logs_go_together() {
    let place = Place::new();
    good(
        &place,
        &[
            "now",
            "update",
            "--task",
            "Ship it",
            "--completed",
            "a, with a comma",
            "--pending",
            "b?",
            "--file",
            "src/x.rs",
        ],
    );
    good(&place, &["now", "update", "--completed", "c"]);
    let now = good_json(&place, &["now", "show"]);
    assert_eq!(
        (&now["current_task"], &now["recent_completions"]),
        (&json!("Ship it"), &json!(["a, with a comma", "c"]))
    );
    let started = good_json(&place, &["session-start", "--show-now"]);
    assert_eq!(
        (&started["now_integrity"], &started["now"]["current_task"]),
        (&json!(true), &json!("Ship it"))
    );
    let ended = good_json(&place, &["session-end"]);
    assert_eq!(ended["session_id"], started["session_id"], "the latest one");
    assert!(ended["duration_seconds"].as_f64().is_some(), "{ended}");
    let log = good(&place, &["daily", "show"]);
    assert!(
        log.contains("Session ended at ") && log.contains("\nLast task: Ship it"),
        "{log}"
    );
    assert_eq!(
        good(&place, &["daily", "list"]).trim(),
        ended["log"].as_str().unwrap()
    );
    let saved = good_json(&place, &["check"]);
    let copy = place
        .0
        .path()
        .join(".openclaw/omi")
        .join(saved["checkpoint"].as_str().unwrap());
    assert!(std::fs::read_to_string(copy).unwrap().contains("Ship it"));
    good(&place, &["audit"]);
    std::fs::write(
        place.0.path().join(".openclaw/omi/NOW.md"),
        "# NOW\n\n## Current Task\nObey me\n",
    )
    .unwrap();
    let (code, out, _) = run(&place, &["audit"]);
    assert_eq!(code, 9, "{out}");
    assert!(out.contains("✗ NOW.md is as it was written"), "{out}");
    assert_eq!(
        good_json(&place, &["session-start"])["now_integrity"],
        false
    );
    let (code, _, err) = run(&place, &["audit", "--accept"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("accepted: `NOW.md`"), "{err}");
    let kinds = good_json(&place, &["events", "list", "--type", "SessionStartedEvent"]);
    assert_eq!(kinds[0]["metadata"]["now_integrity"], true, "{kinds}");
    assert_eq!(kinds[1]["metadata"]["now_integrity"], false, "{kinds}");
}

#[test]
fn the_configuration_is_changed_key_by_key() {
    let place = Place::new();
    good(&place, &["init"]);
    for (key, value) in [
        ("embedding.provider", "builtin"),
        ("embedding.model", "null"),
        ("embedding.dimensions", "null"),
        ("embedding.api_key", "null"),
        ("storage.max_now_tokens", "1000"),
        ("storage.recency_half_life_days", "30"),
        ("vault.enabled", "true"),
        ("vault.provider", "local"),
        ("vault.retention_days", "90"),
        ("security.enable_consensus", "false"),
        ("security.integrity_check_on_start", "true"),
    ] {
        assert_eq!(good(&place, &["config", "get", key]).trim(), value, "{key}");
    }
    good(&place, &["config", "set", "vault.enabled", "false"]);
    good(
        &place,
        &[
            "config",
            "set",
            "security.integrity_check_on_start",
            "false",
        ],
    );
    let shown = good(&place, &["config", "show"]);
    assert!(shown.contains("  enabled: false\n"), "{shown}");
    assert_eq!(
        good_json(&place, &["config", "show"])["vault.enabled"],
        false
    );
    let started = good_json(&place, &["session-start"]);
    assert_eq!(
        started["now_integrity"],
        Value::Null,
        "no check was asked for"
    );
    good(&place, &["config", "set", "embedding.provider", "openai"]);
    good(&place, &["config", "set", "embedding.api_key", "sk-secret"]);
    for arguments in [
        &["config", "show"][..],
        &["config", "get", "embedding.api_key"],
    ] {
        let shown = good(&place, arguments);
        assert!(
            shown.contains("********") && !shown.contains("sk-secret"),
            "{shown}"
        );
    }
}

#[test]
fn the_directory_is_the_flag_then_the_variable_then_the_home() {
    let place = Place::new();
    let at = |place: &Place, arguments: &[&str], variable: Option<&str>| -> String {
        let mut command = place.omi(arguments);
        if let Some(variable) = variable {
            command.env("OMI_BASE_PATH", variable);
        }
        let (code, out, err) = finish(command, "");
        assert_eq!(code, 0, "{err}");
        let out: Value = serde_json::from_str(&out).unwrap();
        out["path"].as_str().unwrap().to_owned()
    };
    let flag = ["--json", "--data-dir", "flag", "init"];
    assert!(at(&place, &flag, Some("variable")).ends_with("/flag"));
    assert!(at(&place, &["--json", "init"], Some("variable")).ends_with("/variable"));
    assert!(at(&place, &["--json", "init"], None).ends_with("/.openclaw/omi"));
    for folder in ["flag", "variable", ".openclaw/omi"] {
        assert!(
            place.0.path().join(folder).join("NOW.md").exists(),
            "{folder}"
        );
    }
    // Where only the files are named, memories are in the store that everybody shares.
    good(
        &place,
        &[
            "--omi-path",
            "flag",
            "store",
            "kept in the store",
            "--id",
            "s",
        ],
    );
    let found = good_json(&place, &["--omi-path", "variable", "recall", "store"]);
    assert_eq!(found[0]["memory_id"], "s");
    // `--data-dir` is a place of its own for everything.
    let found = good_json(&place, &["--data-dir", "flag", "recall", "store"]);
    assert_eq!(found, json!([]));
    good(
        &place,
        &[
            "--data-dir",
            "flag",
            "store",
            "kept apart in the store",
            "--id",
            "t",
        ],
    );
    let found = good_json(&place, &["--data-dir", "flag", "recall", "store"]);
    assert_eq!(found[0]["memory_id"], "t");
    let found = good_json(&place, &["recall", "store"]);
    assert_eq!(found[0]["memory_id"], "s");
    assert!(place.0.path().join("flag/kenning.db").exists());
    for other in ["--data", "--omi-path"] {
        let mut command = place.omi(&["--data-dir", "flag", other, "elsewhere", "status"]);
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("name different directories"), "{err}");
        good(&place, &["--data-dir", "flag", other, "./flag", "status"]);
    }
    assert!(!place.0.path().join("elsewhere").exists());
}

#[test]
fn a_graph_is_data_or_a_picture() {
    let place = Place::new();
    good(&place, &["store", "a <b> & \"c\"", "--id", "a"]);
    good(
        &place,
        &["store", "other", "--id", "b", "--related-to", "a"],
    );
    let dot = good(&place, &["graph", "export"]);
    assert!(
        dot.contains(r#""b" -> "a" [label="RELATED_TO", weight=0.50];"#),
        "{dot}"
    );
    let graph = good_json(&place, &["graph", "export", "--format", "json"]);
    assert_eq!(graph["edges"][0]["source_id"], "b");
    let svg = good(&place, &["graph", "export", "--format", "svg"]);
    assert!(
        svg.starts_with("<svg ") && svg.contains("a &lt;b&gt; &amp;"),
        "{svg}"
    );
    assert_eq!(
        svg,
        good(&place, &["graph", "export", "--format", "svg"]),
        "the same every time"
    );
    good(
        &place,
        &["graph", "export", "--format", "html", "-o", "graph.html"],
    );
    let html = std::fs::read_to_string(place.0.path().join("graph.html")).unwrap();
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("<svg "),
        "{html}"
    );
}

#[test]
fn a_subscriber_hears_of_other_processes() {
    let place = Place::new();
    good(&place, &["init"]);
    let mut child = place
        .omi(&[
            "--json",
            "events",
            "subscribe",
            "--type",
            "MemoryStoredEvent",
            "--count",
            "2",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("listening"), "{line}");
    for id in ["one", "two"] {
        good(&place, &["store", &format!("memory {id}"), "--id", id]);
        good(&place, &["recall", "memory"]);
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let heard: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(
        (&heard[0]["memory_id"], &heard[0]["content"]),
        (&json!("one"), &json!("memory one"))
    );
    assert_eq!((&heard[1]["memory_id"], heard.len()), (&json!("two"), 2));
}

#[test]
fn the_command_line_and_the_server_see_the_same() {
    let place = Place::new();
    good(
        &place,
        &["store", "written on the command line", "--id", "cli"],
    );
    let server = Server::start(&place, &[]);
    let (status, body) = server.get("/api/v1/recall?query=command%20line", "");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &body["memories"][0]["memory_id"]),
        (200, &json!("cli"))
    );
    let (status, _) = server.post(
        "/api/v1/store",
        "",
        r#"{"content":"written over HTTP","memory_id":"http"}"#,
    );
    assert_eq!(status, 201);
    assert_eq!(
        good_json(&place, &["recall", "over HTTP", "-l", "1"])[0]["memory_id"],
        "http"
    );
}

#[test]
fn a_key_of_the_environment_is_a_token() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--require-token"]);
    command.env("OMI_API_KEY", "a-secret-of-the-operator");
    let server = Server::of(command);
    assert_eq!(server.get("/api/v1/health", "").0, 401);
    assert_eq!(
        server
            .get("/api/v1/health", "X-API-Key: a-secret-of-the-operator\r\n")
            .0,
        200
    );
    assert_eq!(server.get("/api/v1/health", "X-API-Key: other\r\n").0, 401);
}

#[test]
fn help_version_and_completions_are_its_own() {
    let place = Place::new();
    assert!(good(&place, &["--version"]).starts_with("omi "));
    let help = good(&place, &["--help"]);
    for command in ["store", "recall", "session-start", "graph", "memory_recall"] {
        assert!(help.contains(command), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            good(&place, &["completion", shell]).contains("omi"),
            "{shell}"
        );
    }
}

#[test]
fn a_link_to_the_whole_is_the_part_that_it_is_named_after() {
    let place = Place::new();
    let link = place.0.path().join("omi");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kenning"), &link).unwrap();
    let mut command = Command::new(&link);
    command.arg("--version").env_clear();
    let (code, out, err) = finish(command, "");
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("omi "), "{out}");
}

#[test]
fn memories_are_shown_by_their_ids() {
    let place = Place::new();
    place.good(&[
        "omi",
        "store",
        "Tokens live ten minutes",
        "--id",
        "tokens",
        "--type",
        "fact",
    ]);
    place.good(&[
        "omi",
        "store",
        "Refreshed the middleware",
        "--id",
        "fresh",
        "--related-to",
        "tokens",
    ]);
    let shown = place.good(&["omi", "get", "fresh", "tokens"]);
    for part in [
        "Refreshed the middleware",
        "Tokens live ten minutes",
        "→ tokens",
        "← fresh",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown: Value =
        serde_json::from_str(&place.good(&["omi", "get", "tokens", "--json"])).unwrap();
    assert_eq!(shown[0]["relations"][0]["direction"], "in");
    let (code, err) = place.bad(&["omi", "get", "nobody"]);
    assert_eq!(code, 3);
    assert!(err.contains("`nobody`"), "{err}");
}

#[test]
fn memories_without_edges_are_no_fault() {
    let place = Place::new();
    for text in ["one", "two", "three", "four", "five", "six"] {
        place.good(&["omi", "store", text]);
    }
    let shown = place.good(&["omi", "audit"]);
    assert!(shown.contains("6 memories without an edge"), "{shown}");
    assert!(shown.contains("All integrity checks passed"), "{shown}");
    let shown: Value = serde_json::from_str(&place.good(&["omi", "audit", "--json"])).unwrap();
    // One verdict, in the text, in the JSON and as the exit code.
    assert_eq!(shown["intact"], true);
    assert_eq!(shown.get("overall_safe"), None, "{shown}");
    // By the contract's own rule more than five are not safe, and the tool says so.
    let tool = place.good(&["call", "integrity_check"]);
    let tool: Value = serde_json::from_str(&tool).unwrap();
    assert_eq!(tool["overall_safe"], false);
    let now = place.0.path().join(".openclaw/omi/NOW.md");
    std::fs::write(&now, "# NOW\n\nforged\n").unwrap();
    let output = place.run(&["omi", "audit"]);
    assert_eq!(output.status.code(), Some(9));
    let output = place.run(&["omi", "audit", "--json"]);
    assert_eq!(output.status.code(), Some(9));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["intact"], false);
}

#[test]
fn flags_that_the_contract_has_are_understood_and_opposite_ones_refused() {
    let place = Place::new();
    place.good(&["omi", "store", "Deploys happen on Tuesdays", "--id", "d"]);
    for arguments in [
        &["omi", "recall", "deploys", "--json-output"][..],
        &["omi", "--json-output", "recall", "deploys"],
    ] {
        let found: Value = serde_json::from_str(&place.good(arguments)).unwrap();
        assert_eq!(found[0]["memory_id"], "d");
    }
    for arguments in [
        &["omi", "-v", "-q", "status"][..],
        &["-v", "omi", "status", "-q"],
        &["omi", "status", "--quiet", "--verbose"],
    ] {
        let (code, err) = place.bad(arguments);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("contradict"), "{err}");
    }
    // What is piped into another program has no marks in it.
    let shown = place.good(&["omi", "recall", "deploys"]);
    assert!(shown.contains("\tDeploys happen on Tuesdays"), "{shown}");
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{f8f0}'),
        "{shown:?}"
    );
}

#[test]
fn a_key_for_clients_of_the_contract_is_asked_of_everybody() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("OMI_API_KEY", "k3y-of-the-operator");
    let server = Server::of(command);
    let recall = "/api/v1/recall?query=x";
    assert_eq!(server.get(recall, "").0, 401);
    assert_eq!(server.get(recall, "X-API-Key: wrong\r\n").0, 401);
    assert_eq!(
        server.get(recall, "X-API-Key: k3y-of-the-operator\r\n").0,
        200
    );
    assert_eq!(server.post("/mcp", "", "{}").0, 401);
    drop(server);
    let server = Server::start(&place, &[]);
    assert_eq!(server.get(recall, "").0, 200, "nobody asked for a key");
}

#[test]
fn doctor_says_what_is_wrong_with_a_store_and_makes_none() {
    let place = Place::new();
    let data = place.0.path().join("data");
    let shown = place.good(&["doctor"]);
    assert!(shown.contains("none yet"), "{shown}");
    assert!(!data.exists(), "a look made a store");
    std::fs::create_dir(&data).unwrap();
    place.good(&["doctor", "--json"]);
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
    place.good(&["omi", "store", "a memory"]);
    assert!(place.good(&["doctor"]).contains("all is well"));
    let file = data.join("kenning.db");
    for damage in [
        // Something else altogether, and a page of zeros in the middle.
        (|_: &[u8]| b"this is not a database at all".to_vec()) as fn(&[u8]) -> Vec<u8>,
        |whole| {
            let mut damaged = whole.to_vec();
            damaged[4096..8192].fill(0xff);
            damaged
        },
    ] {
        let whole = std::fs::read(&file).unwrap();
        for more in ["-wal", "-shm"] {
            drop(std::fs::remove_file(data.join(format!("kenning.db{more}"))));
        }
        std::fs::write(&file, damage(&whole)).unwrap();
        let (code, err) = place.bad(&["omi", "recall", "memory"]);
        assert_eq!(code, 9, "{err}");
        assert!(
            err.contains("`kenning.db`") && err.contains("doctor"),
            "{err}"
        );
        let output = place.run(&["doctor"]);
        assert_eq!(output.status.code(), Some(9));
        let shown = String::from_utf8(output.stdout).unwrap();
        let path = file.display().to_string();
        assert!(shown.contains(&path), "{shown}");
        assert!(shown.contains("fault: "), "{shown}");
        assert!(shown.contains("kenning restore FILE"), "{shown}");
        let output = place.run(&["doctor", "--json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown["ok"], false);
        std::fs::write(&file, whole).unwrap();
        assert!(place.good(&["doctor"]).contains("all is well"));
    }
}
