//! Numbered migrations, only ever added, run under a lock: two servers that start at once do not
//! fight.

use crate::connect::Connection;
use crate::pool::SESSION;
use kenning_core::{Error, Result};

/// In order; the place in the list is the version it leads to.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_cellar.sql"),
    include_str!("../migrations/0002_sealed_events.sql"),
];

/// Any number that nobody else uses as a lock in this database.
const LOCK: i64 = 7_310_868_735_421;

/// Brings the tables to the newest version. Each step is one transaction.
pub(crate) fn run(connection: &Connection, read_only: bool) -> Result<()> {
    let found = version(connection)?;
    if found == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    if read_only {
        return Err(Error::unavailable(format!(
            "the store has version {}; this program reads version {}",
            found.unwrap_or(0),
            MIGRATIONS.len()
        ))
        .hint("open it once without `--read-only`, on the primary, with this program"));
    }
    // The lock is the session's and comes before the transaction: one that began earlier could
    // still believe that a table is not there. A connection that dies gives the lock back.
    connection.batch_long(&format!(
        "SET lock_timeout = '60s'; SET statement_timeout = 0; SELECT pg_advisory_lock({LOCK})"
    ))?;
    loop {
        connection.batch("BEGIN")?;
        if step(connection)? {
            break;
        }
        connection.batch("COMMIT")?;
    }
    connection.batch("COMMIT")?;
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK}); {SESSION}"))
}

/// One step; true when there is none left.
fn step(connection: &Connection) -> Result<bool> {
    let from = version(connection)?.unwrap_or(0);
    let Some(migration) = MIGRATIONS.get(from) else {
        if from == MIGRATIONS.len() {
            return Ok(true);
        }
        return Err(Error::unavailable(format!(
            "the store has version {from}; this program knows up to {}",
            MIGRATIONS.len()
        ))
        .hint("use the newer program that wrote it"));
    };
    connection.batch_long(migration)?;
    connection.batch(&format!(
        "CREATE TABLE IF NOT EXISTS kenning_version (version INTEGER NOT NULL);
         DELETE FROM kenning_version;
         INSERT INTO kenning_version VALUES ({})",
        from + 1
    ))?;
    Ok(false)
}

fn version(connection: &Connection) -> Result<Option<usize>> {
    let there = connection.query("SELECT to_regclass('kenning_version') IS NOT NULL", &[])?;
    let there = there.first().is_some_and(|row| row.get::<_, bool>(0));
    if !there {
        return Ok(None);
    }
    let rows = connection.query("SELECT version FROM kenning_version", &[])?;
    Ok(rows
        .first()
        .map(|row| usize::try_from(row.get::<_, i32>(0)).unwrap_or(0)))
}
