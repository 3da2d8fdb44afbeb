//! How long a call may wait for the store, however many reads and writes it makes.
//!
//! A store that is reached over a network can fall silent. Each wait has a limit of its own, but a
//! call that makes several would wait for their sum. The limit of the call is the thread's, because
//! everything a call waits for is waited for on the thread that makes it. Only waits count: a call
//! that thinks, or that asks somebody else, has as much patience with the store afterwards.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// What is left of the patience.
    static LEFT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// When the wait began that is going on.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work`; all waits of this thread in it together last `limit` at the most.
pub fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let outer = LEFT.get();
    // Inside a wait the time that it has taken already is not yet taken off.
    let limit = limit + SINCE.get().map_or(Duration::ZERO, |it| it.elapsed());
    let inner = outer.map_or(limit, |it| it.min(limit));
    LEFT.set(Some(inner));
    let _restore = Restore { outer, inner };
    work()
}

/// Runs `work`, which is one wait: what it takes is taken off.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    if SINCE.get().is_some() {
        // A part of a wait that is counted already.
        return work();
    }
    SINCE.set(Some(Instant::now()));
    let _waited = Waited;
    work()
}

/// When a wait of this thread ends, if it must: the one that is going on, or one that begins now.
pub fn until() -> Option<Instant> {
    let since = SINCE.get().unwrap_or_else(Instant::now);
    LEFT.get().map(|it| since + it)
}

/// `limit`, or less if there is less left.
pub fn left(limit: Duration) -> Duration {
    until().map_or(limit, |it| {
        limit.min(it.saturating_duration_since(Instant::now()))
    })
}

/// A thread outlives a call that panics, and must not inherit its end.
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
