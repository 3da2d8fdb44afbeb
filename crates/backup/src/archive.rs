//! What is in an archive: regular files with plain names, and nothing else.
//!
//! Backups are kept where others may write, so archives are read as strictly as they
//! are written. The `tar` crate only splits the bytes into raw entries; it neither joins extension
//! headers (a long name could fill the memory) nor unpacks anything. Everything that we would not have
//! written is refused: links, devices, directories, sparse files, extended headers, names that are
//! not in their plain form, names that come twice or lie beneath another file, and bytes after the
//! end.

use crate::Limits;
use crate::stream::{too_large, unwrap_error};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use kenning_core::{Error, Result};
use kenning_vault::Name;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use tar::{Archive, Builder, EntryType, Header};

/// The longest name, with the zero that ends it in an archive.
const LONG_NAME_BYTES_MAX: u64 = 4096 + 1;
/// Zeros that may follow the end: one block of the largest customary size.
const PADDING_BYTES_MAX: u64 = 1024 * 1024;
/// How much of an offending name a message repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// Writes an archive.
pub(crate) struct Packer<W: Write> {
    tar: Builder<GzEncoder<W>>,
    names: Names,
    limits: Limits,
    modified_s: u64,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(out: W, limits: Limits, modified_s: u64) -> Self {
        Self {
            tar: Builder::new(GzEncoder::new(out, Compression::default())),
            names: Names::default(),
            limits,
            modified_s,
        }
    }

    /// Adds a file of exactly this size.
    pub(crate) fn add(&mut self, name: &str, n_bytes: u64, content: &mut dyn Read) -> Result<()> {
        self.names.admit(name, n_bytes, &self.limits)?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(n_bytes);
        header.set_mode(0o600);
        header.set_mtime(self.modified_s);
        self.tar
            .append_data(&mut header, name, content)
            .map_err(unwritable)
    }

    pub(crate) fn finish(self) -> Result<W> {
        let gzip = self.tar.into_inner().map_err(unwritable)?;
        gzip.finish().map_err(unwritable)
    }
}

fn unwritable(error: io::Error) -> Error {
    unwrap_error(error, "the backup could not be written")
}

/// The names so far, to check the next one against.
#[derive(Default)]
pub(crate) struct Names {
    files: BTreeSet<String>,
    dirs: BTreeSet<String>,
    n_bytes: u64,
}

impl Names {
    /// Accepts a name if it obeys every rule.
    pub(crate) fn admit(&mut self, name: &str, n_bytes: u64, limits: &Limits) -> Result<()> {
        let plain = Name::parse(name)?;
        if plain.as_str() != name {
            let shown = shown(name);
            return Err(Error::invalid(format!(
                "`{shown}` is not a plain file name"
            )));
        }
        if self.files.len() >= limits.files_max {
            let max = limits.files_max;
            return Err(Error::too_large(format!(
                "a backup has at most {max} files"
            )));
        }
        if n_bytes > limits.file_bytes_max {
            let what = format!("`{}`", shown(name));
            return Err(too_large(&what, limits.file_bytes_max));
        }
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if self.n_bytes > limits.total_bytes_max {
            return Err(too_large("the sum of all files", limits.total_bytes_max));
        }
        let above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
        let above: Vec<&str> = above.collect();
        if self.dirs.contains(name) || above.iter().any(|it| self.files.contains(*it)) {
            let shown = shown(name);
            let why = format!("`{shown}` would be a file and a directory at once");
            return Err(Error::invalid(why));
        }
        if !self.files.insert(name.to_owned()) {
            return Err(Error::invalid(format!("`{}` appears twice", shown(name))));
        }
        self.dirs.extend(above.into_iter().map(str::to_owned));
        Ok(())
    }
}

/// Reads an archive from the first byte to the last and hands over each file. An entry that was not
/// read to its end by `each` is skipped.
pub(crate) fn scan(
    input: impl Read,
    limits: &Limits,
    mut each: impl FnMut(&str, u64, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let mut gzip = GzDecoder::new(BufReader::new(input));
    let mut archive = Archive::new(&mut gzip);
    let mut names = Names::default();
    let mut long_name: Option<String> = None;
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        let n_bytes = entry.header().entry_size().map_err(unreadable)?;
        match entry.header().entry_type() {
            EntryType::GNULongName if long_name.is_none() => {
                if n_bytes > LONG_NAME_BYTES_MAX {
                    return Err(broken("a name in it is too long"));
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(unreadable)?;
                if bytes.last() == Some(&0) {
                    bytes.pop();
                }
                long_name = Some(text(bytes)?);
            }
            EntryType::Regular => {
                let name = match long_name.take() {
                    Some(name) => name,
                    None => text(entry.header().path_bytes().into_owned())?,
                };
                names.admit(&name, n_bytes, limits)?;
                let mut content = Content {
                    entry: &mut entry,
                    n_left: n_bytes,
                };
                each(&name, n_bytes, &mut content)?;
                io::copy(&mut content, &mut io::sink()).map_err(unreadable)?;
            }
            other => {
                let what = kind_name(other);
                return Err(broken(&format!(
                    "it contains {what}; only regular files are restored"
                )));
            }
        }
    }
    if long_name.is_some() {
        return Err(broken(CUT_OFF));
    }
    let mut padding = Vec::new();
    let mut end = (&mut gzip).take(PADDING_BYTES_MAX + 1);
    end.read_to_end(&mut padding).map_err(unreadable)?;
    let is_padding = padding.iter().all(|byte| *byte == 0);
    if !is_padding || padding.len() as u64 > PADDING_BYTES_MAX {
        return Err(broken("it has data after its end"));
    }
    let mut rest = gzip.into_inner();
    if !rest.fill_buf().map_err(unreadable)?.is_empty() {
        return Err(broken("it has data after its end"));
    }
    Ok(())
}

/// The content of one file, all of it or an error that says what is wrong with the archive.
struct Content<'a, R> {
    entry: &'a mut R,
    n_left: u64,
}

impl<R: Read> Read for Content<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.entry.read(out);
        let n = n.map_err(|error| io::Error::other(unreadable(error)))?;
        self.n_left = self.n_left.saturating_sub(n as u64);
        if n == 0 && self.n_left > 0 && !out.is_empty() {
            return Err(io::Error::other(broken(CUT_OFF)));
        }
        Ok(n)
    }
}

const CUT_OFF: &str = "it is cut off or damaged";

/// Keeps errors of our own readers, which say more.
fn unreadable(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(other) => broken(CUT_OFF).because(other),
    }
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| broken("a name in it is not UTF-8"))
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Directory => "a directory",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "an extended header",
    }
}

fn broken(why: &str) -> Error {
    Error::corrupt(format!("the archive is refused: {why}")).hint("restore another backup")
}

/// A name as a message shows it: one line, not endless.
pub(crate) fn shown(name: &str) -> String {
    let line = name.chars().flat_map(char::escape_debug);
    line.take(SHOWN_CHARS_MAX).collect()
}
