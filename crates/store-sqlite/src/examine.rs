//! Checks a store's file without changing or creating it.

use crate::{FILE_NAME, error};
use kenning_core::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// How many faults of one kind are reported.
const FAULTS_MAX: u32 = 20;

/// The faults that SQLite's own check finds. An error says why the file cannot be checked at all.
pub fn examine(directory: &Path) -> Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(directory.join(FILE_NAME), flags)
        .map_err(error::from_sqlite)?;
    let lines: rusqlite::Result<Vec<String>> = (|| {
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        lines.collect()
    })();
    let mut lines = lines.map_err(error::from_sqlite)?;
    lines.retain(|line| line != "ok");
    Ok(lines)
}
