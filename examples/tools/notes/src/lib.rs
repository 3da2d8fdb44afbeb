//! Keeps notes, one a line, in a file of the tool's own directory. That is an ordinary directory to the
//! code: what makes it the tool's own is the host.

use kami_guest::{kami_tool, parse_input, to_output};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

kami_tool! {
    name: "dev.example.notes",
    version: env!("CARGO_PKG_VERSION"),
    description: "Keeps notes: adds one, lists them or clears them",
    handler: handle,
}

/// The current directory is the tool's own.
const DIR: &str = ".";
const FILE: &str = "notes.txt";
const NOTE_BYTES_MAX: usize = 4096;
const FILE_BYTES_MAX: u64 = 64 * 1024;

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Input {
    Add { text: String },
    List,
    Clear,
}

#[derive(Serialize)]
struct Output<'a> {
    count: usize,
    notes: Vec<&'a str>,
}

fn handle(input: &str) -> Result<String, String> {
    Notes::new(Path::new(DIR)).answer(parse_input(input)?)
}

struct Notes {
    dir: PathBuf,
    file: PathBuf,
}

impl Notes {
    fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            file: dir.join(FILE),
        }
    }

    fn answer(&self, input: Input) -> Result<String, String> {
        match input {
            Input::Add { text } => self.add(&text)?,
            Input::List => {}
            Input::Clear => self.clear()?,
        }
        let text = self.read()?;
        let notes: Vec<&str> = text.lines().collect();
        to_output(&Output {
            count: notes.len(),
            notes,
        })
    }

    fn add(&self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("`text` is empty: write what to note".to_owned());
        }
        if text.contains(['\n', '\r']) {
            return Err("`text` has several lines: add one note for each".to_owned());
        }
        if text.len() > NOTE_BYTES_MAX {
            return Err(format!(
                "`text` has {} bytes: write {NOTE_BYTES_MAX} at most",
                text.len()
            ));
        }
        let full = fs::metadata(&self.file).is_ok_and(|file| file.len() >= FILE_BYTES_MAX);
        if full {
            return Err("there is no more room for notes: clear them first".to_owned());
        }
        // One call for the whole line, so that two calls at once do not mix theirs.
        let line = format!("{text}\n");
        let mut options = OpenOptions::new();
        let opened = options.append(true).create(true).open(&self.file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|err| told("write", &err))
    }

    fn read(&self) -> Result<String, String> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(text),
            // Without a directory there is no file either, which is not the same as no notes.
            Err(err) if err.kind() == ErrorKind::NotFound && self.dir.is_dir() => Ok(String::new()),
            Err(err) => Err(told("read", &err)),
        }
    }

    fn clear(&self) -> Result<(), String> {
        match fs::remove_file(&self.file) {
            Err(err) if err.kind() != ErrorKind::NotFound => Err(told("clear", &err)),
            _ => Ok(()),
        }
    }
}

fn told(what: &str, err: &io::Error) -> String {
    format!("cannot {what} the notes: {err}; tool.toml has to say `fs_access = \"sandbox\"`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(dir: &Path, input: &str) -> Result<String, String> {
        Notes::new(dir).answer(parse_input(input)?)
    }

    #[test]
    fn notes_are_kept_from_call_to_call() {
        let dir = tempfile::tempdir().unwrap();
        for (input, output) in [
            (r#"{"action": "list"}"#, r#"{"count":0,"notes":[]}"#),
            (
                r#"{"action": "add", "text": " milk "}"#,
                r#"{"count":1,"notes":["milk"]}"#,
            ),
            (
                r#"{"action": "add", "text": "brød"}"#,
                r#"{"count":2,"notes":["milk","brød"]}"#,
            ),
            (
                r#"{"action": "list"}"#,
                r#"{"count":2,"notes":["milk","brød"]}"#,
            ),
            (r#"{"action": "clear"}"#, r#"{"count":0,"notes":[]}"#),
            (r#"{"action": "clear"}"#, r#"{"count":0,"notes":[]}"#),
        ] {
            assert_eq!(answer(dir.path(), input).as_deref(), Ok(output), "{input}");
        }
    }

    #[test]
    fn what_is_no_note_is_refused_and_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!(r#"{{"action": "add", "text": "{}"}}"#, "x".repeat(4097));
        for (input, why) in [
            (r#"{"action": "add", "text": " "}"#, "`text` is empty"),
            (
                r#"{"action": "add", "text": "a\nb"}"#,
                "`text` has several lines",
            ),
            (r#"{"action": "add"}"#, "missing field `text`"),
            (
                r#"{"action": "eat"}"#,
                "unknown variant `eat`, expected one of `add`",
            ),
            ("{}", "missing field `action`"),
            (long.as_str(), "`text` has 4097 bytes"),
        ] {
            let refused = answer(dir.path(), input).unwrap_err();
            assert!(refused.contains(why), "{input}: {refused}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_full_file_takes_no_more() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "x\n".repeat(32 * 1024)).unwrap();
        let refused = answer(dir.path(), r#"{"action": "add", "text": "one more"}"#).unwrap_err();
        assert!(refused.contains("clear them first"), "{refused}");
    }

    #[test]
    fn without_a_directory_every_action_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        for input in [
            r#"{"action": "list"}"#,
            r#"{"action": "add", "text": "milk"}"#,
            r#"{"action": "clear"}"#,
        ] {
            let refused = answer(&gone, input).unwrap_err();
            assert!(
                refused.contains("fs_access = \"sandbox\""),
                "{input}: {refused}"
            );
        }
    }
}
