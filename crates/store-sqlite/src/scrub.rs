//! Removes deleted rows from the file.
//!
//! SQLite leaves the bytes of deleted rows in free pages, in the gaps of pages that it rearranges, and in the
//! write-ahead log until that is used again. Overwriting on deletion (`secure_delete`) does not reach the gaps, and
//! not what was deleted before it was switched on. Writing the whole file anew reaches everything.

use crate::{connection, error};
use kenning_core::{Code, Result};
use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for readers that still see what was deleted.
const READERS_WAIT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 5_000 });

/// How often to try again meanwhile.
const AGAIN: Duration = Duration::from_millis(20);

/// A larger file is rewritten through a temporary file instead of memory.
const MEMORY_PAGES_MAX: i64 = 16 * 1_024;

/// Rewrites the file without what was deleted, and empties the log. False if somebody reads an earlier state.
pub(crate) fn run(path: &Path) -> Result<bool> {
    let mut connection = connection::open(path)?;
    let rewritten = rewrite(&connection).map_err(error::from_sqlite);
    if let Err(error) = &rewritten
        && error.code == Code::Unavailable
    {
        return Ok(false);
    }
    rewritten?;
    // The loop below waits, and no longer than it says.
    connection
        .busy_handler(None::<fn(i32) -> bool>)
        .map_err(error::from_sqlite)?;
    let until = Instant::now() + READERS_WAIT;
    loop {
        if is_log_empty(&connection).map_err(error::from_sqlite)? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(AGAIN);
    }
}

fn rewrite(connection: &Connection) -> rusqlite::Result<()> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages > MEMORY_PAGES_MAX {
        connection.pragma_update(None, "temp_store", "FILE")?;
    }
    connection.execute_batch("VACUUM")
}

/// Moves the log into the file and cuts it to nothing, if nobody reads an earlier state.
fn is_log_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let is_busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(is_busy == 0)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test of the backend itself, which looks into its files"
)]
mod tests {
    use crate::Sqlite;
    use kenning_core::Space;
    use kenning_store::{Backend, Store};

    const SECRET: &[u8] = b"quartz-heron-lantern-7731";

    fn holds_secret(directory: &std::path::Path) -> bool {
        let files = std::fs::read_dir(directory).unwrap();
        files.map(|it| it.unwrap().path()).any(|path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(SECRET.len()).any(|it| it == SECRET)
        })
    }

    #[test]
    fn what_was_deleted_is_in_no_file_after_scrubbing_unless_somebody_still_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(directory.path()).unwrap());
        let space = Space::default();
        let write = |key: String, value: Option<Vec<u8>>| {
            let work = move |tx: &mut dyn kenning_store::WriteTx| match value {
                Some(value) => tx.set("bucket", &key, &value),
                None => tx.unset("bucket", &key),
            };
            store.write(&space, work).unwrap();
        };
        for n in 0..200 {
            write(format!("other {n}"), Some(vec![n; 700]));
        }
        write("secret".to_owned(), Some(SECRET.repeat(300)));
        write("secret".to_owned(), None);
        assert!(holds_secret(directory.path()), "the test tests something");
        let reader = Sqlite::open(directory.path()).unwrap();
        reader
            .read(&space, &mut |tx| {
                tx.get("bucket", "other 1").map(drop)?;
                assert!(!store.scrub()?, "an open read keeps the log");
                Ok(())
            })
            .unwrap();
        assert!(store.scrub().unwrap());
        assert!(!holds_secret(directory.path()));
        let kept = store.read(&space, |tx| tx.get("bucket", "other 1"));
        assert_eq!(kept.unwrap(), Some(vec![1; 700]));
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}
