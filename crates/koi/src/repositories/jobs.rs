//! Scans that continue when nobody waits for them any longer.

use super::scan::Scanner;
use super::{ScanProgress, Scanned};
use kenning_core::{Code, Result, Space};
use kenning_kernel::worker::Worker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A scan that goes on, or that is over.
#[derive(Default)]
pub(super) struct Job {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) cancelled: AtomicBool,
}

#[derive(Default)]
struct State {
    progress: ScanProgress,
    outcome: Option<Result<Scanned, Failure>>,
}

/// Why a scan failed, for everybody who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn say(&self, progress: ScanProgress) {
        self.lock().progress = progress;
    }

    pub(super) fn progress(&self) -> ScanProgress {
        self.lock().progress.clone()
    }

    pub(super) fn outcome(&self) -> Option<Result<Scanned, Failure>> {
        self.lock().outcome.clone()
    }

    /// Until it is over, or so much time has passed. Says whether it is over.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let is_open = |it: &mut State| it.outcome.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), time, is_open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.outcome.is_some()
    }

    fn end(&self, outcome: Result<Scanned, Failure>) {
        self.lock().outcome.get_or_insert(outcome);
        self.changed.notify_all();
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Whoever waits learns of the end, also when it is a panic.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Err(Failure {
            code: Code::Internal,
            message: "the scan broke off".to_owned(),
            hint: None,
        }));
    }
}

/// The scans of this process. Dropping it cancels them and waits for their end, which is a moment.
#[derive(Default)]
pub(super) struct Jobs {
    running: Mutex<BTreeMap<(Space, u64), Arc<Job>>>,
    workers: Mutex<Vec<Worker>>,
    pub(super) turn: Arc<Mutex<()>>,
}

impl Jobs {
    /// The scan of a repository that goes on, or else a new one. Says whether it is new.
    pub(super) fn start(
        &self,
        space: &Space,
        id: u64,
        scanner: impl FnOnce(Arc<Job>) -> Scanner,
    ) -> (Arc<Job>, bool) {
        let key = (space.clone(), id);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(job) = running.get(&key)
            && job.outcome().is_none()
            && !job.cancelled.load(Ordering::Relaxed)
        {
            return (Arc::clone(job), false);
        }
        let job = Arc::new(Job::default());
        let scanner = scanner(Arc::clone(&job));
        let ending = Ending(Arc::clone(&job));
        // Without a thread for it the scan ends at once, and says that it broke off.
        let worker = Worker::start("scan", Arc::default(), move |_| {
            let outcome = scanner.run();
            ending.0.end(outcome.map_err(|error| Failure {
                code: error.code,
                message: error.message,
                hint: error.hint,
            }));
        });
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(Worker::is_running);
        workers.push(worker);
        running.insert(key, Arc::clone(&job));
        (job, true)
    }

    /// The scan of a repository, if one goes on in this process.
    pub(super) fn running(&self, space: &Space, id: u64) -> Option<Arc<Job>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let job = running.get(&(space.clone(), id))?;
        job.outcome().is_none().then(|| Arc::clone(job))
    }

    /// How far the scan of a repository is, if one goes on in this process.
    pub(super) fn progress(&self, space: &Space, id: u64) -> Option<ScanProgress> {
        Some(self.running(space, id)?.progress())
    }

    /// Asks all scans to end.
    pub(super) fn cancel(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().for_each(|job| job.cancel());
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.cancel();
        let workers = self.workers.get_mut();
        for worker in workers.unwrap_or_else(PoisonError::into_inner) {
            worker.end();
        }
    }
}
