//! What can be told of a store's file without changing it, or making one.

use crate::{FILE_NAME, error};
use kenning_core::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Faults of one kind that are told.
const FAULTS_MAX: u32 = 20;

/// What is wrong with the file, as SQLite itself says; nothing if it finds nothing. The error says why it
/// cannot even be looked at.
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
