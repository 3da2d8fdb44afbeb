//! A bounded number of connections, handed out and taken back.

use crate::WAIT_MAX;
use crate::connect::{Connection, Target};
use kenning_core::{Error, Result};
use std::ops::Deref;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};

/// Connections of one process at the most. A server has a hundred by default, for everybody.
const CONNECTIONS_MAX: usize = 16;

/// What every session is told: no statement, lock or forgotten transaction goes on for ever.
pub(crate) const SESSION: &str = "SET statement_timeout = '60s'; SET lock_timeout = '3s';
    SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = 'warning'";

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

    /// A connection, for as long as the answer lives.
    pub(crate) fn take(&self) -> Result<Taken<'_>> {
        let connection = Some(self.take_connection()?);
        Ok(Taken {
            pool: self,
            connection,
        })
    }

    /// A connection in a transaction that this statement began. One that the server closed while it
    /// was idle is replaced: nothing was done on it yet.
    pub(crate) fn begin(&self, sql: &str) -> Result<Taken<'_>> {
        for _ in 0..=CONNECTIONS_MAX {
            let connection = self.take()?;
            match connection.batch(sql) {
                Ok(()) => return Ok(connection),
                Err(_) if connection.client.is_closed() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable("the database closes every connection").hint("call again"))
    }

    fn take_connection(&self) -> Result<Connection> {
        let end = Instant::now() + WAIT_MAX;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // A connection that the server closed while it was idle is of no use.
            while let Some(connection) = state.idle.pop() {
                if !connection.client.is_closed() {
                    state.n_out += 1;
                    return Ok(connection);
                }
            }
            if state.n_out < CONNECTIONS_MAX {
                state.n_out += 1;
                drop(state);
                return self.open().inspect_err(|_| self.give_back(None));
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

    fn open(&self) -> Result<Connection> {
        let handle = self.handle()?;
        let (client, driver) = handle.block_on(self.target.connect())?;
        handle.spawn(driver.run());
        let connection = Connection::new(client, handle);
        connection.batch(SESSION)?;
        Ok(connection)
    }

    fn give_back(&self, connection: Option<Connection>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_out = state.n_out.saturating_sub(1);
        state
            .idle
            .extend(connection.filter(|it| !it.client.is_closed()));
        self.freed.notify_one();
    }
}

/// A connection that was handed out. Dropped, it is closed, because nobody knows what it was in the
/// middle of; only [`Taken::keep`] says that it can be used again.
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
}

impl Taken<'_> {
    /// The connection is in no transaction and goes back to the others.
    pub(crate) fn keep(mut self) {
        self.pool.give_back(self.connection.take());
    }
}

impl Deref for Taken<'_> {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "it is taken out only where `self` ends")]
    fn deref(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("a connection that was not given back")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.connection.take().is_some() {
            self.pool.give_back(None);
        }
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
