//! Ten thousand requests that were never meant to be.
//!
//! `KENNING_SEED` chooses the seed.

use crate::place::{Answer, Place, Wire, get, post};
use kenning_testing::{Source, mutate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

const CASES: usize = 10_000;
const HANG: Duration = Duration::from_secs(15);
const READ: &str = "/tools/vault_read_note";
const GOOD: &str = r#"{"path":"People/Bill Baue.md"}"#;

const TOOL_SEEDS: &[&str] = &[
    GOOD,
    r#"{"path":"People/Nobody.md"}"#,
    r#"{"path":"a/../b.md"}"#,
    r#"{"path":"\u00e9\ud83d\ude00.md"}"#,
    r#"{"path":["a"],"b":{"c":1.5e3,"d":null,"e":true}}"#,
];
const RPC_SEEDS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"vault_read_note","arguments":{"path":"People/Bill Baue.md"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"vault_list_notes","arguments":{"folder":"."},"_meta":{"progressToken":7}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#,
];
const VALUES: &[&str] = &[
    "null",
    "true",
    "[]",
    "{}",
    "0",
    "-0",
    "1e999",
    "-1e-999",
    "18446744073709551616",
    "NaN",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "'a'",
    "[null]",
    "0x10",
    "1.",
    "\"\"",
    "Infinity",
];

struct Mutator(Source);

impl Mutator {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        let at = self.below(items.len());
        items[at]
    }

    /// A body, and the name of what was done to it.
    fn body(&mut self, seeds: &[&str]) -> (&'static str, Vec<u8>) {
        let seed = self.pick(seeds);
        let mut bytes = seed.as_bytes().to_vec();
        let kind = match self.below(12) {
            0 => {
                for _ in 0..=self.below(4) {
                    mutate::flip_bit(&mut bytes, &mut self.0);
                }
                "bit flips"
            }
            1 => {
                mutate::cut_short(&mut bytes, &mut self.0);
                "truncation"
            }
            2 => {
                let value = self.pick(VALUES);
                let key = self.pick(&["path", "id", "method", "params", "jsonrpc", "x"]);
                bytes.splice(1..1, format!("\"{key}\":{value},").into_bytes());
                "duplicate key in front"
            }
            3 => {
                bytes.pop();
                let value = self.pick(VALUES);
                let key = self.pick(&["path", "id", "method", "params", "jsonrpc", "x"]);
                bytes.extend(format!(",\"{key}\":{value}}}").into_bytes());
                "duplicate key behind"
            }
            4 => {
                let n = [10, 127, 128, 1_000, 50_000][self.below(5)];
                let is_closed = self.0.one_in(2);
                bytes = mutate::nested(seed, n, is_closed, &mut self.0).into_bytes();
                "deep nesting"
            }
            5 => {
                let digits = "9".repeat([20, 400, 20_000][self.below(3)]);
                bytes.splice(1..1, format!("\"n\":{digits}e{digits},").into_bytes());
                "huge number"
            }
            6 => {
                mutate::insert_bad_utf8(&mut bytes, &mut self.0);
                "bad UTF-8"
            }
            7 => {
                // A value of another type, wherever a string stands.
                let text = String::from_utf8(bytes).unwrap();
                let parts: Vec<&str> = text.split('"').collect();
                let nth = self.below(parts.len() / 2) * 2 + 1;
                let old = format!("\"{}\"", parts[nth]);
                bytes = text.replacen(&old, self.pick(VALUES), 1).into_bytes();
                "another value"
            }
            8 => {
                let n = 1 + self.below(20);
                bytes = format!("[{}]", vec![seed; n].join(",")).into_bytes();
                "batch"
            }
            9 => {
                let n = 1 + self.below(40);
                bytes = self.0.bytes(n);
                "noise"
            }
            10 => {
                let other = self.pick(seeds);
                mutate::go_on_with(&mut bytes, other.as_bytes(), &mut self.0);
                "spliced"
            }
            _ => {
                let long = "A".repeat([100, 10_000, 300_000][self.below(3)]);
                bytes = seed.replacen("People", &long, 1).into_bytes();
                bytes.extend(self.pick(&["", " ", "\n\n", "\0", "x"]).bytes());
                "long"
            }
        };
        (kind, bytes)
    }

    /// A whole request whose head is wrong.
    fn request(&mut self, path: &str) -> (&'static str, Vec<u8>) {
        let mut bytes = post(path, "", GOOD.as_bytes());
        let head = bytes.len() - GOOD.len();
        match self.below(10) {
            0 => {
                for _ in 0..=self.below(3) {
                    mutate::flip_bit(&mut bytes[..head], &mut self.0);
                }
                ("head: bit flips", bytes)
            }
            1 => {
                bytes.truncate(self.below(head));
                ("head: truncation", bytes)
            }
            2 => {
                let n = self.below(300);
                let line = self.0.bytes(n);
                bytes.splice(0..0, line);
                ("head: noise", bytes)
            }
            3 => {
                let length = self.pick(&[
                    "-1",
                    "+5",
                    "0x10",
                    "1e3",
                    "5, 6",
                    "5,5",
                    "",
                    " ",
                    "99999999999999999999",
                    "30a",
                    "100",
                    "3",
                    "0",
                ]);
                let text = String::from_utf8(bytes).unwrap();
                let right = format!("Content-Length: {}", GOOD.len());
                let text = text.replace(&right, &format!("Content-Length: {length}"));
                ("head: wrong length", text.into_bytes())
            }
            4 => {
                let more = self.pick(&[
                    "Content-Length: 3",
                    "Transfer-Encoding: chunked",
                    "Transfer-Encoding: gzip",
                    "Transfer-Encoding: chunked, identity",
                    "Transfer-Encoding : chunked",
                    "Expect: 200-ok",
                    "Connection: upgrade\r\nUpgrade: h2c",
                    "Content-Encoding: gzip",
                    "Content-Type: text/plain",
                ]);
                let headers = format!("{more}\r\n");
                (
                    "head: another framing",
                    post(path, &headers, GOOD.as_bytes()),
                )
            }
            5 => {
                let line = self.pick(&[
                    "",
                    " ",
                    "POST",
                    "POST /mcp",
                    "POST /mcp HTTP/9.9",
                    "POST /mcp HTTP/0.9",
                    "POST  /mcp  HTTP/1.1",
                    "POST\t/mcp\tHTTP/1.1",
                    "/mcp POST HTTP/1.1",
                    "PRI * HTTP/2.0",
                    "CONNECT localhost:80 HTTP/1.1",
                    "OPTIONS * HTTP/1.1",
                    "GET http://[::1 HTTP/1.1",
                    "GET \\..\\ HTTP/1.1",
                    "GET /%zz%00 HTTP/1.1",
                    "GET mcp HTTP/1.1",
                    "GET ?a HTTP/1.1",
                    "GET /tools/../mcp HTTP/1.1",
                    "GET /events?after=%ff HTTP/1.1",
                    "\u{16}\u{3}\u{1}\u{2}",
                    "GET /tools/%ff?%ff=%ff&&==& HTTP/1.1",
                ]);
                (
                    "head: request line",
                    format!("{line}\r\nHost: localhost\r\n\r\n").into_bytes(),
                )
            }
            6 => {
                let n = [50, 99, 200, 2_000][self.below(4)];
                (
                    "head: many lines",
                    post(path, &"A: b\r\n".repeat(n), GOOD.as_bytes()),
                )
            }
            7 => {
                let long = "a".repeat([10_000, 70_000, 500_000][self.below(3)]);
                let request = match self.below(3) {
                    0 => get(&format!("/{long}"), ""),
                    1 => get("/", &format!("{long}: x\r\n")),
                    _ => get("/", &format!("X: {long}\r\n")),
                };
                ("head: long", request.into_bytes())
            }
            8 => {
                let size = self.pick(&[
                    "zz",
                    "-1",
                    "ffffffffffffffffff",
                    "5;x=\"",
                    "",
                    "1 ",
                    "0x5",
                    "5\n",
                ]);
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                     Transfer-Encoding: chunked\r\n\r\n{size}\r\n{GOOD}\r\n0\r\n"
                );
                ("head: bad chunk", head.into_bytes())
            }
            _ => {
                let mut all = bytes.clone();
                bytes.truncate(self.below(bytes.len()));
                all.extend(bytes);
                ("head: one and a half", all)
            }
        }
    }
}

/// Why the answer to a body is wrong.
fn fault(path: &str, body: &[u8], answer: &Answer) -> Option<String> {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let right = if path == READ {
        let calls = json
            .as_ref()
            .and_then(Value::as_object)
            .is_some_and(|it| it.len() == 1 && it.get("path").is_some_and(Value::is_string));
        match answer.status {
            200 => calls,
            403 | 404 => calls && !answer.code().is_empty(),
            422 => answer.code() == "invalid_input",
            _ => false,
        }
    } else {
        let code = serde_json::from_str::<Value>(&answer.body)
            .ok()
            .and_then(|it| it["error"]["code"].as_i64());
        match (&json, answer.status) {
            (None, 400) => code == Some(-32700),
            (None, _) => false,
            (Some(_), 202) => true,
            (Some(_), 200 | 400 | 404) => {
                let answer: Result<Value, _> = serde_json::from_str(&answer.body);
                answer.is_ok_and(|it| it["jsonrpc"] == "2.0") && code != Some(-32603)
            }
            _ => false,
        }
    };
    (!right).then(|| format!("{answer:?}"))
}

async fn works(place: &Place) -> bool {
    let answer = place.post(READ, "", GOOD).await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let listed = place.post("/mcp", "", list).await;
    answer.body.contains("# Bill Baue") && listed.json()["result"]["tools"].is_array()
}

#[tokio::test]
async fn malformed_requests_do_no_harm() {
    let seed = std::env::var("KENNING_SEED").ok();
    let seed: u64 = seed.map_or(20_260_728, |it| it.parse().expect("a number"));
    let began = Instant::now();
    let place = Place::new().await;
    let mut mutator = Mutator(Source::new(seed));
    let mut wires: BTreeMap<&str, Wire> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for case in 0..CASES {
        let path = [READ, "/mcp"][case % 2];
        let in_head = mutator.below(10) == 0;
        let (kind, fault) = if in_head {
            let (kind, request) = mutator.request(path);
            let mut wire = place.connect().await;
            let asked = async {
                wire.send(&request).await;
                // Nothing more comes, whatever the head promised.
                let _ = wire.stream.shutdown().await;
                let mut worst = 0;
                while let Some(answer) = wire.answer().await {
                    worst = worst.max(answer.status);
                    if answer.header("content-type") == Some("text/event-stream") {
                        break;
                    }
                }
                worst
            };
            let fault = match tokio::time::timeout(HANG, asked).await {
                Ok(status) if status < 500 => None,
                Ok(status) => Some(format!("{status}")),
                Err(_) => Some("hangs".to_owned()),
            };
            (
                kind,
                fault.map(|it| format!("{}: {it}", request.escape_ascii())),
            )
        } else {
            let (kind, body) = mutator.body(if path == READ { TOOL_SEEDS } else { RPC_SEEDS });
            let mut wire = match wires.remove(path) {
                Some(wire) => wire,
                None => place.connect().await,
            };
            let asked = async {
                wire.send(post(path, "", &body)).await;
                wire.answer().await
            };
            let fault = match tokio::time::timeout(HANG, asked).await {
                Ok(Some(answer)) => {
                    let fault = fault(path, &body, &answer);
                    let streams = answer.header("content-type") == Some("text/event-stream");
                    if answer.header("connection") != Some("close") && !streams {
                        wires.insert(path, wire);
                    }
                    fault
                }
                Ok(None) => Some("closed".to_owned()),
                Err(_) => Some("hangs".to_owned()),
            };
            (
                kind,
                fault.map(|it| format!("{}: {it}", body.escape_ascii())),
            )
        };
        *kinds.entry(kind).or_default() += 1;
        if let Some(fault) = fault {
            let fault: String = fault.chars().take(900).collect();
            faults.push(format!("case {case} {path} {kind}: {fault}"));
        }
        if case % 100 == 99 {
            assert!(works(&place).await, "after case {case}, seed {seed}");
        }
    }
    println!(
        "http: {CASES} cases, {} failures, seed {seed}, {:?}",
        faults.len(),
        began.elapsed()
    );
    faults.truncate(20);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // A mutator that made only one kind of nonsense would prove nothing.
    assert!(
        kinds.len() >= 20 && kinds.values().all(|it| *it >= 50),
        "{kinds:?}"
    );
}
