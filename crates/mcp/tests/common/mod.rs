//! A client on the other end of the pipes, and messages that were never meant to be.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod mutate;

use kenning_core::Space;
use kenning_engine::Principal;
use kenning_mcp::{Handler, Server, stdio};
use kenning_testing::Fixture;
use kenning_testing_mcp::WithFixtures;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What takes longer than this hangs; a busy machine takes seconds for what should take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) fn server(toolsets: &[&str]) -> Server {
    let selection = Selection {
        toolsets: toolsets.iter().map(|it| (*it).to_owned()).collect(),
        ..Selection::default()
    };
    // The directory is gone as soon as it is opened; these tests store nothing.
    let fixture = Fixture::select(selection);
    Server::new(fixture.board, Principal::owner(Space::default()))
}

/// The same with the fixtures of the conformance suite around it, and few tools of its own.
pub(crate) fn fixtures() -> WithFixtures {
    WithFixtures::new(server(&["lean"]))
}

/// The key of the version in a request without handshake.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(crate) struct Client {
    output: WriteHalf<DuplexStream>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) service: JoinHandle<io::Result<()>>,
    pub(crate) shutdown: CancellationToken,
    next_id: i64,
}

impl Client {
    pub(crate) fn connect(server: impl Handler) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let service = tokio::spawn(stdio::serve(server, input, output, shutdown.clone()));
        let (input, output) = tokio::io::split(ours);
        Self {
            output,
            input: BufReader::new(input).lines(),
            service,
            shutdown,
            next_id: 1_000_000,
        }
    }

    /// A client that has shaken hands.
    pub(crate) async fn initialized(server: impl Handler) -> Self {
        let mut client = Self::connect(server);
        let answer = client.initialize("2025-11-25").await;
        assert!(answer["result"].is_object(), "{answer}");
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        self.request("initialize", params).await
    }

    pub(crate) async fn line(&mut self, line: &[u8]) {
        self.output.write_all(line).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.line(message.to_string().as_bytes()).await;
    }

    /// The next message of the server, if there is one in time.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.input.next_line()).await.ok()?;
        let line = line.unwrap()?;
        let message: Value = serde_json::from_str(&line).expect("a line is a message");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        Some(message)
    }

    /// The next answer; notifications on the way are skipped.
    pub(crate) async fn answer(&mut self) -> Option<Value> {
        loop {
            let message = self.receive().await?;
            if message.get("method").is_none() {
                return Some(message);
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        let answer = self.answer().await.expect("an answer in time");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call(&mut self, name: &str) -> Value {
        self.request("tools/call", json!({ "name": name, "arguments": {} }))
            .await
    }

    /// Closes the server's input, reads what is left and waits for its end.
    pub(crate) async fn hang_up(mut self) -> (Vec<Value>, io::Result<()>) {
        self.output.shutdown().await.unwrap();
        let rest = async {
            let mut rest = Vec::new();
            while let Some(line) = self.input.next_line().await.unwrap() {
                rest.push(serde_json::from_str(&line).unwrap());
            }
            rest
        };
        let patience = PATIENCE;
        let (rest, ended) = tokio::join!(rest, timeout(patience, self.service));
        (rest, ended.expect("the service ends in time").unwrap())
    }
}

/// How many calls of `test_wait` wait.
pub(crate) async fn waiting(client: &mut Client) -> String {
    let answer = client.call("test_waiting").await;
    let text = &answer["result"]["content"][0]["text"];
    text.as_str().expect("a number").to_owned()
}

pub(crate) async fn wait(client: &mut Client) {
    let params = json!({ "name": "test_wait" });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
        .await;
    while waiting(client).await != "1" {}
}
