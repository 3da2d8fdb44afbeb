//! Checks that the file holds our tables and nothing else.
//!
//! The expected schema is not written down twice: the migrations are run in memory and compared.

use crate::{error, migrate};
use kenning_core::Result;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// Tables that SQLite makes for itself, such as the statistics of `PRAGMA optimize`.
const OF_SQLITE: [&str; 3] = ["sqlite_stat1", "sqlite_stat4", "sqlite_sequence"];

/// Objects that no migration made, and those that are missing or changed.
pub(crate) fn faults(connection: &Connection) -> Result<Vec<String>> {
    let mut fresh = Connection::open_in_memory().map_err(error::from_sqlite)?;
    migrate::run(&mut fresh)?;
    let mut expected = objects(&fresh)?;
    let mut faults = Vec::new();
    for ((kind, name), sql) in objects(connection)? {
        match expected.remove(&(kind.clone(), name.clone())) {
            Some(it) if it == sql => {}
            Some(_) => faults.push(format!(
                "the {kind} `{name}` differs from this program's schema"
            )),
            None if kind == "table" && OF_SQLITE.contains(&name.as_str()) => {}
            None => faults.push(format!(
                "the {kind} `{name}` does not belong to this program"
            )),
        }
    }
    for (kind, name) in expected.into_keys() {
        faults.push(format!("the {kind} `{name}` is missing"));
    }
    Ok(faults)
}

type Objects = BTreeMap<(String, String), (String, Option<String>)>;

/// Kind and name of each object, with its table and the statement that creates it.
fn objects(connection: &Connection) -> Result<Objects> {
    let read = || -> rusqlite::Result<Objects> {
        let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?)))
        })?;
        rows.collect()
    };
    read().map_err(error::from_sqlite)
}

#[cfg(test)]
mod tests {
    use crate::{FILE_NAME, Sqlite};
    use kenning_store::Store;
    use rusqlite::Connection;

    #[test]
    fn objects_that_no_migration_made_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(directory.path()).unwrap());
        assert_eq!(store.schema_faults().unwrap(), [""; 0]);
        let connection = Connection::open(directory.path().join(FILE_NAME)).unwrap();
        connection.execute_batch("ANALYZE").unwrap();
        assert_eq!(store.schema_faults().unwrap(), [""; 0]);
        connection
            .execute_batch(
                "CREATE TRIGGER copy AFTER INSERT ON kv BEGIN SELECT 1; END;
                 CREATE TABLE more (a); CREATE VIEW seen AS SELECT * FROM kv;
                 DROP INDEX edges_by_dst; CREATE INDEX edges_by_dst ON edges (dst);",
            )
            .unwrap();
        let faults = store.schema_faults().unwrap();
        assert_eq!(
            faults,
            [
                "the index `edges_by_dst` differs from this program's schema",
                "the table `more` does not belong to this program",
                "the trigger `copy` does not belong to this program",
                "the view `seen` does not belong to this program",
            ]
        );
        // `doctor` asks this.
        let checked = store.check().unwrap();
        assert!(faults.iter().all(|it| checked.contains(it)), "{checked:?}");
        connection.execute_batch("DROP INDEX edges_by_dst").unwrap();
        let faults = store.schema_faults().unwrap();
        assert!(faults.contains(&"the index `edges_by_dst` is missing".to_owned()));
    }
}
