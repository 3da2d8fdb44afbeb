//! The clock of the monitor: a thread of a serving process that looks which pages are due.
//!
//! Any number of processes may have one: the lease of a page decides who asks it. What is due is in the
//! store, so nothing is forgotten when a process ends.

use crate::Koi;
use kenning_core::Result;
use kenning_kernel::worker::{Signal, Worker};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the thread looks, and how long it waits between two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchPace {
    /// Between two looks; the first is at once.
    pub look: Duration,
    /// Between two pages.
    pub between: Duration,
}

impl Default for WatchPace {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(30),
            between: Duration::from_secs(2),
        }
    }
}

/// The thread. Dropping it asks it to stop and does not wait.
pub struct PageWatch(Worker);

impl PageWatch {
    /// Starts looking, unless the operator switched that off or nothing may be written.
    pub fn start(engine: &Arc<Koi>, pace: WatchPace) -> Self {
        let is_on = engine.web_settings().map(|it| it.is_monitoring);
        if let Err(error) = &is_on {
            tracing::warn!("pages are not monitored: {error}");
        }
        if engine.kernel.is_read_only() || !is_on.unwrap_or(false) {
            return Self(Worker::idle());
        }
        engine.web.n_watching.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(engine));
        let look = move |signal: &Signal| look(&counted.0, signal, pace.between);
        Self(Worker::every(
            "monitored pages",
            Duration::ZERO,
            pace.look,
            look,
        ))
    }

    /// Stops after the page that is being asked, and waits for it no longer than this.
    pub fn stop(self, patience: Duration) {
        self.0.stop(patience);
    }
}

/// One of the threads that look, no longer counted when dropped.
struct Counted(Arc<Koi>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.web.n_watching.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Asks every page that is due, with a pause between two.
fn look(engine: &Koi, signal: &Signal, between: Duration) -> Result<()> {
    for space in engine.kernel.log().store().spaces()? {
        let mut pause = Duration::ZERO;
        engine.check_due_pages(&space, || {
            signal.pause(std::mem::replace(&mut pause, between))
        })?;
    }
    Ok(())
}
