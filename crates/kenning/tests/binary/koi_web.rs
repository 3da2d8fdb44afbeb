//! Pages through the real binary: killed in the middle of an ingestion, and monitored by servers.

use crate::{Client, Place, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const KILLS: usize = 40;
/// Enough that the notes of a page take a while.
const ENTITIES: usize = 12;

/// Serves a page for every path, and counts who asks.
fn site() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let n_asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let mut line = String::from("-");
            while !line.trim().is_empty() {
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let path = first
                .split(' ')
                .nth(1)
                .unwrap()
                .trim_matches('/')
                .to_owned();
            let body = format!(
                "<title>Page {path}</title><p>The page called {path} tells of quokka{path} and others.</p>"
            );
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (port, n_asked)
}

fn allowed(place: &Place, port: u16, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.env("KENNING_WEB_ALLOW", format!("http://127.0.0.1:{port}"));
    command
}

fn url(port: u16, n: usize) -> String {
    format!("http://127.0.0.1:{port}/{n}")
}

fn ingestion(port: u16, n: usize) -> Value {
    let name = |it: usize| format!("Thing {n} Number {it}");
    let entities: Vec<Value> = (0..ENTITIES)
        .map(|it| json!({ "name": name(it), "type": "Concept", "context": "of a page" }))
        .collect();
    let related = (1..ENTITIES)
        .map(|it| json!({ "subject": name(0), "predicate": "related_to", "object": name(it) }));
    json!({ "url": url(port, n), "entities": entities, "relationships": related.collect::<Vec<_>>() })
}

/// The notes of a page that are there: its own, and those of its entities.
fn notes(place: &Place, n: usize) -> usize {
    let own = usize::from(place.vault().join(format!("Sources/Page {n}.md")).exists());
    let of_entity = |it: &usize| {
        let path = format!("Concepts/Thing {n} Number {it}.md");
        place.vault().join(path).exists()
    };
    own + (0..ENTITIES).filter(of_entity).count()
}

#[test]
fn web_an_ingestion_that_is_killed_is_there_wholly_or_not_at_all() {
    let place = Place::new();
    let (port, _) = site();
    let start = || Client::of(allowed(&place, port, &["mcp", "--toolsets", "contracts"]));
    let mut client = start();
    for n in 0..=KILLS {
        let done = client.call("preview_url", &json!({ "url": url(port, n) }));
        assert_eq!(done["result"]["isError"], Value::Null, "{done}");
    }
    // How long one takes: about then it is killed, sooner after one that was whole, later after one that was
    // not there at all, so that most kills come in the middle.
    let began = Instant::now();
    let done = client.call("ingest_url", &ingestion(port, KILLS));
    assert_eq!(done["result"]["isError"], Value::Null, "{done}");
    let mut delay = began.elapsed();
    let mut n_between = 0;
    for n in 0..KILLS {
        let arguments = json!({ "name": "ingest_url", "arguments": ingestion(port, n) });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": arguments });
        client.send(&request.to_string());
        std::thread::sleep(delay);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        let n_left = notes(&place, n);
        n_between += usize::from(n_left > 0 && n_left <= ENTITIES);
        delay = delay.mul_f64(if n_left == 0 { 1.2 } else { 0.85 });
        // Whoever starts next finishes what was begun.
        client = start();
        client.call("resolve_entity", &json!({ "label": "nobody" }));
        let n_notes = notes(&place, n);
        assert!(
            n_notes == 0 || n_notes == ENTITIES + 1,
            "kill {n}: {n_notes} notes"
        );
    }
    assert_eq!(client.finish(), 0);
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean"), "{verified}");

    let events = place.good(&["audit", "export"]);
    let events = events.lines().filter(|it| it.contains("WebPageIngested"));
    let ingested: BTreeSet<usize> = (0..KILLS)
        .filter(|n| {
            events
                .clone()
                .any(|it| it.contains(&format!("{}\"", url(port, *n))))
        })
        .collect();
    let mut client = start();
    for n in 0..KILLS {
        let is_in = ingested.contains(&n);
        assert_eq!(notes(&place, n) > 0, is_in, "page {n}");
        let found = client.call(
            "knowledge_search",
            &json!({ "query": format!("quokka{n}"), "source": "web" }),
        );
        let found = found["result"]["structuredContent"]["results"].to_string();
        assert_eq!(
            found.contains(&format!("{}\"", url(port, n))),
            is_in,
            "page {n}: {found}"
        );
        let around = client.call(
            "get_entity_neighborhood",
            &json!({ "entity_uri": format!("Thing {n} Number 0") }),
        );
        let count = &around["result"]["structuredContent"]["count"];
        let expected = if is_in {
            json!(ENTITIES - 1)
        } else {
            Value::Null
        };
        assert_eq!(*count, expected, "page {n}: {around}");
        // What was not done can be done, and what was done is not done twice.
        let again = client.call("ingest_url", &ingestion(port, n));
        let again = &again["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            again.contains("already_ingested"),
            is_in,
            "page {n}: {again}"
        );
        assert_eq!(notes(&place, n), ENTITIES + 1);
    }
    assert_eq!(client.finish(), 0);
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean"), "{verified}");
    println!(
        "{KILLS} kills: {} pages ingested, {n_between} killed between two notes",
        ingested.len()
    );
    assert!(
        !ingested.is_empty() && ingested.len() < KILLS,
        "{ingested:?}: no kill came in time"
    );
}

#[test]
fn web_servers_look_at_monitored_pages_whichever_was_told() {
    let place = Place::new();
    let (port, n_asked) = site();
    let mut client = Client::of(allowed(&place, port, &["mcp", "--toolsets", "contracts"]));
    let added = client.call(
        "monitor_url",
        &json!({ "action": "add", "url": url(port, 1) }),
    );
    let text = added["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"added\""), "{text}");
    assert_eq!(n_asked.load(Ordering::SeqCst), 1);
    let server = Server::of(allowed(&place, port, &["serve", "--listen", "127.0.0.1:0"]));
    let (_, status) = server.post("/tools/monitor_url", "", "{}");
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(
        (&status["running"], &status["monitored_urls"]),
        (&json!(true), &json!(1))
    );
    // Who looks at pages ends as soon as its input does.
    assert_eq!(client.finish(), 0);
}
