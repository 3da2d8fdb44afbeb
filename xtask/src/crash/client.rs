//! The running program, called over stdio or HTTP.

use super::binary::{Binary, Place};
use super::calls::Write as Written;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time after which a call counts as unanswered.
const SILENCE_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Acknowledged,
    /// The program said no, and this.
    Refused(String),
    /// The program was gone before it answered.
    Gone,
}

/// The program, started.
pub(crate) struct Server {
    child: Child,
    connection: Connection,
}

enum Connection {
    Stdio(Arc<Pipe>, Option<JoinHandle<()>>),
    Http(Address),
}

/// Standard streams that several threads call through.
pub(crate) struct Pipe {
    input: Mutex<Option<ChildStdin>>,
    waiting: Mutex<Option<HashMap<u64, Sender<Value>>>>,
    next: AtomicU64,
}

/// One caller. Over HTTP each has its own connection.
pub(crate) enum Client {
    /// With the number of the last answer.
    Stdio(Arc<Pipe>, u64),
    Http(Address, Option<BufReader<TcpStream>>),
}

/// Where a caller calls, and with which token.
#[derive(Clone)]
pub(crate) struct Address {
    host: String,
    token: Option<String>,
}

impl Server {
    pub(crate) fn start(binary: &Binary, place: &Place, transport: Transport) -> Result<Self> {
        Self::start_as(binary, place, transport, Command::spawn)
    }

    /// The same, started by `spawn`.
    pub(crate) fn start_as(
        binary: &Binary,
        place: &Place,
        transport: Transport,
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    ) -> Result<Self> {
        let mut command = binary.command(place);
        match transport {
            Transport::Stdio => {
                let (child, input, out) = Binary::mcp(&mut command, spawn)?;
                let pipe = Arc::new(Pipe {
                    input: Mutex::new(Some(input)),
                    waiting: Mutex::new(Some(HashMap::new())),
                    next: AtomicU64::new(0),
                });
                let reader = {
                    let pipe = pipe.clone();
                    std::thread::spawn(move || pipe.read_answers(out))
                };
                pipe.shake_hands()?;
                let connection = Connection::Stdio(pipe, Some(reader));
                Ok(Self { child, connection })
            }
            Transport::Http => {
                let (child, host) = Binary::serve(&mut command, spawn)?;
                let token = std::fs::read_to_string(place.data().join("http.token"))?;
                let connection = Connection::Http(Address {
                    host,
                    token: Some(token),
                });
                Ok(Self { child, connection })
            }
        }
    }

    pub(crate) fn client(&self) -> Client {
        match &self.connection {
            Connection::Stdio(pipe, _) => Client::Stdio(pipe.clone(), 0),
            Connection::Http(address) => Client::Http(address.clone(), None),
        }
    }

    /// Kills it in the middle of whatever it does, and reads what it still had said.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.join();
        Ok(())
    }

    /// Kills it, if it has not ended.
    pub(super) fn kill_now(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Lets it finish.
    pub(super) fn stop(mut self) -> Result<()> {
        match &self.connection {
            Connection::Stdio(pipe, _) => drop(lock(&pipe.input).take()),
            Connection::Http(_) => self.child.kill()?,
        }
        let status = self.child.wait()?;
        self.join();
        ensure!(status.success(), "the program ended with {status}");
        Ok(())
    }

    fn join(&mut self) {
        if let Connection::Stdio(_, reader) = &mut self.connection
            && let Some(reader) = reader.take()
        {
            // The reader ends with the stream; it has nothing to say but what it has delivered.
            drop(reader.join());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Kills the program if it still runs: a test that gives up leaves no process behind.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    /// Hands every answer to its caller, until the stream ends; then all callers are released.
    fn read_answers(&self, out: ChildStdout) {
        for line in BufReader::new(out).lines() {
            let Ok(line) = line else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            let waiting = message["id"]
                .as_u64()
                .and_then(|id| lock(&self.waiting).as_mut()?.remove(&id));
            if let Some(waiting) = waiting {
                // The caller may no longer wait.
                drop(waiting.send(message));
            }
        }
        lock(&self.waiting).take();
    }

    fn ask(&self, method: &str, params: &Value) -> Option<Receiver<Value>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        lock(&self.waiting).as_mut()?.insert(id, sender);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Some(receiver)
    }

    fn send(&self, message: &Value) -> Option<()> {
        let line = format!("{message}\n");
        lock(&self.input).as_mut()?.write_all(line.as_bytes()).ok()
    }

    fn shake_hands(&self) -> Result<()> {
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "crash", "version": "1" },
        });
        let answer = self.ask("initialize", &hello).and_then(|it| it.recv().ok());
        ensure!(answer.is_some(), "the program ended before it said hello");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Ok(())
    }
}

impl Client {
    /// The same caller with this token, over HTTP.
    pub(super) fn with_token(mut self, token: &str) -> Self {
        if let Self::Http(address, _) = &mut self {
            address.token = Some(token.to_owned());
        }
        self
    }

    /// Writes a note and waits for the answer.
    pub(crate) fn write_note(&mut self, path: &str, content: &str) -> Answer {
        self.call(
            "vault_write_note",
            &json!({ "path": path, "content": content }),
        )
    }

    /// Reads a note and waits for the answer.
    pub(crate) fn read_note(&mut self, path: &str) -> Answer {
        self.call("vault_read_note", &json!({ "path": path }))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.ask(&format!("/tools/{tool}"), tool, arguments).0
    }

    /// Makes a write of any sort. Gives what was answered too; nothing if it was refused.
    pub(super) fn write(&mut self, write: &Written) -> (Answer, Value) {
        self.ask(&write.route, write.tool, &write.arguments)
    }

    /// The number of the last answer, over stdio.
    pub(super) fn last_id(&self) -> u64 {
        match self {
            Self::Stdio(_, last_id) => *last_id,
            Self::Http(..) => 0,
        }
    }

    /// Calls a tool for its answer.
    pub(super) fn read(&mut self, tool: &str, arguments: &Value) -> (Answer, Value) {
        self.ask(&format!("/tools/{tool}"), tool, arguments)
    }

    fn ask(&mut self, route: &str, tool: &str, arguments: &Value) -> (Answer, Value) {
        match self {
            Self::Stdio(pipe, last_id) => {
                let call = json!({ "name": tool, "arguments": arguments });
                let asked = pipe.ask("tools/call", &call);
                let Some(mut answer) = asked.and_then(|it| it.recv().ok()) else {
                    return (Answer::Gone, Value::Null);
                };
                *last_id = answer["id"].as_u64().unwrap_or_default();
                match payload(&mut answer) {
                    Some(value) => (Answer::Acknowledged, value),
                    None => (Answer::Refused(answer.to_string()), Value::Null),
                }
            }
            Self::Http(address, connection) => match post(address, connection, route, arguments) {
                Ok((200, body)) => {
                    let value = serde_json::from_str(&body).unwrap_or_default();
                    (Answer::Acknowledged, value)
                }
                Ok((status, body)) => (Answer::Refused(format!("{status}: {body}")), Value::Null),
                Err(_) => {
                    *connection = None;
                    (Answer::Gone, Value::Null)
                }
            },
        }
    }
}

/// What an answer over MCP carries; none if it is an error.
pub(super) fn payload(answer: &mut Value) -> Option<Value> {
    let result = &mut answer["result"];
    if !result.is_object() || result["isError"] == true {
        return None;
    }
    let structured = result["structuredContent"].take();
    if structured.is_object() {
        return Some(structured);
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Some(serde_json::from_str(text).unwrap_or_default())
}

/// One request on a connection that stays open.
fn post(
    address: &Address,
    connection: &mut Option<BufReader<TcpStream>>,
    path: &str,
    body: &Value,
) -> Result<(u16, String)> {
    if connection.is_none() {
        let stream = TcpStream::connect(&address.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        *connection = Some(BufReader::new(stream));
    }
    let stream = connection.as_mut().context("no connection")?;
    let body = body.to_string();
    let token = address.token.as_ref();
    let token = token.map(|it| format!("Authorization: Bearer {it}\r\n"));
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{}\
         Content-Length: {}\r\n\r\n{body}",
        address.host,
        token.unwrap_or_default(),
        body.len()
    );
    stream.get_mut().write_all(request.as_bytes())?;
    read_response(stream)
}

fn read_response(stream: &mut impl BufRead) -> Result<(u16, String)> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.context("no status")?;
    let mut length = None;
    loop {
        line.clear();
        ensure!(
            stream.read_line(&mut line)? > 0,
            "the answer ends in its head"
        );
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let Some(length) = length else {
        bail!("an answer without its length");
    };
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_is_an_answer_and_a_torn_one_is_none() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok";
        let (status, body) = read_response(&mut whole.as_bytes()).unwrap();
        assert_eq!((status, body.as_str()), (200, "ok"));
        for end in 0..whole.len() {
            assert!(
                read_response(&mut &whole.as_bytes()[..end]).is_err(),
                "{end}"
            );
        }
    }
}
