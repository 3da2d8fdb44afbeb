//! Names of files, and where they lead in a directory full of traps.

use super::{ensure, pieces, text};
use crate::{Subject, Target};
use kenning_core::Code;
use kenning_vault::{Dir, Name};
use std::path::Path;

pub(super) const TARGET: Target = Target {
    name: "vault_name",
    about: "whatever a name is, nothing outside the directory is read, listed or changed",
    words: WORDS,
    seeds: || {
        let paths = include_str!("../../../../testing/corpora/paths.txt").lines();
        let paths = paths.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let names = paths.filter_map(|it| it.rsplit('\t').next());
        names.map(|it| it.as_bytes().to_vec()).collect()
    },
    generate: |source| {
        pieces(
            source,
            WORDS,
            &[("../", ""), ("a/", ""), ("out/", ""), ("./", "")],
        )
        .into_bytes()
    },
    open: || Box::new(Vault::new()),
    pass_cases: 600,
    fresh_every: 2_000,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "..",
    "/",
    ".",
    "a",
    "b.md",
    "out",
    "out/secret.md",
    "file-out",
    "loop",
    "dangling",
    "up",
    "up/..",
    "~",
    "\\",
    "%2e%2e",
    "%252e",
    "\u{ff0e}\u{ff0e}",
    "..;",
    "...",
    "....//",
    "C:",
    "\0",
    " ",
    "CON",
    "-rf",
    "//",
    "/etc/passwd",
    "/proc/self/root",
    "proc",
    "\u{2215}",
    "a/",
    "./",
    ".kenning-tmp",
    "\u{202e}",
];

struct Vault {
    /// Holds `vault` and, beside it, files that must not be read.
    root: tempfile::TempDir,
    dir: Dir,
}

const SECRET: &[u8] = b"nobody may read this";

impl Vault {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let outside = root.path().join("vault-evil");
        let vault = root.path().join("vault");
        std::fs::create_dir_all(&outside).expect("a directory");
        std::fs::write(outside.join("secret.md"), SECRET).expect("a file");
        let dir = Dir::create(&vault).expect("a vault");
        dir.write("a/b.md", b"inside").expect("a file");
        dir.write("b.md", b"inside").expect("a file");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, vault.join(name)).expect("a link");
        };
        link("../vault-evil", "out");
        link("../vault-evil/secret.md", "file-out");
        link("loop", "loop");
        link("nothing", "dangling");
        link("a", "in");
        link("..", "up");
        link("/proc/self/root", "proc");
        Self { root, dir }
    }

    /// What is outside: names and contents.
    fn outside(&self) -> Vec<(String, Vec<u8>)> {
        let list = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let mut all: Vec<(String, Vec<u8>)> = entries
                .map(|entry| {
                    let content = std::fs::read(entry.path()).unwrap_or_default();
                    (entry.path().to_string_lossy().into_owned(), content)
                })
                .collect();
            all.sort();
            all
        };
        let mut all = list(self.root.path());
        all.extend(list(&self.root.path().join("vault-evil")));
        all
    }
}

impl Subject for Vault {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let name = text(input);
        let plain = Name::parse(&name);
        if let Ok(plain) = &plain {
            let leads_out =
                plain.as_str().split('/').any(|it| it == "..") || plain.as_str().starts_with('/');
            ensure!(!leads_out, "plain: `{}`", plain.as_str());
            if !plain.as_str().is_empty() {
                let again = Name::parse(plain.as_str()).map_err(|it| format!("plain: {it}"))?;
                ensure!(
                    again.as_str() == plain.as_str(),
                    "plain: `{}` is not stable",
                    again.as_str()
                );
            }
        }
        let before = self.outside();
        let known = |what: &str, code: Code| -> Result<(), String> {
            ensure!(
                !matches!(code, Code::Internal | Code::Corrupt),
                "{what} of `{name}` was answered with {code:?}"
            );
            Ok(())
        };
        match self.dir.read(&name, 1_000_000) {
            Ok(bytes) => ensure!(
                bytes == b"inside" || bytes == b"written",
                "read outside: `{name}`"
            ),
            Err(error) => known("reading", error.code)?,
        }
        match self.dir.list(&name) {
            Ok(entries) => {
                let secret = entries.iter().any(|it| it.name.contains("secret"));
                ensure!(!secret, "listed outside: `{name}`");
            }
            Err(error) => known("listing", error.code)?,
        }
        match self.dir.write(&name, b"written") {
            Ok(()) => {
                let read = self
                    .dir
                    .read(&name, 100)
                    .map_err(|it| format!("written: `{name}`: {it}"))?;
                ensure!(read == b"written", "written: `{name}` holds something else");
                let plain = plain.map_err(|it| format!("written: `{name}`: {it}"))?;
                if plain.as_str() == "b.md" || plain.as_str() == "a/b.md" {
                    self.dir
                        .write(plain.as_str(), b"inside")
                        .map_err(|it| it.to_string())?;
                } else {
                    self.dir
                        .remove(&name)
                        .map_err(|it| format!("removed: `{name}`: {it}"))?;
                }
            }
            Err(error) => known("writing", error.code)?,
        }
        if let Err(error) = self.dir.exists(&name) {
            known("looking", error.code)?;
        }
        ensure!(self.outside() == before, "changed outside: `{name}`");
        Ok(())
    }
}
