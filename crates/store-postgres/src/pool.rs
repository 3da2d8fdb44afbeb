//! A bounded number of connections, handed out and taken back.

use crate::WAIT_MAX;
use crate::connect::{Connection, Target};
use kenning_core::{Error, Result};
use std::ops::{Deref, DerefMut};
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

    pub(crate) fn take(&self) -> Result<Lease<'_>> {
        let connection = Some(self.take_out()?);
        let pool = self;
        Ok(Lease { pool, connection })
    }

    fn take_out(&self) -> Result<Connection> {
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
                return self.open().inspect_err(|_| self.returned(None));
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

    /// A connection that was taken is back, or gone.
    fn returned(&self, connection: Option<Connection>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_out = state.n_out.saturating_sub(1);
        let good = connection.filter(|it| !it.client.is_closed());
        state.idle.extend(good);
        self.freed.notify_one();
    }
}

/// A connection that was taken out. One that is not given back, because it is in a bad state or its
/// user panicked, is closed; its place in the pool is free again either way.
pub(crate) struct Lease<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
}

impl Lease<'_> {
    /// Gives back a connection in a good state.
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.returned(Some(connection));
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.connection.take().is_some() {
            self.pool.returned(None);
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "only `give_back` and `drop` take it, and they end the lease"
)]
impl Deref for Lease<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a lease has a connection")
    }
}

#[expect(
    clippy::expect_used,
    reason = "only `give_back` and `drop` take it, and they end the lease"
)]
impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a lease has a connection")
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
