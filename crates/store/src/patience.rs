//! How long a call may wait for the store, however many reads and writes it makes.
//!
//! A store that is reached over a network can fall silent. Each wait has a limit of its own, but a
//! call that makes several would wait for their sum. The limit of the call is the thread's, because
//! everything a call waits for is waited for on the thread that makes it.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work`; all waits of this thread in it together end `limit` from now.
pub fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let outer = UNTIL.get();
    let until = Instant::now() + limit;
    UNTIL.set(Some(outer.map_or(until, |it| it.min(until))));
    let _restore = Restore(outer);
    work()
}

/// When the waits of this thread end, if they must.
pub fn until() -> Option<Instant> {
    UNTIL.get()
}

/// `limit`, or less if there is less left.
pub fn left(limit: Duration) -> Duration {
    until().map_or(limit, |it| {
        limit.min(it.saturating_duration_since(Instant::now()))
    })
}

/// A thread outlives a call that panics, and must not inherit its end.
struct Restore(Option<Instant>);

impl Drop for Restore {
    fn drop(&mut self) {
        UNTIL.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

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
    fn a_panic_ends_it_too() {
        let panicked = std::panic::catch_unwind(|| within(LONG, || panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(until(), None);
    }
}
