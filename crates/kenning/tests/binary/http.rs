//! The HTTP server.

use crate::{Place, Server};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn every_door_is_open_on_one_port() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let (status, body) = server.post(
        "/tools/vault_write_note",
        "",
        r#"{"path":"a.md","content":"x"}"#,
    );
    assert_eq!(status, 200, "{body}");
    let accept = "Accept: application/json, text/event-stream\r\n";
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "vault_read_note", "arguments": { "path": "a.md" } },
    });
    let (status, body) = server.post("/mcp", accept, &call.to_string());
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""text":"x""#), "{body}");
    let (status, body) = server.get("/openapi.json", "");
    let document: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &document["openapi"]), (200, &"3.1.0".into()));
    assert!(
        server
            .get("/metrics", "")
            .1
            .contains("kenning_tool_calls_total{tool=\"vault_read_note\"} 1")
    );
}

#[test]
fn another_host_or_origin_is_refused_on_every_door() {
    let place = Place::new();
    let server = Server::start(&place, &["--allow-host", "kenning.test"]);
    for path in [
        "/",
        "/mcp",
        "/tools",
        "/openapi.json",
        "/events",
        "/nowhere",
    ] {
        let (status, _) = server.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(status, 403, "{path}");
        let (status, _) = server.get(path, "Origin: https://evil.example\r\n");
        assert_eq!(status, 403, "{path}");
    }
    let (status, _) =
        server.raw("GET /healthz HTTP/1.1\r\nHost: kenning.test:80\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 200);
}

#[test]
fn tokens_are_made_used_and_revoked() {
    let place = Place::new();
    let server = Server::start(&place, &["--require-token"]);
    assert_eq!(server.get("/healthz", "").0, 401);
    let token = place.good(&["token", "create", "--scopes", "read", "--name", "reader"]);
    let header = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(
        server.get("/healthz", &header).0,
        200,
        "another process made it"
    );
    let body = r#"{"path":"a.md","content":"x"}"#;
    assert_eq!(server.post("/tools/vault_write_note", &header, body).0, 403);
    let list: Value = serde_json::from_str(&place.good(&["token", "list", "--json"])).unwrap();
    assert!(
        !list
            .to_string()
            .contains(token.trim().rsplit('_').next().unwrap())
    );
    place.good(&["token", "revoke", list[0]["id"].as_str().unwrap()]);
    assert_eq!(server.get("/healthz", &header).0, 401);
}

#[test]
fn an_order_to_stop_is_followed() {
    let place = Place::new();
    let mut server = Server::start(&place, &[]);
    assert_eq!(server.get("/healthz", "").0, 200);
    let began = Instant::now();
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(server.child.wait().unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(10), "it hung");
}
