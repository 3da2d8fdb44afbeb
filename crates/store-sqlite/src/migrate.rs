//! Numbered migrations, only ever added.

use crate::error;
use kenning_core::{Error, Result};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::{Batch, Connection, TransactionBehavior};

/// In order; the position in the list is the version that a migration leads to.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_names.sql"),
    include_str!("../migrations/0003_sealed_events.sql"),
    include_str!("../migrations/0004_no_full_text.sql"),
    include_str!("../migrations/0005_keys_apart.sql"),
    include_str!("../migrations/0006_event_indexes.sql"),
    include_str!("../migrations/0007_event_effects.sql"),
];

/// Brings the file to the newest version. Each step is one transaction, so an interrupted step leaves no trace.
pub(crate) fn run(connection: &mut Connection) -> Result<()> {
    run_with(connection, &mut || ())
}

/// The same; calls `before_each` before every statement, and before the commit.
fn run_with(connection: &mut Connection, before_each: &mut dyn FnMut()) -> Result<()> {
    loop {
        if version(connection)? == MIGRATIONS.len() {
            return Ok(());
        }
        // Another process may be doing the same, so the version is read again under the lock.
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
        let mut statements = Batch::new(&tx, migration);
        while let Some(mut statement) = statements.next().map_err(error::from_sqlite)? {
            before_each();
            statement.execute([]).map_err(error::from_sqlite)?;
        }
        before_each();
        tx.pragma_update(None, "user_version", from as i64 + 1)
            .map_err(error::from_sqlite)?;
        before_each();
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

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "these tests unpack and copy the files of stores"
)]
mod tests {
    use super::*;
    use crate::{FILE_NAME, Sqlite, connection};
    use kenning_core::Space;
    use kenning_store::{Store, Table};
    use std::path::Path;

    /// The store of an older program, unpacked; see `testing/stores`.
    fn unpack(name: &str, directory: &Path) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/stores");
        let packed = std::fs::File::open(folder.join(name)).unwrap();
        let mut file = std::fs::File::create(directory.join(FILE_NAME)).unwrap();
        std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut file).unwrap();
    }

    /// How many rows each table has; an error says that the store cannot be used.
    fn counts(directory: &Path) -> Vec<usize> {
        let store = Store::new(Sqlite::open(directory).unwrap());
        assert_eq!(store.check().unwrap(), [""; 0]);
        let count = |table| {
            store.read(&Space::default(), |tx| {
                let mut n = 0;
                tx.scan(table, &mut |_| {
                    n += 1;
                    Ok(())
                })?;
                Ok(n)
            })
        };
        Table::ALL
            .into_iter()
            .map(|it| count(it).unwrap())
            .collect()
    }

    /// Upgrades, and before every statement takes the files as a power cut would leave them: each of those
    /// copies must be upgraded by the next start, with every row.
    fn interrupt_everywhere(directory: &Path, n_statements: usize) {
        let copies = tempfile::tempdir().unwrap();
        let mut connection = connection::open(&directory.join(FILE_NAME)).unwrap();
        // Pages of the running transaction reach the log too, so that there is something to undo.
        connection.pragma_update(None, "cache_size", 1).unwrap();
        let mut n = 0;
        run_with(&mut connection, &mut || {
            let copy = copies.path().join(n.to_string());
            std::fs::create_dir(&copy).unwrap();
            for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal")] {
                if directory.join(&name).exists() {
                    std::fs::copy(directory.join(&name), copy.join(&name)).unwrap();
                }
            }
            n += 1;
        })
        .unwrap();
        drop(connection);
        assert_eq!(n, n_statements);
        let expected = counts(directory);
        for n in 0..n_statements {
            let copy = copies.path().join(n.to_string());
            assert_eq!(counts(&copy), expected, "before statement {n}");
        }
    }

    #[test]
    fn an_upgrade_interrupted_before_any_statement_is_done_by_the_next_start() {
        for (name, n_statements) in [
            ("sqlite-1", 39),
            ("sqlite-2", 32),
            ("sqlite-3", 22),
            ("sqlite-4", 19),
            ("sqlite-5", 13),
            ("sqlite-6", 7),
        ] {
            let directory = tempfile::tempdir().unwrap();
            unpack(&format!("{name}.db.gz"), directory.path());
            interrupt_everywhere(directory.path(), n_statements);
            assert!(counts(directory.path()).iter().sum::<usize>() > 50);
        }
    }

    #[test]
    fn pages_of_the_full_text_index_that_an_upgrade_frees_are_written_again() {
        let directory = tempfile::tempdir().unwrap();
        unpack("sqlite-3.db.gz", directory.path());
        let looking = connection::open(&directory.path().join(FILE_NAME)).unwrap();
        let number = |sql: &str| looking.query_row(sql, [], |row| row.get::<_, u32>(0));
        let n_indexes = || {
            number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'passages_fts%'").unwrap()
        };
        let n_pages = || number("PRAGMA page_count").unwrap();
        let n_free = || number("PRAGMA freelist_count").unwrap();
        let before = n_pages();
        assert_eq!((n_indexes(), n_free()), (5, 0));
        // The fifth migration copies a table, and takes what the fourth has freed; the sixth adds indexes,
        // a page each, and the seventh a table of what events did.
        drop(Sqlite::open(directory.path()).unwrap());
        assert_eq!(n_indexes(), 0);
        assert!(n_pages() <= before + 6, "{} of {before}", n_pages());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_way_to_a_key_reads_no_large_row() {
        let directory = tempfile::tempdir().unwrap();
        drop(Sqlite::open(directory.path()).unwrap());
        let connection = connection::open(&directory.path().join(FILE_NAME)).unwrap();
        let put = "INSERT INTO kv (space, bucket, key, value) VALUES ('s', 'b', ?1, zeroblob(?2))";
        for n in 0..50 {
            connection
                .execute(put, (format!("large {n}"), 200_000))
                .unwrap();
        }
        connection.execute(put, ("small", 10)).unwrap();
        drop(connection);
        let connection = connection::open(&directory.path().join(FILE_NAME)).unwrap();
        let get = "SELECT length(value) FROM kv WHERE space = 's' AND bucket = 'b' AND key = ?1";
        let length = |key: &str| connection.query_row(get, [key], |row| row.get::<_, u32>(0));
        // What it takes to read the schema does not count.
        assert!(length("nobody").is_err());
        let read_bytes = || {
            let counted = std::fs::read_to_string("/proc/thread-self/io").unwrap();
            let line = counted.lines().find_map(|it| it.strip_prefix("rchar: "));
            line.unwrap().parse::<u64>().unwrap()
        };
        let before = read_bytes();
        assert_eq!(length("small").unwrap(), 10);
        let n_read = read_bytes() - before;
        assert!(n_read < 40_000, "{n_read} bytes");
    }

    #[test]
    fn a_store_whose_making_is_interrupted_before_any_statement_is_made_by_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        interrupt_everywhere(directory.path(), 57);
    }
}
