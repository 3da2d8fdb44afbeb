//! MCP on the standard streams.

use crate::{Client, Place};
use serde_json::json;
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_note_is_written_and_read_over_stdio() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let list = client.request("tools/list", &json!({}));
    assert_eq!(
        list["result"]["tools"].as_array().unwrap().len(),
        48,
        "the contracts name so many"
    );
    let written = client.call(
        "vault_write_note",
        &json!({ "path": "a.md", "content": "x" }),
    );
    assert_eq!(
        written["result"],
        json!({ "content": [{ "type": "text", "text": "Written: a.md" }] }),
        "the contract's return format, and nothing more"
    );
    let read = client.call("vault_read_note", &json!({ "path": "a.md" }));
    assert_eq!(read["result"]["content"][0]["text"], "x");
    let absent = client.call("vault_read_note", &json!({ "path": "b.md" }));
    assert_eq!(absent["result"]["isError"], true);
    let unknown = client.call("nope", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Unknown")
    );
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_server_that_nobody_chose_tools_for_lists_a_dozen_that_reach_all_others() {
    let place = Place::new();
    let mut client = Client::of(place.command(&["mcp"]));
    let list = client.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!((12..=16).contains(&tools.len()), "{}", tools.len());
    // Four characters are about a token; `cargo xtask bench tokens` counts them.
    let listed: usize = tools
        .iter()
        .map(|it| {
            let texts = [&it["name"], &it["description"], &it["inputSchema"]];
            texts.map(|it| it.to_string().len()).iter().sum::<usize>()
        })
        .sum();
    assert!(listed < 7_200, "{listed} characters");
    for tool in tools {
        assert!(tool.get("outputSchema").is_none(), "{tool}");
    }
    let of = |name: &str| tools.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("execute_read")["annotations"]["readOnlyHint"], true);
    assert_eq!(of("execute_read")["annotations"]["destructiveHint"], false);
    let written = client.call(
        "note_write",
        &json!({ "path": "Plan.md", "content": "# Plan\n\nplant kelp\n" }),
    );
    assert_eq!(written["result"]["content"][0]["text"], "Written: Plan.md");
    let found = client.call("find", &json!({ "query": "kelp" }));
    assert_eq!(
        found["result"]["structuredContent"]["results"][0]["id"],
        "Plan.md"
    );
    // Everything else is reached in two calls.
    let tool = client.call(
        "search",
        &json!({ "item_type": "tool", "query": "broken links" }),
    );
    let rows = &tool["result"]["structuredContent"]["results"];
    assert_eq!(rows[0]["id"], "kg_broken_links", "{rows}");
    let asked = json!({ "tool": "koi_search", "input": { "query": "kelp" } });
    let run = client.call("execute_read", &asked);
    assert_eq!(run["result"]["isError"], serde_json::Value::Null, "{run}");
    // What is not listed is not called by its name.
    let direct = client.call("koi_search", &json!({ "query": "kelp" }));
    assert_eq!(direct["error"]["code"], -32602);
    assert_eq!(client.finish(), 0);
}

#[test]
fn the_stateless_era_is_served_too() {
    let place = Place::new();
    let mut child = place
        .command(&["mcp", "--toolsets", "contracts"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let discover = json!({
        "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta },
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "vault_list_notes", "arguments": { "folder": "." }, "_meta": meta },
    });
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{discover}\n{call}\n").as_bytes()).unwrap();
    drop(input);
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(out.contains("2026-07-28"), "{out}");
    let answers: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let called = answers.iter().find(|it| it["id"] == 2).unwrap();
    assert_eq!(called["result"]["content"][0]["text"], "", "{out}");
}

#[test]
fn standard_output_is_clean_at_the_highest_log_level() {
    let place = Place::new();
    for (vault, extra) in [(Some(place.vault()), None), (None, Some("--read-only"))] {
        let mut command = place.command(&["mcp", "-vvv", "--toolsets", "contracts"]);
        command
            .args(extra)
            .env("KENNING_LOG", "trace")
            .env_remove("VAULT_PATH");
        if let Some(vault) = vault {
            command.env("VAULT_PATH", vault);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = vec![
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "t", "version": "1" },
            }})
            .to_string(),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            "garbage".to_owned(),
            "[]".to_owned(),
            "{}".to_owned(),
            json!({ "jsonrpc": "2.0", "id": "x", "method": "no/such" }).to_string(),
        ];
        for arguments in [
            json!({}),
            json!({ "path": "a.md", "content": "x" }),
            json!({ "path": "../a.md", "content": "x" }),
            json!({ "path": "a.md" }),
            json!({ "folder": "." }),
            json!({ "path": 5 }),
            json!(null),
        ] {
            for tool in [
                "vault_write_note",
                "vault_read_note",
                "vault_list_notes",
                "nope",
            ] {
                let params = json!({ "name": tool, "arguments": arguments });
                let id = lines.len();
                lines.push(
                    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
                        .to_string(),
                );
            }
        }
        let count = lines.len();
        let mut input = child.stdin.take().unwrap();
        let text = lines.join("\n") + "\n";
        let writer = std::thread::spawn(move || {
            std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        });
        let mut err = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).unwrap();
            text
        });
        let mut out = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        writer.join().unwrap();
        assert!(child.wait().unwrap().success());
        assert!(
            log.join().unwrap().contains("DEBUG"),
            "the log is at its highest"
        );
        for line in out.lines() {
            let message: serde_json::Value = serde_json::from_str(line).expect(line);
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
        assert_eq!(
            out.lines().count(),
            count - 1,
            "every request is answered, no notification"
        );
    }
}

#[test]
fn a_read_only_server_shows_and_changes_nothing() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--read-only"]);
    let list = client.request("tools/list", &json!({}));
    let names: Vec<&str> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    for name in ["vault_write_note", "memory_store", "now_update"] {
        assert!(!names.contains(&name), "{name} writes");
    }
    for name in ["vault_read_note", "memory_recall", "now_read"] {
        assert!(names.contains(&name), "{name} reads");
    }
    let refused = client.call(
        "vault_write_note",
        &json!({ "path": "a.md", "content": "x" }),
    );
    assert_eq!(refused["result"]["isError"], true);
    assert!(!place.vault().join("a.md").exists());
    assert_eq!(client.finish(), 0);
}
