//! The clients and their calls.

use anyhow::{Context as _, Result, ensure};
use kenning_core::SeededRandom;
use kenning_tools::{Effect, TOOLS};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time after which a call counts as unanswered.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// One call.
pub(super) struct Turn {
    tool: &'static str,
    arguments: Value,
}

/// Notes, memories and vectors that are written, so many of each.
const THINGS: u64 = 200;

/// How often a large thing is written before the time begins, and its size: together more than the caches of a
/// process hold.
const LARGE: u64 = 320;
const LARGE_BYTES: usize = 200_000;

/// Tools whose examples are not part of the mix: `integrity_check` reads the whole log by nature, and
/// `vault_backup` keeps what it makes.
const LEFT_OUT: &[&str] = &["integrity_check", "vault_backup"];

impl Turn {
    /// One of the mix: a third writes, to the same few hundred things for ever.
    pub(super) fn chosen(random: &SeededRandom) -> Self {
        let n = random.below(THINGS);
        let (tool, arguments) = match random.below(24) {
            0..=2 => return Self::note(n, random.below(1_000)),
            3 | 4 => return Self::memory(n),
            5 => return Self::vector(n),
            6 => (
                "now_update",
                json!({ "current_task": format!("task {}", n % 9) }),
            ),
            7 => (
                "vault_read_note",
                json!({ "path": format!("notes/n{n}.md") }),
            ),
            8 => (
                "memory_recall",
                json!({ "query": format!("measure of thing {n}") }),
            ),
            9 => ("koi_search", json!({ "query": format!("note {n}") })),
            10 => (
                "code_query",
                json!({ "cypher": format!("UNWIND [1, {n}] AS x RETURN sum(x)") }),
            ),
            11 => ("vault_read_note", json!({ "path": "../outside" })),
            12 => ("kg_stats", json!({ "unknown": true })),
            _ => return Self::example(random),
        };
        Self { tool, arguments }
    }

    /// Everything once, so that what grows afterwards is not what was still missing.
    pub(super) fn everything() -> impl Iterator<Item = Self> {
        let all = (0..THINGS).flat_map(|n| [Self::note(n, 0), Self::memory(n), Self::vector(n)]);
        all.chain((0..LARGE).map(Self::large))
    }

    /// The large ones alone, for the second process.
    pub(super) fn larger() -> impl Iterator<Item = Self> {
        (0..LARGE).map(|n| Self::large(n + LARGE))
    }

    /// The pages that a process keeps in memory may be as many as its caches hold, and no more: these fill them.
    fn large(n: u64) -> Self {
        let blob = "x".repeat(LARGE_BYTES);
        Self {
            tool: "kg_vector_upsert",
            arguments: json!({ "id": "large", "vector": [1.0, 0.5, 0.25, 1.0], "metadata": { "n": n, "blob": blob } }),
        }
    }

    fn note(n: u64, seen: u64) -> Self {
        let (tag, next) = (n % 7, (n + 1) % THINGS);
        let content = format!("# Note {n}\n\nseen {seen:03} times #tag{tag} [[n{next}]]\n");
        Self {
            tool: "vault_write_note",
            arguments: json!({ "path": format!("notes/n{n}.md"), "content": content }),
        }
    }

    fn memory(n: u64) -> Self {
        let content = format!("The measure of thing {n} is {} meters.", n * 3);
        Self {
            tool: "memory_store",
            arguments: json!({ "content": content, "memory_type": "fact" }),
        }
    }

    fn vector(n: u64) -> Self {
        let numbers = [n as f64 / THINGS as f64, 0.5, 0.25, 1.0];
        Self {
            tool: "kg_vector_upsert",
            arguments: json!({ "id": format!("v{n}"), "vector": numbers, "metadata": { "n": n } }),
        }
    }

    /// A read, as one of its examples has it.
    fn example(random: &SeededRandom) -> Self {
        let reads = TOOLS.iter().filter(|tool| {
            tool.effect() == Effect::Read
                && tool.toolset().is_on_by_default()
                && !LEFT_OUT.contains(&tool.name())
        });
        let reads: Vec<_> = reads.collect();
        let tool = reads[random.below(reads.len() as u64) as usize];
        let examples = tool.examples();
        let example = &examples[random.below(examples.len() as u64) as usize];
        Self {
            tool: tool.name(),
            arguments: serde_json::from_str(example.input).unwrap_or_default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard streams that several threads call through.
pub(super) struct Pipe {
    input: Mutex<ChildStdin>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    next: Mutex<u64>,
}

impl Pipe {
    pub(super) fn new(input: ChildStdin, out: ChildStdout) -> Result<Self> {
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let heard = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                let id = message["id"].as_u64();
                if let Some(sender) = id.and_then(|it| lock(&heard).remove(&it)) {
                    // The caller may no longer wait.
                    drop(sender.send(message));
                }
            }
            lock(&heard).clear();
        });
        let pipe = Self {
            input: Mutex::new(input),
            waiting,
            next: Mutex::new(0),
        };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "soak", "version": "1" } });
        pipe.ask("initialize", &hello).map_err(anyhow::Error::msg)?;
        pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(pipe)
    }

    fn send(&self, message: &Value) -> std::io::Result<()> {
        lock(&self.input).write_all(format!("{message}\n").as_bytes())
    }

    fn ask(&self, method: &str, params: &Value) -> Result<Value, String> {
        let id = {
            let mut next = lock(&self.next);
            *next += 1;
            *next
        };
        let (sender, receiver) = channel();
        lock(&self.waiting).insert(id, sender);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .map_err(|it| it.to_string())?;
        let answer = receiver.recv_timeout(SILENCE_MAX);
        answer.map_err(|it| format!("{method} over stdio: {it}"))
    }

    pub(super) fn call(&self, turn: &Turn) -> Result<(), String> {
        let params = json!({ "name": turn.tool, "arguments": turn.arguments });
        let answer = self.ask("tools/call", &params)?;
        let code = &answer["error"]["code"];
        let is_ours = !code.is_null() || answer.to_string().contains("\"code\":\"internal\"");
        if is_ours {
            return Err(format!("{} over stdio: {answer}", turn.tool));
        }
        Ok(())
    }
}

/// One caller over HTTP.
pub(super) struct Http {
    host: String,
    token: Option<String>,
    connection: Option<BufReader<TcpStream>>,
    line: Line,
    /// How long it waits for an answer.
    patience: Duration,
}

/// The connection of a caller, for whoever ends it from outside.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<Option<TcpStream>>>);

impl Line {
    pub(super) fn cut(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = &*stream {
            // It may be closed already.
            drop(stream.shutdown(std::net::Shutdown::Both));
        }
    }

    fn is_of(&self, stream: &TcpStream) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *line = stream.try_clone().ok();
    }
}

impl Clone for Http {
    /// Another caller, with a connection of its own.
    fn clone(&self) -> Self {
        Self::new(&self.host, self.token.as_deref())
    }
}

/// A status, and the body.
pub(super) type Answer = (u16, String);

impl Http {
    pub(super) fn new(host: &str, token: Option<&str>) -> Self {
        Self {
            host: host.to_owned(),
            token: token.map(str::to_owned),
            connection: None,
            line: Line::default(),
            patience: SILENCE_MAX,
        }
    }

    /// The same caller, who hangs up after so long.
    pub(super) fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(super) fn line(&self) -> Line {
        self.line.clone()
    }

    /// Another caller with this token.
    pub(super) fn with_token(&self, token: &str) -> Self {
        Self::new(&self.host, Some(token))
    }

    pub(super) fn hang_up(&mut self) {
        self.connection = None;
    }

    pub(super) fn call(&mut self, turn: &Turn) -> Result<(), String> {
        let path = format!("/tools/{}", turn.tool);
        let answer = self.ask("POST", &path, &turn.arguments.to_string());
        judged(turn.tool, answer)
    }

    pub(super) fn call_mcp(&mut self, turn: &Turn) -> Result<(), String> {
        let params = json!({ "name": turn.tool, "arguments": turn.arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answer = self.ask("POST", "/mcp", &body.to_string());
        judged(turn.tool, answer)
    }

    pub(super) fn get(&mut self, path: &str) -> Result<(), String> {
        let answer = self.ask("GET", path, "");
        judged(path, answer)
    }

    /// Follows the log for a while.
    pub(super) fn follow(&self, time: Duration) -> Result<(), String> {
        let work = || -> Result<()> {
            let mut stream = self.connect()?;
            stream.set_read_timeout(Some(time / 4))?;
            stream.write_all(self.head("GET", "/events", 0).as_bytes())?;
            let began = Instant::now();
            let mut bytes = [0; 4_096];
            let mut heard = Vec::new();
            while began.elapsed() < time {
                if let Ok(n) = stream.read(&mut bytes) {
                    ensure!(n > 0, "the stream ended");
                    heard.extend_from_slice(&bytes[..n]);
                }
            }
            ensure!(heard.starts_with(b"HTTP/1.1 200"), "no stream");
            Ok(())
        };
        work().map_err(|it| format!("/events: {it:#}"))
    }

    pub(super) fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        Ok(stream)
    }

    pub(super) fn head(&self, method: &str, path: &str, length: usize) -> String {
        let token = self.token.as_ref();
        let token = token.map(|it| format!("Authorization: Bearer {it}\r\n"));
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{}Content-Length: {length}\r\n\r\n",
            self.host,
            token.unwrap_or_default()
        )
    }

    /// One request on a connection that stays open.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        // After a closed connection it tries once more, as clients do.
        let is_fresh = self.connection.is_none();
        match self.exchange(method, path, body) {
            Err(_) if !is_fresh => {
                self.hang_up();
                self.exchange(method, path, body)
            }
            other => other,
        }
    }

    /// The same, without a second try.
    pub(super) fn exchange(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        if self.connection.is_none() {
            let stream = self.connect()?;
            self.line.is_of(&stream);
            self.connection = Some(BufReader::new(stream));
        }
        let request = self.head(method, path, body.len()) + body;
        let stream = self.connection.as_mut().context("no connection")?;
        stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.context("no status")?;
        let (mut length, mut is_last) = (None, false);
        loop {
            line.clear();
            ensure!(
                stream.read_line(&mut line)? > 0,
                "the answer ends in its head"
            );
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse::<usize>().ok(),
                "connection" => is_last = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        let mut body = vec![0; length.context("an answer without its length")?];
        stream.read_exact(&mut body)?;
        if is_last {
            self.hang_up();
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// Whether an answer is one that a good server gives: a refusal is, its own fault is not.
fn judged(what: &str, answer: Result<Answer>) -> Result<(), String> {
    match answer {
        Ok((status, _)) if status < 500 && status != 429 && status != 401 => Ok(()),
        Ok((status, body)) => Err(format!("{what}: {status} {body}")),
        Err(why) => Err(format!("{what}: {why:#}")),
    }
}
