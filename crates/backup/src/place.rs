//! Where backups lie: a directory or a bucket, asked for the same five things.

use crate::Bucket;
use crate::stream::{copy, too_large, unwrap_error};
use kenning_core::{Code, Error, Result};
use kenning_vault::Dir;
use std::io::{Read, Write};

/// A place for backups.
#[derive(Clone, Debug)]
pub enum Place {
    /// A directory of this machine. Files there are the owner's only (mode 0600).
    Local(Dir),
    /// A bucket that speaks S3.
    Bucket(Bucket),
}

/// One object of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) n_bytes: u64,
}

impl Place {
    /// Gives an object the content that `fill` writes, all of it or none: when `fill` fails, the key
    /// has no new content.
    pub(crate) fn put(
        &self,
        key: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Local(dir) => dir.write_with(key, fill),
            Self::Bucket(bucket) => bucket.put(key, fill),
        }
    }

    /// Makes a small object if there is none of this key. False if there is.
    pub(crate) fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        match self {
            Self::Local(dir) => dir.create_new_private(key, bytes),
            Self::Bucket(bucket) => bucket.put_new(key, bytes),
        }
    }

    /// Writes the content of an object, of at most this many bytes, to `out`.
    pub(crate) fn get(&self, key: &str, max_bytes: u64, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::Local(dir) => get_file(dir, key, max_bytes, out),
            Self::Bucket(bucket) => bucket.get(key, max_bytes, out),
        }
    }

    /// The objects whose keys begin with a folder, sorted by key.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>> {
        match self {
            Self::Local(dir) => list_files(dir, folder),
            Self::Bucket(bucket) => bucket.list(folder),
        }
    }

    /// Deletes an object. Deleting a missing one succeeds.
    pub(crate) fn delete(&self, key: &str) -> Result<()> {
        let deleted = match self {
            Self::Local(dir) => dir.remove(key),
            Self::Bucket(bucket) => bucket.delete(key),
        };
        match deleted {
            Err(error) if error.code == Code::NotFound => Ok(()),
            other => other,
        }
    }
}

fn get_file(dir: &Dir, key: &str, max_bytes: u64, out: &mut dyn Write) -> Result<()> {
    let file = dir.open_read(key)?;
    let size = file
        .metadata()
        .map_err(|error| unwrap_error(error, UNREADABLE))?
        .len();
    // The file may grow while it is read, so its size is checked again.
    if size > max_bytes || copy(&mut file.take(max_bytes + 1), out)? > max_bytes {
        return Err(too_large(&format!("`{key}`"), max_bytes));
    }
    Ok(())
}

const UNREADABLE: &str = "the backup could not be read";

fn list_files(dir: &Dir, folder: &str) -> Result<Vec<Object>> {
    let entries = match dir.list(folder) {
        Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let files = entries.into_iter().filter(|it| it.is_file);
    let objects = files.map(|file| Object {
        key: format!("{folder}{}", file.name),
        n_bytes: file.size_bytes,
    });
    Ok(objects.collect())
}

/// The error for content that differs from what was written.
pub(crate) fn checksum_mismatch(what: &str, expected: &str, found: &str) -> Error {
    Error::corrupt(format!(
        "Checksum mismatch! Expected {expected}, got {found} for `{what}`"
    ))
    .hint("the object was damaged or replaced: restore another backup")
}
