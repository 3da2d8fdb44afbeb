//! How long a call may wait for the store, however many reads and writes it makes.
//!
//! A store over a network can stop answering. Each wait has its own limit, but a call that makes
//! several waits would wait for their sum. So the limit of a call is kept in a thread-local: a call
//! waits only on its own thread. Only time spent waiting for the store counts, not time spent
//! computing or waiting for others.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// What is left of the limit.
    static LEFT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// When the current wait began.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work`; all waits of this thread in it together last at most `limit`.
pub fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let outer = LEFT.get();
    // Inside a wait, the time that it has taken so far is not yet subtracted.
    let limit = limit + SINCE.get().map_or(Duration::ZERO, |it| it.elapsed());
    let inner = outer.map_or(limit, |it| it.min(limit));
    LEFT.set(Some(inner));
    let _restore = Restore { outer, inner };
    work()
}

/// Runs `work` as one wait: its time is subtracted from the limit.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    if SINCE.get().is_some() {
        // Part of a wait that is already counted.
        return work();
    }
    SINCE.set(Some(Instant::now()));
    let _waited = Waited;
    work()
}

/// When the current wait of this thread, or one that begins now, must end.
pub fn until() -> Option<Instant> {
    let since = SINCE.get().unwrap_or_else(Instant::now);
    LEFT.get().map(|it| since + it)
}

/// `limit`, or less if there is less left.
pub fn left(limit: Duration) -> Duration {
    until().map_or(limit, |until| {
        limit.min(until.saturating_duration_since(Instant::now()))
    })
}

/// Restores the limit, also after a panic: the thread is used again by other calls.
struct Restore {
    outer: Option<Duration>,
    inner: Duration,
}

impl Drop for Restore {
    fn drop(&mut self) {
        let spent = self.inner.saturating_sub(LEFT.get().unwrap_or_default());
        LEFT.set(self.outer.map(|it| it.saturating_sub(spent)));
    }
}

struct Waited;

impl Drop for Waited {
    fn drop(&mut self) {
        let waited = SINCE.take().map_or(Duration::ZERO, |it| it.elapsed());
        LEFT.set(LEFT.get().map(|it| it.saturating_sub(waited)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const NAP: Duration = Duration::from_millis(20);

    #[test]
    fn the_shortest_limit_holds_and_ends_with_its_work() {
        assert_eq!(left(LONG), LONG);
        within(Duration::from_secs(5), || {
            assert!(left(LONG) <= Duration::from_secs(5));
            within(LONG, || assert!(left(LONG) <= Duration::from_secs(5)));
            within(Duration::ZERO, || assert_eq!(left(LONG), Duration::ZERO));
            assert!(left(LONG) > Duration::from_secs(1));
        });
        assert_eq!(until(), None);
    }

    #[test]
    fn waits_are_taken_off_once_and_nothing_else_is() {
        within(LONG, || {
            std::thread::sleep(NAP);
            assert_eq!(LEFT.get(), Some(LONG), "nobody waited");
            waiting(|| waiting(|| std::thread::sleep(NAP)));
            let once = LEFT.get().unwrap();
            assert!(once <= LONG - NAP);
            within(Duration::from_secs(9), || {
                waiting(|| std::thread::sleep(NAP));
            });
            assert!(
                LEFT.get().unwrap() <= once - NAP,
                "inner waits are the outer's"
            );
            waiting(|| {
                let end = until().unwrap();
                std::thread::sleep(NAP);
                assert_eq!(until(), Some(end), "a wait that goes on has one end");
                within(LONG, || assert_eq!(until(), Some(end)));
            });
        });
        assert_eq!(until(), None);
    }

    #[test]
    fn a_panic_ends_it_too() {
        let panicked =
            std::panic::catch_unwind(|| within(LONG, || waiting(|| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!((until(), SINCE.get()), (None, None));
    }
}
