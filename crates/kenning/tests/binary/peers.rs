//! Two nodes, each with its own store, over HTTP: one on SQLite, one on PostgreSQL.

use crate::{Place, Server};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};

pub(crate) fn did(place: &Place) -> String {
    place.good(&["peer", "id"]).trim().to_owned()
}

pub(crate) fn call(place: &Place, tool: &str, input: &Value) -> Value {
    let text = place.good(&["call", tool, "--json", &input.to_string()]);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

pub(crate) fn root(place: &Place) -> Value {
    let text = place.good(&["audit", "verify", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["clean"], true, "{report}");
    report["stateRoot"].clone()
}

/// A node that serves, and one that knows it; each has added the other.
pub(crate) fn joined(there: &Place, here: &Place) -> Server {
    there.good(&["peer", "add", "--did", &did(here)]);
    let server = Server::start(there, &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    here.good(&["peer", "add", &url, "--did", &did(there)]);
    server
}

pub(crate) fn sync(here: &Place) -> Value {
    let text = here.good(&["peer", "sync", "--json"]);
    let rows: Value = serde_json::from_str(&text).unwrap();
    rows[0].clone()
}

#[test]
fn a_laptop_and_a_workstation_that_both_write_while_apart_agree_afterwards() {
    let workstation = Place::on_database(&shared().database(), "default");
    let laptop = Place::new();
    let memory = |text: &str| json!({ "content": text, "memory_type": "fact" });
    call(
        &workstation,
        "memory_store",
        &memory("the cache of the build is on the workstation"),
    );
    let server = joined(&workstation, &laptop);
    let first = sync(&laptop);
    assert_eq!(first["received"], 1, "{first}");
    let found = call(
        &laptop,
        "memory_recall",
        &json!({ "query": "cache of the build" }),
    );
    assert!(found.to_string().contains("on the workstation"), "{found}");

    // Apart: both change one note, and each writes what the other does not have.
    let note = |text: &str| json!({ "path": "plans/trip.md", "content": text });
    call(&laptop, "vault_write_note", &note("by the laptop"));
    call(
        &workstation,
        "vault_write_note",
        &note("by the workstation, later"),
    );
    call(
        &laptop,
        "memory_store",
        &memory("bees dance to tell where flowers are"),
    );
    call(
        &workstation,
        "memory_store",
        &memory("ants follow the scent of others"),
    );
    let second = sync(&laptop);
    assert_eq!(second["conflicts"].as_array().unwrap().len(), 1, "{second}");
    let rest = sync(&laptop);
    assert_eq!(
        (&rest["received"], &rest["sent"]),
        (&json!(0), &json!(0)),
        "{rest}"
    );

    assert_eq!(root(&laptop), root(&workstation));
    for place in [&laptop, &workstation] {
        let file = std::fs::read_to_string(place.vault().join("plans/trip.md")).unwrap();
        assert_eq!(
            file, "by the workstation, later",
            "the file follows its node"
        );
        for (query, text) in [
            ("bees flowers", "bees dance"),
            ("ants scent", "ants follow"),
        ] {
            let found = call(place, "memory_recall", &json!({ "query": query }));
            assert!(found.to_string().contains(text), "{found}");
        }
    }
    // What was written there is here with its author's signature and id.
    let events = |place: &Place| -> Vec<Value> {
        let text = place.good(&["audit", "export"]);
        let lines = text.lines().map(|it| serde_json::from_str(it).unwrap());
        lines.collect()
    };
    let author = did(&workstation);
    let there = events(&workstation);
    let theirs: Vec<&Value> = there
        .iter()
        .filter(|it| it["author"] == author.as_str() && it["kind"] == "MemoryStoredEvent")
        .collect();
    assert_eq!(theirs.len(), 2, "{there:?}");
    let here = events(&laptop);
    for event in theirs {
        let same = here.iter().find(|it| it["id"] == event["id"]).unwrap();
        assert_eq!(same["signature"], event["signature"]);
    }
    let status = call(&laptop, "kg_sync_status", &json!({ "detailed": true }));
    let peer = &status["data"]["peers"][0];
    assert_eq!(peer["status"], "connected", "{status}");
    assert_eq!(
        (&peer["metrics"]["lag"], &peer["errorCount"]),
        (&json!(0), &json!(0))
    );
    drop(server);
}

#[test]
fn a_node_that_was_not_added_is_refused_and_told_how_to_be() {
    let (there, here) = (Place::new(), Place::new());
    let server = Server::start(&there, &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    here.good(&["peer", "add", &url, "--did", &did(&there)]);
    let (code, error) = here.bad(&["peer", "sync"]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("is not a peer of this node"), "{error}");
    let status = call(&here, "kg_sync_status", &json!({}));
    assert_eq!(status["data"]["peers"][0]["status"], "error", "{status}");
    assert_eq!(status["data"]["summary"]["errorPeers"], 1);
    // Another key at the same address is not the node that was added.
    let other = did(&Place::new());
    here.good(&["peer", "remove", &url]);
    here.good(&["peer", "add", &url, "--did", &other]);
    let (code, error) = here.bad(&["peer", "sync"]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("has another key"), "{error}");
}

#[test]
fn a_peer_gets_and_writes_only_what_it_may() {
    let (there, here) = (Place::new(), Place::new());
    call(
        &there,
        "memory_store",
        &json!({ "content": "a secret of the house", "memory_type": "fact" }),
    );
    call(
        &there,
        "vault_write_note",
        &json!({ "path": "open.md", "content": "for everybody" }),
    );
    there.good(&[
        "peer",
        "add",
        "--did",
        &did(&here),
        "--kinds",
        "document",
        "--may",
        "read",
    ]);
    let server = Server::start(&there, &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    here.good(&["peer", "add", &url, "--did", &did(&there)]);
    call(
        &here,
        "vault_write_note",
        &json!({ "path": "mine.md", "content": "from here" }),
    );
    let (code, error) = here.bad(&["peer", "sync"]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("may not write here"), "{error}");
    assert!(
        here.vault().join("open.md").exists(),
        "what it may read arrived"
    );
    assert!(!there.vault().join("mine.md").exists());
    let export = here.good(&["audit", "export"]) + &here.good(&["export"]);
    assert!(
        !export.contains("secret of the house"),
        "other kinds stay there"
    );
    for place in [&there, &here] {
        root(place);
    }
}

#[test]
fn every_wings_writes_go_over_and_the_tools_answer_alike() {
    every_wing(&Place::new(), &Place::new());
}

#[test]
fn every_wings_writes_go_over_from_sqlite_to_postgres_and_back() {
    let database = || Place::on_database(&shared().database(), "default");
    every_wing(&database(), &Place::new());
    every_wing(&Place::new(), &database());
}

fn every_wing(there: &Place, here: &Place) {
    let server = joined(there, here);
    call(
        here,
        "now_update",
        &json!({ "current_task": "pack the tent" }),
    );
    call(
        here,
        "kg_vector_upsert",
        &json!({ "id": "v1", "vector": [1.0, 2.0, 3.0], "metadata": { "title": "a tent" } }),
    );
    call(
        here,
        "vault_write_note",
        &json!({ "path": "People/Ida Moss.md", "content": "---\ntype: person\n---\n# Ida Moss\n" }),
    );
    call(here, "daily_append", &json!({ "content": "by the laptop" }));
    call(
        there,
        "daily_append",
        &json!({ "content": "by the workstation" }),
    );
    sync(here);
    sync(here);
    for place in [here, there] {
        let now = call(place, "now_read", &json!({}));
        assert!(now.to_string().contains("pack the tent"), "{now}");
        let found = call(
            place,
            "kg_vector_search",
            &json!({ "query": "tent", "vector": [1.0, 2.0, 3.0] }),
        );
        assert!(found.to_string().contains("a tent"), "{found}");
        let entity = call(place, "resolve_entity", &json!({ "label": "Ida Moss" }));
        assert_eq!(entity["is_new"], false, "{entity}");
        let day = place.good(&["omi", "daily", "show"]);
        for entry in ["by the laptop", "by the workstation"] {
            assert!(day.contains(entry), "{day}");
        }
    }
    drop(server);
}

#[test]
fn a_conflict_is_listed_and_settled_on_both_nodes() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    let note = |text: &str| json!({ "path": "plans/trip.md", "content": text });
    call(&here, "vault_write_note", &note("by the laptop"));
    call(
        &there,
        "vault_write_note",
        &note("by the workstation, later"),
    );
    sync(&here);
    let open = |place: &Place| -> Vec<Value> {
        let text = place.good(&["peer", "conflicts", "--json"]);
        serde_json::from_str(&text).unwrap()
    };
    let found = open(&here);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["current"], "by the workstation, later");
    assert_eq!(found[0]["lost"], "by the laptop");
    here.good(&["peer", "settle", "plans/trip.md", "--take", "loser"]);
    let file =
        |place: &Place| std::fs::read_to_string(place.vault().join("plans/trip.md")).unwrap();
    assert_eq!(file(&here), "by the laptop");
    sync(&here);
    assert_eq!(file(&there), "by the laptop");
    assert_eq!((open(&here).len(), open(&there).len()), (0, 0));
    let query = json!({ "eventType": "ConflictResolved", "includePayload": true });
    let events = call(&there, "kg_audit_query", &query);
    assert!(events.to_string().contains("restored"), "{events}");
    assert_eq!(root(&here), root(&there));
    drop(server);
}

#[test]
fn a_file_follows_when_its_directory_is_named_again() {
    let (there, here) = (Place::new(), Place::new());
    let note = |text: &str| json!({ "path": "plans/trip.md", "content": text });
    call(&here, "vault_write_note", &note("first"));
    let server = joined(&there, &here);
    sync(&here);
    call(&there, "vault_write_note", &note("second"));
    let blind = |arguments: &[&str]| {
        let run = here.command(arguments).env_remove("VAULT_PATH").output();
        assert!(run.unwrap().status.success());
    };
    blind(&["peer", "sync"]);
    let path = here.vault().join("plans/trip.md");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
    here.good(&["peer", "status"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
    // What somebody wrote meanwhile stays, and the conflict is told.
    call(&there, "vault_write_note", &note("third"));
    blind(&["peer", "sync"]);
    std::fs::write(&path, "mine").unwrap();
    let open = here.good(&["peer", "conflicts", "--json"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let open: Value = serde_json::from_str(&open).unwrap();
    assert_eq!(open[0]["lost"], "third", "{open}");
    drop(server);
}

#[test]
fn both_sides_know_how_it_stands() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    let fact = |text: &str| json!({ "content": text, "memory_type": "fact" });
    call(&there, "memory_store", &fact("one"));
    call(&there, "memory_store", &fact("two of them"));
    call(&here, "memory_store", &fact("three in all"));
    there.good(&["audit", "checkpoint"]);
    sync(&here);
    sync(&here);
    let metrics = |place: &Place| {
        let status = call(place, "kg_sync_status", &json!({ "detailed": true }));
        status["data"]["peers"][0]["metrics"].clone()
    };
    let (mine, theirs) = (metrics(&here), metrics(&there));
    assert_eq!(
        (&mine["eventsReceived"], &mine["eventsSent"]),
        (&json!(2), &json!(1)),
        "{mine}"
    );
    assert_eq!(
        (&theirs["eventsReceived"], &theirs["eventsSent"]),
        (&json!(1), &json!(2)),
        "{theirs}"
    );
    assert_eq!((&mine["lag"], &theirs["lag"]), (&json!(0), &json!(0)));
    assert!(
        mine["lastCheckpointHeight"].as_i64().unwrap() >= 0,
        "{mine}"
    );
    // The laptop saw every entry, and countersigned the checkpoint.
    let events = call(
        &there,
        "kg_audit_query",
        &json!({ "eventType": "CheckpointCosigned", "includePayload": true }),
    );
    assert!(events.to_string().contains(&did(&here)), "{events}");
    drop(server);
}

#[test]
fn a_node_that_is_down_is_told_once_and_at_once() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    drop(server);
    let (_, error) = here.bad(&["peer", "sync"]);
    assert_eq!(error.matches("cannot be reached").count(), 1, "{error}");
}
