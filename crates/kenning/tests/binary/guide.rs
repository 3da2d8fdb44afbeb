//! `docs/guides/memory.md`, run from its first block to its last.
//!
//! Every heading of the guide begins with an empty memory, one for its `mcp` blocks and one for the
//! rest. A block of any kind that is not run here fails the test, so nothing stands in the guide that
//! was not tried.
//!
//! | block | what is run |
//! |---|---|
//! | `mcp` | JSON values in pairs: a call, and its answer |
//! | `console` | after `$ ` a command, which goes on after `> `; then what it prints |
//! | `http` | a request a line, then its status and answer; `data:` is the next event of the stream |
//! | `crontab` | the command of each line, which is to succeed and to print nothing |
//!
//! In an expectation `…` stands for anything, a number for whatever rounds to it, and `$name` for a
//! value that is kept under that name, or for the kept one.

use crate::{Client, Place, Server};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const GUIDE: &str = include_str!("../../../../docs/guides/memory.md");

/// What the contract shows in Python and YAML, each under its own heading.
const CONTRACT: [&str; 15] = [
    "memory_recall",
    "memory_store",
    "belief_update",
    "now_read",
    "now_update",
    "integrity_check",
    "Entry point",
    "Session lifecycle",
    "Belief evolution",
    "Periodic integrity audits",
    "Subscribe to events",
    "Configuration",
    "OpenClaw plugin",
    "Error handling",
    "Types",
];

#[test]
fn every_block_of_the_memory_guide_does_what_it_says() {
    run_all(Place::new);
}

#[test]
fn every_block_of_the_memory_guide_says_the_same_on_postgresql() {
    run_all(|| {
        static DATABASE: LazyLock<String> = LazyLock::new(|| shared().database());
        static SPACES: AtomicUsize = AtomicUsize::new(0);
        let space = format!("guide-{}", SPACES.fetch_add(1, Ordering::Relaxed));
        Place::on_database(&DATABASE, &space)
    });
}

#[expect(clippy::print_stdout, reason = "the last line says which block failed")]
fn run_all(place: fn() -> Place) {
    let mut run = 0;
    let mut section = Section::new("", place);
    for block in &blocks(GUIDE) {
        if section.heading != block.heading {
            section = Section::new(&block.heading, place);
        }
        println!("{block}");
        match block.kind.as_str() {
            "mcp" => section.mcp(&block.text),
            "console" => section.console(&block.text),
            "http" => section.http(&block.text),
            "crontab" => section.crontab(&block.text),
            _ => panic!("{block}: nothing runs such a block"),
        }
        run += 1;
    }
    println!("guide: {run} blocks");
    assert_eq!(run, GUIDE.matches("\n```").count() / 2);
}

#[test]
fn the_memory_guide_restates_every_example_of_the_contract() {
    let blocks = blocks(GUIDE);
    for title in CONTRACT {
        let here = |kind: &str| {
            let mut found = blocks.iter().filter(|it| it.heading == title);
            found.any(|it| it.kind == kind)
        };
        assert!(here("console"), "{title}: no command");
        // These three are about the program and its files, not about a tool.
        let has_call = !["Entry point", "Configuration", "OpenClaw plugin"].contains(&title);
        assert_eq!(here("mcp"), has_call, "{title}: call");
    }
}

#[test]
fn an_expectation_that_differs_is_noticed() {
    for (expected, actual, same) in [
        (json!("…"), json!({ "a": 1 }), true),
        (json!("mem_…"), json!("mem_1"), true),
        (json!("mem_…"), json!("id_1"), false),
        (json!("a … c"), json!("a b c"), true),
        (json!("a … c"), json!("a b d"), false),
        (json!(0.57), json!(0.5675), true),
        (json!(0.56), json!(0.5675), false),
        (json!(2), json!(3), false),
        (json!(true), json!(false), false),
        (json!([1, 2]), json!([1]), false),
        (json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), false),
        (json!({ "a": 1, "b": "…" }), json!({ "a": 1 }), false),
        (json!(["$known"]), json!(["x"]), true),
        (json!(["$known"]), json!(["y"]), false),
        (json!(["$a", "$a"]), json!(["x", "y"]), false),
    ] {
        let mut kept = BTreeMap::from([("known".to_owned(), "x".to_owned())]);
        assert_eq!(
            is_like(&expected, &actual, &mut kept),
            same,
            "{expected} {actual}"
        );
    }
    for (expected, actual, same) in [
        ("a\n…\nc", "a\n1\n2\nc", true),
        ("a\n…\nc", "a\nc", true),
        ("a\n…\nc", "a\nb", false),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
    ] {
        assert_eq!(lines_are_like(expected, actual), same, "{expected:?}");
    }
}

/// A fenced block.
struct Block {
    heading: String,
    kind: String,
    line: usize,
    text: String,
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, {}, `{}`", self.line, self.heading, self.kind)
    }
}

fn blocks(guide: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut heading, mut is_inside) = (String::new(), false);
    for (at, line) in guide.lines().enumerate() {
        if let Some(kind) = line.strip_prefix("```") {
            is_inside = !is_inside;
            if is_inside {
                found.push(Block {
                    heading: heading.clone(),
                    kind: kind.to_owned(),
                    line: at + 1,
                    text: String::new(),
                });
            }
        } else if is_inside {
            let block = found.last_mut().unwrap();
            block.text.push_str(line);
            block.text.push('\n');
        } else if line.starts_with('#') {
            line.trim_start_matches('#').trim().clone_into(&mut heading);
        }
    }
    assert!(!is_inside, "the last block has no end");
    found
}

type Kept = BTreeMap<String, String>;

/// What the blocks under one heading work with.
struct Section {
    heading: String,
    by_mcp: LazyCell<Place, fn() -> Place>,
    client: Option<Client>,
    mcp_kept: Kept,
    by_hand: LazyCell<Place, fn() -> Place>,
    kept: Kept,
    exit: i32,
    in_background: Option<Child>,
    server: Option<Server>,
    stream: Option<BufReader<TcpStream>>,
}

impl Section {
    fn new(heading: &str, place: fn() -> Place) -> Self {
        Self {
            heading: heading.to_owned(),
            by_mcp: LazyCell::new(place),
            client: None,
            mcp_kept: Kept::new(),
            by_hand: LazyCell::new(place),
            kept: Kept::new(),
            exit: 0,
            in_background: None,
            server: None,
            stream: None,
        }
    }

    fn mcp(&mut self, block: &str) {
        let place = &self.by_mcp;
        let client = self
            .client
            .get_or_insert_with(|| Client::start(place, &["--toolsets", "all"]));
        let values = serde_json::Deserializer::from_str(block).into_iter::<Value>();
        let values: Vec<Value> = values.map(|it| it.unwrap()).collect();
        let (pairs, alone) = values.as_chunks::<2>();
        assert!(alone.is_empty(), "no answer to {alone:?}");
        for [call, expected] in pairs {
            let name = call["name"].as_str().expect("a call has a name");
            let arguments = with_values(&call["arguments"], &self.mcp_kept);
            let answer = said(&client.call(name, &arguments)["result"]);
            assert!(
                is_like(expected, &answer, &mut self.mcp_kept),
                "{call}\nexpected {expected}\nanswered {answer}"
            );
        }
    }

    fn console(&mut self, block: &str) {
        for (command, expected) in commands(block) {
            let printed = self.typed(&command);
            assert!(
                lines_are_like(&expected, &printed),
                "$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
            );
        }
        assert_eq!(self.exit, 0, "a failure is followed by `echo $?`: {block}");
    }

    /// Does what a shell does with a line, and gives what it prints.
    fn typed(&mut self, command: &str) -> String {
        if command == "wait" {
            let child = self.in_background.take().expect("something to wait for");
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            return String::from_utf8(output.stdout).unwrap();
        }
        if let Some(command) = command.strip_suffix(" &") {
            let mut child = self
                .shell(command)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut err = BufReader::new(child.stderr.take().unwrap());
            err.read_line(&mut line).unwrap();
            self.in_background = Some(child);
            return line;
        }
        if let Some((name, command)) = assignment(command) {
            let printed = self.ran(command);
            assert_eq!(self.exit, 0, "{command}: {printed}");
            self.kept.insert(name, printed.trim().to_owned());
            return String::new();
        }
        assert!(
            self.exit == 0 || command == "echo $?",
            "exit code {} before: {command}",
            self.exit
        );
        self.ran(&format!("(exit {}); {{ {command}\n}} 2>&1", self.exit))
    }

    fn ran(&mut self, command: &str) -> String {
        let output = self.shell(command).stdin(Stdio::null()).output().unwrap();
        self.exit = output.status.code().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn shell(&self, command: &str) -> std::process::Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_omi")).parent().unwrap();
        let mut shell = self.by_hand.program("/bin/sh", &["-c", command]);
        shell
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .envs(&self.kept);
        shell
    }

    fn crontab(&mut self, block: &str) {
        for line in block.lines() {
            let command = line.splitn(6, ' ').nth(5).expect("five fields");
            assert_eq!(self.typed(command), "", "{command}");
            assert_eq!(self.exit, 0, "{command}");
        }
    }

    fn http(&mut self, block: &str) {
        let server = self
            .server
            .get_or_insert_with(|| Server::start(&self.by_hand, &["--toolsets", "all"]));
        let mut answer = None;
        for line in block.lines() {
            let (first, rest) = line.split_once(' ').expect("two words");
            match first {
                "GET" if rest.starts_with("/api/v1/events") => {
                    self.stream = Some(follow(server, rest));
                }
                "GET" => answer = Some(server.get(rest, "")),
                "POST" => {
                    let (path, body) = rest.split_once(' ').expect("a body");
                    answer = Some(server.post(path, "", body));
                }
                "data:" => {
                    let event = next_event(self.stream.as_mut().expect("a stream"));
                    let expected = serde_json::from_str(rest).unwrap();
                    assert!(is_like(&expected, &event, &mut self.kept), "{event}");
                }
                status => {
                    let (actual, body) = answer.take().expect("a request before");
                    assert_eq!(status, actual.to_string(), "{body}");
                    let body = serde_json::from_str(&body).unwrap();
                    let expected = serde_json::from_str(rest).unwrap();
                    assert!(is_like(&expected, &body, &mut self.kept), "{body}");
                }
            }
        }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        if let Some(mut child) = self.in_background.take() {
            // It may have ended by itself.
            drop(child.kill());
            drop(child.wait());
        }
        if let Some(client) = self.client.take() {
            let code = client.finish();
            assert!(std::thread::panicking() || code == 0, "exit code {code}");
        }
    }
}

/// `name=$(command)`
fn assignment(line: &str) -> Option<(String, &str)> {
    let (name, command) = line.strip_suffix(')')?.split_once("=$(")?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_name.then(|| (name.to_owned(), command))
}

/// Each command with what it should print.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
            continue;
        }
        let (command, expected) = found.last_mut().expect("a command first");
        match line.strip_prefix("> ") {
            Some(more) if expected.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            _ => {
                expected.push_str(line);
                expected.push('\n');
            }
        }
    }
    found
}

/// What a client is told: an object, other JSON as text, bare text; or the whole of a refusal.
fn said(result: &Value) -> Value {
    if result["isError"] == true {
        return result.clone();
    }
    let text = result["content"][0]["text"].as_str().unwrap();
    // `ok` says more than the empty object beside it.
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn with_values(value: &Value, kept: &Kept) -> Value {
    match value {
        Value::String(text) => match variable(text) {
            Some(name) => kept.get(name).expect("a kept value").as_str().into(),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|it| with_values(it, kept)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, it)| (name.clone(), with_values(it, kept)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn variable(text: &str) -> Option<&str> {
    text.strip_prefix('$')
        .filter(|it| it.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

fn is_like(expected: &Value, actual: &Value, kept: &mut Kept) -> bool {
    match (expected, actual) {
        (Value::String(text), _) if text == "…" => true,
        (Value::String(text), Value::String(actual)) => match variable(text) {
            Some(name) => kept.entry(name.to_owned()).or_insert(actual.clone()) == actual,
            None => line_is_like(text, actual),
        },
        (Value::Number(expected), Value::Number(actual)) => {
            let shown = expected.to_string();
            let digits = shown.split_once('.').map_or(0, |it| it.1.len());
            let actual = actual.as_f64().unwrap();
            expected == &serde_json::Number::from_f64(actual).unwrap()
                || format!("{actual:.digits$}") == shown
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let mut pairs = expected.iter().zip(actual);
            expected.len() == actual.len() && pairs.all(|(one, other)| is_like(one, other, kept))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let mut fields = expected.iter();
            expected.len() == actual.len()
                && fields.all(|(name, it)| {
                    let actual = actual.get(name);
                    actual.is_some_and(|actual| is_like(it, actual, kept))
                })
        }
        _ => expected == actual,
    }
}

fn lines_are_like(expected: &str, actual: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let actual: Vec<&str> = actual.trim_end().lines().collect();
    all_like(&expected, &actual)
}

fn all_like(expected: &[&str], actual: &[&str]) -> bool {
    match (expected.split_first(), actual.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=actual.len()).any(|n| all_like(rest, &actual[n..])),
        (Some((line, expected)), Some((other, actual))) => {
            line_is_like(line, other) && all_like(expected, actual)
        }
        _ => false,
    }
}

/// Columns stand between tabs where no terminal is, and between spaces in the guide.
fn line_is_like(expected: &str, actual: &str) -> bool {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, actual) = (spaced(expected), spaced(actual));
    let Some((start, rest)) = expected.split_once('…') else {
        return expected == actual;
    };
    let Some(actual) = actual.strip_prefix(start) else {
        return false;
    };
    let ends = actual.char_indices().map(|it| it.0).chain([actual.len()]);
    ends.into_iter().any(|at| line_is_like(rest, &actual[at..]))
}

/// An open stream of events, from which the head of the answer has been read: whatever happens from
/// now on will come.
fn follow(server: &Server, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let credential = server.credential("");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{credential}\r\n"
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    stream
}

fn next_event(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data:") {
            return serde_json::from_str(data).unwrap();
        }
    }
}
