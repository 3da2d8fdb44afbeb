//! One Kenning that asks another over HTTP (`KOI_API_ENDPOINT`), as processes.

use crate::{Client, Place, Server};
use serde_json::{Value, json};
use std::net::TcpListener;

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_client_without_a_vault_uses_the_graph_of_a_server_with_a_token() {
    let far = Place::new();
    std::fs::create_dir(far.vault().join("People")).unwrap();
    let note = "---\naffiliation: \"[[r3.0]]\"\n---\n";
    std::fs::write(far.vault().join("People/Bill Baue.md"), note).unwrap();
    std::fs::create_dir(far.vault().join("Organizations")).unwrap();
    std::fs::write(far.vault().join("Organizations/r3.0.md"), "").unwrap();
    let server = Server::start(&far, &["--require-token"]);
    let token = far.good(&["token", "create", "--scopes", "read", "--name", "reader"]);
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let near = Place::new();
    let start = |token: &str| {
        let mut command = near.command(&["mcp", "--toolsets", "contracts"]);
        command.env("KOI_API_ENDPOINT", &endpoint);
        command.env("KOI_API_TOKEN", token);
        Client::of(command)
    };
    let mut client = start(token.trim());
    let found = client.call("resolve_entity", &json!({ "label": "bill_baue" }));
    let found: Value = serde_json::from_str(text(&found)).unwrap();
    assert_eq!(found["candidates"][0]["name"], "Bill Baue");
    let found = client.call(
        "get_entity_neighborhood",
        &json!({ "entity_uri": "Bill Baue" }),
    );
    let found: Value = serde_json::from_str(text(&found)).unwrap();
    assert_eq!(found["relationships"][0]["object_name"], "r3.0", "{found}");
    let refused = client.call("github_scan", &json!({ "action": "scan" }));
    let expected = "KOI API error (github_scan): Request failed with status code 403 — ";
    assert!(text(&refused).starts_with(expected), "{refused}");
    // The notes stay here.
    let list = client.call("vault_list_notes", &json!({ "folder": "." }));
    assert_eq!(text(&list), "", "{list}");
    assert_eq!(client.finish(), 0);
    let mut stranger = start("wrong");
    let refused = stranger.call("koi_search", &json!({ "query": "bill" }));
    assert_eq!(refused["result"]["isError"], true);
    let expected = "KOI API error (koi_search): Request failed with status code 401 — ";
    assert!(text(&refused).starts_with(expected), "{refused}");
    drop(server);
    let refused = stranger.call("koi_search", &json!({ "query": "bill" }));
    assert!(text(&refused).contains("KOI_API_ENDPOINT"), "{refused}");
}

#[test]
fn an_endpoint_that_is_our_own_address_means_here_and_two_that_name_each_other_say_so() {
    let (one, two) = (Place::new(), Place::new());
    let start = |place: &Place, port: u16, endpoint: u16| {
        let listen = format!("127.0.0.1:{port}");
        let mut command = place.command(&["serve", "--listen", &listen, "--no-token"]);
        command.env("KOI_API_ENDPOINT", format!("http://localhost:{endpoint}/"));
        Server::of(command)
    };
    let port = free_port();
    let alone = start(&one, port, port);
    assert_eq!(alone.get("/stats", "").0, 200);
    drop(alone);
    let (first, second) = (free_port(), free_port());
    let first_server = start(&one, first, second);
    let _second_server = start(&two, second, first);
    let (status, body) = first_server.get("/stats", "");
    assert_eq!(status, 508, "{body}");
    assert!(body.contains("KOI_API_ENDPOINT"), "{body}");
}

#[test]
fn pages_of_named_origins_may_call() {
    let place = Place::new();
    let server = Server::start(&place, &["--allow-origin", "https://app.example"]);
    assert_eq!(
        server.get("/stats", "Origin: https://app.example\r\n").0,
        200
    );
    assert_eq!(
        server.get("/stats", "Origin: https://evil.example\r\n").0,
        403
    );
    let (_, message) = place.bad(&["serve", "--listen", "127.0.0.1:0", "--allow-origin", "*"]);
    assert!(message.contains("is not the origin of a page"), "{message}");
}
