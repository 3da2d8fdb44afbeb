//! The embedded backend: one SQLite file in a directory.
//!
//! One writer thread per process commits in groups, with a savepoint a call; many readers, each on
//! its own snapshot. Several processes on one file are the normal case: a write takes SQLite's own
//! lock for the length of one group, and a read always sees what was committed before it began.
//!
//! Invariant: a write is acknowledged only after the disk has confirmed it.

mod connection;
mod copy;
mod error;
mod events;
mod examine;
mod migrate;
mod pool;
mod private;
mod row;
mod schema;
mod scrub;
mod tx;
mod writer;

pub use examine::examine;

use kenning_core::{Result, Space, idle};
use kenning_store::{Backend, ReadWork, Wake, WriteWork};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "kenning.db";

/// The embedded backend.
pub struct Sqlite {
    path: PathBuf,
    readers: pool::Pool,
    writer: writer::Writer,
    wakes: writer::Wakes,
}

/// How often followers look for what other processes wrote.
const POLL: Duration = Duration::from_millis(200);

impl Sqlite {
    /// Opens the store in a directory, and creates it if it is missing.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE_NAME);
        private::keep_private(&path)?;
        let mut connection = connection::open(&path)?;
        connection::enlarge_cache(&connection)?;
        migrate::run(&mut connection)?;
        let wakes = writer::Wakes::default();
        Ok(Self {
            readers: pool::Pool::new(path.clone()),
            writer: writer::Writer::start(connection, wakes.clone())?,
            wakes,
            path,
        })
    }
}

/// Runs the work on a snapshot, and says whether the connection can be used again.
fn read_on(connection: &Connection, space: &Space, work: &mut ReadWork<'_>) -> (Result<()>, bool) {
    let done = (|| {
        connection
            .execute_batch("BEGIN")
            .map_err(error::from_sqlite)?;
        work(&tx::Tx::new(connection, space))
    })();
    // A read has nothing to keep; a rollback ends its snapshot whatever happened.
    let ended = connection.execute_batch("ROLLBACK");
    (done, ended.is_ok())
}

impl Backend for Sqlite {
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        let connection = self.readers.take()?;
        let (done, is_usable) = read_on(&connection, space, work);
        if is_usable {
            self.readers.give_back(connection);
        }
        done
    }

    fn read_long(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        let source = self.readers.take()?;
        let copy = idle::waiting(|| copy::open(&source, &self.path));
        self.readers.give_back(source);
        match copy {
            Ok(copy) => read_on(&copy, space, work).0,
            // Without room for a copy, and of a file that cannot be copied, the file itself is read.
            Err(error) => {
                tracing::debug!("a long read goes without a copy of the store: {error}");
                self.read(space, work)
            }
        }
    }

    fn log_bytes(&self) -> Option<u64> {
        let mut name = self.path.clone().into_os_string();
        name.push("-wal");
        let size = PathBuf::from(name).metadata().map(|it| it.len());
        Some(size.unwrap_or(0))
    }

    fn write(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.writer.run(space.clone(), work)
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        let connection = self.readers.take()?;
        let sql = "SELECT space FROM heads UNION SELECT space FROM kv ORDER BY 1";
        let names: rusqlite::Result<Vec<String>> = (|| {
            let mut statement = connection.prepare_cached(sql)?;
            statement
                .query_map([], |row| row.get::<_, String>(0))?
                .collect()
        })();
        let names = names.map_err(error::from_sqlite)?;
        self.readers.give_back(connection);
        names
            .iter()
            .map(|name| {
                name.parse()
                    .map_err(|cause| error::damaged().because(cause))
            })
            .collect()
    }

    fn scrub(&self) -> Result<bool> {
        scrub::run(&self.path)
    }

    fn check(&self) -> Result<Vec<String>> {
        // A new connection has an empty cache, so everything is read from the disk.
        let connection = connection::open(&self.path)?;
        let lines: rusqlite::Result<Vec<String>> = (|| {
            let mut lines = Vec::new();
            let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
            for line in statement.query_map([], |row| row.get::<_, String>(0))? {
                lines.push(line?);
            }
            let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
            for table in statement.query_map([], |row| row.get::<_, String>(0))? {
                lines.push(format!(
                    "{}: a row refers to a row that does not exist",
                    table?
                ));
            }
            Ok(lines)
        })();
        let mut lines = lines.map_err(error::from_sqlite)?;
        lines.retain(|line| line != "ok");
        lines.extend(schema::faults(&connection)?);
        Ok(lines)
    }

    fn schema_faults(&self) -> Result<Vec<String>> {
        schema::faults(&connection::open(&self.path)?)
    }

    fn subscribe(&self, wake: Wake) -> Duration {
        self.wakes.add(wake);
        POLL
    }

    fn describe(&self) -> String {
        format!("SQLite {} in {}", rusqlite::version(), self.path.display())
    }
}
