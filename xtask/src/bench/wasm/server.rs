//! A server, asked over its standard streams by one caller who waits for each answer.

use super::meter;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

pub(in crate::bench) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// From before it was started until it had said hello.
    pub(in crate::bench) answered_after: Duration,
}

impl Server {
    pub(in crate::bench) fn start(mut command: Command) -> Result<Self> {
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let mut server = Self {
            child,
            input,
            output: BufReader::new(output),
            next: 0,
            answered_after: Duration::ZERO,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        server.ask("initialize", &hello)?;
        server.answered_after = began.elapsed();
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    pub(in crate::bench) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// Processor time so far.
    pub(in crate::bench) fn cpu(&self) -> Result<Duration> {
        meter::cpu_of(&self.id())
    }

    /// Calls a tool, which must answer well.
    pub(in crate::bench) fn call(&mut self, name: &str, arguments: &Value) -> Result<()> {
        let call = json!({ "name": name, "arguments": arguments });
        let answer = self.ask("tools/call", &call)?;
        ensure!(answer["isError"] != true, "`{name}` answered {answer}");
        Ok(())
    }

    /// The result of a request.
    pub(in crate::bench) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the server ended");
            let mut message: Value = serde_json::from_str(&line)?;
            // What it says unasked is passed over.
            if message["id"] == id {
                ensure!(message["result"].is_object(), "{method}: {message}");
                return Ok(message["result"].take());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes())?;
        Ok(())
    }

    /// Lets it finish.
    pub(in crate::bench) fn stop(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let status = child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}
