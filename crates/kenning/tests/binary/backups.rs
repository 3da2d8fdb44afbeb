//! `kenning omi backup` and the webhooks of `kenning serve`.

use crate::{Place, Server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;

const KEY: (&str, &str) = ("MOLTVAULT_KEY", "correct horse");

fn json(place: &Place, arguments: &[&str]) -> Value {
    let mut all = vec!["--json", "omi", "backup"];
    all.extend(arguments);
    let output = place.command(&all).env(KEY.0, KEY.1).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_backup_is_made_listed_verified_and_brought_back_to_an_empty_house() {
    let place = Place::new();
    place.good(&["omi", "now_update", "--current-task", "ship it"]);
    place.good(&["omi", "memory_store", "--content", "the cache is warm"]);
    let made = json(&place, &["create"]);
    let id = made["backup_id"].as_str().unwrap();
    assert_eq!(made["encrypted"], true);
    assert_eq!(json(&place, &["list"])["backups"][0]["backup_id"], id);
    assert_eq!(
        json(&place, &["verify", id])["files"]
            .as_array()
            .unwrap()
            .len(),
        3
    );

    let (code, err) = place.bad(&["omi", "backup", "restore", id, "--to", "drill"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("MOLTVAULT_KEY"), "{err}");
    let (code, err) = place.bad(&["omi", "backup", "restore", id]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--to"), "{err}");

    let restored = json(
        &place,
        &["restore", id, "--to", "drill", "--store", "--data", "new"],
    );
    assert_eq!(restored["files"].as_array().unwrap().len(), 3);
    assert_eq!(restored["store"]["spaces"][0], "default");
    let root = place.0.path();
    let now = std::fs::read_to_string(root.join("drill/NOW.md")).unwrap();
    assert!(now.contains("ship it"));
    let found = place.good(&["--data", "new", "omi", "memory_recall", "--query", "cache"]);
    assert!(found.contains("the cache is warm"), "{found}");
    assert!(
        place
            .good(&["--data", "new", "audit", "verify"])
            .contains("clean")
    );

    let again = ["omi", "backup", "restore", id, "--to", "drill"];
    let output = place.command(&again).env(KEY.0, KEY.1).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not empty"));
}

/// The memory that the next request tells of. It is answered.
fn receive(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let n = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).unwrap();
            return body["memory_id"].as_str().unwrap().to_owned();
        }
        assert_ne!(n, 0, "{text}");
    }
}

#[test]
fn an_event_that_a_killed_server_did_not_deliver_is_delivered_by_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let place = Place::new();
    let omi = place.0.path().join(".openclaw/omi");
    std::fs::create_dir_all(&omi).unwrap();
    let config = format!(
        "events:\n  webhooks:\n    - url: http://{address}/hook\n      events: [memory.stored]\n"
    );
    std::fs::write(omi.join("config.yaml"), config).unwrap();

    let store = |server: &Server, content: &str| {
        let body = format!("{{\"content\":\"{content}\"}}");
        let (status, answer) = server.post("/tools/memory_store", "", &body);
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["memory_id"].as_str().unwrap().to_owned()
    };
    let mut server = Server::start(&place, &[]);
    // A hook begins with what happens after it was first seen; that it was is told by its cursor.
    let dump_has = |text: &str| place.good(&["backup", "-"]).contains(text);
    while !dump_has("webhook.cursor") {}
    let first = store(&server, "is anybody there");
    assert_eq!(receive(&listener), first);
    // Killed in the middle of a delivery it would leave a lease, which others wait for.
    while dump_has("webhook.lease") {}
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    drop(server);
    let said = place.good(&[
        "call",
        "memory_store",
        "--json",
        r#"{"content":"said while nobody served"}"#,
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();

    let server = Server::start(&place, &[]);
    let next = receive(&listener);
    assert_eq!(next, said["memory_id"].as_str().unwrap());
    drop(server);
}
