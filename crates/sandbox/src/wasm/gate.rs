//! How many calls run at once, and how much memory they may have together.

use crate::call::Failure;
use crate::wasm::state::{Clock, Stop};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lets calls in while there is room.
pub(crate) struct Gate {
    free: Mutex<Free>,
    changed: Condvar,
    memory_mb: u32,
}

struct Free {
    calls: u32,
    memory_mb: u32,
}

/// Megabytes that a call may grow to.
#[derive(Clone, Copy)]
pub(crate) struct Weight(pub(crate) u32);

/// A call's place, given back when it is dropped.
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    memory_mb: u32,
}

const LOOK: Duration = Duration::from_millis(20);

impl Gate {
    pub(crate) fn new(calls: u32, memory_mb: u32) -> Self {
        Self {
            free: Mutex::new(Free { calls, memory_mb }),
            changed: Condvar::new(),
            memory_mb,
        }
    }

    /// Waits for a place as long as the caller does.
    pub(crate) fn enter(&self, weight: Weight, patience: &Clock) -> Result<Place<'_>, Failure> {
        // A call that may have more than there is runs alone.
        let memory_mb = weight.0.min(self.memory_mb);
        let mut free = self.free();
        loop {
            if free.calls > 0 && free.memory_mb >= memory_mb {
                free.calls -= 1;
                free.memory_mb -= memory_mb;
                let gate = self;
                return Ok(Place { gate, memory_mb });
            }
            match patience.check() {
                Ok(()) => {}
                Err(Stop::Cancelled) => return Err(Failure::Cancelled),
                Err(_) => return Err(Failure::Busy),
            }
            let left = patience.until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout(free, left.min(LOOK));
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut free = self.gate.free();
        free.calls += 1;
        free.memory_mb += self.memory_mb;
        drop(free);
        self.gate.changed.notify_all();
    }
}
