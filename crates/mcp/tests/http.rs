//! The server over HTTP: what this crate adds to rmcp.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on stops"
)]

mod common;

use common::{fixtures, meta, server};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kenning_core::Space;
use kenning_engine::{Principal, Scope};
use kenning_mcp::Handler;
use kenning_mcp::http::{Answer, BODY_BYTES_MAX, Options, service};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_util::bytes::Bytes;

async fn post(server: impl Handler, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
    let mut request = Request::post("http://any.host/mcp")
        .header("host", "any.host")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    service(server, Options::default()).handle(request).await
}

async fn read(answer: Answer) -> Value {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).expect("a JSON body")
}

fn request(method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn a_plain_call_is_answered_with_plain_json_and_leaves_no_session() {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let answer = post(server(&[]), &[], request("initialize", &params)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers().get("mcp-session-id"), None);
    assert_eq!(
        read(answer).await["result"]["protocolVersion"],
        "2025-11-25"
    );

    let headers = [("mcp-protocol-version", "2025-11-25")];
    let answer = post(server(&[]), &headers, request("tools/list", &json!({}))).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert!(read(answer).await["result"]["tools"].is_array());
}

#[tokio::test]
async fn the_second_era_is_spoken_over_http() {
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "test_simple_text"),
    ];
    let call = json!({ "name": "test_simple_text", "_meta": meta() });
    let server = fixtures();
    let answer = post(server.clone(), &headers, request("tools/call", &call)).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(read(answer).await["result"]["resultType"], "complete");

    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
        ("mcp-name", "test_simple_text"),
    ];
    let answer = post(server, &headers, request("tools/call", &call)).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert_eq!(read(answer).await["error"]["code"], -32020);
}

#[tokio::test]
async fn a_bad_body_is_refused_with_its_code() {
    let cases: &[(&[u8], i32)] = &[
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b"{}", -32600),
        (br#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (br#"{"jsonrpc":"2.0","error":5}"#, -32600),
    ];
    for (body, code) in cases {
        let answer = post(server(&[]), &[], body.to_vec()).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        assert_eq!(answer.headers()["content-type"], "application/json");
        let body = read(answer).await;
        assert_eq!(body["error"]["code"], *code, "{body}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let answer = post(server(&[]), &[], vec![b' '; BODY_BYTES_MAX + 1]).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let mut whole = request("tools/list", &json!({}));
    whole.resize(BODY_BYTES_MAX, b' ');
    let answer = post(server(&[]), &[], whole).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    for method in ["GET", "DELETE", "PUT"] {
        let request = Request::builder()
            .method(method)
            .uri("http://any.host/mcp")
            .header("host", "any.host")
            .header("accept", "text/event-stream")
            .body(Full::new(Bytes::new()))
            .unwrap();
        let answer = service(server(&[]), Options::default())
            .handle(request)
            .await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
}

#[tokio::test]
async fn a_named_host_and_origin_are_checked() {
    let options = Options {
        allowed_hosts: vec!["localhost".to_owned()],
        allowed_origins: vec!["http://localhost:*".to_owned()],
        ..Options::default()
    };
    let service = service(server(&[]), options);
    for (host, origin, status) in [
        ("localhost", "http://localhost:5", StatusCode::OK),
        ("evil.example", "http://localhost:5", StatusCode::FORBIDDEN),
        ("localhost", "http://evil.example", StatusCode::FORBIDDEN),
    ] {
        let request = Request::post("/mcp")
            .header("host", host)
            .header("origin", origin)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(Bytes::from(request("tools/list", &json!({})))))
            .unwrap();
        assert_eq!(
            service.handle(request).await.status(),
            status,
            "{host} {origin}"
        );
    }
}

fn call(name: &str, principal: Option<Principal>) -> Request<Full<Bytes>> {
    let body = request("tools/call", &json!({ "name": name, "_meta": meta() }));
    let mut request = Request::post("/mcp")
        .header("host", "any.host")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    if let Some(principal) = principal {
        request.extensions_mut().insert(principal);
    }
    request
}

fn text(answer: &Value) -> &str {
    let text = &answer["result"]["content"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

#[tokio::test]
async fn the_caller_is_whom_the_outer_layer_named() {
    let service = service(fixtures(), Options::default());
    let mut reader = Principal::owner(Space::default());
    reader.name = "reader".to_owned();
    for (principal, name) in [(Some(reader), "reader"), (None, "owner")] {
        let answer = service.handle(call("test_principal", principal)).await;
        assert_eq!(text(&read(answer).await), name);
    }
}

#[tokio::test]
async fn a_closed_connection_cancels_its_call() {
    let service = service(fixtures(), Options::default());
    let waiting = async || {
        let answer = service.handle(call("test_waiting", None)).await;
        text(&read(answer).await).to_owned()
    };
    // A busy machine may hold up some of them.
    let mut times = Vec::new();
    for _ in 0..20 {
        let other = service.clone();
        let connection = tokio::spawn(async move { other.handle(call("test_wait", None)).await });
        while waiting().await != "1" {}
        let start = Instant::now();
        connection.abort();
        while waiting().await != "0" {}
        times.push(start.elapsed());
    }
    times.sort();
    assert!(times[10] < Duration::from_millis(100), "{times:?}");
}

#[tokio::test]
async fn a_token_is_shown_only_what_it_may_call() {
    let listed = async |scopes: &[Scope]| -> Vec<String> {
        let mut request = Request::post("http://any.host/mcp")
            .header("host", "any.host")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .body(Full::new(Bytes::from(request("tools/list", &json!({})))))
            .unwrap();
        let principal = Principal {
            scopes: scopes.to_vec(),
            ..Principal::owner(Space::default())
        };
        request.extensions_mut().insert(principal);
        let answer = service(server(&["all"]), Options::default())
            .handle(request)
            .await;
        let tools = read(answer).await["result"]["tools"].clone();
        let names = tools.as_array().unwrap().iter();
        names
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let reads = listed(&[Scope::Read]).await;
    for name in ["find", "memory_recall", "note_read", "github_scan"] {
        assert!(reads.iter().any(|it| it == name), "{name}");
    }
    for name in ["memory_store", "note_write", "note_delete", "ingest_url"] {
        assert!(!reads.iter().any(|it| it == name), "{name}");
    }
    let writes = listed(&[Scope::Read, Scope::Write]).await;
    assert!(writes.iter().any(|it| it == "note_write"));
    assert!(!writes.iter().any(|it| it == "note_delete"));
    assert_eq!(listed(&[]).await, Vec::<String>::new());
}
