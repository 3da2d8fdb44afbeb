//! A pool with a bounded number of connections.

use crate::WAIT_MAX;
use crate::connect::{Connection, Target};
use crate::wait::wait_for;
use kenning_core::{Error, Result};
use kenning_store::patience;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};

/// The most connections of one process. PostgreSQL allows a hundred by default, for all clients.
const CONNECTIONS_MAX: usize = 16;

/// Settings of every session: statements, locks and idle transactions have a time limit, and a statement
/// ends when its client is gone. A commit is acknowledged when it is on disk, whatever the defaults of the
/// database, the user or the server are; only stricter settings are kept.
pub(crate) const SESSION: &str = "SET statement_timeout = '60s'; SET lock_timeout = '3s';
    SET idle_in_transaction_session_timeout = '10s'; SET client_connection_check_interval = '1s';
    SET client_min_messages = 'warning';
    SELECT set_config('synchronous_commit', 'on', false)
      WHERE current_setting('synchronous_commit') <> 'remote_apply'";

pub(crate) struct Pool {
    target: Target,
    // Dropped last: connections end with it.
    runtime: Option<Runtime>,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    n_out: usize,
}

impl Pool {
    pub(crate) fn new(target: Target) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("kenning-postgres")
            .enable_all()
            .build()
            .map_err(|cause| {
                Error::unavailable("the database thread could not be started").because(cause)
            })?;
        Ok(Self {
            target,
            runtime: Some(runtime),
            state: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    pub(crate) fn handle(&self) -> Result<Handle> {
        let runtime = self.runtime.as_ref().map(|it| it.handle().clone());
        runtime.ok_or_else(|| Error::unavailable("the store is closing"))
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn describe(&self) -> String {
        self.target.describe()
    }

    /// A connection, waited for no longer than [`WAIT_MAX`] and the caller's limit. Its first query has what
    /// is left of that time, until [`Taken::begun`] is called.
    pub(crate) fn take(&self) -> Result<Taken<'_>> {
        let limit = patience::left(WAIT_MAX);
        if limit.is_zero() {
            // Without time left, no connection is taken: it would be marked as silent before any query.
            return Err(
                Error::unavailable("the database did not answer in time").hint("call again")
            );
        }
        let end = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            // Skips connections that the server closed while they were idle.
            while let Some(connection) = state.idle.pop() {
                if connection.is_usable() {
                    state.n_out += 1;
                    drop(state);
                    return Ok(self.taken(Some(connection), end));
                }
            }
            if state.n_out < CONNECTIONS_MAX {
                state.n_out += 1;
                drop(state);
                // Counted from here on, until it is dropped.
                let mut taken = self.taken(None, end);
                taken.connection = Some(self.open(end)?);
                return Ok(taken);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(
                    Error::unavailable("all connections to the database are in use")
                        .hint("call again"),
                );
            }
            state = self
                .freed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn taken(&self, connection: Option<Connection>, end: Instant) -> Taken<'_> {
        let mut taken = Taken {
            pool: self,
            connection,
        };
        if let Some(connection) = &mut taken.connection {
            connection.until = Some(end);
        }
        taken
    }

    fn open(&self, end: Instant) -> Result<Connection> {
        let handle = self.handle()?;
        let left = end.saturating_duration_since(Instant::now());
        let (client, driver) = wait_for(&handle, self.target.connect(left))?;
        let mut connection = Connection::new(client, driver, handle);
        connection.until = Some(end);
        connection.batch(SESSION)?;
        if !self.target.allows_fsync_off() {
            refuse_fsync_off(&connection)?;
        }
        Ok(connection)
    }

    /// A connection outside the pool, for a caller that keeps it for long.
    pub(crate) fn open_apart(&self) -> Result<Connection> {
        self.open(Instant::now() + patience::left(WAIT_MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without fsync the server acknowledges writes that a power failure can undo.
fn refuse_fsync_off(connection: &Connection) -> Result<()> {
    let rows = connection.query("SELECT current_setting('fsync') = 'off'", &[])?;
    if !rows.first().is_some_and(|row| row.get::<_, bool>(0)) {
        return Ok(());
    }
    Err(
        Error::denied("the database runs with `fsync=off`: a power failure can destroy it").hint(
            "set `fsync = on` in postgresql.conf and reload; if the data may be lost, add \
             `allow_fsync_off=true` to the database's address",
        ),
    )
}

/// A connection that is in use. When it is dropped it is closed; only [`Taken::give_back`] returns it
/// to the pool, because then it is known to be in a good state.
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    /// `None` only while it is being opened and after it was given back.
    connection: Option<Connection>,
}

impl Taken<'_> {
    pub(crate) fn get(&self) -> Result<&Connection> {
        self.connection
            .as_ref()
            .ok_or_else(|| Error::internal("a connection was used after it was given back"))
    }

    /// The server has answered: from now on each wait has its own limit, within the caller's.
    pub(crate) fn begun(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.until = patience::until();
        }
    }

    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take_if(|it| it.is_usable()) {
            self.pool.lock().idle.push(connection);
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.n_out = state.n_out.saturating_sub(1);
        let mut idle = Vec::new();
        if self.connection.as_ref().is_some_and(Connection::is_silent) {
            // Idle connections lead to the same silent server; each would cost a caller its whole wait.
            idle = std::mem::take(&mut state.idle);
        }
        drop(state);
        drop((self.connection.take(), idle));
        self.pool.freed.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The pool may be dropped on a thread of another runtime, where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}
