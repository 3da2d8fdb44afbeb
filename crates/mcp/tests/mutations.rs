//! Ten thousand messages that were never meant to be, over each transport.
//!
//! `KENNING_SEED` chooses the seed, `KENNING_CASES` the number.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on stops"
)]

mod common;

use common::mutate::{Expected, Mutator, expected, fault};
use common::{Client, fixtures, server};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kenning_mcp::http::{Options, service};
use serde_json::{Value, json};
use tokio_util::bytes::Bytes;

fn from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |it| it.parse().expect("a number"))
}

fn seed() -> u64 {
    from_environment("KENNING_SEED", 20_260_728)
}

fn cases() -> u64 {
    from_environment("KENNING_CASES", 10_000)
}

#[tokio::test]
async fn mutated_messages_do_no_harm_over_stdio() {
    let (seed, n_cases) = (seed(), cases());
    let mut mutator = Mutator::new(seed);
    let mut client = Client::initialized(fixtures()).await;
    let mut faults = Vec::new();
    let mut kinds = std::collections::BTreeMap::new();
    for case in 0..n_cases {
        let line = mutator.line();
        let expected = expected(&line);
        *kinds.entry(expected.kind()).or_insert(0) += 1;
        client.line(&line).await;
        // Silence is seen at the next good call, whose answer must come first.
        if expected != Expected::Silence {
            let answer = client.answer().await;
            if let Some(fault) = fault(&expected, answer.as_ref()) {
                let line = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
                faults.push(format!("case {case}: {line}\n  {fault}"));
            }
        }
        if case % 100 == 99 || matches!(expected, Expected::Silence) {
            let answer = client.call("test_simple_text").await;
            assert!(answer["result"].is_object(), "case {case}: {answer}");
        }
    }
    let (rest, ended) = client.hang_up().await;
    println!(
        "stdio: {n_cases} cases, {} failures, seed {seed}",
        faults.len()
    );
    // A mutator that made only one kind of nonsense would prove nothing.
    for kind in ["-32700", "-32600", "answer", "silence"] {
        let n = kinds.get(kind).copied().unwrap_or(0);
        assert!(n >= n_cases / 50, "{n} of {n_cases} are {kind}");
    }
    assert_eq!(rest, [] as [Value; 0]);
    ended.unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn mutated_messages_before_the_handshake_end_nothing() {
    let (seed, n_cases) = (seed() ^ 1, cases() / 10);
    let mut mutator = Mutator::new(seed);
    let mut n_failures = 0;
    for round in 0..n_cases.div_ceil(20) {
        let mut client = Client::connect(fixtures());
        for _ in 0..20 {
            let line = mutator.line();
            let expected = expected(&line);
            client.line(&line).await;
            let id = match &expected {
                Expected::Silence => continue,
                Expected::Error(_, id) | Expected::Answer(id, _) => id,
            };
            // It may be too early for any answer but a refusal; it must be one to this message.
            let answer = client.answer().await;
            if answer.as_ref().map(|it| &it["id"]) != Some(id) {
                n_failures += 1;
                println!("round {round}: expected {expected:?}, got {answer:?}");
            }
        }
        let list = json!({ "_meta": common::meta() });
        let answer = client.request("tools/list", list).await;
        assert!(answer["result"].is_object(), "round {round}: {answer}");
        client.hang_up().await.1.unwrap();
    }
    println!("before the handshake: {n_cases} cases, {n_failures} failures, seed {seed}");
    assert_eq!(n_failures, 0);
}

#[tokio::test]
async fn mutated_messages_do_no_harm_over_http() {
    let (seed, n_cases) = (seed(), cases());
    let mut mutator = Mutator::new(seed);
    let service = service(server(&[]), Options::default());
    let post = async |body: Vec<u8>| {
        let request = Request::post("http://localhost/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = tokio::time::timeout(common::PATIENCE, service.handle(request))
            .await
            .expect("an answer in time");
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, body)
    };
    let mut faults = Vec::new();
    for case in 0..n_cases {
        let line = mutator.line();
        let (status, body) = post(line.clone()).await;
        let json: Value = serde_json::from_slice(&body).unwrap_or_default();
        let right = match expected(&line) {
            Expected::Error(code, id) => {
                status == StatusCode::BAD_REQUEST
                    && json["error"]["code"] == code
                    && json["id"] == id
            }
            Expected::Answer(id, _) => {
                (status.is_success() || status.is_client_error())
                    && status != StatusCode::UNSUPPORTED_MEDIA_TYPE
                    && json["id"] == id
            }
            // A body must hold a message, or it is refused; a message without an answer is accepted.
            Expected::Silence => {
                status == StatusCode::ACCEPTED || status == StatusCode::BAD_REQUEST
            }
        };
        if !right {
            let line = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
            faults.push(format!("case {case}: {line}\n  {status} {json}"));
        }
        if case % 100 == 99 {
            let list = json!({ "jsonrpc": "2.0", "id": case, "method": "tools/list" });
            let (status, body) = post(list.to_string().into_bytes()).await;
            assert_eq!(status, StatusCode::OK, "case {case}");
            let json: Value = serde_json::from_slice(&body).unwrap();
            assert!(json["result"]["tools"].is_array(), "case {case}: {json}");
        }
    }
    println!(
        "http: {n_cases} cases, {} failures, seed {seed}",
        faults.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
