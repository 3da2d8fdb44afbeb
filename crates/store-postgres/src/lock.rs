//! Locks that every server on one database knows.
//!
//! A lock is a session's: it is free when its connection ends, however the server ends. So it has a
//! connection of its own, outside the number that calls share; else those who hold locks could keep the
//! calls from running that they wait for.

use crate::connect::Connection;
use crate::pool::Pool;
use kenning_core::{Error, Result};
use kenning_store::patience;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Locks that one process holds or waits for at the most.
const LOCKS_MAX: usize = 8;

/// How often to ask again for a lock that another has.
const AGAIN: Duration = Duration::from_millis(25);

/// How many there are in this process.
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
        // Another seed than that of the spaces: a name may be a space's.
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

/// One of those that are counted.
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
