//! The pool of read connections.

use crate::connection;
use kenning_core::Result;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// How many idle readers are kept. More are opened when needed and closed afterwards.
const IDLE_MAX: usize = 8;

pub(crate) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::default(),
        }
    }

    pub(crate) fn take(&self) -> Result<Connection> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(connection) => Ok(connection),
            None => connection::open(&self.path),
        }
    }

    pub(crate) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}
