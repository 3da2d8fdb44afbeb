//! The same program on PostgreSQL, on a real server.

use crate::{Client, Place, Server};
use kenning_testing_postgres::{Version, own, shared};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn report(place: &Place, at: &[&str]) -> Value {
    let mut arguments = vec!["audit", "verify", "--json"];
    arguments.extend(at);
    serde_json::from_str(&place.good(&arguments)).unwrap()
}

#[test]
fn a_store_is_moved_with_its_log_and_back() {
    let place = Place::new();
    for n in 0..30 {
        // A NUL too: PostgreSQL's own text type could not hold it.
        let note = json!({ "path": format!("n{}.md", n % 9), "content": format!("v{n}\0") });
        place.good(&["call", "vault_write_note", "--json", &note.to_string()]);
    }
    place.good(&["token", "create"]);
    place.good(&["audit", "checkpoint"]);
    let here = report(&place, &[]);
    let url = shared().database();
    place.good(&["migrate", "--from", "data", "--to", &url]);
    let there = report(&place, &["--database", &url]);
    assert_eq!(here, there, "roots, counts and all");
    let again = place.good(&["migrate", "--from", "data", "--to", &url, "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!(
        again.as_array().unwrap().iter().all(|it| it["rows"] == 0),
        "{again}"
    );
    place.good(&["migrate", "--from", &url, "--to", "back"]);
    assert_eq!(report(&place, &["--data", "back"]), here);
    // The moved log goes on.
    let write = [
        "koi",
        "vault_write_note",
        "--path",
        "new.md",
        "--content",
        "x",
    ];
    place.good(&[&["--database", &url][..], &write].concat());
    assert_eq!(
        report(&place, &["--database", &url])["events"],
        here["events"].as_u64().unwrap() + 1
    );
    let (code, err) = place.bad(&["migrate", "--from", "data", "--to", &url]);
    assert_eq!(code, 4, "what differs is not overwritten: {err}");
    let (code, _) = place.bad(&["migrate", "--from", "no-such-place", "--to", &url]);
    assert_eq!(code, 3);
}

#[test]
fn an_interrupted_move_goes_on_where_it_stopped() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    for n in 0..400 {
        client.call(
            "vault_write_note",
            &json!({ "path": format!("n{n}.md"), "content": "x" }),
        );
    }
    assert_eq!(client.finish(), 0);
    let url = shared().database();
    // As if it had been killed after its first batch: half of the rows, and the note of how far.
    place.good(&["migrate", "--from", "data", "--to", &url]);
    let here = report(&place, &[]);
    let halve = format!(
        "DELETE FROM heads; DELETE FROM events; DELETE FROM tiles; DELETE FROM kv;
         INSERT INTO kv VALUES ('default', 'migration', 'progress',
           convert_to('{{\"last\":{{\"table\":\"vectors\",\"key\":[{{\"text\":\"\"}},{{\"text\":\"\"}}]}},
             \"source\":\"{}\"}}', 'UTF8'))",
        here["eventRoot"].as_str().unwrap()
    );
    shared().sql(&url, &halve);
    let moved = place.good(&["migrate", "--from", "data", "--to", &url, "--json"]);
    let moved: Value = serde_json::from_str(&moved).unwrap();
    let rows = moved[0]["rows"].as_u64().unwrap();
    // Events and cards; nodes and passages were there.
    assert!(rows > 0 && rows < 1_000, "only the rest was moved: {moved}");
    assert_eq!(report(&place, &["--database", &url]), here);
}

#[test]
fn a_restore_that_fails_leaves_no_space_behind_and_can_be_tried_again() {
    let place = Place::new();
    crate::trust::store(&place, "default", "worth keeping");
    crate::trust::store(&place, "other", "this too");
    place.good(&["token", "create"]);
    place.good(&["backup", "whole.jsonl"]);
    let here = report(&place, &[]);
    let root = place.0.path();
    let whole = std::fs::read_to_string(root.join("whole.jsonl")).unwrap();
    // The last space fails, when those before it are loaded and verified.
    std::fs::write(root.join("forged.jsonl"), crate::trust::forged_last(&whole)).unwrap();
    let url = shared().database();
    for attempt in 0..2 {
        let (code, err) = place.bad(&["--database", &url, "restore", "forged.jsonl"]);
        assert_eq!(code, 9, "attempt {attempt}: {err}");
        assert!(err.contains("damaged store"), "attempt {attempt}: {err}");
    }
    place.good(&[
        "--database",
        &url,
        "restore",
        "--keep-tokens",
        "whole.jsonl",
    ]);
    assert_eq!(report(&place, &["--database", &url]), here);
    // A SQLite store that was there before the restore is treated alike.
    place.good(&["--data", "empty", "doctor"]);
    place.bad(&["--data", "empty", "restore", "forged.jsonl"]);
    place.good(&["--data", "empty", "restore", "--keep-tokens", "whole.jsonl"]);
    assert_eq!(report(&place, &["--data", "empty"]), here);
}

#[test]
fn two_servers_share_one_database_and_each_signs_with_its_own_key() {
    let url = shared().database();
    let place = Place::new();
    let one = Server::start(&place, &["--database", &url]);
    let two = Server::start(&place, &["--database", &url, "--data", "second"]);
    for n in 0..10 {
        let server = if n % 2 == 0 { &one } else { &two };
        let body = json!({ "path": format!("n{n}.md"), "content": "x" }).to_string();
        assert_eq!(server.post("/tools/vault_write_note", "", &body).0, 200);
    }
    for server in [&one, &two] {
        let health: Value = serde_json::from_str(&server.get("/healthz", "").1).unwrap();
        // The second server says with an event of its own that it joins.
        assert_eq!(health["events"], 11);
    }
    let events = place.good(&["audit", "export", "--database", &url]);
    let authors: std::collections::HashSet<String> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["author"].to_string())
        .collect();
    assert_eq!(authors.len(), 2);
    // The first server's machine trusts the other one when somebody there has said so.
    let verified = place.run(&["audit", "verify", "--database", &url]);
    let told = String::from_utf8(verified.stdout).unwrap();
    assert_eq!(verified.status.code(), Some(9), "{told}");
    assert!(
        told.contains("kenning audit authors add did:key:"),
        "{told}"
    );
    let other = told.split("authors add ").nth(1).unwrap();
    let other = other.split(['`', ' ', '\n']).next().unwrap();
    place.good(&["audit", "authors", "add", other, "--database", &url]);
    assert_eq!(report(&place, &["--database", &url])["clean"], true);
}

#[test]
fn a_follower_hears_of_what_another_server_wrote() {
    let url = shared().database();
    let place = Place::new();
    let one = Server::start(&place, &["--database", &url]);
    let two = Server::start(&place, &["--database", &url, "--data", "second"]);
    let mut stream = TcpStream::connect(("127.0.0.1", one.port)).unwrap();
    let credential = one.credential("");
    let request = format!("GET /events?after=0 HTTP/1.1\r\nHost: localhost\r\n{credential}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = |beginning: &str| {
        lines
            .by_ref()
            .map(Result::unwrap)
            .find(|it| it.starts_with(beginning))
            .unwrap()
    };
    next("retry:");
    for n in 1..=3 {
        let body = json!({ "path": format!("n{n}.md"), "content": "x" }).to_string();
        assert_eq!(two.post("/tools/vault_write_note", "", &body).0, 200);
        let id = next("id:");
        assert!(id.starts_with(&format!("id: {n}-")), "{id}");
    }
}

#[test]
fn a_database_that_is_not_there_is_an_answer_without_its_password() {
    let place = Place::new();
    let url = "postgres://kenning:SECRETWORD@127.0.0.1:1/none";
    for arguments in [
        &["doctor"][..],
        &["koi", "vault_list_notes", "--folder", "."],
        &["mcp"],
    ] {
        let output = place
            .command(arguments)
            .env("KENNING_DATABASE_URL", url)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(8), "{arguments:?}");
        // What doctor finds is its answer.
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let tells = said.contains("hint:") || said.contains("check that it runs");
        assert!(tells && !said.contains("SECRETWORD"), "{said}");
    }
    let help = place
        .command(&["--help"])
        .env("KENNING_DATABASE_URL", url)
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("SECRETWORD"));
    let trace = place
        .command(&["doctor", "-vvv"])
        .env("KENNING_DATABASE_URL", url)
        .env("KENNING_LOG", "trace")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&trace.stderr).contains("SECRETWORD"));
}

#[test]
fn a_server_on_a_hot_standby_reads_and_does_not_write() {
    let primary = own(Version::V18);
    let url = primary.database();
    let place = Place::new();
    let one = Server::start(&place, &["--database", &url]);
    let write = |server: &Server, n: u64| {
        let body = json!({ "path": format!("n{n}.md"), "content": "x" }).to_string();
        server.post("/tools/vault_write_note", "", &body)
    };
    assert_eq!(write(&one, 1).0, 200);
    let standby = primary.standby();
    let there = standby.same_database(&url);
    let reader = ["--read-only", "--database", &there, "--data", "second"];
    let two = Server::start(&place, &reader);
    assert_eq!(write(&one, 2).0, 200);
    let began = Instant::now();
    loop {
        let (status, health) = two.get("/healthz", "");
        assert_eq!(status, 200, "{health}");
        if serde_json::from_str::<Value>(&health).unwrap()["events"] == 2 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{health}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = two.post("/tools/vault_read_note", "", r#"{"path":"n2.md"}"#);
    assert_eq!(read.0, 200, "{}", read.1);
    let (status, refused) = write(&two, 3);
    assert_eq!(status, 403, "{refused}");
    assert!(refused.contains("--read-only"), "{refused}");
    assert_eq!(report(&place, &reader)["clean"], true);
    // Whoever forgets the word is told by the database, and nothing is half-done.
    let careless = ["--database", &there, "--data", "second"];
    let note = [
        "koi",
        "vault_write_note",
        "--path",
        "n4.md",
        "--content",
        "x",
    ];
    let (_, err) = place.bad(&[&careless[..], &note].concat());
    assert!(err.contains("does not accept writes"), "{err}");
    assert!(!place.vault().join("n4.md").exists());
}
