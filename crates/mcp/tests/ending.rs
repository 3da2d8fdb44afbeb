//! How the service over a pair of pipes ends: always, soon, and with its answers written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on stops"
)]

mod common;

use common::{Client, PATIENCE, fixtures, meta, wait};
use kenning_mcp::stdio;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The two seconds of the promise, and as much again for a busy machine.
const PROMPT: Duration = Duration::from_secs(5);

fn connected() -> Client {
    Client::connect(fixtures())
}

async fn ready() -> Client {
    Client::initialized(fixtures()).await
}

#[tokio::test]
async fn the_end_of_the_input_is_a_clean_end_at_any_time() {
    connected().hang_up().await.1.unwrap();

    let mut client = connected();
    client.line(b"{\"jsonrpc\":").await;
    let (rest, ended) = client.hang_up().await;
    assert_eq!(rest[0]["error"]["code"], -32700);
    ended.unwrap();

    let mut client = connected();
    client
        .request("server/discover", json!({ "_meta": meta() }))
        .await;
    client.hang_up().await.1.unwrap();

    let client = ready().await;
    client.hang_up().await.1.unwrap();
}

#[tokio::test]
async fn pending_answers_are_written_before_the_end() {
    let mut client = ready().await;
    for id in 0..50 {
        let name = if id % 2 == 0 {
            "test_tool_with_progress"
        } else {
            "test_simple_text"
        };
        let params = json!({ "name": name });
        client
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    let (rest, ended) = client.hang_up().await;
    let answered = rest.iter().filter(|it| it["result"].is_object()).count();
    assert_eq!(answered, 50);
    ended.unwrap();
}

#[tokio::test]
async fn a_narrow_pipe_loses_no_answer_at_the_end_of_the_input() {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (output, slow) = tokio::io::duplex(4 * 1024);
    let service = tokio::spawn(stdio::serve(fixtures(), theirs, output, Default::default()));
    for id in 0..300 {
        let params = json!({ "_meta": meta() });
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
        let line = format!("{list}\n");
        tokio::io::AsyncWriteExt::write_all(&mut ours, line.as_bytes())
            .await
            .unwrap();
    }
    drop(ours);
    // The input has ended long before these are read: an answer alone fills the pipe twice.
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::with_capacity(4096, slow));
    let mut n_answers = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        n_answers += 1;
    }
    assert_eq!(n_answers, 300);
    service.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_is_left_within_two_seconds() {
    let mut client = ready().await;
    for id in 0..40 {
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        client.send(&list).await;
    }
    client.shutdown.cancel();
    let start = Instant::now();
    let ended = tokio::time::timeout(PATIENCE, &mut client.service).await;
    ended.expect("an end in time").unwrap().unwrap();
    let took = start.elapsed();
    assert!(took < PROMPT, "{took:?}");
}

#[tokio::test]
async fn a_call_that_never_ends_is_left_within_two_seconds() {
    let mut client = ready().await;
    let params = json!({ "name": "test_elicitation", "arguments": { "message": "?" } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
        .await;
    let asked = client.receive().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let start = Instant::now();
    client.hang_up().await.1.unwrap();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_subscription_hears_changes_and_does_not_delay_the_end() {
    let mut client = connected();
    let listen = json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": listen }))
        .await;
    let first = client.receive().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let call = json!({ "name": "test_trigger_tool_change", "_meta": meta() });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": call }))
        .await;
    let mut methods = Vec::new();
    while methods.len() < 2 {
        let message = client.receive().await.unwrap();
        methods.push(message["method"].as_str().unwrap_or("answer").to_owned());
    }
    methods.sort();
    assert_eq!(methods, ["answer", "notifications/tools/list_changed"]);
    let start = Instant::now();
    client.hang_up().await.1.unwrap();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_closed_output_is_an_end_and_no_error() {
    let (input, _keep) = tokio::io::duplex(1024);
    let (output, reader) = tokio::io::duplex(16);
    drop(reader);
    let (mut ours, theirs) = tokio::io::duplex(1024);
    drop(input);
    let service = tokio::spawn(stdio::serve(fixtures(), theirs, output, Default::default()));
    tokio::io::AsyncWriteExt::write_all(&mut ours, b"nonsense\n")
        .await
        .unwrap();
    let ended = tokio::time::timeout(PATIENCE, service).await;
    ended
        .expect("it ends though the input is open")
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn work_in_flight_is_cancelled_when_the_input_ends() {
    let mut client = ready().await;
    wait(&mut client).await;
    let start = Instant::now();
    client.hang_up().await.1.unwrap();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_shutdown_ends_the_service_though_the_input_is_open() {
    let mut client = ready().await;
    wait(&mut client).await;
    client.shutdown.cancel();
    let start = Instant::now();
    let ended = tokio::time::timeout(PATIENCE, &mut client.service).await;
    ended.expect("an end in time").unwrap().unwrap();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
}
