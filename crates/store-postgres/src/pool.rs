//! A bounded number of connections, handed out and taken back.

use crate::WAIT_MAX;
use crate::connect::{Connection, Target};
use crate::wait::wait_for;
use kenning_core::{Error, Result};
use kenning_store::patience;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};

/// Connections of one process at the most. A server has a hundred by default, for everybody.
const CONNECTIONS_MAX: usize = 16;

/// What every session is told: no statement, lock or forgotten transaction goes on for ever, nor does
/// what a client asked for that is gone. And a commit is answered when it is on disk, whatever the
/// database, the user or the server says: only what waits for still more is left as it is.
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
            .map_err(|cause| Error::unavailable("no thread for the database").because(cause))?;
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

    /// A connection, waited for no longer than [`WAIT_MAX`] and the caller's patience. What is asked
    /// of it next has what is left of that; [`Taken::begun`] ends this.
    pub(crate) fn take(&self) -> Result<Taken<'_>> {
        let limit = patience::left(WAIT_MAX);
        if limit.is_zero() {
            // Whoever has no time left must not find a connection silent that nobody has asked.
            return Err(
                Error::unavailable("the database did not answer in time").hint("call again")
            );
        }
        let end = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            // A connection that the server closed while it was idle is of no use.
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
                // Counted from here on, and no longer when it is dropped, whatever happens.
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

    /// A connection of its own, outside the number that calls share: for who keeps it while calls are
    /// made.
    pub(crate) fn open_apart(&self) -> Result<Connection> {
        self.open(Instant::now() + patience::left(WAIT_MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that does not sync acknowledges what a power failure takes back.
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

/// A connection that is out. Dropped, it is closed, and its place is free: only
/// [`Taken::give_back`] keeps it, for then it is known to be in a good state.
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    /// None only while it is opened and once it was given back.
    connection: Option<Connection>,
}

impl Taken<'_> {
    pub(crate) fn get(&self) -> Result<&Connection> {
        self.connection
            .as_ref()
            .ok_or_else(|| Error::internal("a connection was used after it was given back"))
    }

    /// The other end answers: each further wait has its own limit, within the caller's patience.
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
            // Those that wait beside it lead to the same silence; each would cost a caller its time.
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
            // Whoever drops us may be on a runtime of its own, where waiting is not allowed.
            runtime.shutdown_background();
        }
    }
}
