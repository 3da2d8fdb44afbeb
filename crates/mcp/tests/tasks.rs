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
use kenning_engine::{NewToken, Principal, Scope};
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

#[tokio::test]
async fn a_suspended_workflow_asks_its_client_and_goes_on_with_the_answer() {
    let fixture = Fixture::new();
    fixture.put_document("docs/draft.md", "# Draft\n\nHow it works: TBD\n");
    let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
    let mut client = Client::connect(server);
    let tasks = json!({ "io.modelcontextprotocol/tasks": {} });
    let (mut shy, mut asking) = (meta(), meta());
    shy["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": tasks });
    asking["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": tasks, "elicitation": {} });
    let input = json!({ "docPath": "docs/draft.md" });
    let arguments = json!({ "workflowId": "collaboration", "input": input });
    let start = json!({ "name": "kg_workflow_start", "arguments": arguments, "_meta": shy });
    let created = ask(&mut client, 1, "tools/call", start).await;
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    let runs = fixture.board.engine().runs().clone();
    let family = kenning_engine::runs::Family::Workflow;
    let owner = fixture.owner();
    runs.suspend(&owner, family, &id, "the tide is high")
        .unwrap();
    let get = |meta: &Value| json!({ "taskId": id, "_meta": meta });
    // Who cannot ask a user is only told.
    let told = ask(&mut client, 2, "tasks/get", get(&shy)).await;
    assert_eq!(told["result"]["status"], "working", "{told}");
    assert_eq!(told["result"]["statusMessage"], "the tide is high");
    let told = ask(&mut client, 3, "tasks/get", get(&asking)).await;
    assert_eq!(told["result"]["status"], "input_required", "{told}");
    let asked = told["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = asked.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{told}");
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains("the tide is high"), "{text}");
    let filled = json!({ "action": "accept", "content": { "decision": "stop" } });
    let mut answers = json!({ "unknown": filled });
    let update =
        |answers: &Value| json!({ "taskId": id, "inputResponses": answers, "_meta": asking });
    let ack = ask(&mut client, 4, "tasks/update", update(&answers)).await;
    assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
    let told = ask(&mut client, 5, "tasks/get", get(&asking)).await;
    assert_eq!(told["result"]["status"], "input_required", "{told}");
    answers[key] = filled;
    ask(&mut client, 6, "tasks/update", update(&answers)).await;
    let told = ask(&mut client, 7, "tasks/get", get(&asking)).await;
    assert_eq!(told["result"]["status"], "cancelled", "{told}");
}

#[tokio::test]
async fn a_task_is_that_of_the_token_which_started_it() {
    let fixture = Fixture::new();
    fixture.put_document("docs/draft.md", "# Draft\n\nHow it works: TBD\n");
    let of_token = |name: &str| {
        let engine = fixture.board.engine();
        let token = engine.create_token(
            &fixture.owner(),
            NewToken {
                name: name.to_owned(),
                scopes: vec![Scope::Read, Scope::Write],
                space: Space::default(),
                expires_ms: None,
            },
        );
        let principal = engine.authenticate(&token.unwrap()).unwrap();
        Client::connect(Server::new(fixture.board.clone(), principal))
    };
    let (mut ada, mut bob) = (of_token("ada"), of_token("bob"));
    let mut owner = Client::connect(Server::new(
        fixture.board.clone(),
        Principal::owner(Space::default()),
    ));
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let arguments =
        json!({ "workflowId": "collaboration", "input": { "docPath": "docs/draft.md" } });
    let start = json!({ "name": "kg_workflow_start", "arguments": arguments, "_meta": meta });
    let created = ask(&mut ada, 1, "tools/call", start).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = created["result"]["taskId"].clone();
    let task = json!({ "taskId": id, "_meta": meta });
    let update = json!({ "taskId": id, "inputResponses": {}, "_meta": meta });
    let missing = json!({ "taskId": "collaboration-1", "_meta": meta });
    let none = ask(&mut bob, 1, "tasks/get", missing).await["error"].clone();
    for (n, method) in [(2, "tasks/get"), (3, "tasks/cancel"), (4, "tasks/update")] {
        let params = match method {
            "tasks/update" => update.clone(),
            _ => task.clone(),
        };
        let refused = ask(&mut bob, n, method, params).await;
        // As if there were none.
        let said = refused["error"].to_string();
        let expected = none
            .to_string()
            .replace("collaboration-1", id.as_str().unwrap());
        assert_eq!(said, expected, "{method}");
    }
    for (client, n) in [(&mut ada, 5), (&mut owner, 5)] {
        let working = ask(client, n, "tasks/get", task.clone()).await;
        assert_eq!(working["result"]["status"], "working", "{working}");
    }
    let cancelled = ask(&mut ada, 6, "tasks/cancel", task.clone()).await;
    assert!(cancelled["result"].is_object(), "{cancelled}");
    let after = ask(&mut ada, 7, "tasks/get", task).await;
    assert_eq!(after["result"]["status"], "cancelled", "{after}");
}
