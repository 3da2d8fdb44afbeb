//! A workflow that goes on after its call is a task.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Client, meta};
use kenning_core::Space;
use kenning_engine::Principal;
use kenning_mcp::Server;
use kenning_testing::Fixture;
use serde_json::{Value, json};

/// Asks, and waits for as long as a busy machine needs.
async fn ask(client: &mut Client, id: u64, method: &str, params: Value) -> Value {
    client
        .send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
        .await;
    for _ in 0..60 {
        if let Some(answer) = client.answer().await {
            assert_eq!(answer["id"], id, "{answer}");
            return answer;
        }
    }
    panic!("no answer to {method}");
}

#[tokio::test]
async fn a_workflow_that_goes_on_is_a_task_that_can_be_asked_and_cancelled() {
    let fixture = Fixture::new();
    fixture.put_document("docs/draft.md", "# Draft\n\nHow it works: TBD\n");
    let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
    let mut client = Client::connect(server);
    let plain = meta();
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let start = |kind: &str, meta: &Value| {
        let input = json!({ "docPath": "docs/draft.md" });
        let arguments = json!({ "workflowId": kind, "input": input });
        json!({ "name": "kg_workflow_start", "arguments": arguments, "_meta": meta })
    };
    let task = |id: &Value, meta: &Value| json!({ "taskId": id, "_meta": meta });
    let created = ask(&mut client, 1, "tools/call", start("collaboration", &meta)).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    assert_eq!(created["result"]["status"], "working");
    let id = created["result"]["taskId"].clone();
    let working = ask(&mut client, 2, "tasks/get", task(&id, &meta)).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    let said = working["result"]["statusMessage"].as_str().unwrap();
    assert_eq!(said, "3 steps done, now watching");
    let cancelled = ask(&mut client, 3, "tasks/cancel", task(&id, &meta)).await;
    assert!(cancelled["result"].is_object(), "{cancelled}");
    let after = ask(&mut client, 4, "tasks/get", task(&id, &meta)).await;
    assert_eq!(after["result"]["status"], "cancelled", "{after}");
    // What is done at once is answered at once; as a task it can be asked for again.
    let done = ask(&mut client, 5, "tools/call", start("analysis", &meta)).await;
    let data = &done["result"]["structuredContent"]["data"];
    assert_eq!(data["outcome"], "completed", "{done}");
    let again = ask(
        &mut client,
        6,
        "tasks/get",
        task(&data["workflowId"], &meta),
    )
    .await;
    assert_eq!(again["result"]["status"], "completed", "{again}");
    assert_eq!(
        again["result"]["result"]["structuredContent"]["data"],
        *data
    );
    let unknown = ask(&mut client, 7, "tasks/get", task(&json!("none-1"), &meta)).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // A client that knows no tasks gets none.
    let plainly = ask(&mut client, 8, "tools/call", start("collaboration", &plain)).await;
    let data = &plainly["result"]["structuredContent"]["data"];
    assert_eq!(data["outcome"], "running", "{plainly}");
    let refused = ask(&mut client, 9, "tasks/get", task(&id, &plain)).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}
