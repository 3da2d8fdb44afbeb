//! Work in the background: threads that end when they are told to, say what is wrong once, and survive
//! a panic.
//!
//! Everything that a serving process does by itself is a [`Worker`]: it looks, does what is due, and waits
//! on its [`Signal`] until time has passed, somebody wakes it, or it is to stop.

use kenning_core::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether a thread has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Wakes a worker, and tells it to stop.
#[derive(Default)]
pub struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    n_wakes: u64,
    is_stopped: bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// There is something to look at.
    ByOthers,
    /// So much time has passed.
    ByTime,
    /// It is to stop.
    ToStop,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is something to look at.
    pub fn wake(&self) {
        self.lock().n_wakes += 1;
        self.changed.notify_all();
    }

    /// Nobody is to go on.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Whether nobody is to go on.
    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// How often somebody has called [`Signal::wake`]: for [`Signal::next`].
    pub fn n_wakes(&self) -> u64 {
        self.lock().n_wakes
    }

    /// Waits so long, whoever wakes. Says whether to go on.
    pub fn pause(&self, time: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time, |it| !it.is_stopped);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_stopped
    }

    /// Waits for somebody who wakes, but no longer than this. What was called since `seen` was noted counts
    /// once, however often.
    pub fn next(&self, seen: &mut u64, time: Duration) -> Woken {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| {
            !state.is_stopped && state.n_wakes == *seen
        });
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_stopped {
            return Woken::ToStop;
        }
        match std::mem::replace(seen, state.n_wakes) == state.n_wakes {
            true => Woken::ByTime,
            false => Woken::ByOthers,
        }
    }
}

/// Says what is wrong once, not every time.
#[derive(Debug, Default)]
pub struct Complaint(Option<String>);

impl Complaint {
    /// Says it unless it was the last thing said. Answers whether it was said.
    pub fn say(&mut self, who: &str, error: &Error) -> bool {
        if self.0.as_ref() == Some(&error.message) {
            return false;
        }
        self.0 = Some(error.message.clone());
        tracing::warn!("{who}: {error}");
        true
    }

    /// It is gone: the next time it is said again.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

/// How long to wait after so many failures in a row: twice as long each time, up to a bound.
pub fn back_off(first: Duration, most: Duration, n_failures: u32) -> Duration {
    let doubled = 2_u32.checked_pow(n_failures.saturating_sub(1));
    let wait = doubled.and_then(|it| first.checked_mul(it));
    wait.map_or(most, |it| it.min(most))
}

/// A panic as an error. What the work had of the store is rolled back; it shares nothing else that is changed
/// halfway: what the engine keeps in memory is behind locks that begin anew after a panic.
pub fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::internal("it panicked").because(said.unwrap_or_default()))
    })
}

/// A thread that works in the background. Dropping it asks it to stop and does not wait.
pub struct Worker {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// One that does nothing, where there is nothing to do.
    pub fn idle() -> Self {
        Self {
            signal: Arc::default(),
            thread: None,
        }
    }

    /// Does the work on a thread of that name; it ends when the signal says so.
    pub fn start(
        name: &str,
        signal: Arc<Signal>,
        work: impl FnOnce(&Signal) + Send + 'static,
    ) -> Self {
        let heard = Arc::clone(&signal);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let owned = name.to_owned();
        let spawned = thread.spawn(move || {
            let done = contained(|| {
                work(&heard);
                Ok(())
            });
            if let Err(error) = done {
                tracing::error!("{owned}: {error}");
            }
        });
        let thread = spawned
            .inspect_err(|error| tracing::error!("{name}: no thread for it: {error}"))
            .ok();
        Self { signal, thread }
    }

    /// Looks after `first`, then with a pause of `then` each time. What fails or panics is said once and
    /// tried again.
    pub fn every(
        name: &'static str,
        first: Duration,
        then: Duration,
        mut look: impl FnMut(&Signal) -> Result<()> + Send + 'static,
    ) -> Self {
        Self::start(name, Arc::default(), move |signal| {
            let mut complaint = Complaint::default();
            let mut pause = first;
            while signal.pause(std::mem::replace(&mut pause, then)) {
                match contained(|| look(signal)) {
                    Ok(()) => complaint.clear(),
                    Err(error) => drop(complaint.say(name, &error)),
                }
            }
        })
    }

    /// Whether its thread is there.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|it| !it.is_finished())
    }

    /// What wakes and stops it.
    pub fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Stops after what is under way, and waits for that no longer than this.
    pub fn stop(mut self, patience: Duration) {
        self.signal.stop();
        let until = Instant::now() + patience;
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        if thread.is_finished() {
            drop(thread.join());
        }
    }

    /// Stops, and waits for what is under way.
    pub fn end(&mut self) {
        self.signal.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_worker_looks_again_after_an_error_and_after_a_panic_and_stops_at_once() {
        let (said, heard) = channel();
        let mut n = 0;
        let worker = Worker::every("test", Duration::ZERO, Duration::ZERO, move |signal| {
            n += 1;
            said.send(n).unwrap();
            match n {
                1 => Err(Error::unavailable("not yet")),
                2 => panic!("on purpose"),
                // It is in the middle of a long wait when it is told to stop.
                3 => signal
                    .pause(LONG)
                    .then_some(())
                    .ok_or_else(|| Error::unavailable("stopped")),
                _ => Ok(()),
            }
        });
        assert_eq!(heard.iter().take(3).collect::<Vec<_>>(), [1, 2, 3]);
        worker.stop(LONG);
        assert_eq!(heard.iter().count(), 0);
    }

    #[test]
    fn whoever_is_woken_often_looks_once_and_a_stop_comes_before_all() {
        let signal = Signal::default();
        let mut seen = signal.n_wakes();
        assert_eq!(signal.next(&mut seen, Duration::ZERO), Woken::ByTime);
        signal.wake();
        signal.wake();
        assert_eq!(signal.next(&mut seen, LONG), Woken::ByOthers);
        assert_eq!(signal.next(&mut seen, Duration::ZERO), Woken::ByTime);
        signal.wake();
        signal.stop();
        assert_eq!(signal.next(&mut seen, LONG), Woken::ToStop);
        assert!(!signal.pause(LONG));
    }

    #[test]
    fn a_complaint_is_made_once_until_it_is_gone() {
        let (one, other) = (Error::unavailable("one"), Error::unavailable("other"));
        let mut complaint = Complaint::default();
        assert!(complaint.say("test", &one));
        assert!(!complaint.say("test", &one));
        assert!(complaint.say("test", &other));
        complaint.clear();
        assert!(complaint.say("test", &other));
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_a_bound() {
        let wait = |n| back_off(Duration::from_secs(60), Duration::from_secs(3_600), n).as_secs();
        let waits: Vec<u64> = [0, 1, 2, 3, 6, 7, 40].into_iter().map(wait).collect();
        assert_eq!(waits, [60, 60, 120, 240, 1_920, 3_600, 3_600]);
    }
}
