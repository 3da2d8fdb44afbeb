//! The server backend: PostgreSQL with pgvector, for more than one machine.
//!
//! Any number of servers share one database. A write takes the space's lock in the database for the
//! length of one group, so the log has one order however many servers append to it; a read sees one
//! snapshot. Between calls only connections are kept.
//!
//! Inside, tokio drives the connections on its own thread; outside, every call blocks, as with
//! every backend. No wait is longer than [`WAIT_MAX`]: then the call fails as unavailable.

mod builder;
mod connect;
mod error;
mod events;
mod graph;
mod listen;
mod lock;
mod migrate;
mod pool;
mod row;
mod scan;
mod schema;
mod scrub;
mod tx;
mod wait;
mod writer;

pub use connect::is_url;

use kenning_core::{Error, Result, Space};
use kenning_store::{Backend, ReadWork, StoreLock, Wake, WriteWork};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for one answer of the database.
pub const WAIT_MAX: Duration = Duration::from_secs(4);

/// A store in a PostgreSQL database.
pub struct Postgres {
    pool: Arc<pool::Pool>,
    writer: writer::Writer,
    listener: listen::Listener,
}

/// Options for opening the database, besides its address.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The certificates (PEM) that the server's is checked against, when not the public ones.
    pub authorities: Option<&'a [u8]>,
    /// Nothing is written: no migration runs, and no index is built.
    pub read_only: bool,
    /// The size from which a collection gets an index. In smaller ones all vectors are compared.
    pub index_from: u64,
    /// How long to wait before the first check for missing indexes, and before the next one if another server
    /// was building: a command that ends sooner builds none.
    pub index_pause: Duration,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            authorities: None,
            read_only: false,
            index_from: 1_000_000,
            index_pause: Duration::from_secs(10),
        }
    }
}

impl Postgres {
    /// Connects to `postgres://…` and brings its tables to the newest version. `authorities` are the
    /// certificates (PEM) that the server's is checked against, when not the public ones.
    pub fn open(url: &str, authorities: Option<&[u8]>) -> Result<Self> {
        Self::open_with(
            url,
            Options {
                authorities,
                ..Options::default()
            },
        )
    }

    /// The same, with all options.
    pub fn open_with(url: &str, options: Options<'_>) -> Result<Self> {
        let target = connect::Target::parse(url, options.authorities)?;
        let pool = Arc::new(pool::Pool::new(target)?);
        let mut taken = pool.take()?;
        taken.begun();
        migrate::run(taken.get()?, options.read_only)?;
        taken.give_back();
        Ok(Self {
            writer: writer::Writer::start(pool.clone(), builder::Builder::start(&pool, options)?)?,
            listener: listen::Listener::start(&pool),
            pool,
        })
    }
}

impl Backend for Postgres {
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        let mut taken = self.pool.take()?;
        taken
            .get()?
            .batch("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        taken.begun();
        let connection = taken.get()?;
        let done = work(&tx::Tx::new(connection, space));
        // A read has nothing to keep; a rollback ends its snapshot whatever happened.
        if connection.batch("ROLLBACK").is_ok() {
            taken.give_back();
        }
        done
    }

    fn write(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.writer.run(space.clone(), work, Some(WAIT_MAX))
    }

    fn write_long(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.writer.run(space.clone(), work, None)
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        let taken = self.pool.take()?;
        let rows = taken.get()?.query(
            "SELECT space COLLATE \"C\" FROM heads UNION SELECT space FROM kv ORDER BY 1",
            &[],
        )?;
        taken.give_back();
        let names = rows.iter().map(|row| row.try_get::<_, String>(0));
        names
            .map(|name| {
                name.map_err(error::from_postgres)?
                    .parse()
                    .map_err(Error::corrupt)
            })
            .collect()
    }

    fn lock(&self, name: &str, wait: Duration) -> Result<Option<StoreLock>> {
        let lock = lock::Lock::wait_for(&self.pool, name, wait)?;
        Ok(Some(Box::new(lock)))
    }

    fn scrub(&self) -> Result<bool> {
        scrub::run(&self.pool)
    }

    fn check(&self) -> Result<Vec<String>> {
        // A server checks its own files; what can be asked is whether every index is usable.
        let taken = self.pool.take()?;
        let rows = taken.get()?.query(
            "SELECT indexrelid::regclass::text FROM pg_index i
             JOIN pg_class c ON c.oid = i.indrelid
             WHERE c.relnamespace = current_schema()::regnamespace AND NOT indisvalid
               AND NOT starts_with(indexrelid::regclass::text, $1)",
            // Vector indexes are left out: one is invalid while it is built, and an interrupted one is built again.
            &[&graph::PREFIX],
        )?;
        taken.give_back();
        let mut faults = Vec::new();
        for row in &rows {
            let name: String = row.try_get(0).map_err(error::from_postgres)?;
            faults.push(format!("index {name} is not valid"));
        }
        faults.extend(self.schema_faults()?);
        Ok(faults)
    }

    fn schema_faults(&self) -> Result<Vec<String>> {
        let taken = self.pool.take()?;
        let faults = schema::faults(taken.get()?)?;
        taken.give_back();
        Ok(faults)
    }

    fn describe(&self) -> String {
        self.pool.describe()
    }

    fn subscribe(&self, wake: Wake) -> Duration {
        self.listener.subscribe(wake)
    }
}
