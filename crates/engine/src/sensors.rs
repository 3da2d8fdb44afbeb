//! Background work of a server: repositories that are due, the project's own code, and mail.
//!
//! Two threads check now and then, the second one for the project. The store decides which process does the work, so any number of
//! them may check.

use crate::Engine;
use kenning_kernel::worker::Worker;
use kenning_kernel::worker::contained;
use std::sync::Arc;
use std::time::Duration;

/// How often a server checks.
pub const SENSORS_LOOK: Duration = Duration::from_secs(30);

/// When a server first reads the code of its project: its first callers come before.
const PROJECT_FIRST: Duration = Duration::from_secs(3);

/// The threads that check. Dropping them asks them to stop and does not wait.
pub struct Sensors {
    engine: Arc<Engine>,
    worker: Worker,
    project: Worker,
}

impl Sensors {
    /// Checks for the first time after `look`, then at that interval.
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
        let seen = Arc::clone(engine);
        let project = match engine.kernel.is_read_only() {
            true => Worker::idle(),
            false => Worker::every("project", PROJECT_FIRST.min(look), look, move |_| {
                seen.koi.scan_changed_project()
            }),
        };
        Self {
            engine: Arc::clone(engine),
            worker,
            project,
        }
    }

    /// Stops, ends the work in progress, and waits at most this long. The next process continues.
    pub fn stop(self, patience: Duration) {
        self.worker.signal().stop();
        self.project.signal().stop();
        self.engine.koi.cancel_scans();
        self.worker.stop(patience);
        self.project.stop(patience);
    }
}

fn look_around(engine: &Engine) {
    if let Err(error) = engine.clean_up() {
        tracing::warn!("leftovers of killed processes could not be removed: {error}");
    }
    if let Err(error) = contained(|| engine.koi.scan_due_repositories()) {
        tracing::warn!("repositories could not be scanned: {error}");
    }
    if let Err(error) = contained(|| forget_due(engine)) {
        tracing::warn!("what is due to be forgotten is not erased: {error}");
    }
    if let Err(error) = contained(|| engine.koi.look_at_mail_now()) {
        tracing::warn!("mail could not be read: {error}");
    }
}

/// Erases what is due in every space: the grace time of forgotten memories, and the age that settings allow.
fn forget_due(engine: &Engine) -> kenning_core::Result<()> {
    for space in engine.kernel.log().store().spaces()? {
        engine.omi.forget_due(&space)?;
    }
    Ok(())
}
