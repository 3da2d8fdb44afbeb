//! What a serving process looks at by itself: repositories whose time has come, and mail.
//!
//! One thread looks now and then. Which process does the work is decided in the store, so any number of
//! them may look.

use crate::Engine;
use kenning_kernel::later::contained;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a serving process looks.
pub const SENSORS_LOOK: Duration = Duration::from_secs(30);

/// The thread that looks. Dropping it asks it to stop and does not wait.
pub struct Sensors {
    engine: Arc<Engine>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn stop(&self) {
        *self
            .is_stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Until this much time has passed. Says whether to go on.
    fn pause(&self, time: Duration) -> bool {
        let state = self
            .is_stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, time, |it| !*it);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Sensors {
    /// Looks for the first time after `look`, then as often.
    pub fn start(engine: &Arc<Engine>, look: Duration) -> Self {
        let stop = Arc::new(Stop::default());
        let (theirs, seen) = (Arc::clone(&stop), Arc::clone(engine));
        let thread = (!engine.kernel.is_read_only()).then(|| {
            let watching = seen.koi.count_scanner();
            std::thread::spawn(move || {
                let _watching = watching;
                while theirs.pause(look) {
                    look_around(&seen);
                }
            })
        });
        Self {
            engine: Arc::clone(engine),
            stop,
            thread,
        }
    }

    /// Stops, ends what is under way, and waits for that no longer than this. The next process goes on.
    pub fn stop(mut self, patience: Duration) {
        self.stop.stop();
        self.engine.koi.cancel_scans();
        let until = Instant::now() + patience;
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            // One that panicked has said so itself.
            drop(thread.join());
        }
    }
}

impl Drop for Sensors {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

fn look_around(engine: &Engine) {
    if let Err(error) = engine.clean_up() {
        tracing::warn!("what killed processes left stays: {error}");
    }
    if let Err(error) = contained(|| engine.koi.scan_due_repositories()) {
        tracing::warn!("repositories were not looked at: {error}");
    }
    if let Err(error) = contained(|| engine.koi.look_at_mail_now()) {
        tracing::warn!("mail was not looked at: {error}");
    }
}
