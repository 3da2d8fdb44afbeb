//! `kenning setup`: a configuration is merged for each client, and nothing in it is lost.

use crate::Place;
use serde_json::{Value, json};

/// Client, scope, file, keys of its servers.
const FILES: &[(&str, &str, &str, &[&str])] = &[
    ("claude-code", "project", ".mcp.json", &["mcpServers"]),
    ("claude-code", "user", ".claude.json", &["mcpServers"]),
    ("cursor", "project", ".cursor/mcp.json", &["mcpServers"]),
    ("vscode", "project", ".vscode/mcp.json", &["servers"]),
    (
        "windsurf",
        "user",
        ".codeium/windsurf/mcp_config.json",
        &["mcpServers"],
    ),
    (
        "zed",
        "user",
        ".config/zed/settings.json",
        &["context_servers"],
    ),
    (
        "gemini-cli",
        "user",
        ".gemini/settings.json",
        &["mcpServers"],
    ),
    (
        "gemini-cli",
        "project",
        ".gemini/settings.json",
        &["mcpServers"],
    ),
    (
        "cline",
        "user",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        &["mcpServers"],
    ),
    (
        "continue",
        "project",
        ".continue/mcpServers/mcp.json",
        &["mcpServers"],
    ),
    (
        "openclaw",
        "user",
        ".openclaw/openclaw.json",
        &["mcp", "servers"],
    ),
];

fn at<'a>(value: &'a Value, keys: &[&str]) -> &'a Value {
    keys.iter().fold(value, |it, key| &it[*key])
}

/// What somebody had before: another server, a setting, a comment.
fn before(keys: &[&str]) -> String {
    let servers = json!({ "other": { "command": "x", "args": ["y"] } });
    let inner = keys
        .iter()
        .rev()
        .fold(servers, |inner, key| json!({ (*key): inner }));
    let mut value = inner;
    value["theme"] = "dark".into();
    format!("// mine\n{value:#}\n")
}

fn read(place: &Place, file: &str) -> Value {
    let text = std::fs::read_to_string(place.0.path().join(file)).unwrap();
    assert!(text.starts_with("// mine\n"), "{file}: {text}");
    serde_json::from_str(text.trim_start_matches("// mine\n")).unwrap()
}

#[test]
fn a_configuration_is_merged_for_each_client_and_scope() {
    for (client, scope, file, keys) in FILES {
        let place = Place::new();
        let path = place.0.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, before(keys)).unwrap();
        let setup = ["setup", client, "--scope", scope, "--write"];
        place.good(&[&setup[..], &["--toolsets", "koi,omi"]].concat());
        let config = read(&place, file);
        assert_eq!(config["theme"], "dark", "{client}");
        let servers = at(&config, keys);
        assert_eq!(
            servers["other"],
            json!({ "command": "x", "args": ["y"] }),
            "{client}"
        );
        let ours = &servers["kenning"];
        assert_eq!(
            ours["args"],
            json!(["mcp", "--toolsets", "koi,omi"]),
            "{client}"
        );
        if *scope == "project" {
            assert_eq!(ours["command"], "kenning", "{client}: found on PATH");
            assert_eq!(
                ours["env"],
                Value::Null,
                "{client}: no path of this machine"
            );
        } else {
            assert_eq!(ours["env"]["VAULT_PATH"].as_str(), place.vault().to_str());
        }
        // Once more, for a server that runs elsewhere.
        let url = "https://kenning.test/mcp";
        place.good(&["setup", client, "--scope", scope, "--write", "--url", url]);
        let config = read(&place, file);
        let ours = at(&config, keys)["kenning"].to_string();
        assert!(
            ours.contains(url) && ours.contains("KENNING_TOKEN"),
            "{client}: {ours}"
        );
        assert!(!ours.contains("command"), "{client}: {ours}");
        assert_eq!(at(&config, keys)["other"]["command"], "x", "{client}");
        let found = place.good(&["setup", "--check", "--json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        let is_it = |it: &&Value| it["client"] == *client && it["target"] == url;
        assert!(
            found["clients"]
                .as_array()
                .unwrap()
                .iter()
                .any(|it| is_it(&it)),
            "{client}: {found}"
        );
    }
}

#[test]
fn a_shared_file_gets_no_path_of_this_machine() {
    let place = Place::new();
    let setup = ["setup", "claude-code", "--scope", "project", "--write"];
    let (code, err) = place.bad(&[&setup[..], &["--project", "."]].concat());
    assert_eq!(code, 2);
    assert!(err.contains("belongs to this machine"), "{err}");
    assert!(!place.0.path().join(".mcp.json").exists());
    let (code, err) = place.bad(&["setup", "windsurf", "--scope", "project"]);
    assert!(code == 2 && err.contains("it has: user"), "{err}");
    let url = ["--url", "https://kenning.test/mcp", "--read-only"];
    let (code, err) = place.bad(&[&["setup", "cursor"][..], &url].concat());
    assert!(
        code == 2 && err.contains("`--read-only` has no effect"),
        "{err}"
    );
}

#[test]
fn a_check_names_what_cannot_be_started() {
    let place = Place::new();
    let none = place.good(&["setup", "--check", "--json"]);
    let none: Value = serde_json::from_str(&none).unwrap();
    assert_eq!(none, json!({ "clients": [] }));
    let config = r#"{"mcpServers": {"kenning": {"command": "/no/such/kenning"}}}"#;
    std::fs::write(place.0.path().join(".mcp.json"), config).unwrap();
    let output = place.run(&["setup", "--check"]);
    assert_eq!(output.status.code(), Some(9));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("`/no/such/kenning` is not found"), "{text}");
}
