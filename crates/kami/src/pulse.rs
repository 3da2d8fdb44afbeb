//! Reports the progress of a run.

use kenning_kernel::Progress;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reports the progress of a run: the elapsed time, of the time limit.
pub struct Pulse {
    progress: Arc<Progress>,
    began: Instant,
    seconds_max: f64,
    // Reported progress only grows.
    order: Mutex<()>,
}

impl Pulse {
    /// How often progress is reported.
    const EVERY: Duration = Duration::from_secs(1);

    /// For work with this time limit.
    pub fn new(progress: Arc<Progress>, most: Duration) -> Self {
        Self {
            progress,
            began: Instant::now(),
            seconds_max: most.as_secs_f64(),
            order: Mutex::default(),
        }
    }

    pub(super) fn tell(&self, word: &str) {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = self.began.elapsed().as_secs_f64();
        // Compiling is not part of the tool's own time.
        let total = Some(self.seconds_max).filter(|it| *it >= seconds);
        (self.progress)(seconds, total, word);
    }

    /// Does the work, and reports progress meanwhile.
    pub fn during<T>(&self, word: &str, work: impl FnOnce() -> T) -> T {
        let (working, done) = channel::<()>();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                while done.recv_timeout(Self::EVERY) == Err(RecvTimeoutError::Timeout) {
                    self.tell(word);
                }
            });
            let result = work();
            drop(working);
            result
        })
    }
}
