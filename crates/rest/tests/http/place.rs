//! A server of its own for a test, and a client that sends exactly what it is told.

use axum::Router;
use kenning_core::Space;
use kenning_engine::{Caller, NewToken, Principal, Scope};
use kenning_mcp::Server;
use kenning_rest::{Guard, Hosts, Limits};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nothing that is asked may take longer, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What a test chooses.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) require_token: bool,
    pub(crate) fixed_token: Option<String>,
    pub(crate) calls_per_minute: Option<u32>,
    pub(crate) wrong_tokens_per_minute: Option<u32>,
    pub(crate) limits: Limits,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_origins: Vec<&'static str>,
    pub(crate) extra: Router,
    pub(crate) space: Space,
    pub(crate) selection: Selection,
}

pub(crate) struct Place {
    pub(crate) fixture: Fixture,
    pub(crate) address: SocketAddr,
    /// Dropped, it is the order to stop.
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    /// With these tools only.
    pub(crate) async fn choosing(selection: kenning_tools::Selection) -> Self {
        Self::of(Fixture::select(selection), Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let fixture = Fixture::select(setup.selection.clone());
        Self::of(fixture, setup).await
    }

    pub(crate) async fn of(fixture: Fixture, setup: Setup) -> Self {
        let guard = Guard::new(
            fixture.board.engine().clone(),
            Hosts {
                extra: setup.allow_hosts,
            },
            setup.require_token,
            setup.fixed_token,
            setup.calls_per_minute.unwrap_or(600),
        )
        .with_space(setup.space)
        .with_wrong_tokens_per_minute(setup.wrong_tokens_per_minute.unwrap_or(1_000_000))
        .with_origins(
            setup
                .allow_origins
                .iter()
                .map(|it| kenning_rest::Origin::parse(it).unwrap())
                .collect(),
        );
        let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
        let mcp = kenning_mcp::http::service(server, kenning_mcp::http::Options::default());
        let extra = setup.extra.route_service("/mcp", mcp);
        let router = kenning_rest::router(fixture.board.clone(), guard, extra);
        let listener = kenning_rest::bind(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let serve = kenning_rest::serve_within(listener, router, stopped, setup.limits);
        Self {
            fixture,
            address,
            stop: Some(stop),
            task: tokio::spawn(serve),
        }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire {
            stream: TcpStream::connect(self.address).await.unwrap(),
            buffer: Vec::new(),
        }
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut wire = self.connect().await;
        wire.send(request).await;
        wire.answer().await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(get(path, headers)).await
    }

    pub(crate) async fn post(&self, path: &str, headers: &str, body: &str) -> Answer {
        self.ask(post(path, headers, body.as_bytes())).await
    }

    pub(crate) fn write(&self, path: &str) {
        let arguments = serde_json::json!({ "path": path, "content": path });
        let reply = self.fixture.call("vault_write_note", arguments);
        assert!(!reply.is_error(), "{}", reply.text);
    }

    pub(crate) fn token(&self, scopes: &[Scope], space: &str, expires_ms: Option<u64>) -> String {
        let new = NewToken {
            name: "test".to_owned(),
            scopes: scopes.to_vec(),
            space: space.parse().unwrap(),
            expires_ms,
        };
        let owner = Caller::new(Principal::owner(Space::default()));
        let engine = self.fixture.board.engine();
        engine.create_token(&owner, new).unwrap()
    }
}

/// `headers` are whole lines, each with its end.
pub(crate) fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

pub(crate) fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let n_bytes = body.len();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {n_bytes}\r\n{headers}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|it| it.0 == name);
        found.next().map(|it| it.1.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The code of an error, after a look at its form and at the table of codes.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        let error = json["error"]
            .as_object()
            .unwrap_or_else(|| panic!("no error: {self:?}"));
        for name in error.keys() {
            let known = ["code", "message", "retryable", "hint"].contains(&name.as_str());
            assert!(known, "{self:?}");
        }
        let code = error["code"].as_str().expect("a code");
        let row = kenning_core::CODES.iter().find(|row| row.name == code);
        let row = row.unwrap_or_else(|| panic!("{code} is not in the table"));
        // 405 has no row of its own.
        let status = if self.status == 405 { 422 } else { self.status };
        assert_eq!(row.http, status, "{self:?}");
        assert_eq!(error["retryable"], row.retryable, "{self:?}");
        let message = error["message"].as_str().expect("a message");
        assert!(!message.is_empty(), "{self:?}");
        code.to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned()
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    /// A server that has closed takes no more; what it said before can still be read.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Waits until the server has closed, and reads nothing meanwhile.
    pub(crate) async fn closed_by_server(&self) {
        let closed = async {
            while !self
                .stream
                .ready(Interest::READABLE)
                .await
                .unwrap()
                .is_read_closed()
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let closed = tokio::time::timeout(PATIENCE, closed).await;
        closed.expect("the server closes in time");
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.buffer);
        let read = tokio::time::timeout(PATIENCE, read).await;
        matches!(read.expect("something in time"), Ok(1..))
    }

    /// The head of the next answer; `None` when the server closed.
    pub(crate) async fn head(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                return None;
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Some(Answer {
            status: status.parse().unwrap(),
            headers: headers.collect(),
            body: String::new(),
        })
    }

    /// The next answer; `None` when the server closed before its end. Of an endless answer only the head
    /// is read.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head().await?;
        let mut body = Vec::new();
        if answer.header("content-type") == Some("text/event-stream") && answer.status == 200 {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                body.extend_from_slice(&chunk);
            }
        } else {
            let n_bytes: usize = answer
                .header("content-length")
                .map_or(0, |it| it.parse().unwrap());
            while self.buffer.len() < n_bytes {
                if !self.fill().await {
                    return None;
                }
            }
            body = self.buffer.drain(..n_bytes).collect();
        }
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// The next chunk; `None` at the end, in order or not.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let (start, n_bytes) = loop {
            if let Some(at) = self.buffer.windows(2).position(|it| it == b"\r\n") {
                let size = std::str::from_utf8(&self.buffer[..at]).unwrap();
                break (at + 2, usize::from_str_radix(size, 16).unwrap());
            }
            if !self.fill().await {
                return None;
            }
        };
        while self.buffer.len() < start + n_bytes + 2 {
            if !self.fill().await {
                return None;
            }
        }
        let chunk: Vec<u8> = self.buffer.drain(..start + n_bytes + 2).collect();
        (n_bytes > 0).then(|| chunk[start..start + n_bytes].to_vec())
    }

    /// Whether the server closes without another word.
    pub(crate) async fn closes(&mut self) -> bool {
        while self.fill().await {}
        self.buffer.is_empty()
    }
}
