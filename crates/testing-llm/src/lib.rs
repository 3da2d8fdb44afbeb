//! For tests only: a language model on loopback that says what a test tells it to, and keeps what it was asked.
//!
//! It knows the formats of answers and nothing of who asks. It listens on 127.0.0.1 alone, on a port that nobody
//! else has, and whatever it was not told to say it does not say.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The path.
    pub path: String,
    /// Names in lower case, one a line.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map(|it| it.1.as_str())
    }
}

/// What to answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A text, in the format of OpenAI.
    Says(String),
    /// Asks for tools, by name and arguments, in the same format.
    Calls(Vec<(String, Value)>),
    /// A status, more headers (each with its line end) and a body.
    Status(u16, &'static str, String),
    /// Spaces without an end.
    Endless,
    /// Nothing, until the client hangs up.
    Silence,
}

impl Reply {
    /// Asks for one tool.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::Calls(vec![(name.to_owned(), arguments)])
    }
}

/// Given how many requests came before, and this one.
type Script = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

/// Tokens that every answer in the format of OpenAI says it took: of the question, and of the answer.
pub const TOKENS: (u64, u64) = (100, 20);

/// A model on loopback.
pub struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Scripted {
    /// Answers by a script.
    pub fn by(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (script, all) = (Arc::clone(&script), Arc::clone(&all));
                std::thread::spawn(move || {
                    // A client that hangs up is what some of these tests are about.
                    serve(socket.unwrap(), &script, &all).ok();
                });
            }
        });
        Self { address, seen }
    }

    /// Answers with these, one after the other; the last one from then on.
    pub fn saying(replies: Vec<Reply>) -> Self {
        Self::by(move |n, _| replies[n.min(replies.len() - 1)].clone())
    }

    /// Its address, with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it was asked.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn completed(message: &Value) -> String {
    json!({
        "choices": [{ "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": TOKENS.0, "completion_tokens": TOKENS.1 },
    })
    .to_string()
}

fn serve(socket: TcpStream, script: &Arc<Script>, all: &Mutex<Vec<Seen>>) -> io::Result<()> {
    let mut reader = BufReader::new(socket);
    let seen = read(&mut reader)?;
    let number = {
        let mut all = all.lock().unwrap();
        all.push(seen.clone());
        all.len() - 1
    };
    let reply = script(number, &seen);
    let mut socket = reader.into_inner();
    let mut answer = |status: u16, more: &str, body: &str| {
        write!(
            socket,
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{more}Connection: close\r\n\r\n{body}",
            body.len()
        )
    };
    match reply {
        Reply::Says(text) => {
            let message = json!({ "role": "assistant", "content": text });
            answer(200, "", &completed(&message))
        }
        Reply::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(n, (name, arguments))| {
                json!({
                    "id": format!("call_{number}_{n}"), "type": "function",
                    "function": { "name": name, "arguments": arguments.to_string() },
                })
            });
            let calls: Vec<Value> = calls.collect();
            let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
            answer(200, "", &completed(&message))
        }
        Reply::Status(status, more, body) => answer(status, more, &body),
        Reply::Endless => {
            write!(
                socket,
                "HTTP/1.1 200 Said\r\nContent-Type: application/json\r\n\
                 Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            )?;
            let blanks = " ".repeat(0x1_0000);
            loop {
                write!(socket, "10000\r\n{blanks}\r\n")?;
            }
        }
        Reply::Silence => socket.read_to_end(&mut Vec::new()).map(drop),
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|it| it.0 == "content-length");
    let length = length.and_then(|it| it.1.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Seen {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
