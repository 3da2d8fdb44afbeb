//! How processes know that another one has died.
//!
//! A process that works on runs holds a lock with its own name; the lock is released by its death, however it dies.
//! Whoever gets the lock of another process may take over its runs. If a process only lost its connection to the
//! database, it still believes to hold its runs; then each of its writes finds another name in the row and fails.

use kenning_core::{Error, Hash, Result};
use kenning_kernel::Kernel;
use kenning_store::StoreLock;
use kenning_vault::Lock;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A lock, of the store or of this machine.
pub(crate) enum Held {
    Store { _lock: StoreLock },
    Machine { _lock: Lock },
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
            let lock = self.try_lock(&self.name)?;
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
        let name = format!("runs-{name}");
        match self.kernel.log().store().lock(&name, Duration::ZERO) {
            Ok(Some(lock)) => Ok(Some(Held::Store { _lock: lock })),
            Ok(None) => {
                let locks = self.kernel.data().private_subdir("locks")?;
                match locks.lock_briefly(&format!("{name}.lock"), Duration::ZERO) {
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
