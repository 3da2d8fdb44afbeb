//! `docs/guides/koi.md`: every command of it, in a copy of the example, against one running server.
//!
//! An `sh` block is run by a shell as it stands; only addresses are replaced, and the block that starts
//! the server is not run again. A `json` block right after it is what the answer has, at least: `…`
//! stands for any text. What needs another machine stands in `console` blocks, which are not run.

use crate::{Place, Server};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const GUIDE: &str = include_str!("../../../../docs/guides/koi.md");

/// Where the guide's page is said to be.
const PAGE_URL: &str = "https://herring.example.org/count";

const PAGE: &str = "<html><head><title>Spring count</title></head><body><main>\
    <h1>Spring count</h1><p>Maren Holm of the Herring Watch Network reports eggs on 31 of 48 lines. \
    The count was made by eleven people in two boats, and it was the best since the network began. \
    Nobody knows yet whether the spawn follows the kelp or only the warmer water that both of them like. \
    The next count is in the first week of April, an hour before low water, at Port Alder.</p>\
    </main></body></html>";

/// Languages and texts of the blocks, in order.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut parts = GUIDE.split("\n```");
    let mut found = Vec::new();
    parts.next();
    while let Some(block) = parts.next() {
        found.push(block.split_once('\n').expect("a line after the fence"));
        parts.next().expect("every block ends");
    }
    found
}

/// Serves the page on loopback, as long as the test runs.
fn serve_page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => break,
                }
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{PAGE}",
                PAGE.len()
            );
            // A client that has gone away needs no page.
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    port
}

/// What an answer lacks of what is expected of it.
fn lacking(expected: &Value, actual: &Value, at: &str, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::String(any), _) if any == "…" => {}
        (Value::Object(fields), Value::Object(actual)) => {
            for (name, value) in fields {
                let at = format!("{at}.{name}");
                match actual.get(name) {
                    Some(actual) => lacking(value, actual, &at, found),
                    None => found.push(format!("`{at}` is missing")),
                }
            }
        }
        (Value::Array(values), Value::Array(actual)) if values.len() == actual.len() => {
            for (n, (value, actual)) in values.iter().zip(actual).enumerate() {
                lacking(value, actual, &format!("{at}[{n}]"), found);
            }
        }
        _ if expected == actual => {}
        _ => found.push(format!("`{at}`: {actual} for {expected}")),
    }
}

#[test]
fn every_command_of_the_koi_guide_works() {
    let place = Place::new();
    let home = place.0.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/koi-vault");
    crate::graph_guide::copy(&example, &place.vault());
    fs::write(home.join(".curlrc"), "silent\nshow-error\nfail-with-body\n").unwrap();
    let page = format!("http://127.0.0.1:{}/count", serve_page());
    let mut start = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    start.env("KENNING_WEB_ALLOW", &page);
    let server = Server::of(start);
    let programs = Path::new(env!("CARGO_BIN_EXE_kenning")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let (mut n_run, mut n_compared) = (0, 0);
    let mut said: Option<String> = None;
    for (language, text) in blocks() {
        let here = text
            .replace("localhost:8351", &format!("127.0.0.1:{}", server.port))
            .replace(PAGE_URL, &page);
        match language {
            "sh" if text == "kenning serve" => {}
            "sh" => {
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &here])
                    .current_dir(place.vault())
                    .env_clear()
                    .env("PATH", format!("{}:{path}", programs.display()))
                    .env("HOME", home)
                    .env("KENNING_DATA", home.join("data"))
                    .env("VAULT_PATH", place.vault())
                    .env("KENNING_WEB_ALLOW", &page)
                    .output()
                    .expect("bash");
                let err = String::from_utf8_lossy(&output.stderr);
                let out = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{text}\n{out}{err}");
                said = Some(out.into_owned());
                n_run += 1;
                continue;
            }
            "json" => {
                let expected: Value = serde_json::from_str(&here).expect(text);
                if let Some(answer) = said.take() {
                    let answer: Value = serde_json::from_str(&answer).expect(&answer);
                    let mut found = Vec::new();
                    lacking(&expected, &answer, "", &mut found);
                    assert!(found.is_empty(), "{text}\n{found:#?}\n{answer:#}");
                    n_compared += 1;
                }
            }
            "markdown" | "yaml" | "console" => {}
            other => panic!("nothing runs a block of `{other}`"),
        }
        said = None;
    }
    assert_eq!((n_run, n_compared), (23, 20));
}
