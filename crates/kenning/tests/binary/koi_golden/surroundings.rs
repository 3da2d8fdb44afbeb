//! What the original had around it when it was recorded: a server with one page, and a repository.

use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

const VECTORS: &str = include_str!("../../../../../testing/vectors/koi-vectors.json");

/// Where the page was then.
const PORT: &str = "18370";
/// Where the repository was then.
const REPOSITORY: &str = "/srv/sample/gitrepo";

/// The addresses in the recording that became names of pages.
const PAGES: [&str; 3] = ["/page.html", "/page.html?2", "/page.html?m"];

pub(super) struct Surroundings {
    port: u16,
    repository: PathBuf,
}

impl Surroundings {
    pub(super) fn new(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                drop(serve(stream.unwrap()));
            }
        });
        let repository = root.join("gitrepo");
        make_repository(&repository);
        Self { port, repository }
    }

    /// Lets the program reach both, and nothing else; no model is asked.
    pub(super) fn prepare(&self, command: &mut Command) {
        let page = format!("http://127.0.0.1:{}", self.port);
        command
            .env("KENNING_WEB_ALLOW", page)
            .env("LLM_ENRICHMENT_ENABLED", "false")
            .env("KENNING_REPO_PATHS", &self.repository)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    }

    /// A recorded line with the addresses of now, and with the names that follow from them.
    pub(super) fn adapted(&self, line: &str) -> String {
        let port = self.port.to_string();
        let mut line = line.to_owned();
        for page in PAGES {
            let name = |port: &str| name_of(&format!("http://127.0.0.1:{port}{page}"));
            line = line.replace(&name(PORT), &name(&port));
        }
        let repository = self.repository.to_str().unwrap();
        line.replace(PORT, &port).replace(REPOSITORY, repository)
    }
}

/// The part of a page's name that follows from its address.
fn name_of(url: &str) -> String {
    let hash = Sha256::digest(url.as_bytes());
    hash.iter().take(8).map(|it| format!("{it:02x}")).collect()
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
    }
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let (status, body) = if request.contains("/page.html") {
        ("200 OK", vectors["html"]["input"].as_str().unwrap())
    } else {
        ("404 Not Found", "")
    };
    let n_bytes = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {n_bytes}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn make_repository(path: &Path) {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let source = |name: &str| vectors[name]["source"].as_str().unwrap().to_owned();
    let readme = "# Readme\n\nBill Baue wrote about herring. This documents the Salish Sea monitoring \
                  practice in some detail.\n\nLine\nLine\n";
    std::fs::create_dir_all(path.join("src")).unwrap();
    let module = "\"\"\"Module doc for a.\"\"\"\nimport os\nfrom json import dumps\n\n\
                  class Greeter(object):\n    \"\"\"Greets.\"\"\"\n    def hello(self, name: str) -> str:\n        \
                  \"\"\"Say hello.\"\"\"\n        return helper(name)\n\ndef helper(n):\n    return dumps(n)\n";
    for (name, text) in [
        ("README.md", readme.to_owned()),
        ("s.sql", source("extract:s.sql")),
        ("src/a.py", module.to_owned()),
        ("src/b.ts", source("extract:src/b.ts")),
    ] {
        std::fs::write(path.join(name), text).unwrap();
    }
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "-m",
            "first",
        ],
    ] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(path);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        assert!(git.status().unwrap().success(), "git {arguments:?}");
    }
}
