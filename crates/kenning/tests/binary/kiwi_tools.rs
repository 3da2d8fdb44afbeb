//! Kiwi's four tools: what they reach of everything else, and the project of the examples.

use crate::{Client, Place, Server};
use kenning_testing_wasm::probes;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn four_tools_reach_memory_vault_graph_and_wasm() {
    let place = Place::new();
    let echo = probes::echo().unwrap();
    place.package("echo", &echo, "max_fuel = 100000");
    place.kami_good(&["install", "echo"]);
    let docs = place.0.path().join("project/docs");
    fs::create_dir_all(&docs).unwrap();
    fs::write(docs.join("a.md"), "# A\n\nSee [[b]].\n").unwrap();
    fs::write(docs.join("b.md"), "# B\n").unwrap();
    let mut client = Client::start(&place, &["--toolsets", "lean", "--project", "project"]);
    let listed = client.request("tools/list", &json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["execute_read", "search", "load", "execute", "help"]);
    let mut run = |query: &str, id: &str, inputs: Value| {
        let search = json!({ "item_type": "any", "query": query });
        let found = &client.call("search", &search)["result"]["structuredContent"];
        let has = |it: &Value| it["id"] == id && it["item_type"] == "tool";
        let results = found["results"].as_array().unwrap();
        assert!(results.iter().any(has), "{query}: {found}");
        let execute = json!({
            "item_type": "tool", "action": "run", "item_id": id, "parameters": { "inputs": inputs },
        });
        let answer = client.call("execute", &execute)["result"].clone();
        assert_eq!(answer.get("isError"), None, "{id}: {answer}");
        assert_eq!(
            answer["structuredContent"]["status"], "executed",
            "{answer}"
        );
        answer["structuredContent"]["result"].clone()
    };
    let content = "The staging cache is cold on Mondays";
    let stored = run(
        "store a memory",
        "memory_store",
        json!({ "content": content }),
    );
    let recalled = run(
        "recall memories",
        "memory_recall",
        json!({ "query": "staging cache" }),
    );
    assert_eq!(recalled[0]["memory_id"], stored["memory_id"]);
    assert_eq!(recalled[0]["content"], content);
    let note = json!({ "path": "lean.md", "content": "# Lean" });
    run("write a vault note", "vault_write_note", note);
    assert_eq!(
        fs::read_to_string(place.vault().join("lean.md")).unwrap(),
        "# Lean"
    );
    let graph = run("generate the graph", "kg_graph_generate", json!({}));
    assert_eq!(graph["data"]["nodesGenerated"], 2, "{graph}");
    assert_eq!(graph["data"]["edgesCreated"], 1, "{graph}");
    let said = run(
        "dev.example.echo",
        "dev.example.echo",
        json!({ "message": "hi" }),
    );
    assert_eq!(said, json!({ "message": "hi" }));
    let search = json!({ "item_type": "any", "query": "staging cache cold" });
    let found = &client.call("search", &search)["result"]["structuredContent"];
    assert_eq!(found["results"][0]["item_type"], "memory", "{found}");
    let hidden = client.call("memory_store", &json!({ "content": "x" }));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let own = json!({ "item_type": "tool", "action": "run", "item_id": "execute" });
    assert_eq!(client.call("execute", &own)["result"]["isError"], true);
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_search_for_anything_counts_what_the_limit_hides() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--toolsets", "lean"]);
    let mut total = |limit: u64| {
        let search = json!({ "item_type": "any", "query": "memory", "limit": limit });
        let found = client.call("search", &search)["result"]["structuredContent"].clone();
        let results = found["results"].as_array().unwrap().clone();
        assert!(results.len() as u64 <= limit, "{found}");
        assert!(results.iter().all(|it| it["category"] != "kiwi"), "{found}");
        found["total"].as_u64().unwrap()
    };
    let all = total(100);
    assert!(all > 2, "{all}");
    assert_eq!(total(2), all);
}

/// The examples are what the guide says of them: each is valid, signed, found and published.
#[test]
fn every_example_can_be_signed_found_and_published() {
    let place = Place::new();
    let project = place.0.path().join("example");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kiwi");
    crate::graph_guide::copy(&example, &project);
    crate::allow_agents_to_sign(&place);
    let server = Server::start(&place, &["--project", &project.to_string_lossy()]);
    let post = |tool: &str, body: Value| -> Value {
        let (status, answer) = server.post(&format!("/tools/{tool}"), "", &body.to_string());
        assert_eq!(status, 200, "{body}: {answer}");
        serde_json::from_str(&answer).unwrap()
    };
    let items = [
        ("directive", "summarize_notes"),
        ("directive", "release_notes"),
        ("tool", "word_count"),
        ("tool", "list_notes"),
        ("tool", "say_again"),
        ("knowledge", "001-release-notes"),
        ("knowledge", "002-semantic-versions"),
    ];
    for (item_type, id) in items {
        let of = |action: &str| json!({ "item_type": item_type, "action": action, "item_id": id });
        assert_eq!(post("execute", of("create"))["status"], "created");
        assert_eq!(post("execute", of("publish"))["status"], "published");
        for source in ["local", "registry"] {
            let found = post(
                "search",
                json!({ "item_type": item_type, "query": id, "source": source }),
            );
            let first = &found["results"][0];
            assert_eq!(first["id"], id, "{source}: {found}");
            assert_eq!(
                first["quality_score"], 100.0,
                "valid and signed, and never run"
            );
        }
    }
    let run = json!({
        "item_type": "directive", "action": "run", "item_id": "release_notes",
        "parameters": { "version": "1.3.0" },
    });
    let ran = post("execute", run);
    let steps: Vec<&Value> = ran["process"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(steps, ["collect", "write", "check"]);
    let capabilities = json!([
        "fs.read",
        "fs.write",
        "kiwi-mcp.search",
        "tool.list_notes",
        "tool.word_count"
    ]);
    assert_eq!(ran["capabilities"], capabilities);
}
