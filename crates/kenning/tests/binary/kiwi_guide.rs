//! `docs/guides/kiwi.md`: every command of it, in a copy of the example, against one running server.
//!
//! An `sh` block is run by a shell as it stands; only the port is replaced, and the block that starts
//! the server is not run again. A `json` block right after it is what the answer has, at least: `…`
//! stands for any text.

use crate::kiwi_contract::differences;
use crate::{Place, Server};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const GUIDE: &str = include_str!("../../../../docs/guides/kiwi.md");

/// Languages and texts of the blocks, in order.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut parts = GUIDE.split("\n```");
    let mut found = Vec::new();
    parts.next();
    while let Some(block) = parts.next() {
        found.push(block.split_once('\n').expect("a line after the fence"));
        parts.next().expect("every block ends");
    }
    found
}

#[test]
fn every_command_of_the_kiwi_guide_works() {
    let place = Place::new();
    let home = place.0.path();
    let project = home.join("example");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kiwi");
    crate::graph_guide::copy(&example, &project);
    fs::write(home.join(".curlrc"), "silent\nshow-error\nfail-with-body\n").unwrap();
    let mut start = place.command(&["--project", ".", "serve", "--listen", "127.0.0.1:0"]);
    start.current_dir(&project);
    let server = Server::of(start);
    let programs = Path::new(env!("CARGO_BIN_EXE_kenning")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let (mut n_run, mut n_compared) = (0, 0);
    let mut said: Option<String> = None;
    for (language, text) in blocks() {
        match language {
            "sh" if text.contains(" serve ") => {
                assert_eq!(text, "kenning --project . serve --listen 127.0.0.1:3000");
            }
            "sh" => {
                let address = format!("127.0.0.1:{}", server.port);
                let script = text.replace("127.0.0.1:3000", &address);
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &script])
                    .current_dir(&project)
                    .env_clear()
                    .env("PATH", format!("{}:{path}", programs.display()))
                    .env("HOME", home)
                    .env("KENNING_DATA", home.join("data"))
                    .env("VAULT_PATH", place.vault())
                    .output()
                    .expect("bash");
                let err = String::from_utf8_lossy(&output.stderr);
                let out = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{text}\n{out}{err}");
                said = Some(out.into_owned());
                n_run += 1;
                continue;
            }
            "json" => {
                let answer = said.take().expect("an answer stands after its request");
                let answer: Value = serde_json::from_str(&answer).unwrap();
                let expected: Value = serde_json::from_str(text).unwrap();
                let is_any = |at: &str| text_at(&expected, at) == Some("…");
                let found = differences(&expected, &answer, &is_any);
                assert!(found.is_empty(), "{text}\n{found:#?}\n{answer:#}");
                n_compared += 1;
            }
            "markdown" | "yaml" | "toml" | "text" | "python" => {}
            other => panic!("nothing runs a block of `{other}`"),
        }
        said = None;
    }
    assert_eq!((n_run, n_compared), (13, 13));
}

/// The text at a path such as `.signature.hash`.
fn text_at<'a>(value: &'a Value, at: &str) -> Option<&'a str> {
    let names = at.split('.').skip(1);
    let mut here = value;
    for name in names {
        here = here.get(name)?;
    }
    here.as_str()
}

#[test]
fn the_examples_that_the_guide_shows_are_those_that_there_are() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kiwi/.ai");
    for (language, text, file) in [
        (
            "yaml",
            "tool_id: word_count",
            "tools/text/word_count/manifest.yaml",
        ),
        (
            "markdown",
            "name: summarize_notes",
            "directives/text/summarize_notes.md",
        ),
        (
            "markdown",
            "zettel_id: 002-semantic-versions",
            "knowledge/release/002-semantic-versions.md",
        ),
    ] {
        let blocks = blocks();
        let shown = blocks
            .iter()
            .find(|it| it.0 == language && it.1.contains(text));
        let (_, shown) = shown.unwrap_or_else(|| panic!("the guide does not show {file}"));
        let whole = fs::read_to_string(example.join(file)).unwrap();
        // What the guide leaves out, it leaves out whole lines at a time.
        let mut lines = whole.lines();
        for line in shown.lines() {
            assert!(
                lines.any(|it| it == line),
                "{file}: no `{line}` in this order"
            );
        }
    }
}
