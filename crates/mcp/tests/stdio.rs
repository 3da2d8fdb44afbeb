//! The server over a pair of pipes, with and without handshake.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on stops"
)]

mod common;

use common::{Client, fixtures, meta, server, wait, waiting};
use kenning_mcp::stdio;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn connected() -> Client {
    Client::connect(fixtures())
}

async fn ready() -> Client {
    Client::initialized(fixtures()).await
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().expect("a list");
    tools.iter().filter_map(|it| it["name"].as_str()).collect()
}

#[tokio::test]
async fn every_version_with_a_handshake_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = connected();
        let answer = client.initialize(version).await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "kenning");
        assert_eq!(result["serverInfo"]["title"], "Kenning");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let instructions = result["instructions"].as_str().unwrap();
        // Clients that load tools later show no more than 2 KB of it.
        assert!(
            (200..=2_000).contains(&instructions.len()),
            "{instructions}"
        );
        let answer = client.call("test_simple_text").await;
        assert_eq!(answer["result"]["content"][0]["type"], "text");
        client.hang_up().await.1.unwrap();
    }
}

#[tokio::test]
async fn an_unknown_version_is_offered_the_newest_with_a_handshake() {
    for version in ["1999-01-01", "2026-07-28", "9999-12-31"] {
        let answer = connected().initialize(version).await;
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{version}"
        );
    }
}

#[tokio::test]
async fn the_second_era_needs_no_handshake() {
    let mut client = connected();
    let answer = client
        .request("server/discover", json!({ "_meta": meta() }))
        .await;
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{answer}");
    let call = json!({ "name": "test_simple_text", "_meta": meta() });
    let answer = client.request("tools/call", call).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let answer = client.request("ping", json!({ "_meta": meta() })).await;
    assert_eq!(answer["error"]["code"], -32601, "ping is gone");
    let mut old = meta();
    old["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    let answer = client.request("tools/list", json!({ "_meta": old })).await;
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    client.hang_up().await.1.unwrap();
}

#[tokio::test]
async fn a_discoverer_may_still_shake_hands() {
    let mut client = connected();
    client
        .request("server/discover", json!({ "_meta": meta() }))
        .await;
    let answer = client.initialize("2025-11-25").await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn pages_follow_each_other_in_one_order() {
    let mut client = Client::initialized(server(&[])).await;
    let whole = client.request("tools/list", json!({})).await;
    assert_eq!(whole["result"].get("nextCursor"), None);
    let again = client.request("tools/list", json!({})).await;
    assert_eq!(whole["result"], again["result"]);

    let server = server(&[]).with_page_size(5);
    let mut client = Client::initialized(server).await;
    let mut seen = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.request("tools/list", params).await;
        assert!(names(&page).len() <= 5);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page["result"].get("nextCursor") else {
            break;
        };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(seen, names(&whole));
    let answer = client.request("tools/list", json!({ "cursor": "?" })).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn every_tool_has_a_title_a_description_and_four_hints() {
    let mut client = Client::initialized(server(&["all"])).await;
    let whole = client.request("tools/list", json!({})).await;
    for tool in whole["result"]["tools"].as_array().unwrap() {
        assert!(tool["title"].is_string(), "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["annotations"]["title"].is_string(), "{tool}");
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint} of {tool}");
        }
    }
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let answer = ready().await.call("no_such_tool").await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["message"], "Unknown tool: no_such_tool");
}

#[tokio::test]
async fn what_is_not_declared_does_not_exist() {
    let mut client = Client::connect(server(&["kiwi"]));
    let answer = client.initialize("2025-11-25").await;
    assert_eq!(
        answer["result"]["capabilities"],
        json!({ "tools": { "listChanged": true }, "prompts": {}, "resources": {} })
    );
    let mut client = Client::connect(server(&["koi"]));
    let answer = client.initialize("2025-11-25").await;
    assert_eq!(
        answer["result"]["capabilities"],
        json!({ "tools": { "listChanged": true } })
    );
    for method in [
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "logging/setLevel",
        "resources/subscribe",
        "subscriptions/listen",
        "tasks/get",
        "no/such/method",
    ] {
        let answer = client.request(method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let mut client = ready().await;
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "test_tool_with_progress", "_meta": { "progressToken": "p" } },
    });
    client.send(&call).await;
    for done in [0.0, 50.0, 100.0] {
        let message = client.receive().await.unwrap();
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "p");
        assert_eq!(message["params"]["progress"], done);
    }
    assert_eq!(client.receive().await.unwrap()["id"], 1);
}

/// Sends a line, expects a code and an id, and then that a good call works.
async fn check(client: &mut Client, line: &[u8], code: i32, id: Value) {
    client.line(line).await;
    let shown = String::from_utf8_lossy(&line[..line.len().min(100)]).into_owned();
    let answer = client
        .answer()
        .await
        .unwrap_or_else(|| panic!("no answer: {shown}"));
    assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    assert!(answer["error"]["message"].is_string(), "{shown}");
    assert_eq!(answer.get("id"), Some(&id), "{shown}");
    let answer = client.call("test_simple_text").await;
    assert!(answer["result"].is_object(), "after {shown}: {answer}");
}

#[tokio::test]
async fn malformed_lines_are_answered_and_forgotten() {
    let mut client = ready().await;
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#);
    let null = Value::Null;
    let cases: &[(&[u8], i32, Value)] = &[
        (b"{", -32700, null.clone()),
        (b"hello", -32700, null.clone()),
        (b"\xff\xfe", -32700, null.clone()),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xc3ng\"}", -32700, null.clone()),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, -32700, null.clone()),
        (deep.as_bytes(), -32700, null.clone()),
        (br#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#, -32700, null.clone()),
        (b"[]", -32600, null.clone()),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, null.clone()),
        (b"1", -32600, null.clone()),
        (b"\"ping\"", -32600, null.clone()),
        (b"{}", -32600, null.clone()),
        (br#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        (br#"{"id":"a","method":"ping"}"#, -32600, json!("a")),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, null.clone()),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, null.clone()),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, null.clone()),
        (br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, -32600, null.clone()),
        (br#"{"jsonrpc":"2.0","id":1,"method":null}"#, -32600, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":5}"#, -32600, json!(2)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, -32600, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, -32601, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602, json!(1)),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#, -32602, json!(1)),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":5}}"#,
            -32602,
            json!(1),
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}"#, -32602, json!(1)),
    ];
    for (line, code, id) in cases {
        check(&mut client, line, *code, id.clone()).await;
    }
    println!("malformed: {} lines", cases.len());
    let (rest, ended) = client.hang_up().await;
    assert_eq!(rest, [] as [Value; 0]);
    ended.unwrap();
}

#[tokio::test]
async fn silence_is_kept_where_nothing_is_to_be_said() {
    let mut client = ready().await;
    for line in [
        "",
        "   \t\r",
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":5}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never"}}"#,
    ] {
        client.line(line.as_bytes()).await;
    }
    client
        .line(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r")
        .await;
    assert_eq!(client.receive().await.unwrap()["id"], 5);
}

#[tokio::test]
async fn a_line_over_the_limit_is_answered_and_skipped() {
    let mut client = ready().await;
    let long = vec![b'x'; stdio::LINE_BYTES_MAX + 1];
    check(&mut client, &long, -32600, Value::Null).await;
    let mut whole = br#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":""#.to_vec();
    whole.resize(stdio::LINE_BYTES_MAX - 2, b'x');
    whole.extend_from_slice(b"\"}");
    client.line(&whole).await;
    // A line of exactly the limit takes a debug build a moment to read.
    let mut answer = None;
    for _ in 0..10 {
        answer = client.answer().await;
        if answer.is_some() {
            break;
        }
    }
    assert_eq!(answer.unwrap()["result"], json!({}));
}

#[tokio::test]
async fn what_comes_before_the_handshake_does_no_harm() {
    let mut client = connected();
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))
        .await;
    client.line(b"nonsense").await;
    assert_eq!(client.answer().await.unwrap()["error"]["code"], -32700);
    let answer = client.request("ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    let answer = client.call("test_simple_text").await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let answer = client.request("initialize", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.request("server/discover", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.initialize("2025-11-25").await;
    assert!(answer["result"].is_object(), "{answer}");
    let answer = client.initialize("2025-11-25").await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let answer = client.call("test_simple_text").await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_then_free_again() {
    let mut client = ready().await;
    let slow = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "test_tool_with_progress" },
    });
    client.send(&slow).await;
    client.send(&slow).await;
    assert_eq!(client.answer().await.unwrap()["error"]["code"], -32600);
    assert!(client.answer().await.unwrap()["result"].is_object());
    client.send(&slow).await;
    assert!(client.answer().await.unwrap()["result"].is_object());
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_frees_its_id() {
    let mut client = ready().await;
    let slow = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "test_tool_with_progress" },
    });
    client.send(&slow).await;
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": 1 },
    });
    client.send(&cancel).await;
    let answer = client.request("ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    let (rest, ended) = client.hang_up().await;
    assert_eq!(rest, [] as [Value; 0]);
    ended.unwrap();
}

#[tokio::test]
async fn cancelled_work_stops_within_a_tenth_of_a_second() {
    let mut client = ready().await;
    // A busy machine may hold up some of them.
    let mut times = Vec::new();
    for _ in 0..20 {
        wait(&mut client).await;
        let start = Instant::now();
        let params = json!({ "requestId": 1 });
        client
            .send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
            )
            .await;
        while waiting(&mut client).await != "0" {}
        times.push(start.elapsed());
    }
    times.sort();
    assert!(times[10] < Duration::from_millis(100), "{times:?}");
}

#[tokio::test]
async fn a_panic_is_an_internal_error_with_an_id() {
    let mut client = ready().await;
    for _ in 0..3 {
        let answer = client.call("test_panic").await;
        assert_eq!(answer["error"]["code"], -32603);
        let message = answer["error"]["message"].as_str().unwrap();
        let id = message.strip_prefix("internal error ").expect("an id");
        assert_eq!(id.len(), 16, "{message}");
    }
    assert!(client.call("test_simple_text").await["result"].is_object());
}

#[tokio::test]
async fn work_on_a_thread_tells_how_far_it_is() {
    let mut client = ready().await;
    for id in 0..50 {
        let params = json!({ "name": "test_steps", "_meta": { "progressToken": id } });
        client
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
        for done in [1.0, 2.0, 3.0] {
            let message = client.receive().await.unwrap();
            assert_eq!(message["params"]["progressToken"], id, "{message}");
            assert_eq!(message["params"]["progress"], done, "{message}");
            assert_eq!(message["params"]["total"], 3.0);
            assert_eq!(message["params"]["message"], "a step");
        }
        assert_eq!(client.receive().await.unwrap()["id"], id);
    }
    let answer = client.call("test_steps").await;
    assert!(answer["result"].is_object(), "without a token: {answer}");
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_all_answered() {
    let mut client = ready().await;
    let mut answered = 0;
    for round in 0..10 {
        for id in 0..100 {
            let params = json!({ "name": "no_such_tool" });
            let id = round * 100 + id;
            client
                .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
                .await;
        }
        for _ in 0..100 {
            let answer = client.answer().await.expect("an answer in time");
            assert_eq!(answer["error"]["code"], -32602);
            answered += 1;
        }
    }
    assert_eq!(answered, 1_000);
}
