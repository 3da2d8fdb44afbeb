//! A process's handle on a store, which can be taken away from it as by `kill -9`.
//!
//! The store itself outlives the process. From the moment of the kill nothing that the process still does, in any
//! of its threads, reaches it: nothing is flushed and no intent is cleared. A kill can be set to come with a later
//! write, before that is committed or after it, when nobody is told any more.

use kenning_core::{Error, Result, Space};
use kenning_store::{Backend, ReadWork, StoreLock, Wake, WriteWork};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// When a process dies.
#[derive(Clone, Copy, Debug)]
struct Death {
    /// Only writes of this thread count, so that the same seed dies at the same write.
    thread: ThreadId,
    writes_left: u64,
    /// Whether the last write is committed.
    is_committed: bool,
}

/// The handle of one process.
#[derive(Clone)]
pub(crate) struct Fence(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    is_dead: AtomicBool,
    death: Mutex<Option<Death>>,
}

fn killed() -> Error {
    Error::unavailable("killed")
}

impl Fence {
    pub(crate) fn around(backend: &Arc<dyn Backend>) -> Self {
        Self(Arc::new(Inner {
            backend: Arc::clone(backend),
            is_dead: AtomicBool::new(false),
            death: Mutex::new(None),
        }))
    }

    /// The moment by this clock.
    pub(crate) fn kill(&self) {
        self.0.is_dead.store(true, Ordering::SeqCst);
    }

    /// With the write of this thread after so many others.
    pub(crate) fn kill_after(&self, writes_left: u64, is_committed: bool) {
        self.set(Some(Death {
            thread: std::thread::current().id(),
            writes_left,
            is_committed,
        }));
    }

    /// It lives on, if it still does.
    pub(crate) fn spare(&self) {
        self.set(None);
    }

    fn set(&self, death: Option<Death>) {
        *self.0.death.lock().unwrap_or_else(PoisonError::into_inner) = death;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_dead.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<()> {
        match self.is_dead() {
            true => Err(killed()),
            false => Ok(()),
        }
    }

    /// Counts a write; says whether it is the last one, and is committed.
    fn count(&self) -> Option<bool> {
        let mut death = self.0.death.lock().unwrap_or_else(PoisonError::into_inner);
        let due = death.as_mut()?;
        if due.thread != std::thread::current().id() {
            return None;
        }
        if due.writes_left > 0 {
            due.writes_left -= 1;
            return None;
        }
        let is_committed = due.is_committed;
        *death = None;
        Some(is_committed)
    }

    fn with(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        self.alive()?;
        match self.count() {
            None => write(),
            Some(is_committed) => {
                if is_committed {
                    write()?;
                }
                self.kill();
                Err(killed())
            }
        }
    }
}

impl Backend for Fence {
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        self.alive()?;
        self.0.backend.read(space, work)
    }

    fn write(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.with(|| self.0.backend.write(space, work))
    }

    fn write_long(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.with(|| self.0.backend.write_long(space, work))
    }

    fn subscribe(&self, wake: Wake) -> Duration {
        self.0.backend.subscribe(wake)
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        self.alive()?;
        self.0.backend.spaces()
    }

    fn lock(&self, name: &str, wait: Duration) -> Result<Option<StoreLock>> {
        self.alive()?;
        self.0.backend.lock(name, wait)
    }

    fn scrub(&self) -> Result<bool> {
        self.alive()?;
        self.0.backend.scrub()
    }

    fn check(&self) -> Result<Vec<String>> {
        self.0.backend.check()
    }

    fn describe(&self) -> String {
        self.0.backend.describe()
    }
}
