//! The command line.

use crate::Place;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_note_is_written_read_and_listed() {
    let place = Place::new();
    let written = place.good(&[
        "koi",
        "vault_write_note",
        "--path",
        "a/b",
        "--content",
        "hello",
    ]);
    assert_eq!(written, "Written: a/b.md\n");
    assert_eq!(
        place.good(&["koi", "vault_read_note", "--path", "a/b.md"]),
        "hello\n"
    );
    assert_eq!(
        place.good(&["koi", "vault_list_notes", "--folder", "a"]),
        "b.md\n"
    );
    let json = place.good(&["call", "vault_read_note", "--json", r#"{"path":"a/b.md"}"#]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["content"][0]["text"], "hello");
}

#[test]
fn a_text_can_come_from_standard_input() {
    let place = Place::new();
    let mut child = place
        .command(&[
            "koi",
            "vault_write_note",
            "--path",
            "n.md",
            "--content",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all("--leading dashes\n".as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        std::fs::read_to_string(place.vault().join("n.md")).unwrap(),
        "--leading dashes\n"
    );
}

#[test]
fn every_failure_has_its_exit_code_and_its_hint() {
    let place = Place::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["koi", "vault_read_note", "--path", "no.md"],
            3,
            "File not found: no.md",
        ),
        (
            &["koi", "vault_read_note", "--path", "../x"],
            5,
            "Path traversal rejected: ../x",
        ),
        (&["koi", "vault_read_note"], 2, "--path"),
        (&["koi", "vault_read_note", "--pth", "x"], 2, "--pth"),
        (&["call", "vault_read_note", "--json", "{"], 2, "not JSON"),
        (
            &["call", "vault_read_note", "--json", "{\"path\":5}"],
            2,
            "`path`: invalid type",
        ),
        (
            &["call", "vault_read_note", "--json", "{\"pth\":\"x\"}"],
            2,
            "unknown field `pth`",
        ),
        (&["call", "no_such_tool"], 3, "no tool `no_such_tool`"),
        (
            &["--read-only", "call", "vault_write_note"],
            5,
            "--read-only",
        ),
        (&["tools", "--toolsets", "koy"], 2, "no toolset `koy`"),
        (&["tools", "--tools", "nope"], 2, "no tool `nope`"),
        (
            &["--space", "Not A Space", "tools"],
            2,
            "is not a space name",
        ),
        (&["restore", "missing.jsonl"], 3, "missing.jsonl"),
        (&["audit", "prove"], 2, "--since SIZE"),
        (
            &["audit", "prove", "--event", "x"],
            2,
            "`x` is not an event",
        ),
        (
            &["audit", "prove", "--event", "99"],
            2,
            "is not the number of an event",
        ),
        (
            &["token", "create", "--scopes", "everything"],
            2,
            "`everything` is not a scope",
        ),
        (&["token", "create", "--expires", "soon"], 2, "`soon`"),
        (&["token", "revoke", "nope"], 3, "no token `nope`"),
        (
            &["serve", "--listen", "here"],
            2,
            "`here` is not an address",
        ),
        (
            &["serve", "--listen", "0.0.0.0:0"],
            5,
            "kenning token create",
        ),
        (&["setup", "emacs"], 2, "claude-code"),
        (&["fly"], 2, "fly"),
        (&[], 2, "Usage"),
    ];
    for (arguments, code, text) in cases {
        let (actual, err) = place.bad(arguments);
        assert_eq!(actual, *code, "{arguments:?}: {err}");
        assert!(err.contains(text), "{arguments:?}: {err}");
    }
    let (code, err) = place.bad(&["koi", "vault_read_note", "--path", "no.md", "--json"]);
    let err: Value = serde_json::from_str(&err).unwrap();
    assert_eq!(
        (code, &err["error"]["code"]),
        (3, &Value::from("not_found"))
    );
}

#[test]
fn a_data_directory_that_cannot_be_used_is_an_answer() {
    let place = Place::new();
    std::fs::write(place.0.path().join("file"), "x").unwrap();
    let (code, err) = place.bad(&["--data", "file", "audit", "verify"]);
    assert_ne!(code, 101, "{err}");
    assert!(err.contains("--data DIR"), "{err}");
    // What doctor finds is its answer, and goes where answers go.
    let faults = |data: &str| {
        let output = place.run(&["--data", data, "doctor"]);
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(report.contains("fault: "), "{report}");
        (output.status.code().unwrap(), report)
    };
    let (code, report) = faults("file");
    assert!(
        code > 0 && report.contains("--data DIR"),
        "{code}: {report}"
    );
    std::fs::create_dir(place.0.path().join("odd")).unwrap();
    std::fs::write(
        place.0.path().join("odd/kenning.db"),
        "this is no database, not at all",
    )
    .unwrap();
    let (code, report) = faults("odd");
    assert!(
        code == 9 && report.contains("kenning.db"),
        "{code}: {report}"
    );
}

#[test]
fn the_log_is_verified_proved_and_exported() {
    let place = Place::new();
    for n in 0..5 {
        place.good(&[
            "koi",
            "vault_write_note",
            "--path",
            &format!("n{n}.md"),
            "--content",
            "x",
        ]);
    }
    let report = place.good(&["audit", "verify", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["clean"], &report["events"]),
        (&true.into(), &5.into())
    );
    let events = place.good(&["audit", "export", "--after", "2"]);
    assert_eq!(events.lines().count(), 3);
    let event: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&event["seq"], &event["kind"]),
        (&3.into(), &"NoteWritten".into())
    );
    let proof = place.good(&["audit", "prove", "--event", event["id"].as_str().unwrap()]);
    let proof: Value = serde_json::from_str(&proof).unwrap();
    assert_eq!(
        (&proof["leafIndex"], &proof["treeSize"]),
        (&2.into(), &5.into())
    );
    assert_eq!(proof["eventRoot"], report["eventRoot"]);
    let proof: Value =
        serde_json::from_str(&place.good(&["audit", "prove", "--since", "3"])).unwrap();
    assert_eq!(proof["newRoot"], report["eventRoot"]);
    let checkpoint: Value = serde_json::from_str(&place.good(&["audit", "checkpoint"])).unwrap();
    assert_eq!(checkpoint["stateRoot"], report["stateRoot"]);
}

#[test]
fn a_flipped_byte_in_the_store_is_noticed() {
    let place = Place::new();
    place.good(&[
        "koi",
        "vault_write_note",
        "--path",
        "n.md",
        "--content",
        "the content",
    ]);
    let file = place.0.path().join("data/kenning.db");
    // Into the main file, so that the bytes are where we look for them.
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes
        .windows(11)
        .position(|it| it == b"the content")
        .expect("the text is there");
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let output = place.run(&["audit", "verify"]);
    assert_eq!(output.status.code(), Some(9));
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("does not match its event"), "{out}");
}

#[test]
fn a_backup_is_a_backup() {
    let place = Place::new();
    for n in 0..20 {
        let path = format!("d/n{}.md", n % 7);
        place.good(&[
            "koi",
            "vault_write_note",
            "--path",
            &path,
            "--content",
            &format!("v{n}"),
        ]);
    }
    place.good(&["token", "create"]);
    place.good(&["backup", "backup.jsonl"]);
    place.good(&["--data", "copy", "restore", "backup.jsonl"]);
    let roots = |data: &str| {
        let report = place.good(&["--data", data, "audit", "verify", "--json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        (
            report["eventRoot"].clone(),
            report["stateRoot"].clone(),
            report["history"].clone(),
        )
    };
    assert_eq!(roots("data"), roots("copy"));
    // A token may have been revoked since; whoever knows better says so.
    let n_tokens = |data: &str| {
        let listed = place.good(&["--data", data, "token", "list"]);
        listed.lines().count()
    };
    assert_eq!(n_tokens("copy"), 0);
    place.good(&["--data", "kept", "restore", "backup.jsonl", "--keep-tokens"]);
    assert_eq!(n_tokens("kept"), 1);
    let (code, err) = place.bad(&["--data", "copy", "restore", "backup.jsonl"]);
    assert_eq!(code, 4, "a store that is not empty is left alone: {err}");
    let whole = std::fs::read_to_string(place.0.path().join("backup.jsonl")).unwrap();
    let cut = &whole[..whole.len() / 2];
    let changed = whole.replacen("v3", "v4", 1);
    let without_end = whole.lines().take(9).collect::<Vec<_>>().join("\n");
    for (n, damaged) in [cut, &changed, &without_end, "", "{}\n", "hello"]
        .iter()
        .enumerate()
    {
        std::fs::write(place.0.path().join("damaged.jsonl"), damaged).unwrap();
        let (code, err) = place.bad(&["--data", "other", "restore", "damaged.jsonl"]);
        assert_eq!(code, 9, "case {n}: {err}");
    }
    let events: Value =
        serde_json::from_str(&place.good(&["--data", "other", "audit", "verify", "--json"]))
            .unwrap();
    assert_eq!(events["events"], 0, "nothing of a damaged backup was kept");
}

#[test]
fn what_is_exported_can_be_imported() {
    let place = Place::new();
    for n in 0..3 {
        place.good(&[
            "koi",
            "vault_write_note",
            "--path",
            &format!("n{n}.md"),
            "--content",
            "é\n",
        ]);
    }
    place.good(&["export", "nodes.jsonl"]);
    place.good(&["--data", "copy", "import", "nodes.jsonl"]);
    place.good(&["--data", "copy", "import", "nodes.jsonl"]);
    let keys = |data: &str| {
        let lines = place.good(&["--data", data, "export"]);
        let mut keys: Vec<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["node"]["key"].to_string())
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("data"), keys("copy"));
    for (line, text) in [
        ("x", "line 1"),
        ("{\"node\":{}}", "`kind` is missing"),
        (
            "{\"node\":{\"kind\":\"dragon\",\"key\":\"k\"}}",
            "`dragon` is not a kind",
        ),
        (
            "{\"edge\":{\"src\":\"x\",\"rel\":\"r\",\"dst\":\"y\"}}",
            "`x` is not a node id",
        ),
        ("{}", "neither"),
    ] {
        std::fs::write(place.0.path().join("bad.jsonl"), line).unwrap();
        let (code, err) = place.bad(&["--data", "copy", "import", "bad.jsonl"]);
        assert_eq!(code, 2, "{line}: {err}");
        assert!(err.contains(text), "{line}: {err}");
    }
}

#[test]
fn a_client_is_set_up_and_nothing_else_is_touched() {
    let place = Place::new();
    let shown = place.good(&["setup", "nanoclaw"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["mcpServers"]["kenning"]["args"][0], "mcp");
    std::fs::write(
        place.0.path().join(".mcp.json"),
        r#"{"mcpServers":{"other":{"a":1}}}"#,
    )
    .unwrap();
    place.good(&["setup", "claude-code", "--write"]);
    let text = std::fs::read_to_string(place.0.path().join(".mcp.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(config["mcpServers"]["other"]["a"], 1);
    let env = &config["mcpServers"]["kenning"]["env"]["VAULT_PATH"];
    assert_eq!(env.as_str(), place.vault().to_str());
    place.good(&["setup", "codex", "--write"]);
    let (code, _) = place.bad(&["setup", "codex", "--write"]);
    assert_eq!(code, 4, "what is there already is left alone");
    place.good(&["setup", "openclaw", "--write"]);
    std::fs::write(place.0.path().join(".mcp.json"), "[]").unwrap();
    let (code, _) = place.bad(&["setup", "claude-code", "--write"]);
    assert_eq!(code, 4);
}

#[test]
fn a_client_is_set_up_with_every_option_that_was_given() {
    let place = Place::new();
    let file = place.0.path().join(".vscode/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{\n  // of the team\n  \"servers\": {},\n}\n").unwrap();
    let options = [
        "--space",
        "work",
        "--toolsets",
        "koi,kg",
        "--exclude-tools",
        "kg_stats",
        "--read-only",
        "--safe-names",
        "--project",
        ".",
        "--allow-root",
        ".",
        "--database",
        "postgres://u:secret@db/k",
    ];
    let setup = ["setup", "vscode", "--write"];
    place.good(&[&setup[..], &options[..]].concat());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("// of the team"), "{text}");
    let written = text.replace("// of the team", "").replace("},\n}", "}\n}");
    let config: Value = serde_json::from_str(&written).unwrap();
    let entry = &config["servers"]["kenning"];
    let here = std::fs::canonicalize(place.0.path()).unwrap();
    let here = here.to_str().unwrap();
    assert_eq!(
        entry["args"],
        serde_json::json!([
            "mcp",
            "--space",
            "work",
            "--project",
            here,
            "--toolsets",
            "koi,kg",
            "--exclude-tools",
            "kg_stats",
            "--allow-root",
            here,
            "--read-only",
            "--safe-names",
        ])
    );
    assert_eq!(
        entry["env"]["KENNING_DATABASE_URL"],
        "postgres://u:secret@db/k"
    );
    let vault = entry["env"]["VAULT_PATH"].clone();
    assert!(vault.is_string());
    // Again, by somebody who names nothing: what is there stays.
    let mut again = place.command(&setup);
    assert!(
        again
            .env_remove("VAULT_PATH")
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_tour_ends_well() {
    let place = Place::new();
    let mut command = place.command(&["tour"]);
    let output = command.env("TMPDIR", place.0.path()).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    assert!(out.contains("Written: People/Charles Babbage.md"), "{out}");
    assert!(out.contains("every hash and signature holds"), "{out}");
}

#[test]
fn help_version_completions_and_manual_are_data() {
    let place = Place::new();
    assert!(place.good(&["--version"]).starts_with("kenning "));
    assert!(
        place
            .good(&["--help"])
            .contains("Entities, documents, web pages")
    );
    assert!(
        place
            .good(&["koi", "vault_read_note", "--help"])
            .contains("Examples:")
    );
    assert!(place.good(&["man"]).contains(".TH kenning"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            place.good(&["completions", shell]).contains("kenning"),
            "{shell}"
        );
    }
    assert!(place.good(&["doctor"]).contains("all is well"));
    assert!(place.good(&["tools"]).contains("vault_list_notes"));
}
