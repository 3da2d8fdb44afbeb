//! The program under test, and what can be learned from outside about what it left on disk.

use super::verdict::{Event, Found};
use crate::options::Options;
use crate::repository::{cargo, output};
use anyhow::{Context as _, Result, bail, ensure};
use kenning_core::Hash;
use kenning_text::hex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A copy of the program, so that a build during the test does not exchange it.
pub(crate) struct Binary {
    path: PathBuf,
    _copy: Option<TempDir>,
}

impl Binary {
    /// The one that `--binary` names, or a fresh build.
    pub(crate) fn find(options: &Options, sabotage: bool) -> Result<Self> {
        if let Some(path) = options.text("binary") {
            let path = std::path::absolute(path)?;
            ensure!(
                path.is_file(),
                "there is no program at `{}`",
                path.display()
            );
            return Ok(Self { path, _copy: None });
        }
        let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let target = metadata["target_directory"]
            .as_str()
            .context("no target directory")?;
        // As this program was built: a measurement wants an optimized one.
        let (folder, profile): (_, &[&str]) = if cfg!(debug_assertions) {
            ("debug", &[])
        } else {
            ("release", &["--release"])
        };
        let features: &[&str] = if sabotage {
            &["--features", "sabotage"]
        } else {
            &[]
        };
        let build = |features: &[&str]| build(&[profile, features].concat());
        build(features)?;
        let copy = tempfile::tempdir_in(target)?;
        let path = copy.path().join("kenning");
        std::fs::copy(Path::new(target).join(folder).join("kenning"), &path)?;
        if sabotage {
            // The sabotaged program must not be mistaken for a normal build.
            build(&[])?;
        }
        let _copy = Some(copy);
        Ok(Self { path, _copy })
    }

    /// The program with the places it works in.
    pub(crate) fn command(&self, place: &Place) -> Command {
        let mut command = Command::new(&self.path);
        command
            .arg("--data")
            .arg(place.data())
            .env("VAULT_PATH", place.vault())
            .env("OMI_BASE_PATH", place.omi())
            .env("KENNING_PROJECT", place.project())
            // The files of the context lie where the judges look for them.
            .env("KENNING_PROJECTS", "off")
            .env("KENNING_TOOLSETS", "all")
            .env("HOME", place.root())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("KENNING_DATA")
            .env_remove("KAMI_DATA_DIR")
            .env_remove("KENNING_DATABASE_URL");
        if let Some(url) = &place.database {
            // Not an argument: every user of the machine can read those, and it has a password.
            command.env("KENNING_DATABASE_URL", url);
            // Components are files, and machines that share a database share those too.
            command.env("KAMI_DATA_DIR", place.root().join("kami"));
        }
        command
    }

    /// Starts the program as an HTTP server at a free port by `spawn`, and waits until it listens. Answers the
    /// process and the address.
    pub(crate) fn serve(
        command: &mut Command,
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    ) -> Result<(Child, String)> {
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut child = spawn(command.stderr(Stdio::piped()))?;
        let said = child.stderr.take().context("no standard error")?;
        let mut said = BufReader::new(said);
        let (mut line, mut before) = (String::new(), String::new());
        while !line.contains("listening on http://") {
            before += &line;
            line.clear();
            ensure!(
                said.read_line(&mut line)? > 0,
                "the program does not listen; it said: {}",
                before.trim()
            );
        }
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || drop(std::io::copy(&mut said, &mut std::io::sink())));
        let (_, address) = line.trim().split_once("http://").context("no address")?;
        Ok((child, address.to_owned()))
    }

    /// Starts the program as an MCP server over its standard streams by `spawn`.
    pub(crate) fn mcp(
        command: &mut Command,
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    ) -> Result<(Child, ChildStdin, ChildStdout)> {
        command
            .args(["mcp", "--toolsets", "all"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = spawn(command.stderr(Stdio::null()))?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        Ok((child, input, output))
    }

    /// Opens the store, which finishes what was left unfinished, and gathers what is there.
    pub(super) fn look(&self, place: &Place) -> Result<Found> {
        let mut found = Found::default();
        for words in [&["doctor"][..], &["audit", "verify"]] {
            let answer = self.json(place, words)?;
            let faults = answer["faults"]
                .as_array()
                .context("an answer without `faults`")?;
            let faults = faults.iter().map(|it| format!("{}: {it}", words.join(" ")));
            found.faults.extend(faults);
        }
        let rows = output(self.command(place).args(["backup", "-"]))?;
        for line in rows.lines() {
            let row = serde_json::from_str(line)?;
            read_row(&row, &mut found)?;
            found.traces.add_row(&row, line);
        }
        read_files(&place.vault(), "", &mut found.files)?;
        for folder in ["omi", "project"] {
            for (path, bytes) in kenning_testing_disk::image::read(&place.root().join(folder))? {
                if let Some(bytes) = bytes {
                    found.traces.add_file(&format!("{folder}/{path}"), &bytes);
                }
            }
        }
        Ok(found)
    }

    /// What a tool answers to a process of its own.
    pub(super) fn call(&self, place: &Place, tool: &str, arguments: &Value) -> Result<Value> {
        let mut command = self.command(place);
        let command = command.args(["call", tool, "--json", &arguments.to_string()]);
        Ok(serde_json::from_str(&output(command)?)?)
    }

    /// Makes a token that may read and write.
    pub(crate) fn token(&self, place: &Place) -> Result<String> {
        let words = [
            "token",
            "create",
            "--name",
            "crash",
            "--scopes",
            "read,write",
        ];
        let token = self.json(place, &words)?["token"].take();
        let token = token.as_str().context("an answer without `token`")?;
        Ok(token.to_owned())
    }

    /// Runs a command that has to succeed.
    pub(super) fn run(&self, place: &Place, words: &[&str]) -> Result<()> {
        output(self.command(place).args(words)).map(drop)
    }

    /// What a command answers, whether or not it found a fault.
    pub(crate) fn json(&self, place: &Place, words: &[&str]) -> Result<Value> {
        let done = self.command(place).args(words).arg("--json").output()?;
        let text = String::from_utf8_lossy(&done.stdout);
        serde_json::from_str(&text).with_context(|| {
            let said = String::from_utf8_lossy(&done.stderr);
            format!("`{}` did not answer: {}", words.join(" "), said.trim())
        })
    }
}

fn build(arguments: &[&str]) -> Result<()> {
    let status = cargo()
        .args(["build", "--quiet", "--package", "kenning"])
        .args(arguments)
        .status()?;
    ensure!(status.success(), "the program could not be built");
    Ok(())
}

/// A data directory, a vault and perhaps a database.
#[derive(Clone)]
pub(crate) struct Place {
    root: Arc<TempDir>,
    data: String,
    database: Option<String>,
}

impl Place {
    /// Beside this program: what holds builds is a disk, what holds temporary files may be memory.
    pub(crate) fn fresh() -> Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().context("this program is nowhere")?;
        let place = Self {
            root: Arc::new(tempfile::tempdir_in(beside)?),
            data: "data".to_owned(),
            database: None,
        };
        for folder in [place.vault(), place.omi(), place.project().join("docs")] {
            std::fs::create_dir_all(folder)?;
        }
        Ok(place)
    }

    /// The same vault with this database.
    pub(crate) fn with_database(&self, url: &str) -> Self {
        Self {
            database: Some(url.to_owned()),
            ..self.clone()
        }
    }

    /// The same vault and database for a server with a data directory, so a key, of its own.
    pub(crate) fn with_data(&self, name: &str) -> Self {
        Self {
            data: name.to_owned(),
            ..self.clone()
        }
    }

    pub(super) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join(&self.data)
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.root.path().join("vault")
    }

    pub(super) fn omi(&self) -> PathBuf {
        self.root.path().join("omi")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// What all of them are in.
    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Keeps it on disk for debugging.
    pub(super) fn keep(self) -> PathBuf {
        let path = self.root.path().to_owned();
        if let Some(root) = Arc::into_inner(self.root) {
            drop(root.keep());
        }
        path
    }
}

/// Takes what matters from one row of a backup.
fn read_row(row: &Value, found: &mut Found) -> Result<()> {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    match text("table") {
        table @ ("nodes" | "node_history") => {
            let Some(path) = text("key").strip_prefix("vault:") else {
                return Ok(());
            };
            let content = Hash::of(text("body").as_bytes());
            found.revisions.insert((path.to_owned(), content));
            if table == "nodes" {
                found.nodes.insert(path.to_owned(), content);
            }
        }
        "events" => {
            found.authors.insert(text("author").to_owned());
            // Since version 2 the data lies beside what is signed.
            let data: Value = if row["origin"].is_string() {
                serde_json::from_slice(&unhex(text("data"))?)?
            } else {
                let mut payload: Value = serde_json::from_slice(&unhex(text("payload"))?)?;
                payload["data"].take()
            };
            if let Some(path) = data["path"].as_str().filter(|it| is_note(it)) {
                found.events.push(Event {
                    seq: row["seq"].as_u64().context("an event without its place")?,
                    kind: text("kind").to_owned(),
                    path: path.to_owned(),
                    content: data["content"].as_str().and_then(Hash::from_hex),
                });
            }
        }
        "kv" if text("bucket") == "intents" => found.n_intents += 1,
        _ => {}
    }
    Ok(())
}

/// Whether an event's path is of the vault: not of the context, of a project or of an item.
fn is_note(path: &str) -> bool {
    let others = ["NOW", "MEMORY", "memory/", "docs/", ".ai/", "/"];
    !others.iter().any(|it| path.starts_with(it))
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    hex::decode(text).context("not hexadecimal digits")
}

/// Every file beneath a folder of the vault, by its path.
fn read_files(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Hash>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            bail!("a file of the vault has a name that is not UTF-8");
        };
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            read_files(&entry.path(), &format!("{path}/"), files)?;
        } else if name.ends_with(".md") {
            // What a killed write left beside has another ending and is no note.
            files.insert(path, Hash::of(&std::fs::read(entry.path())?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_a_backup_are_understood() {
        let mut found = Found::default();
        let hex = |value: &Value| -> String { hex::encode(value.to_string().as_bytes()) };
        let data = json!({ "path": "a.md", "content": Hash::of(b"x").to_string() });
        let payload = hex(&json!({ "data": data }));
        let data = hex(&data);
        for row in [
            json!({ "format": "kenning-backup" }),
            json!({ "table": "nodes", "key": "vault:a.md", "body": "x" }),
            json!({ "table": "nodes", "key": "memory:1", "body": "x" }),
            json!({ "table": "node_history", "key": "vault:a.md", "body": "y" }),
            json!({ "table": "events", "seq": 1, "kind": "NoteWritten", "payload": payload }),
            json!({ "table": "events", "seq": 2, "kind": "NoteWritten", "payload": hex(&json!([])), "origin": "00", "data": data }),
            json!({ "table": "kv", "bucket": "intents", "key": "vault:a.md", "value": "" }),
        ] {
            read_row(&row, &mut found).unwrap();
        }
        assert_eq!(
            found.nodes,
            BTreeMap::from([("a.md".to_owned(), Hash::of(b"x"))])
        );
        assert_eq!(found.revisions.len(), 2);
        assert_eq!(found.events.len(), 2);
        for event in &found.events {
            assert_eq!(event.content, Some(Hash::of(b"x")));
        }
        assert_eq!(found.n_intents, 1);
    }
}
