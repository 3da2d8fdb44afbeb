//! Where messages are: files in which one follows the other (mbox), and folders with one file each
//! (Maildir).

use kenning_core::{Error, Result};
use kenning_vault::Dir;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

/// How deep mailboxes may be nested.
const DEPTH_MAX: usize = 8;

/// The largest message that is read.
pub(super) const MESSAGE_BYTES_MAX: usize = 25 << 20;

/// Reading continues only if this many bytes before the place are unchanged.
const CHECKED_BYTES: u64 = 4_096;

/// A mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mailbox {
    /// A file, by its name.
    Mbox(String),
    /// A folder, by its name; nothing for the root itself.
    Maildir(String),
}

impl Mailbox {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Mbox(name) | Self::Maildir(name) => name,
        }
    }
}

/// All mailboxes in a folder, in the order of their names.
pub(super) fn find(dir: &Dir) -> Result<Vec<Mailbox>> {
    let mut found = Vec::new();
    look(dir, "", 0, &mut found)?;
    Ok(found)
}

fn look(dir: &Dir, folder: &str, depth: usize, found: &mut Vec<Mailbox>) -> Result<()> {
    let entries = dir.list(folder)?;
    let has = |name: &str| entries.iter().any(|it| it.name == name && it.is_dir);
    let is_maildir = has("cur") || has("new");
    if is_maildir {
        found.push(Mailbox::Maildir(folder.to_owned()));
    }
    for entry in &entries {
        let name = match folder {
            "" => entry.name.clone(),
            _ => format!("{folder}/{}", entry.name),
        };
        let is_own = is_maildir && matches!(entry.name.as_str(), "cur" | "new" | "tmp");
        if entry.is_dir && !is_own && depth < DEPTH_MAX {
            look(dir, &name, depth + 1, found)?;
        } else if entry.is_file && is_mbox(dir, &name) {
            found.push(Mailbox::Mbox(name));
        }
    }
    Ok(())
}

/// Whether a file begins like an mbox; false if it cannot be read.
pub(super) fn is_mbox(dir: &Dir, name: &str) -> bool {
    let mut first = [0; 5];
    let read = |mut file: std::fs::File| file.read_exact(&mut first).is_ok();
    dir.open_read(name).is_ok_and(read) && &first == b"From "
}

/// A message of an mbox.
pub(super) struct Raw {
    /// Where its line `From ` begins.
    pub(super) start: u64,
    /// Without that line; none if it is too large.
    pub(super) bytes: Option<Vec<u8>>,
}

/// The messages of an mbox from a place on, which is the beginning of one.
pub(super) struct Mbox {
    reader: BufReader<std::fs::File>,
    /// Of the next line.
    at: u64,
    /// Where the next message begins, if its first line was read.
    next: Option<u64>,
}

impl Mbox {
    pub(super) fn open(dir: &Dir, name: &str, from: u64) -> Result<Self> {
        let mut file = dir.open_read(name)?;
        file.seek(SeekFrom::Start(from))
            .map_err(|it| broken(name, it))?;
        Ok(Self {
            reader: BufReader::with_capacity(1 << 16, file),
            at: from,
            next: None,
        })
    }

    /// The next message.
    pub(super) fn next(&mut self, name: &str) -> Result<Option<Raw>> {
        let mut line = Vec::new();
        let start = match self.next.take() {
            Some(start) => start,
            None => loop {
                let start = self.at;
                if self.line(&mut line, name)? == 0 {
                    return Ok(None);
                }
                if line.starts_with(b"From ") {
                    break start;
                }
            },
        };
        let mut bytes = Vec::new();
        let (mut is_whole, mut is_after_blank) = (true, false);
        loop {
            let at = self.at;
            if self.line(&mut line, name)? == 0 {
                break;
            }
            if is_after_blank && line.starts_with(b"From ") {
                self.next = Some(at);
                break;
            }
            is_after_blank = line == b"\n" || line == b"\r\n";
            let n_quotes = line.iter().take_while(|it| **it == b'>').count();
            let is_quoted = n_quotes > 0
                && line
                    .get(n_quotes..)
                    .is_some_and(|it| it.starts_with(b"From "));
            let content = line.get(usize::from(is_quoted)..).unwrap_or_default();
            if is_whole && bytes.len() + content.len() <= MESSAGE_BYTES_MAX {
                bytes.extend_from_slice(content);
            } else {
                is_whole = false;
                bytes.clear();
            }
        }
        Ok(Some(Raw {
            start,
            bytes: is_whole.then_some(bytes),
        }))
    }

    /// The next line, of which no more than a message may have is kept.
    fn line(&mut self, line: &mut Vec<u8>, name: &str) -> Result<u64> {
        line.clear();
        let most = MESSAGE_BYTES_MAX as u64 + 1;
        let read = self.reader.by_ref().take(most).read_until(b'\n', line);
        let n = read.map_err(|it| broken(name, it))? as u64;
        self.at += n;
        Ok(n)
    }
}

/// What stands before a place, as a hash; none if the file does not reach so far.
pub(super) fn before(dir: &Dir, name: &str, at: u64) -> Result<Option<String>> {
    let mut file = dir.open_read(name)?;
    let size = file.metadata().map_err(|it| broken(name, it))?.len();
    if size < at {
        return Ok(None);
    }
    let start = at.saturating_sub(CHECKED_BYTES);
    file.seek(SeekFrom::Start(start))
        .map_err(|it| broken(name, it))?;
    let mut bytes = Vec::new();
    let read = file.take(at - start).read_to_end(&mut bytes);
    read.map_err(|it| broken(name, it))?;
    Ok(Some(
        kenning_core::Hash::of(&bytes).to_string()[..32].to_owned(),
    ))
}

fn broken(name: &str, cause: std::io::Error) -> Error {
    Error::unavailable(format!("the mailbox `{name}` cannot be read")).because(cause)
}
