//! Several processes on one data directory: the normal case.

use crate::{Client, Place, Server};
use serde_json::{Value, json};

#[test]
fn a_process_sees_what_another_wrote_in_its_next_call() {
    let place = Place::new();
    let mut one = Client::start(&place, &[]);
    let mut two = Client::start(&place, &[]);
    let server = Server::start(&place, &[]);
    for n in 0..10 {
        let (writer, reader) = if n % 2 == 0 {
            (&mut one, &mut two)
        } else {
            (&mut two, &mut one)
        };
        let path = format!("n{n}.md");
        writer.call("vault_write_note", &json!({ "path": path, "content": "x" }));
        let read = reader.call("vault_read_note", &json!({ "path": path }));
        assert_eq!(read["result"]["content"][0]["text"], "x");
    }
    let health: Value = serde_json::from_str(&server.get("/healthz", "").1).unwrap();
    assert_eq!(health["events"], 10);
    assert_eq!((one.finish(), two.finish()), (0, 0));
}

#[test]
fn two_processes_that_write_the_same_note_leave_one_of_the_two() {
    let place = Place::new();
    let write = |who: &str| {
        let mut client = Client::start(&place, &[]);
        for n in 0..25 {
            let content = format!("{who} {n}");
            let done = client.call(
                "vault_write_note",
                &json!({ "path": "n.md", "content": content }),
            );
            assert_eq!(done["result"]["isError"], Value::Null, "{done}");
        }
        client.finish()
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| write("a")), scope.spawn(|| write("b"))];
        assert!(threads.into_iter().all(|it| it.join().unwrap() == 0));
    });
    let file = std::fs::read_to_string(place.vault().join("n.md")).unwrap();
    let node = place.good(&["export"]);
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!(node["node"]["body"], file, "the node is what the file is");
    let report: Value = serde_json::from_str(&place.good(&["audit", "verify", "--json"])).unwrap();
    assert_eq!(
        (&report["clean"], &report["events"]),
        (&true.into(), &50.into())
    );
}

#[test]
fn eight_processes_may_be_the_first() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let place = &place;
            scope.spawn(move || {
                place.good(&[
                    "koi",
                    "vault_write_note",
                    "--path",
                    &format!("{n}.md"),
                    "--content",
                    "x",
                ]);
            });
        }
    });
    let report: Value = serde_json::from_str(&place.good(&["audit", "verify", "--json"])).unwrap();
    assert_eq!(
        (&report["clean"], &report["events"]),
        (&true.into(), &8.into())
    );
    let events = place.good(&["audit", "export"]);
    let authors: std::collections::HashSet<String> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["author"].to_string())
        .collect();
    assert_eq!(authors.len(), 1, "they agreed on one key");
}
