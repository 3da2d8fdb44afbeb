//! The limits of a query.

use crate::error::{Class, Error, Result};
use crate::value::Limits;
use std::cell::Cell;

/// Why a query is stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time limit is over.
    TimedOut,
    /// The caller no longer waits.
    Cancelled,
}

/// The limits of a query. The clock is the caller's: `stop` is called now and then.
pub struct Budget<'a> {
    /// How many rows the answer may have.
    pub rows_max: u64,
    /// How many steps may be taken: rows between operators, relationships looked at, items of lists.
    pub steps_max: u64,
    /// How many bytes may be held at one time: rows that are sorted, grouped or returned, large
    /// values.
    pub memory_bytes_max: u64,
    /// How large one value may be.
    pub value: Limits,
    stop: &'a dyn Fn() -> Option<Stop>,
    steps: Cell<u64>,
    memory: Cell<u64>,
    memory_peak: Cell<u64>,
}

/// This many steps are taken between two calls of `stop`.
const STEPS_BETWEEN: u64 = 512;

impl<'a> Budget<'a> {
    /// The default: a million rows, 200 million steps, 256 MiB, and values of 64 MiB.
    pub fn new(stop: &'a dyn Fn() -> Option<Stop>) -> Self {
        Self {
            rows_max: 1_000_000,
            steps_max: 200_000_000,
            memory_bytes_max: 256 << 20,
            value: Limits::default(),
            stop,
            steps: Cell::new(0),
            memory: Cell::new(0),
            memory_peak: Cell::new(0),
        }
    }

    /// How many steps were taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// How many bytes were held at one time, at most.
    #[must_use]
    pub fn memory_bytes_peak(&self) -> u64 {
        self.memory_peak.get()
    }

    pub(crate) fn take_steps(&self, n: u64) -> Result<()> {
        let before = self.steps.get();
        let after = before.saturating_add(n);
        self.steps.set(after);
        if after > self.steps_max {
            let message = format!(
                "the query took more than {} steps: bind more, or shorten its paths",
                self.steps_max
            );
            return Err(Error::limit("StepsExceeded", message));
        }
        if before / STEPS_BETWEEN != after / STEPS_BETWEEN {
            self.check_stop()?;
        }
        Ok(())
    }

    pub(crate) fn check_stop(&self) -> Result<()> {
        match (self.stop)() {
            None => Ok(()),
            Some(Stop::TimedOut) => {
                let message = "the query reached its time limit: bind more, or shorten its paths";
                Err(Error::limit("TimeExceeded", message))
            }
            Some(Stop::Cancelled) => {
                let message = "the query was cancelled";
                Err(Error::run(Class::Cancelled, "Cancelled", message))
            }
        }
    }

    pub(crate) fn hold(&self, n_bytes: u64) -> Result<()> {
        let held = self.memory.get().saturating_add(n_bytes);
        if held > self.memory_bytes_max {
            let message = format!(
                "the query needs more than {} bytes of memory: return or group fewer rows",
                self.memory_bytes_max
            );
            return Err(Error::limit("MemoryExceeded", message));
        }
        self.memory.set(held);
        self.memory_peak.set(self.memory_peak.get().max(held));
        Ok(())
    }

    pub(crate) fn release(&self, n_bytes: u64) {
        self.memory.set(self.memory.get().saturating_sub(n_bytes));
    }
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Budget")
            .field("rows_max", &self.rows_max)
            .field("steps_max", &self.steps_max)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("steps", &self.steps.get())
            .field("memory", &self.memory.get())
            .finish_non_exhaustive()
    }
}
