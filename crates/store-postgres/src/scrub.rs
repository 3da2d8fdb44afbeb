//! Removes deleted rows from the tables' files.
//!
//! An ordinary vacuum leaves the bytes of deleted rows in their pages until they are used again; this writes the
//! tables anew. The server's own write-ahead log, its replicas and its backups belong to whoever runs it.

use crate::error::from_postgres;
use crate::pool::{Pool, SESSION};
use crate::wait::wait_for;
use kenning_core::{Error, Result};
use kenning_store::Table;
use std::time::Duration;

/// How long to wait for the connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// No time limit for rewriting a large table; a table that others use is waited for this long.
const LIMITS: &str = "SET statement_timeout = 0; SET lock_timeout = '10s'";

/// Rewrites every table without what was deleted. False if a table is in use for too long.
pub(crate) fn run(pool: &Pool) -> Result<bool> {
    let handle = pool.handle()?;
    wait_for(&handle, async {
        let (client, driver) = pool.target().connect(CONNECT_WAIT).await?;
        // Ends when the client is dropped.
        drop(tokio::spawn(driver.run()));
        for sql in [SESSION, LIMITS] {
            client.batch_execute(sql).await.map_err(from_postgres)?;
        }
        for table in Table::ALL {
            let sql = format!("VACUUM (FULL) {}", table.as_str());
            if let Err(cause) = client.batch_execute(&sql).await {
                let is_in_use =
                    cause.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE);
                if is_in_use {
                    return Ok(false);
                }
                return Err(Error::unavailable("the tables could not be rewritten")
                    .hint("the database user must own the tables; `kenning doctor` tells more")
                    .because(from_postgres(cause)));
            }
        }
        Ok(true)
    })
}
