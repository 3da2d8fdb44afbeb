//! The clock of the monitor: a thread of a serving process that looks which pages are due.
//!
//! Any number of processes may have one: the lease of a page decides who asks it. What is due is in the
//! store, so nothing is forgotten when a process ends.

use crate::Koi;
use kenning_kernel::later::contained;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
pub struct PageWatch {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Signal {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Waits so long; false once it is stopped.
    fn wait(&self, time: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time, |is_stopped| !*is_stopped);
        let (is_stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*is_stopped
    }
}

impl PageWatch {
    /// Starts looking, unless the operator switched that off or nothing may be written.
    pub fn start(engine: &Arc<Koi>, pace: WatchPace) -> Self {
        let signal = Arc::new(Signal::default());
        let is_on = engine.web_settings().map(|it| it.is_monitoring);
        if let Err(error) = &is_on {
            tracing::warn!("pages are not monitored: {error}");
        }
        if engine.kernel.is_read_only() || !is_on.unwrap_or(false) {
            return Self {
                signal,
                thread: None,
            };
        }
        let (engine, heard) = (Arc::clone(engine), Arc::clone(&signal));
        engine.web.n_watching.fetch_add(1, Ordering::Relaxed);
        let thread = std::thread::spawn(move || {
            let _counted = Counted(&engine);
            watch(&engine, &heard, pace);
        });
        Self {
            signal,
            thread: Some(thread),
        }
    }

    /// Stops after the page that is being asked, and waits for it no longer than this.
    pub fn stop(mut self, patience: Duration) {
        self.signal.stop();
        let Some(thread) = self.thread.take() else {
            return;
        };
        let until = Instant::now() + patience;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            // A thread that panicked has said so itself.
            drop(thread.join());
        }
    }
}

impl Drop for PageWatch {
    fn drop(&mut self) {
        self.signal.stop();
    }
}

/// One of the threads that look, no longer counted when dropped.
struct Counted<'a>(&'a Koi);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.web.n_watching.fetch_sub(1, Ordering::Relaxed);
    }
}

fn watch(engine: &Koi, signal: &Signal, pace: WatchPace) {
    let mut said = String::new();
    let mut pause = Duration::ZERO;
    while signal.wait(std::mem::replace(&mut pause, pace.look)) {
        let looked = contained(|| {
            for space in engine.kernel.log().store().spaces()? {
                let mut is_first = true;
                engine.check_due_pages(&space, || {
                    let pause = if is_first {
                        Duration::ZERO
                    } else {
                        pace.between
                    };
                    is_first = false;
                    signal.wait(pause)
                })?;
            }
            Ok(())
        });
        match looked {
            Ok(()) => said.clear(),
            Err(error) if error.message != said => {
                tracing::warn!("monitored pages: {error}");
                said.clone_from(&error.message);
            }
            Err(_) => {}
        }
    }
}
