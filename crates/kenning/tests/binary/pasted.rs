//! README and the guides, pasted: every `sh` block of a page, in order, in one shell, in an empty home
//! directory. Blocks that cannot be run here (another machine's name, a client) are `text`.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The blocks of a page as one script. Building and installing are what made this test; the port is one
/// that nobody else has.
fn script(page: &str, port: u16) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines);
    let lines = lines.filter(|line| !line.starts_with("cargo "));
    let script: Vec<&str> = lines.collect();
    let script = script.join("\n");
    assert!(!script.is_empty(), "{page} has no block");
    script.replace("8351", &port.to_string()).replace(
        "kenning serve",
        &format!("kenning serve --listen 127.0.0.1:{port}"),
    )
}

fn check(page: &str) {
    let home = tempfile::tempdir().unwrap();
    let examples = Path::new(ROOT).join("examples");
    crate::graph_guide::copy(&examples.join("graph"), &home.path().join("examples/graph"));
    crate::graph_guide::copy(&examples.join("kiwi"), &home.path().join("examples/kiwi"));
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let programs = Path::new(env!("CARGO_BIN_EXE_kenning")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    // Whatever is still running when the page ends is ended with it.
    let script = format!(
        "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}",
        script(page, port)
    );
    let output = Command::new("bash")
        .args(["-e", "-u", "-x", "-o", "pipefail", "-c", &script])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(home.path())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}: {}\n{said}", output.status);
}

#[test]
fn every_block_of_the_readme_runs_when_pasted() {
    check("README.md");
}

#[test]
fn every_block_of_getting_started_runs_when_pasted() {
    check("docs/guides/getting-started.md");
}

#[test]
fn every_block_of_the_page_on_claude_code_runs_when_pasted() {
    check("docs/guides/claude-code.md");
}

#[test]
fn every_block_of_the_page_on_http_runs_when_pasted() {
    check("docs/guides/http.md");
}

#[test]
fn every_block_of_the_page_on_the_log_runs_when_pasted() {
    check("docs/guides/log.md");
}

#[test]
fn every_block_of_the_page_on_omi_runs_when_pasted() {
    check("docs/guides/omi.md");
}

#[test]
fn every_block_of_the_page_on_backups_runs_when_pasted() {
    check("docs/guides/backup.md");
}
