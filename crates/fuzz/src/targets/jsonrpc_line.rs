//! Lines on standard input of the MCP server.

use super::{ensure, rpc};
use crate::{Source, Subject, Target};
use kenning_core::Space;
use kenning_engine::Principal;
use kenning_mcp::{Server, stdio};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use rpc::Expected;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub(super) const TARGET: Target = Target {
    name: "jsonrpc_line",
    about: "every line gets the answer that JSON-RPC has for it, and the next good call is answered",
    words: rpc::WORDS,
    seeds: || {
        rpc::seeds()
            .iter()
            .map(|it| it.to_string().into_bytes())
            .collect()
    },
    generate: |source: &mut Source| rpc::message(source).into_bytes(),
    open: || Box::new(Client::new()),
    pass_cases: 400,
    fresh_every: 2_000,
    contains_panics: false,
};

/// Nothing takes longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(8);

struct Client {
    runtime: Runtime,
    output: WriteHalf<DuplexStream>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next_id: i64,
    _house: Fixture,
}

impl Client {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let fixture = Fixture::select(Selection::default());
        let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (input, output) = tokio::io::split(theirs);
        runtime.spawn(stdio::serve(
            server,
            input,
            output,
            CancellationToken::new(),
        ));
        let (input, output) = tokio::io::split(ours);
        let mut client = Self {
            runtime,
            output,
            input: BufReader::new(input).lines(),
            next_id: 1 << 40,
            _house: fixture,
        };
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
        client.send(hello.to_string().as_bytes());
        client.answer().expect("an answer to the handshake");
        client.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn send(&mut self, line: &[u8]) {
        let Self {
            runtime, output, ..
        } = self;
        runtime.block_on(async {
            output.write_all(line).await.expect("a pipe");
            output.write_all(b"\n").await.expect("a pipe");
        });
    }

    /// The next answer; notifications on the way are skipped.
    fn answer(&mut self) -> Result<Value, String> {
        let Self { runtime, input, .. } = self;
        runtime.block_on(async {
            loop {
                let line = tokio::time::timeout(PATIENCE, input.next_line()).await;
                let line = line.map_err(|_| "silence: no answer in time".to_owned())?;
                let line = line
                    .map_err(|it| it.to_string())?
                    .ok_or("ended: the service is gone")?;
                let message: Value =
                    serde_json::from_str(&line).map_err(|_| format!("no message: {line}"))?;
                if message["jsonrpc"] != "2.0" {
                    return Err(format!("no message: {line}"));
                }
                if message.get("method").is_none() {
                    return Ok(message);
                }
            }
        })
    }
}

impl Subject for Client {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let line: Vec<u8> = input
            .iter()
            .map(|byte| if *byte == b'\n' { b' ' } else { *byte })
            .collect();
        let expected = rpc::expected(&line);
        // A subscription is answered when it ends, and a cancelled call not at all.
        let text = String::from_utf8_lossy(&line);
        if text.contains("subscri") || text.contains("cancelled") {
            return Ok(());
        }
        self.send(&line);
        match &expected {
            Expected::Silence => {}
            Expected::Error(code, id) => {
                let answer = self.answer()?;
                let right = answer["error"]["code"] == *code && answer["id"] == *id;
                ensure!(right, "another answer: {expected:?} expected, {answer}");
            }
            Expected::Answer(id) => {
                let answer = self.answer()?;
                ensure!(
                    answer["id"] == *id,
                    "another answer: {expected:?} expected, {answer}"
                );
                let code = answer["error"]["code"].as_i64();
                ensure!(code != Some(-32603), "our own fault: {answer}");
                ensure!(
                    code.is_some() || answer["result"].is_object(),
                    "neither result nor error: {answer}"
                );
            }
        }
        // Silence is seen at the next good call, whose answer must come first.
        self.next_id += 1;
        let id = self.next_id;
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        self.send(ping.to_string().as_bytes());
        let answer = self.answer()?;
        ensure!(
            answer["id"] == id,
            "another answer: to the next good call: {answer}"
        );
        Ok(())
    }
}
