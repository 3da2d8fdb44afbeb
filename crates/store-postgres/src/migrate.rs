//! Numbered migrations, only ever added, run under a lock, so that two servers can start at
//! once.

use crate::connect::Connection;
use crate::pool::SESSION;
use kenning_core::{Error, Result};
use std::collections::BTreeSet;

/// In order; the position in the list is the version that a migration leads to.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_sealed_events.sql"),
    include_str!("../migrations/0003_no_full_text.sql"),
    include_str!("../migrations/0004_event_indexes.sql"),
    include_str!("../migrations/0005_event_effects.sql"),
];

/// The tables that exist after all migrations.
pub(crate) fn tables() -> BTreeSet<&'static str> {
    let mut tables = BTreeSet::from(["kenning_version"]);
    for line in MIGRATIONS.iter().flat_map(|it| it.lines()) {
        let name = |after: &str| line.strip_prefix(after)?.split([' ', ';']).next();
        if let Some(made) = name("CREATE TABLE ") {
            tables.insert(made);
        }
        if let Some(gone) = name("DROP TABLE ") {
            tables.remove(gone);
        }
    }
    tables
}

/// An arbitrary number that no other lock in this database uses.
const LOCK: i64 = 7_310_868_735_421;

/// Brings the tables to the newest version. Each step is one transaction.
pub(crate) fn run(connection: &Connection, read_only: bool) -> Result<()> {
    run_with(connection, read_only, &mut || Ok(()))
}

/// The same; calls `before_each` before every statement of a step, and before its commit.
fn run_with(
    connection: &Connection,
    read_only: bool,
    before_each: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
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
    // The lock belongs to the session and comes before the transaction, whose snapshot could otherwise
    // miss a new table. A connection that dies releases it.
    connection.batch_long(&format!(
        "SET lock_timeout = '60s'; SET statement_timeout = 0; SELECT pg_advisory_lock({LOCK})"
    ))?;
    loop {
        connection.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        if step(connection, before_each)? {
            break;
        }
        connection.batch("COMMIT")?;
    }
    connection.batch("COMMIT")?;
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK}); {SESSION}"))
}

/// Runs one step; true when none is left.
fn step(connection: &Connection, before_each: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
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
    if from > 0 {
        // Servers read the version in every write transaction. This waits for open ones, and later ones
        // wait for the new version.
        connection.batch_long("LOCK TABLE kenning_version IN ACCESS EXCLUSIVE MODE")?;
    }
    for statement in statements(migration) {
        before_each()?;
        connection.batch_long(statement)?;
    }
    before_each()?;
    connection.batch(&format!(
        "CREATE TABLE IF NOT EXISTS kenning_version (version INTEGER NOT NULL);
         DELETE FROM kenning_version;
         INSERT INTO kenning_version VALUES ({})",
        from + 1
    ))?;
    before_each()?;
    Ok(false)
}

/// The statements of a migration: each ends a line.
fn statements(migration: &str) -> impl Iterator<Item = &str> {
    let all = migration.split_inclusive(";\n");
    all.filter(|it| !it.trim().is_empty())
}

/// Whether this program may write rows of a store of that version: a newer program may have upgraded it
/// since it was opened.
pub(crate) fn check_version(found: Option<i32>) -> Result<()> {
    let found = found.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    if found == MIGRATIONS.len() {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "the store has been upgraded to version {found}; this program writes version {}",
        MIGRATIONS.len()
    ))
    .hint("stop this program and start the newer one"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Postgres;
    use crate::connect::Target;
    use crate::pool::Pool;
    use kenning_core::Space;
    use kenning_store::{Store, Table};
    use kenning_testing_postgres::shared;
    use std::io::Read as _;
    use std::path::Path;

    /// Interrupts before the statement of this number; true if there is one.
    fn interrupt(url: &str, at: usize) -> bool {
        let pool = Pool::new(Target::parse(url, None).unwrap()).unwrap();
        let mut taken = pool.take().unwrap();
        taken.begun();
        let mut n = 0;
        let ended = run_with(taken.get().unwrap(), false, &mut || {
            n += 1;
            if n <= at {
                return Ok(());
            }
            // As when the server or the database dies: the connection is not closed properly.
            shared().kill_backends(url);
            Ok(())
        });
        ended.is_err()
    }

    #[test]
    fn tables_whose_making_is_interrupted_before_any_statement_are_made_by_the_next_start() {
        let n_statements = MIGRATIONS.iter().map(|it| statements(it).count() + 2).sum();
        assert!(n_statements > 20, "{n_statements}");
        for at in 0..n_statements {
            let url = shared().database();
            assert!(interrupt(&url, at), "before statement {at}");
            drop(Postgres::open(&url, None).unwrap());
            let version = shared().sql(&url, "SELECT version FROM kenning_version");
            assert_eq!(
                version,
                MIGRATIONS.len().to_string(),
                "before statement {at}"
            );
        }
        assert!(!interrupt(&shared().database(), n_statements));
    }

    /// The database of an older program; see `testing/stores`.
    #[expect(clippy::disallowed_methods, reason = "it unpacks the file of a store")]
    fn unpack(version: usize) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/stores");
        let packed = std::fs::File::open(folder.join(format!("postgres-{version}.sql.gz")));
        let mut sql = String::new();
        flate2::read::GzDecoder::new(packed.unwrap())
            .read_to_string(&mut sql)
            .unwrap();
        let url = shared().database();
        shared().sql(&url, &sql);
        url
    }

    /// How many rows each table of each space has, once this program has opened the database.
    fn counts(url: &str) -> Vec<(Space, Vec<usize>)> {
        let store = Store::new(Postgres::open(url, None).unwrap());
        assert_eq!(store.check().unwrap(), [""; 0]);
        let count = |space: &Space, table| {
            let mut n = 0;
            let counted = store.read(space, |tx| {
                tx.scan(table, &mut |_| {
                    n += 1;
                    Ok(())
                })
            });
            counted.unwrap();
            n
        };
        let spaces = store.spaces().unwrap().into_iter();
        spaces
            .map(|space| {
                let tables = Table::ALL.into_iter().map(|it| count(&space, it));
                let tables = tables.collect();
                (space, tables)
            })
            .collect()
    }

    #[test]
    fn an_upgrade_interrupted_before_any_statement_is_done_by_the_next_start_with_every_row() {
        for version in 1..MIGRATIONS.len() {
            let steps = MIGRATIONS[version..].iter();
            let n_statements = steps.map(|it| statements(it).count() + 2).sum();
            let expected = counts(&unpack(version));
            let n_rows = expected.iter().flat_map(|it| &it.1).sum::<usize>();
            assert!(n_rows > 50, "postgres-{version} has {n_rows} rows");
            for at in 0..n_statements {
                let url = unpack(version);
                assert!(interrupt(&url, at), "postgres-{version}, statement {at}");
                assert_eq!(
                    counts(&url),
                    expected,
                    "postgres-{version}, before statement {at}"
                );
            }
            assert!(!interrupt(&unpack(version), n_statements));
        }
    }
}
