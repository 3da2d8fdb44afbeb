//! How processes know that another one has died.
//!
//! A process that works on runs holds a lock with its own name; the lock is released by its death, however it dies.
//! Whoever gets the lock of another process may take over its runs. If a process only lost its connection to the
//! database, it still believes to hold its runs; then each of its writes finds another name in the row and fails.

use crate::Runs;
use kenning_core::{Error, Hash, Result};
use kenning_kernel::Kernel;
use kenning_store::StoreLock;
use kenning_vault::Lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a process tries to get its own lock.
const ENTER_WAIT: Duration = Duration::from_secs(2);

/// A lock, of the store or of this machine.
pub(crate) enum Held {
    Store { _lock: StoreLock },
    Machine { _lock: Lock },
}

/// While it lives, other processes know that this one is alive.
pub struct Presence<'a>(&'a Alive);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The lock of a process that died, until it is dropped: nobody else takes over what it left meanwhile.
pub struct Dead {
    _lock: Held,
}

impl Runs {
    /// The name of this process, for rows that say who works on something.
    pub fn process(&self) -> &str {
        self.alive.name()
    }

    /// Lets others know that this process is alive: as long as its name is in a row.
    ///
    /// # Errors
    /// Those of the store.
    pub fn present(&self) -> Result<Presence<'_>> {
        self.alive.enter()?;
        Ok(Presence(&self.alive))
    }

    /// Whether the process with this name is dead; then what it left can be taken over while the answer is held.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find_dead(&self, process: &str) -> Result<Option<Dead>> {
        if process == self.alive.name() {
            return Ok(None);
        }
        let lock = self.alive.try_lock(process)?;
        Ok(lock.map(|it| Dead { _lock: it }))
    }

    /// Those of these processes that are dead.
    ///
    /// # Errors
    /// Those of the store.
    pub fn dead_among<'a>(
        &self,
        processes: impl Iterator<Item = &'a String>,
    ) -> Result<BTreeSet<String>> {
        let all: BTreeSet<&String> = processes.collect();
        let mut dead = BTreeSet::new();
        for process in all {
            if self.find_dead(process)?.is_some() {
                dead.insert(process.clone());
            }
        }
        Ok(dead)
    }
}

pub(crate) struct Alive {
    kernel: Arc<Kernel>,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_users: usize,
    lock: Option<Held>,
}

impl Alive {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        let mut bytes = [0; 16];
        kernel.log().random().fill(&mut bytes);
        let name = Hash::of(&bytes).to_string();
        Self {
            name: name.get(..24).unwrap_or_default().to_owned(),
            kernel,
            state: Mutex::default(),
        }
    }

    /// The name of this process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Holds the lock of this process until as many calls of [`Alive::leave`].
    pub(crate) fn enter(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lock.is_none() {
            // Somebody who looks whether this process is alive has the lock for a moment.
            let lock = self.lock(&self.name, ENTER_WAIT)?;
            state.lock = Some(lock.ok_or_else(|| {
                Error::unavailable("too many locks are held at once").hint("try again later")
            })?);
        }
        state.n_users += 1;
        Ok(())
    }

    pub(crate) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_users = state.n_users.saturating_sub(1);
        if state.n_users == 0 {
            state.lock = None;
        }
    }

    /// The lock of the process with this name, if nobody holds it: then it does not work on anything.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Held>> {
        self.lock(name, Duration::ZERO)
    }

    fn lock(&self, name: &str, wait: Duration) -> Result<Option<Held>> {
        let name = format!("runs-{name}");
        match self.kernel.log().store().lock(&name, wait) {
            Ok(Some(lock)) => Ok(Some(Held::Store { _lock: lock })),
            Ok(None) => {
                let locks = self.kernel.data().private_subdir("locks")?;
                match locks.lock_briefly(&format!("{name}.lock"), wait) {
                    Ok(lock) => Ok(Some(Held::Machine { _lock: lock })),
                    Err(error) if error.retryable() => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Err(error) if error.retryable() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
