//! A model that takes its time: whoever waits for it keeps nothing open.

use crate::{Client, Place};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Queries of this test have this word, and what is stored does not.
const QUERY: &str = "whiskers";

/// A server that speaks Ollama's format. A query is answered when the test says so, everything else at once.
struct Model {
    address: String,
    /// Queries that it was asked.
    asked: Receiver<String>,
    /// One message for each query that may be answered.
    release: Sender<()>,
}

impl Model {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        let (release, released) = channel();
        let (queries, waiting) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(texts) = texts_of(&stream) else {
                    continue;
                };
                match texts.iter().find(|it| it.contains(QUERY)) {
                    None => respond(&mut stream, texts.len()),
                    Some(query) => {
                        queries.send(stream).unwrap();
                        tell.send(query.clone()).unwrap();
                    }
                }
            }
        });
        std::thread::spawn(move || {
            for (mut stream, ()) in waiting.into_iter().zip(released) {
                respond(&mut stream, 1);
            }
        });
        Self {
            address,
            asked,
            release,
        }
    }
}

fn texts_of(stream: &TcpStream) -> Option<Vec<String>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).ok()?;
    let texts = request["input"].as_array()?.iter();
    Some(
        texts
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
    )
}

fn respond(stream: &mut TcpStream, n_texts: usize) {
    let vectors = vec![json!([1.0, 0.1, 0.0]); n_texts];
    let body = json!({ "model": "toy", "embeddings": vectors }).to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    let length = body.len();
    let answer = format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}");
    // Whoever asked may have stopped waiting.
    drop(stream.write_all(answer.as_bytes()));
}

/// An open read keeps the write-ahead log of the store from being emptied, and an open write keeps another
/// process from writing: while a query waits for its vector, both must go.
#[test]
fn no_transaction_is_open_while_a_query_is_embedded() {
    let place = Place::new();
    let model = Model::start();
    let omi = place.0.path().join(".openclaw/omi");
    std::fs::create_dir_all(&omi).unwrap();
    let address = &model.address;
    let config = format!(
        "embedding:\n  provider: ollama\n  model: toy\n  dimensions: 3\n  endpoint: {address}\n"
    );
    std::fs::write(omi.join("config.yaml"), config).unwrap();
    let docs = place.0.path().join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    std::fs::write(docs.join("cats.md"), "# Cats\nThey purr.\n").unwrap();
    let mut client = Client::start(&place, &[]);
    let note = json!({ "path": "Concepts/Kitten.md", "content": "# Kitten\nIt purrs.\n" });
    client.call("vault_write_note", &note);
    client.call("kg_graph_generate", &json!({}));
    let file = place.0.path().join("data/kenning.db");
    let database = rusqlite::Connection::open(file).unwrap();
    // A read that somebody else has just begun ends sooner; a query waits longer.
    database.busy_timeout(Duration::from_secs(2)).unwrap();
    for (n, (tool, field)) in [
        ("memory_recall", "query"),
        ("koi_search", "query"),
        ("knowledge_search", "query"),
        ("kg_query", "query"),
        ("kg_search_nodes", "query"),
        ("search", "query"),
        ("resolve_entity", "label"),
    ]
    .into_iter()
    .enumerate()
    {
        // So that there is something in the write-ahead log.
        let memory = json!({ "content": format!("the cat slept {n} times") });
        assert_eq!(client.call("memory_store", &memory)["error"], Value::Null);
        let mut arguments = json!({});
        arguments[field] = format!("{QUERY}, as {tool} is asked").into();
        match tool {
            "search" => arguments["item_type"] = "tool".into(),
            "resolve_entity" => arguments["type_hint"] = "Concept".into(),
            _ => {}
        }
        let params = json!({ "name": tool, "arguments": arguments });
        let request =
            json!({ "jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params });
        client.send(&request.to_string());
        let asked = model.asked.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(asked.contains(tool), "{tool}: {asked}");
        let emptied: (i64, i64) = database
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(emptied, (0, 0), "{tool}");
        if tool == "resolve_entity" {
            place.good(&["omi", "store", "another process writes meanwhile"]);
        }
        model.release.send(()).unwrap();
        let answer = loop {
            let answer = client.receive();
            if answer["id"] == tool {
                break answer;
            }
        };
        assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
        assert_eq!(model.asked.try_iter().count(), 0, "{tool} asks twice");
    }
    assert_eq!(client.finish(), 0);
}
