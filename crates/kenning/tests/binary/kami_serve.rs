//! `kami serve` over HTTP, as people call it: with a token, with plain `curl`, by a load balancer.

use crate::{Place, Server};
use kenning_testing_wasm::probes;
use serde_json::Value;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// `kami serve` on a free port.
fn serve(place: &Place, arguments: &[&str]) -> Server {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
    all.extend(arguments);
    Server::of(place.kami(&all))
}

#[test]
fn kami_serve_asks_for_the_token_that_it_was_given() {
    let place = Place::new();
    for arguments in [
        &["--token", "a-secret-of-the-operator"][..],
        &["--require-token"],
    ] {
        let server = serve(&place, arguments);
        assert_eq!(server.post("/mcp", "", LIST).0, 401, "{arguments:?}");
        assert_eq!(server.get("/health", "").0, 401, "{arguments:?}");
        let wrong = "Authorization: Bearer other\r\n";
        assert_eq!(server.post("/mcp", wrong, LIST).0, 401, "{arguments:?}");
    }
    let server = serve(&place, &["--token", "a-secret-of-the-operator"]);
    let right = "Authorization: Bearer a-secret-of-the-operator\r\n";
    assert_eq!(server.post("/mcp", right, LIST).0, 200);
    let mut command = place.kami(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("KENNING_TOKEN", "a-secret-of-the-operator");
    let server = Server::of(command);
    assert_eq!(server.post("/mcp", "", LIST).0, 401);
    assert_eq!(server.post("/mcp", right, LIST).0, 200);
}

#[test]
fn an_empty_token_does_not_leave_a_server_open() {
    let place = Place::new();
    let (kami, kenning) = (place.kami(&[]), place.command(&[]));
    for (mut command, more) in [
        (kami, &["--listen"][..]),
        (kenning, &["--require-token", "--listen"]),
    ] {
        command
            .arg("serve")
            .args(more)
            .args(["127.0.0.1:0", "--token", ""]);
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("`--token` is empty"), "{err}");
    }
}

#[test]
fn kenning_serve_asks_for_the_token_that_it_was_given() {
    let place = Place::new();
    let server = Server::start(&place, &["--token", "a-secret-of-the-operator"]);
    assert_eq!(server.post("/mcp", "", LIST).0, 401);
    assert_eq!(server.get("/tools", "").0, 401);
    let right = "Authorization: Bearer a-secret-of-the-operator\r\n";
    assert_eq!(server.get("/tools", right).0, 200);
}

#[test]
fn kami_serve_says_whether_it_is_well() {
    let place = Place::new();
    let server = serve(&place, &[]);
    for path in ["/health", "/health/ready", "/healthz"] {
        let (status, body) = server.get(path, "");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, body["status"].as_str()),
            (200, Some("ok")),
            "{path}"
        );
    }
}

#[test]
fn a_plain_post_is_answered_whatever_it_accepts() {
    let place = Place::new();
    place.package("echo", &probes::echo().unwrap(), "");
    place.kami_good(&["install", "echo"]);
    let server = serve(&place, &[]);
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"dev.example.echo",
        "arguments":{"message":"hi"},"_meta":{"progressToken":"t"}}}"#;
    for accept in ["Accept: */*\r\n", "", "Accept: application/json\r\n"] {
        let (status, body) = server.post("/mcp", accept, LIST);
        assert_eq!(status, 200, "{accept:?}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["result"]["tools"][0]["name"], "dev.example.echo");
        let (status, body) = server.post("/mcp", accept, call);
        assert_eq!(status, 200, "{accept:?}: {body}");
        assert!(body.contains(r#"{\"message\":\"hi\"}"#), "{body}");
    }
    let (status, body) = server.post("/mcp", "Accept: text/html\r\n", LIST);
    assert_eq!(status, 406, "{body}");
}

#[test]
fn a_token_that_can_be_guessed_is_refused() {
    let place = Place::new();
    for token in ["a", "fifteen letters"] {
        for command in [
            &["serve", "--listen", "127.0.0.1:0", "--token", token][..],
            &["kami", "serve", "--listen", "127.0.0.1:0", "--token", token],
        ] {
            let (_, message) = place.bad(command);
            assert!(message.contains("at least 16 are needed"), "{message}");
            assert!(message.contains("openssl rand"), "{message}");
            assert!(!message.contains("fifteen"), "{message}");
        }
    }
}
