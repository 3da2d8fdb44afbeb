//! The real binary, as a user has it: command line, stdio, HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests start processes, talk to loopback and fail by panicking"
)]

mod backups;
mod capture;
mod cli;
mod doors;
mod everyday;
mod forget;
mod graph;
mod graph_guide;
mod guide;
mod hook;
mod http;
mod kami;
mod kami_contract;
mod kami_people;
mod kami_serve;
mod kiwi;
mod kiwi_contract;
mod kiwi_guide;
mod kiwi_tools;
mod koi_commands;
mod koi_far;
mod koi_golden;
mod koi_graph;
mod koi_guide;
mod koi_net;
mod koi_web;
mod log;
mod names;
mod notes;
mod omi;
mod pasted;
mod peers;
mod peers_live;
mod peers_second_key;
mod postgres;
mod processes;
mod projects;
mod sensors;
mod setup;
mod slow_model;
mod stdio;
mod trust;
mod upgrade;
mod wire;
mod workflows;

/// The shapes of the graph contract, as the tools' own tests read them.
#[allow(dead_code, reason = "the tools' tests need more of it")]
#[path = "../../../tools/tests/board/shapes.rs"]
mod shapes;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// A place of its own: a data directory and a vault, and a space of a database if it stands on one.
pub(crate) struct Place(pub(crate) tempfile::TempDir, Option<(String, String)>);

/// The operator's word that whoever calls over MCP or HTTP may sign items.
pub(crate) fn allow_agents_to_sign(place: &Place) {
    let policy = place.0.path().join("data/kiwi");
    std::fs::create_dir_all(&policy).unwrap();
    std::fs::write(policy.join("policy.toml"), "agents_may_sign = true\n").unwrap();
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap(), None);
        std::fs::create_dir(place.vault()).unwrap();
        place
    }

    pub(crate) fn on_database(url: &str, space: &str) -> Self {
        Self(Self::new().0, Some((url.to_owned(), space.to_owned())))
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.0.path().join("vault")
    }

    /// The binary, with nothing of this machine's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_kenning"), arguments)
    }

    /// The program `omi`, likewise.
    pub(crate) fn omi(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_omi"), arguments)
    }

    /// The program `kami`, likewise.
    pub(crate) fn kami(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_kami"), arguments)
    }

    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .env("KENNING_DATA", self.0.path().join("data"))
            .env("VAULT_PATH", self.vault())
            .current_dir(self.0.path());
        if let Some((url, space)) = &self.1 {
            command.env("KENNING_DATABASE_URL", url);
            command.env("KENNING_SPACE", space);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Standard output, and that it succeeded.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and standard error of a failure, with nothing on standard output.
    pub(crate) fn bad(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

/// An MCP client on the other end of the pipes.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    /// With the tools of the contracts, unless toolsets are named.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        if !arguments.contains(&"--toolsets") {
            all.extend(["--toolsets", "contracts"]);
        }
        Self::of(place.command(&all))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child,
            input,
            output,
            id: 0,
        };
        let hello = client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "kenning");
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.send(&request.to_string());
        loop {
            let answer = self.receive();
            if answer["id"] == self.id {
                return answer;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Closes the input and waits for the end.
    pub(crate) fn finish(mut self) -> i32 {
        self.input.take();
        self.child.wait().unwrap().code().unwrap()
    }
}

/// `kenning serve` on a free port; killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// The token of whoever started it, sent with every request that has none. A server that was started with
    /// words about tokens is sent none.
    pub(crate) token: Option<String>,
}

/// Where the server of a command keeps the token of whoever started it.
fn token_file(command: &Command) -> Option<PathBuf> {
    let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
    let is_about_tokens = |it: &str| ["--token", "--require-token", "--no-token"].contains(&it);
    let mut set = command.get_envs().filter(|it| it.1.is_some());
    let names = ["KENNING_TOKEN", "OMI_API_KEY", "KENNING_NO_TOKEN"];
    if arguments.iter().any(|it| is_about_tokens(it))
        || set.any(|it| names.iter().any(|name| it.0 == *name))
    {
        return None;
    }
    let named = arguments.iter().position(|it| it == "--data");
    let named = named.and_then(|at| arguments.get(at + 1));
    let data = match named {
        Some(data) => PathBuf::from(data.as_ref()),
        None => {
            let mut set = command.get_envs();
            PathBuf::from(set.find(|it| it.0 == "KENNING_DATA")?.1?)
        }
    };
    Some(command.get_current_dir()?.join(data).join("http.token"))
}

impl Server {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        Self::of(place.command(&all))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let token = token_file(&command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse();
        Self {
            child,
            port: port.unwrap_or_else(|_| panic!("no port in {line:?}")),
            token: token.map(|it| std::fs::read_to_string(it).unwrap()),
        }
    }

    /// Sends a request as it is and gives the status and the body.
    pub(crate) fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (first, rest) = request.split_once("\r\n").unwrap();
        let request = format!("{first}\r\n{}{rest}", self.credential(rest));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// The header line with the token, unless the request has a credential of its own.
    pub(crate) fn credential(&self, request: &str) -> String {
        let head = request.split("\r\n\r\n").next().unwrap();
        let head = head.to_ascii_lowercase();
        match &self.token {
            Some(token) if !head.contains("authorization:") && !head.contains("x-api-key:") => {
                format!("Authorization: Bearer {token}\r\n")
            }
            _ => String::new(),
        }
    }

    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> (u16, String) {
        self.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
