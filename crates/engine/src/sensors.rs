//! What a serving process looks at by itself: repositories whose time has come, and mail.
//!
//! One thread looks now and then. Which process does the work is decided in the store, so any number of
//! them may look.

use crate::Engine;
use kenning_kernel::later::contained;
use kenning_kernel::worker::Worker;
use std::sync::Arc;
use std::time::Duration;

/// How often a serving process looks.
pub const SENSORS_LOOK: Duration = Duration::from_secs(30);

/// The thread that looks. Dropping it asks it to stop and does not wait.
pub struct Sensors {
    engine: Arc<Engine>,
    worker: Worker,
}

impl Sensors {
    /// Looks for the first time after `look`, then as often.
    pub fn start(engine: &Arc<Engine>, look: Duration) -> Self {
        let seen = Arc::clone(engine);
        let worker = match engine.kernel.is_read_only() {
            true => Worker::idle(),
            false => {
                let watching = seen.koi.count_scanner();
                Worker::every("sensors", look, look, move |_| {
                    let _counted = &watching;
                    look_around(&seen);
                    Ok(())
                })
            }
        };
        Self {
            engine: Arc::clone(engine),
            worker,
        }
    }

    /// Stops, ends what is under way, and waits for that no longer than this. The next process goes on.
    pub fn stop(self, patience: Duration) {
        self.worker.signal().stop();
        self.engine.koi.cancel_scans();
        self.worker.stop(patience);
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
