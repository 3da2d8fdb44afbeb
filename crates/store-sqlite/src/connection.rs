//! How a connection is set up.

use crate::error;
use kenning_core::{Error, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long a process waits for another one's group to commit.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// What a connection may keep of the file: the upper pages of large indexes.
pub(crate) const READER_CACHE_KIB: i64 = 8 * 1_024;

/// What a connection that writes may keep of it.
const WRITER_CACHE_KIB: i64 = 48 * 1_024;

/// The size to which the log is cut once no reader needs it: twice what is written between two checkpoints.
const LOG_BYTES_MAX: i64 = 32 << 20;

/// Opens the file, durable and strict.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|cause| {
        Error::unavailable("the store could not be opened")
            .hint("check that the data directory exists and can be written")
            .because(cause)
    })?;
    set_up(&mut connection).map_err(error::from_sqlite)?;
    Ok(connection)
}

/// Gives the writing connection a larger page cache: names and hashes are written all over the file.
/// The cache grows with the pages in use, so a small store needs little memory.
pub(crate) fn enlarge_cache(connection: &Connection) -> Result<()> {
    connection
        .pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
        .map_err(error::from_sqlite)
}

fn set_up(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_other_process))?;
    // SQLite does not call the busy handler for this statement: two processes that create a store at the
    // same time would fail.
    let mut attempts = 0;
    while let Err(cause) = connection.pragma_update(None, "journal_mode", "WAL") {
        let busy = cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        if !busy || !wait_for_other_process(attempts) {
            return Err(cause);
        }
        attempts += 1;
    }
    // FULL syncs the log at every commit, so an acknowledged write is on disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A checkpoint costs two more syncs: every 16 MiB of log instead of every 4.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    // During a long read the log cannot be reused and grows; afterwards it is cut to this size.
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Sleeps for short, equal times instead of SQLite's growing ones: a group takes a few milliseconds, so a
/// process that sleeps longer starves beside one that does not.
fn wait_for_other_process(attempts: i32) -> bool {
    let nap = Duration::from_micros(match attempts {
        0..4 => 100,
        4..20 => 400,
        _ => 1_000,
    });
    std::thread::sleep(nap);
    let waited_ms = u128::try_from(attempts).unwrap_or(0);
    waited_ms < LOCK_WAIT.as_millis()
}
