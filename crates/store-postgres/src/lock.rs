//! Locks that all servers on one database share.
//!
//! A lock belongs to a session: it is released when its connection ends, however the server ends. So each
//! lock has its own connection outside the pool; else the holders of locks could use up the connections
//! that their own calls need.

use crate::connect::Connection;
use crate::pool::Pool;
use kenning_core::{Error, Result};
use kenning_store::patience;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The most locks that one process holds or waits for.
const LOCKS_MAX: usize = 8;

/// How often to try again for a lock that another server holds.
const AGAIN: Duration = Duration::from_millis(25);

/// How many this process holds or waits for.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A lock that is held until this is dropped.
pub(crate) struct Lock {
    _connection: Connection,
    _counted: Counted,
}

impl Lock {
    /// Waits for the lock of this name, no longer than `wait` and the caller's patience.
    pub(crate) fn wait_for(pool: &Arc<Pool>, name: &str, wait: Duration) -> Result<Self> {
        let taken =
            || Error::unavailable("another server is writing the same thing").hint("call again");
        let counted = Counted::new().ok_or_else(taken)?;
        let until = Instant::now() + patience::left(wait);
        let mut connection = pool.open_apart()?;
        connection.until = patience::until();
        // Not the seed of the spaces' locks, since a name may equal that of a space.
        let sql = "SELECT pg_try_advisory_lock(hashtextextended($1, 1))";
        loop {
            let rows = connection.query(sql, &[&name])?;
            if rows.first().is_some_and(|it| it.get::<_, bool>(0)) {
                return Ok(Self {
                    _connection: connection,
                    _counted: counted,
                });
            }
            if Instant::now() >= until {
                return Err(taken());
            }
            std::thread::sleep(AGAIN);
        }
    }
}

/// Counts one lock while it exists.
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let counted = Self;
        // Dropped again, and so counted down, if there are too many.
        (HELD.fetch_add(1, Ordering::SeqCst) < LOCKS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}
