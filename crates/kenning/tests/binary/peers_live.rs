//! Two nodes that go wrong: cut off, revoked, killed in the middle; and two that exchange by themselves.

use crate::peers::{call, did, joined, root, sync};
use crate::wire::Wire;
use crate::{Place, Server, shapes};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

fn fact(text: &str) -> Value {
    json!({ "content": text, "memory_type": "fact" })
}

/// A port that nobody has now.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

fn serve_at(place: &Place, port: &str, variables: &[(&str, &str)]) -> Server {
    let listen = format!("127.0.0.1:{port}");
    let mut command = place.command(&["serve", "--listen", &listen]);
    command.envs(variables.iter().copied());
    Server::of(command)
}

fn json_of(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn peers(place: &Place) -> Value {
    json_of(&mut place.command(&["peer", "list", "--json"]))
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    if to.exists() {
        std::fs::remove_dir_all(to).unwrap();
    }
    // It may hold sockets.
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_key_is_understood_and_shown_by_the_method_that_is_set() {
    let (there, here) = (Place::new(), Place::new());
    let exo = |place: &Place, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("KENNING_DID_METHOD", "exo");
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {err}");
        String::from_utf8(output.stdout).unwrap() + &err
    };
    let shown = exo(&here, &["peer", "id"]).trim().to_owned();
    assert_eq!(shown, did(&here).replace("did:key:", "did:exo:"));
    // As it was copied from an answer of `kg_audit_query`.
    let said = exo(&there, &["peer", "add", "--did", &shown]);
    assert!(
        said.contains(&did(&there).replace("did:key:", "did:exo:")),
        "{said}"
    );
    assert_eq!(peers(&there)[0]["did"], did(&here).as_str());
    let server = Server::start(&there, &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let theirs = did(&there).replace("did:key:", "did:exo:");
    here.good(&["peer", "add", &url, "--did", &theirs]);
    call(&there, "memory_store", &fact("the key is the same"));
    assert_eq!(sync(&here)["received"], 1);
    for arguments in [
        &["peer", "list"][..],
        &["peer", "status", "--json", &theirs],
        &["call", "kg_sync_status", "--json", r#"{"detailed":true}"#],
        &["audit", "authors", "list"],
    ] {
        let text = exo(&here, arguments);
        assert!(text.contains(&theirs), "{arguments:?}: {text}");
        assert!(!text.contains("did:key:"), "{arguments:?}: {text}");
    }
    let one = json!({ "peerId": theirs });
    let status = call(&here, "kg_sync_status", &one);
    assert_eq!(status["data"]["peer"]["did"], did(&there).as_str());
    here.good(&["audit", "authors", "revoke", &theirs]);
    let authors = here.good(&["audit", "authors", "list"]);
    let of = |it: &&str| it.contains(&did(&there)) && it.contains("revoked");
    assert!(authors.lines().any(|it| of(&it)), "{authors}");
    here.good(&["peer", "remove", &theirs]);
}

#[test]
fn the_status_of_a_peer_that_was_exchanged_with_has_the_shape_of_the_contract() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    call(&there, "memory_store", &fact("one"));
    call(&here, "memory_store", &fact("two"));
    sync(&here);
    for place in [&here, &there] {
        let status = call(place, "kg_sync_status", &json!({ "detailed": true }));
        let faults = shapes::lacks(&shapes::kg_answer("kg_sync_status"), &status, "");
        assert_eq!(faults, Vec::<String>::new(), "{status:#}");
        let peer = &status["data"]["peers"][0];
        let at = peer["lastSyncTime"].as_str().unwrap_or_default();
        assert!(at.starts_with("20") && at.ends_with('Z'), "{status:#}");
        // What the last exchanges brought.
        let last = &peer["history"][0];
        assert_eq!(
            (&last["eventsReceived"], &last["eventsSent"], &last["error"]),
            (&json!(1), &json!(1), &Value::Null),
            "{status:#}"
        );
    }
    let health = call(&here, "kg_health_check", &json!({ "detailed": true }));
    assert_eq!(
        (
            &health["data"]["peers"]["total"],
            &health["data"]["peers"]["lag"]
        ),
        (&json!(1), &json!(0)),
        "{health:#}"
    );
    drop(server);
}

#[test]
fn a_node_that_shows_two_histories_is_cut_off_in_both_directions_until_it_is_added_again() {
    let (there, here) = (Place::new(), Place::new());
    let (port, own) = (free_port(), free_port());
    let url = |port: &str| format!("http://127.0.0.1:{port}");
    there.good(&["peer", "add", &url(&own), "--did", &did(&here)]);
    here.good(&["peer", "add", &url(&port), "--did", &did(&there)]);
    call(&there, "memory_store", &fact("first"));
    let server = serve_at(&there, &port, &[("KENNING_SYNC_INTERVAL_MS", "0")]);
    sync(&here);
    drop(server);
    let (data, old) = (there.0.path().join("data"), there.0.path().join("old"));
    copy(&data, &old);
    call(&there, "memory_store", &fact("second"));
    let server = serve_at(&there, &port, &[("KENNING_SYNC_INTERVAL_MS", "0")]);
    assert_eq!(sync(&here)["received"], 1);
    drop(server);
    // Restored from an older copy, it goes on another way.
    copy(&old, &data);
    for n in 0..3 {
        call(&there, "memory_store", &fact(&format!("another way {n}")));
    }
    let _there = serve_at(&there, &port, &[("KENNING_SYNC_INTERVAL_MS", "0")]);
    let (_, error) = here.bad(&["peer", "sync"]);
    assert!(error.contains("two histories"), "{error}");
    let peer = peers(&here)[0].clone();
    let (known, shown) = (&peer["cutOff"]["known"], &peer["cutOff"]["shown"]);
    assert_ne!(known, shown, "both heads are kept: {peer:#}");
    for head in [known, shown] {
        assert_eq!(head["author"], did(&there).as_str(), "{peer:#}");
        assert_eq!(head["signature"].as_str().unwrap().len(), 128, "{peer:#}");
    }
    let system = here.good(&["--space", "_system", "audit", "export"]);
    assert!(system.contains("\"PeerCutOff\""), "{system}");
    // Nothing goes over any more, whoever calls.
    let (code, error) = here.bad(&["peer", "sync", &url(&port)]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("nothing is exchanged with it"), "{error}");
    let all = here.run(&["peer", "sync"]);
    let said = String::from_utf8_lossy(&all.stderr);
    assert!(
        all.status.success() && said.contains("is cut off"),
        "{said}"
    );
    let _here = serve_at(&here, &own, &[("KENNING_SYNC_INTERVAL_MS", "0")]);
    let (code, error) = there.bad(&["peer", "sync"]);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("nothing is exchanged with it"), "{error}");
    let status = call(&here, "kg_sync_status", &json!({}));
    let row = &status["data"]["peers"][0];
    assert_eq!(row["status"], "error", "{status}");
    assert!(
        row["lastError"].as_str().unwrap().contains("two histories"),
        "{status}"
    );
    let found = call(
        &here,
        "memory_recall",
        &json!({ "query": "another way", "min_relevance": 0.0 }),
    );
    assert!(!found.to_string().contains("another way 1"), "{found}");
    // Whoever restored it on purpose begins anew with it.
    here.good(&["peer", "add", &url(&port), "--did", &did(&there)]);
    assert_eq!(peers(&here)[0]["cutOff"], Value::Null);
    sync(&here);
    let found = call(
        &here,
        "memory_recall",
        &json!({ "query": "another way", "min_relevance": 0.0 }),
    );
    assert!(found.to_string().contains("another way 1"), "{found}");
    // What only the lost history had stays here, and both logs are sound.
    let found = call(
        &here,
        "memory_recall",
        &json!({ "query": "second", "min_relevance": 0.0 }),
    );
    assert!(found.to_string().contains("\"second\""), "{found}");
    root(&here);
    root(&there);
}

#[test]
fn events_of_a_revoked_author_are_refused() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    call(&there, "memory_store", &fact("before it was revoked"));
    assert_eq!(sync(&here)["received"], 1);
    here.good(&["audit", "authors", "revoke", &did(&there)]);
    call(&there, "memory_store", &fact("after it was revoked"));
    let done = sync(&here);
    assert_eq!(
        (&done["received"], &done["refused"]),
        (&json!(0), &json!(1)),
        "{done}"
    );
    let status = call(&here, "kg_sync_status", &json!({ "detailed": true }));
    let peer = &status["data"]["peers"][0];
    assert_eq!(peer["metrics"]["eventsRefused"], 1, "{status}");
    assert!(
        peer["lastError"].as_str().unwrap().contains("revoked"),
        "{status}"
    );
    let text = here.good(&["audit", "export"]) + &here.good(&["export"]);
    assert!(text.contains("before it was revoked") && !text.contains("after it was revoked"));
    root(&here);
    let url = format!("http://127.0.0.1:{}", server.port);
    let (_, error) = here.bad(&["peer", "add", &url, "--did", &did(&there)]);
    assert!(error.contains("stays revoked"), "{error}");
}

/// What a process beside a server is told.
fn service(place: &Place) -> Value {
    call(place, "kg_sync_status", &json!({}))["data"]["serviceStatus"].clone()
}

fn knows(place: &Place, text: &str) -> bool {
    let query = json!({ "query": text, "min_relevance": 0.0 });
    let found = call(place, "memory_recall", &query);
    found.to_string().contains(text)
}

#[test]
fn two_servers_exchange_by_themselves_and_every_process_knows_it() {
    let (there, here) = (Place::new(), Place::new());
    let port = free_port();
    there.good(&["peer", "add", "--did", &did(&here)]);
    let mut server = serve_at(&there, &port, &[]);
    let wire = Wire::to(server.port);
    let url = format!("http://127.0.0.1:{}", wire.port);
    here.good(&["peer", "add", &url, "--did", &did(&there)]);
    assert_eq!(service(&here)["running"], false);
    let mut caller = serve_at(&here, "0", &[("KENNING_SYNC_INTERVAL_MS", "1000")]);
    until("a process beside it knows that it runs", || {
        service(&here)["running"] == true
    });
    let told = service(&here);
    assert_eq!(
        (&told["autoSyncEnabled"], &told["syncInterval"]),
        (&json!(true), &json!(1_000)),
        "{told}"
    );
    until("the first exchange ends, and everybody sees it", || {
        service(&here)["syncing"] == false
    });
    // Within seconds of a write here, and with the next call of one there.
    let (status, body) = caller.post(
        "/tools/memory_store",
        "",
        &fact("written where it calls").to_string(),
    );
    assert_eq!(status, 200, "{body}");
    until("what is written here goes over", || {
        knows(&there, "written where it calls")
    });
    call(&there, "memory_store", &fact("written where it is called"));
    until("what is written there is fetched", || {
        knows(&here, "written where it is called")
    });
    // The body of an answer is cut in the middle: the next try goes on.
    wire.cut_after(700, || ());
    call(&there, "memory_store", &fact("in a body that is cut"));
    until("the exchange is resumed", || {
        wire.was_cut() && knows(&here, "in a body that is cut")
    });
    // While the other is away it is called again and again, and less and less often.
    drop(server);
    call(&here, "memory_store", &fact("while the other is away"));
    let peer = |place: &Place| -> Value {
        call(place, "kg_sync_status", &json!({ "detailed": true }))["data"]["peers"][0].clone()
    };
    let before = peer(&here)["errorCount"].as_u64().unwrap();
    until("it is tried in vain", || {
        peer(&here)["errorCount"].as_u64().unwrap() > before + 1
    });
    let failed = peer(&here);
    assert_eq!(failed["status"], "error", "{failed}");
    let history = failed["history"].as_array().unwrap();
    let n_failures = history.iter().filter(|it| !it["error"].is_null()).count();
    assert!(n_failures >= 1, "{failed}");
    server = serve_at(&there, &port, &[]);
    until("it goes on when the other is back", || {
        knows(&there, "while the other is away")
    });
    assert_eq!(root(&here), root(&there));
    // A server that is told to stop says so; one that never calls says that too.
    let stopped = Command::new("kill")
        .args(["-TERM", &caller.child.id().to_string()])
        .status()
        .unwrap();
    assert!(stopped.success() && caller.child.wait().unwrap().success());
    assert_eq!(service(&here)["running"], false);
    let _quiet = serve_at(&here, "0", &[("KENNING_SYNC_INTERVAL_MS", "0")]);
    until("a server that does not call is told", || {
        let service = service(&here);
        service["running"] == true && service["autoSyncEnabled"] == false
    });
    drop(server);
}

#[test]
fn agents_list_and_settle_conflicts_over_http() {
    let (there, here) = (Place::new(), Place::new());
    let server = joined(&there, &here);
    let note = |text: &str| json!({ "path": "plans/trip.md", "content": text });
    call(&here, "vault_write_note", &note("by the laptop"));
    call(&there, "vault_write_note", &note("by the workstation"));
    sync(&here);
    let laptop = Server::start(&here, &[]);
    let (status, body) = laptop.get("/peers/conflicts", "");
    let open: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    let conflict = &open["conflicts"][0];
    assert_eq!(conflict["lost"], "by the laptop", "{open}");
    let path = format!(
        "/peers/conflicts/{}/settle",
        conflict["id"].as_str().unwrap()
    );
    let token = |scopes: &str| {
        let text = here.good(&["token", "create", "--scopes", scopes, "--json"]);
        let made: Value = serde_json::from_str(&text).unwrap();
        format!(
            "Authorization: Bearer {}\r\n",
            made["token"].as_str().unwrap()
        )
    };
    let (status, body) = laptop.post(&path, &token("read"), r#"{"take":"loser"}"#);
    assert_eq!(status, 403, "{body}");
    let (status, body) = laptop.post(&path, "", r#"{"take":"both"}"#);
    assert_eq!(status, 422, "{body}");
    assert!(body.contains("`take`") && body.contains("winner"), "{body}");
    let (status, body) = laptop.post(&path, &token("read,write"), r#"{"take":"loser"}"#);
    assert_eq!(status, 200, "{body}");
    let (status, body) = laptop.post(&path, "", r#"{"take":"loser"}"#);
    assert_eq!(status, 404, "{body}");
    let (_, body) = laptop.get("/peers/conflicts", "");
    assert_eq!(body.trim(), r#"{"conflicts":[]}"#);
    let file = std::fs::read_to_string(here.vault().join("plans/trip.md")).unwrap();
    assert_eq!(file, "by the laptop");
    let (status, body) = laptop.get("/peers", "");
    let state: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    let id = state["peers"][0]["id"].as_str().unwrap();
    let (_, metrics) = laptop.get("/metrics", "");
    for name in ["lag", "unsent", "errors_total", "last_sync_seconds"] {
        let line = format!("\nkenning_peer_{name}{{peer=\"{id}\"}} ");
        assert!(metrics.contains(&line), "{name}: {metrics}");
    }
    drop(server);
}

fn kill(process: u32) {
    let id = process.to_string();
    let status = Command::new("kill").args(["-KILL", &id]).status();
    assert!(status.unwrap().success());
}

fn start_sync(place: &Place) -> Child {
    let mut command = place.command(&["peer", "sync"]);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet.stderr(Stdio::null()).spawn().unwrap()
}

/// Writes of every toolset on both nodes.
fn write_everything(there: &Place, here: &Place) {
    for (place, name) in [(there, "workstation"), (here, "laptop")] {
        for n in 0..12 {
            let text = format!("fact {n} of the {name}: {}", "many words ".repeat(40));
            call(place, "memory_store", &fact(&text));
        }
        let note = json!({ "path": format!("People/{name}.md"), "content": format!("---\ntype: person\n---\n# Ida {name}\n") });
        call(place, "vault_write_note", &note);
        let vector =
            json!({ "id": name, "vector": [1.0, 2.0, 3.0], "metadata": { "title": name } });
        call(place, "kg_vector_upsert", &vector);
        call(
            place,
            "daily_append",
            &json!({ "content": format!("by the {name}") }),
        );
        call(
            place,
            "now_update",
            &json!({ "current_task": format!("task of the {name}") }),
        );
    }
}

/// What the tools answer, without times.
fn answers(place: &Place) -> Vec<Value> {
    let mut all = Vec::new();
    for name in ["workstation", "laptop"] {
        let label = json!({ "label": format!("Ida {name}") });
        let entity = call(place, "resolve_entity", &label);
        all.push(json!([entity["is_new"], entity["canonical_name"]]));
        let query =
            json!({ "query": format!("fact of the {name}"), "min_relevance": 0.0, "limit": 100 });
        let found = call(place, "memory_recall", &query);
        let memories = found.as_array().unwrap_or_else(|| panic!("{found}")).iter();
        let mut texts: Vec<String> = memories.map(|it| it["content"].to_string()).collect();
        texts.sort();
        assert!(texts.len() >= 12, "{found}");
        all.push(json!(texts));
        all.push(
            std::fs::read_to_string(place.vault().join(format!("People/{name}.md")))
                .unwrap()
                .into(),
        );
    }
    let near = json!({ "query": "x", "vector": [1.0, 2.0, 3.0], "k": 9 });
    let near = call(place, "kg_vector_search", &near);
    let ids = near["data"]["results"].as_array().unwrap().iter();
    let mut ids: Vec<String> = ids.map(|it| it["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids.len(), 2, "{near}");
    all.push(json!(ids));
    all.push(place.good(&["omi", "daily", "show"]).into());
    let now = call(place, "now_read", &json!({}));
    all.push(now["current_task"].clone());
    all
}

/// Everything goes over although both programs are killed in the middle of messages.
fn killed_in_the_middle(there: &Place, here: &Place) {
    write_everything(there, here);
    let port = free_port();
    there.good(&["peer", "add", "--did", &did(here)]);
    let mut server = serve_at(there, &port, &[]);
    let wire = Wire::to(server.port);
    let url = format!("http://127.0.0.1:{}", wire.port);
    here.good(&["peer", "add", &url, "--did", &did(there)]);
    // The one that calls, after more and more bytes of what it is sent.
    for n_bytes in [600, 1_500, 3_000] {
        let (tell, told) = std::sync::mpsc::channel();
        wire.cut_after(n_bytes, move || kill(told.recv().unwrap()));
        let mut child = start_sync(here);
        tell.send(child.id()).unwrap();
        child.wait().unwrap();
    }
    // The one that is called, while it answers.
    for n_bytes in [900, 2_000] {
        let id = server.child.id();
        wire.cut_after(n_bytes, move || kill(id));
        start_sync(here).wait().unwrap();
        drop(server);
        server = serve_at(there, &port, &[]);
    }
    wire.cut_after(usize::MAX, || ());
    for _ in 0..3 {
        sync(here);
    }
    assert_eq!(root(here), root(there));
    assert_eq!(answers(here), answers(there));
    drop(server);
}

#[test]
fn killed_in_the_middle_of_an_exchange_a_caller_on_sqlite_and_a_server_on_postgres_agree() {
    let there = Place::on_database(&shared().database(), "default");
    killed_in_the_middle(&there, &Place::new());
}

#[test]
fn killed_in_the_middle_of_an_exchange_a_caller_on_postgres_and_a_server_on_sqlite_agree() {
    let here = Place::on_database(&shared().database(), "default");
    killed_in_the_middle(&Place::new(), &here);
}
