//! Requests to `/mcp` whose headers say one thing and whose bodies another.
//!
//! An input is headers, one a line, an empty line and the body.

use super::{ensure, rpc};
use crate::{Source, Subject, Target};
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use kenning_core::Space;
use kenning_engine::Principal;
use kenning_mcp::Server;
use kenning_mcp::http::{Options, Service, service};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use rpc::Expected;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::bytes::Bytes;

pub(super) const TARGET: Target = Target {
    name: "http_headers_vs_body",
    about: "headers that contradict the body are refused, and nothing is our own fault",
    words: WORDS,
    seeds: || (0..24).map(|it| generate(&mut Source::new(it))).collect(),
    generate,
    open: || Box::new(HttpService::new()),
    pass_cases: 400,
    fresh_every: 5_000,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "mcp-protocol-version: 2026-07-28\n",
    "mcp-protocol-version: 2025-11-25\n",
    "mcp-protocol-version: 1999-01-01\n",
    "mcp-method: tools/call\n",
    "mcp-method: tools/list\n",
    "mcp-method: ping\n",
    "mcp-name: kg_stats\n",
    "mcp-name: =?base64?a2dfc3RhdHM=?=\n",
    "mcp-session-id: x\n",
    "last-event-id: 1\n",
    "accept: */*\n",
    "accept: application/json\n",
    "accept: text/event-stream\n",
    "accept: text/html;q=0\n",
    "content-type: application/json\n",
    "content-type: text/plain\n",
    "content-encoding: gzip\n",
    "x-custom-header: 1\n",
    "mcp-param-x: y\n",
    "\n\n",
    "\"method\":\"tools/list\"",
    "\"name\":\"kg_stats\"",
    "\"_meta\":",
    "2026-07-28",
    "null",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let mut out = String::from(
        "content-type: application/json\naccept: application/json, text/event-stream\n",
    );
    for _ in 0..source.below(6) {
        out += *source.pick(&WORDS[..19]);
    }
    out.push('\n');
    let body = match source.below(4) {
        0 => rpc::message(source),
        1 => {
            let call = json!({ "name": "kg_stats", "arguments": {}, "_meta": rpc::meta() });
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string()
        }
        _ => source.pick(&rpc::seeds()).to_string(),
    };
    (out + &body).into_bytes()
}

struct HttpService {
    runtime: Runtime,
    service: Service,
    _house: Fixture,
}

impl HttpService {
    fn new() -> Self {
        let fixture = Fixture::select(Selection::default());
        let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        Self {
            runtime: runtime.expect("a runtime"),
            service: service(server, Options::default()),
            _house: fixture,
        }
    }
}

/// Headers and body, as far as the headers are some.
fn split(input: &[u8]) -> (Vec<(HeaderName, HeaderValue)>, Vec<u8>) {
    let end = input.windows(2).position(|it| it == b"\n\n");
    let (head, body) = match end {
        Some(at) => (&input[..at], &input[at + 2..]),
        None => (&b""[..], input),
    };
    let headers = head.split(|it| *it == b'\n').filter_map(|line| {
        let colon = line.iter().position(|it| *it == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        Some((name, value))
    });
    (headers.take(60).collect(), body.to_vec())
}

impl Subject for HttpService {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let (headers, body) = split(input);
        if String::from_utf8_lossy(&body).contains("subscri") {
            return Ok(());
        }
        let one = |name: &str| -> Option<&str> {
            let mut found = headers.iter().filter(|it| it.0 == name);
            let first = found.next()?.1.to_str().ok()?;
            found.next().is_none().then_some(first)
        };
        let mut request = Request::post("http://localhost/mcp").header("host", "localhost");
        for (name, value) in &headers {
            if name != "host" {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(Bytes::from(body.clone())));
        let request = request.map_err(|it| it.to_string())?;
        let answered = self.runtime.block_on(async {
            let answer =
                tokio::time::timeout(Duration::from_secs(8), self.service.handle(request)).await;
            let answer = answer.map_err(|_| "silence: no answer in time".to_owned())?;
            let status = answer.status().as_u16();
            let body =
                tokio::time::timeout(Duration::from_secs(8), answer.into_body().collect()).await;
            let body = body.map_err(|_| "silence: the answer does not end".to_owned())?;
            Ok::<_, String>((status, body.map_err(|it| it.to_string())?.to_bytes()))
        });
        let (status, answer) = answered?;
        ensure!(
            status < 500,
            "our own fault: {status} {}",
            String::from_utf8_lossy(&answer)
        );
        let json: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let code = json["error"]["code"].as_i64();
        ensure!(code != Some(-32603), "our own fault: {json}");
        let expected = rpc::expected(&body);
        if let Expected::Error(..) = expected {
            ensure!(status >= 400, "a body that is no message got {status}");
        }
        // In the second era the headers must say what the body says.
        let read: Value = serde_json::from_slice(&body).unwrap_or_default();
        let version = &read["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let is_second =
            one("mcp-protocol-version") == Some("2026-07-28") && version == "2026-07-28";
        if is_second && matches!(expected, Expected::Answer(_)) && json["result"].is_object() {
            let method = read["method"].as_str();
            ensure!(
                one("mcp-method") == method,
                "contradiction: the header names another method than {method:?}"
            );
            if method == Some("tools/call") {
                let name = read["params"]["name"].as_str();
                let said = one("mcp-name");
                let is_coded = said.is_some_and(|it| it.starts_with("=?"));
                ensure!(
                    said == name || is_coded,
                    "contradiction: the header names {said:?} and the body {name:?}"
                );
            }
        }
        Ok(())
    }
}
