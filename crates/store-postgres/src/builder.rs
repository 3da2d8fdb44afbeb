//! Builds the indexes of large collections in the background, outside any transaction.
//!
//! A check is cheap: collections that have their index are not counted, nor are those that cannot be large
//! enough. One server builds at a time; the lock belongs to its session, so a server that dies releases it.
//! The index it was building then stays behind as invalid, and the next builder drops it and starts again.

use crate::Options;
use crate::connect::{CONNECT_WAIT, Target};
use crate::error::from_postgres;
use crate::graph::{Graph, PREFIX};
use crate::pool::Pool;
use kenning_core::{Code, Error, Hash, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// An arbitrary number that no other lock in this database uses.
const LOCK: i64 = 7_310_868_735_422;

/// No row of the table is smaller.
const ROW_BYTES_MIN: i64 = 48;

/// No timeouts: building takes long, and waits for every older snapshot.
const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = 0;
    SET client_connection_check_interval = '1s'; SET client_min_messages = 'warning'";

/// Checks from time to time whether an index is missing, after enough vectors were written.
pub(crate) struct Builder {
    n_written: AtomicU64,
    /// How many written vectors cause a check.
    look_every: u64,
    look: Arc<Notify>,
}

impl Builder {
    pub(crate) fn start(pool: &Pool, options: Options<'_>) -> Result<Self> {
        let look = Arc::new(Notify::new());
        if !options.read_only {
            let target = pool.target().clone();
            let from = i64::try_from(options.index_from).unwrap_or(i64::MAX);
            let work = run(target, from, options.index_pause, look.clone());
            // The task and its connection end with the runtime.
            drop(pool.handle()?.spawn(work));
        }
        Ok(Self {
            n_written: AtomicU64::new(0),
            look_every: (options.index_from / 10).max(1),
            look,
        })
    }

    /// Reports that this many vectors were written.
    pub(crate) fn wrote(&self, n: u64) {
        if n == 0 {
            return;
        }
        let before = self.n_written.fetch_add(n, Ordering::Relaxed);
        if before / self.look_every != (before + n) / self.look_every {
            self.look.notify_one();
        }
    }
}

async fn run(target: Target, from: i64, pause: Duration, look: Arc<Notify>) {
    loop {
        tokio::time::sleep(pause).await;
        match look_once(&target, from).await {
            Ok(()) => look.notified().await,
            Err(error) if error.code == Code::Unavailable => {
                tracing::debug!("indexes of vectors: {error}");
            }
            Err(error) => {
                let cause = error.source.as_ref().map(ToString::to_string);
                let cause = cause.unwrap_or_default();
                tracing::error!("an index of vectors could not be built: {error} [{cause}]");
            }
        }
    }
}

/// Builds every missing index; an error means that it must be tried again.
async fn look_once(target: &Target, from: i64) -> Result<()> {
    let (client, driver) = target.connect(CONNECT_WAIT).await?;
    // Ends when the client is dropped.
    drop(tokio::spawn(driver.run()));
    client.batch_execute(SESSION).await.map_err(from_postgres)?;
    let sql = "SELECT NOT pg_is_in_recovery() AND pg_relation_size('vectors') / $1 >= $2";
    if !says_yes(&client, sql, &[&ROW_BYTES_MIN, &from]).await? {
        return Ok(());
    }
    if !says_yes(&client, "SELECT pg_try_advisory_lock($1)", &[&LOCK]).await? {
        return Err(Error::unavailable("another server builds the index"));
    }
    drop_unfinished(&client).await?;
    for (space, collection) in collections(&client).await? {
        build(&client, &space, &collection, from).await?;
    }
    Ok(())
}

async fn rows(client: &Client, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    client.query(sql, params).await.map_err(from_postgres)
}

async fn says_yes(client: &Client, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<bool> {
    let rows = rows(client, sql, params).await?;
    Ok(rows.first().is_some_and(|row| row.get::<_, bool>(0)))
}

/// Drops the invalid indexes that an interrupted builder left behind.
async fn drop_unfinished(client: &Client) -> Result<()> {
    let sql = "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
               WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisvalid
                 AND starts_with(c.relname, $1)";
    for row in rows(client, sql, &[&PREFIX]).await? {
        let name: String = row.get(0);
        tracing::info!("the index {name} was left unfinished, and is dropped");
        let sql = format!("DROP INDEX CONCURRENTLY IF EXISTS {name}");
        client.batch_execute(&sql).await.map_err(from_postgres)?;
    }
    Ok(())
}

/// Every collection, by its space and the hash of its name. Skips from one to the next in an index instead
/// of reading all rows.
async fn collections(client: &Client) -> Result<Vec<(String, Hash)>> {
    let sql = "WITH RECURSIVE known AS (
                 (SELECT space, sha256(collection) AS collection FROM vectors
                  ORDER BY space, sha256(collection) LIMIT 1)
                 UNION ALL
                 SELECT next.space, next.collection FROM known, LATERAL
                   (SELECT space, sha256(collection) AS collection FROM vectors
                    WHERE (space, sha256(collection)) > (known.space, known.collection)
                    ORDER BY space, sha256(collection) LIMIT 1) AS next)
               SELECT space, collection FROM known";
    let bad = |_| Error::corrupt("a hash is malformed");
    rows(client, sql, &[])
        .await?
        .iter()
        .map(|row| {
            let hash = Hash::try_from(row.get::<_, &[u8]>(1)).map_err(bad)?;
            Ok((row.get(0), hash))
        })
        .collect()
}

/// Builds the index of a collection if it is large enough and has none. A collection has one
/// dimension; if not, that of its newest vector counts.
async fn build(client: &Client, space: &str, collection: &Hash, from: i64) -> Result<()> {
    let place: [&(dyn ToSql + Sync); 2] = [&space, &collection.0.as_slice()];
    let newest = "SELECT vector_dims(numbers) FROM vectors
                  WHERE space = $1 AND sha256(collection) = $2 ORDER BY seq DESC LIMIT 1";
    let newest = rows(client, newest, &place).await?;
    let dimension = newest.first().map_or(0, |row| row.get::<_, i32>(0));
    let dimension = usize::try_from(dimension).unwrap_or(0);
    let Some(graph) = Graph::of_hash(space, collection, dimension) else {
        return Ok(());
    };
    let name = graph.name();
    if says_yes(client, "SELECT to_regclass($1) IS NOT NULL", &[&name]).await? {
        return Ok(());
    }
    let count = "SELECT count(*) >= $3 FROM (SELECT FROM vectors
                 WHERE space = $1 AND sha256(collection) = $2 LIMIT $3) AS counted";
    if !says_yes(client, count, &[place[0], place[1], &from]).await? {
        return Ok(());
    }
    tracing::info!("space {space}: building the index {name} of dimension {dimension}");
    let began = std::time::Instant::now();
    let sql = graph.create();
    client.batch_execute(&sql).await.map_err(from_postgres)?;
    let seconds = began.elapsed().as_secs();
    tracing::info!("space {space}: the index {name} was built in {seconds} s");
    Ok(())
}
