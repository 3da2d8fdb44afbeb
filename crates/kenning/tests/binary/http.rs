//! The HTTP server.

use crate::{Place, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
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
    assert_eq!(server.get("/tools", "").0, 401);
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
fn probes_are_answered_without_a_token_and_say_nothing_else() {
    let place = Place::new();
    let server = Server::start(&place, &["--require-token"]);
    for headers in ["", "X-Forwarded-For: 192.0.2.1\r\n"] {
        let (status, body) = server.get("/healthz", headers);
        assert_eq!((status, body.trim()), (200, r#"{"status":"ok"}"#));
        let (status, body) = server.get("/readyz", headers);
        assert_eq!((status, body.trim()), (200, r#"{"status":"ready"}"#));
    }
    assert_eq!(server.post("/healthz", "", "{}").0, 401);
    assert_eq!(server.get("/readyz/x", "").0, 401);
    let wrong = "Authorization: Bearer kng_wrong\r\n";
    assert_eq!(server.get("/healthz", wrong).0, 401);
}

/// An address of this machine is also that of its other users, and of every visitor of a proxy on it.
#[test]
fn nobody_is_served_without_a_token_whatever_address_they_come_from() {
    let place = Place::new();
    let mut server = Server::start(&place, &[]);
    let file = place.0.path().join("data/http.token");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = server.token.take().unwrap();
    assert_eq!(place.good(&["token", "show"]).trim(), token);
    let own = format!("Authorization: Bearer {token}\r\n");
    let write = r#"{"path":"a.md","content":"x"}"#;
    for (path, body) in [
        ("/", None),
        ("/tools", None),
        ("/stats", None),
        ("/events", None),
        ("/metrics", None),
        ("/mcp", Some("{}")),
        ("/tools/vault_write_note", Some(write)),
        ("/registry/v1/push", Some("{}")),
    ] {
        let answer = match body {
            None => server.get(path, ""),
            Some(body) => server.post(path, "", body),
        };
        assert_eq!(answer.0, 401, "{path}: {}", answer.1);
    }
    assert!(server.get("/tools", "").1.contains("kenning token show"));
    assert_eq!(server.post("/tools/vault_write_note", &own, write).0, 200);
    // A proxy that adds nothing, such as socat or `ssh -R`.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, behind) = (proxy.local_addr().unwrap().port(), server.port);
    let forward = std::thread::spawn(move || {
        let (mut near, _) = proxy.accept().unwrap();
        let mut far = TcpStream::connect(("127.0.0.1", behind)).unwrap();
        let mut request = near.try_clone().unwrap();
        let mut there = far.try_clone().unwrap();
        let sending = std::thread::spawn(move || drop(std::io::copy(&mut request, &mut there)));
        std::io::copy(&mut far, &mut near).unwrap();
        near.shutdown(std::net::Shutdown::Both).unwrap();
        sending.join().unwrap();
    });
    let mut visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    visitor.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    visitor.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    forward.join().unwrap();
    // Who removes the file takes the token back.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(server.get("/tools", &own).0, 401);
    let new = place.good(&["token", "show"]);
    let own = format!("X-API-Key: {}\r\n", new.trim());
    assert_eq!(server.get("/tools", &own).0, 200);
}

#[test]
fn the_operator_may_serve_this_machine_without_tokens_and_is_told_what_that_means() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--no-token"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    assert!(line.starts_with("listening on http://"), "{line}");
    let warning = said.next().unwrap().unwrap();
    assert!(warning.starts_with("WARNING: --no-token"), "{warning}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.0.path().join("data/http.token").exists());
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("KENNING_NO_TOKEN", "1");
    let server = Server::of(command);
    assert_eq!(server.get("/healthz", "").0, 200);
    assert_eq!(server.get("/tools", "X-Real-IP: 192.0.2.1\r\n").0, 401);
    for (arguments, part) in [
        (
            &["--listen", "0.0.0.0:0", "--no-token"][..],
            "for this machine only",
        ),
        (
            &["--no-token", "--token", "a-long-enough-token"],
            "contradict each other",
        ),
        (&["--no-token", "--require-token"], "--require-token"),
    ] {
        let mut all = vec!["serve"];
        all.extend(arguments);
        let (_, err) = place.bad(&all);
        assert!(err.contains(part), "{err}");
    }
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

/// With so few descriptors a crowd would leave none to open the store's files with.
#[test]
fn a_crowd_does_not_use_up_the_descriptors() {
    let place = Place::new();
    let served = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 160 && exec \"$0\" \"$@\""])
        .arg(served.get_program())
        .args(served.get_args())
        .env_clear()
        .current_dir(place.0.path());
    for (name, value) in served.get_envs() {
        command.env(name, value.unwrap());
    }
    let server = Server::of(command);
    let mut crowd = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        // Whoever gave way already is told so here.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
        crowd.push(stream);
        if n % 50 == 49 {
            assert_eq!(server.get("/healthz", "").0, 200, "{n} connections");
            let note = format!(r#"{{"path":"n{n}.md","content":"x"}}"#);
            let (status, body) = server.post("/tools/vault_write_note", "", &note);
            assert_eq!(status, 200, "{body}");
        }
    }
}
