//! Numbered migrations, only ever added.

use crate::error;
use kenning_core::{Error, Result};
use rusqlite::{Connection, TransactionBehavior};

/// In order; the place in the list is the version it leads to.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_cellar.sql"),
    include_str!("../migrations/0002_names.sql"),
    include_str!("../migrations/0003_sealed_events.sql"),
];

/// Brings the file to the newest version. Each step is one transaction: interrupted, it never was.
pub(crate) fn run(connection: &mut Connection) -> Result<()> {
    loop {
        if version(connection)? == MIGRATIONS.len() {
            return Ok(());
        }
        // Another process may be doing the same: the lock decides, and the version is read again
        // beneath it.
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(error::from_sqlite)?;
        let from = version(&tx)?;
        let Some(migration) = MIGRATIONS.get(from) else {
            if from == MIGRATIONS.len() {
                return Ok(());
            }
            return Err(Error::unavailable(format!(
                "the store has version {from}; this program knows up to {}",
                MIGRATIONS.len()
            ))
            .hint("use the newer program that wrote it"));
        };
        tx.execute_batch(migration).map_err(error::from_sqlite)?;
        tx.pragma_update(None, "user_version", from as i64 + 1)
            .map_err(error::from_sqlite)?;
        tx.commit().map_err(error::from_sqlite)?;
    }
}

/// Whether this program may write: asked in every write transaction, because a newer program may have
/// upgraded the file since it was opened.
pub(crate) fn check_version(connection: &Connection) -> Result<()> {
    let found = version(connection)?;
    if found == MIGRATIONS.len() {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "the store has been upgraded to version {found}; this program writes version {}",
        MIGRATIONS.len()
    ))
    .hint("stop this program and start the newer one"))
}

fn version(connection: &Connection) -> Result<usize> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    Ok(version.map_err(error::from_sqlite)? as usize)
}
