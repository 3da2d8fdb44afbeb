//! A private copy of the file, for reads that take long.
//!
//! An open read keeps the write-ahead log from being used again, so beside a backup of an hour the log
//! would hold all that was written in that hour. A copy takes as long as the disk needs; then the read has
//! its own file, and the log is cut as always.

use crate::connection::READER_CACHE_KIB;
use crate::{error, private};
use kenning_core::{Error, Result};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A copy is made only if that leaves so much of the disk free as it takes.
const ROOM: u64 = 2;

/// A smaller store is copied to memory.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// A connection to a copy of the file as it is now. Nobody else sees the copy, and it is gone once the
/// connection is closed or the process ends.
pub(crate) fn open(source: &Connection, path: &Path) -> Result<Connection> {
    let number = |name: &str| {
        let read = source.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map(i64::cast_unsigned).map_err(error::from_sqlite)
    };
    let size = number("page_count")?.saturating_mul(number("page_size")?);
    if size <= MEMORY_BYTES_MAX {
        let mut copy = Connection::open_in_memory().map_err(error::from_sqlite)?;
        fill(source, &mut copy).map_err(error::from_sqlite)?;
        return set_up(copy).map_err(error::from_sqlite);
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let free = rustix::fs::statvfs(directory)
        .map(|it| it.f_bavail.saturating_mul(it.f_frsize))
        .unwrap_or(0);
    if free < size.saturating_mul(ROOM) {
        return Err(Error::unavailable("there is no room for a copy"));
    }
    let copy = Named(directory.join(file_name()));
    copy.remove();
    private::keep_private(&copy.0)?;
    fill_file(source, &copy.0).map_err(error::from_sqlite)?;
    open_immutable(&copy.0)
        .and_then(set_up)
        .map_err(error::from_sqlite)
}

/// A file that is removed when this is dropped. Whoever has it open goes on reading.
struct Named(PathBuf);

impl Named {
    #[expect(
        clippy::disallowed_methods,
        reason = "the store's own file, which nobody named"
    )]
    fn remove(&self) {
        // Whatever stays is removed like the files of killed writes.
        drop(std::fs::remove_file(&self.0));
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Called like the files of unfinished writes, so that `clean_up` removes what a killed process leaves.
fn file_name() -> String {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let n = COPIES.fetch_add(1, Ordering::Relaxed);
    format!(".{:08x}{n:08x}.kenning-tmp", std::process::id())
}

fn fill_file(source: &Connection, path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(path, flags)?;
    // Nobody needs it after a power cut.
    copy.pragma_update(None, "journal_mode", "OFF")?;
    copy.pragma_update(None, "synchronous", "OFF")?;
    fill(source, &mut copy)
}

fn fill(source: &Connection, copy: &mut Connection) -> rusqlite::Result<()> {
    // In one step: between two steps somebody could write, and then it begins anew.
    match Backup::new(source, copy)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            None,
        )),
    }
}

/// Opens a file that nobody changes: without locks, and without a log beside it.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(address(path), flags)
}

fn set_up(connection: Connection) -> rusqlite::Result<Connection> {
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    // SQLite opens a file when it first reads it, and the name is removed after this.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn address(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                address.push(char::from(byte));
            }
            other => address += &format!("%{other:02X}"),
        }
    }
    address + "?immutable=1"
}
