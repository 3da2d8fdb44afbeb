//! Tells whoever counts computing threads that this one only waits.
//!
//! A server lets only so many calls compute at once, because more of them than there are processors slow
//! each other down, and everything else with them. A call that waits (for the disk, a database, a file lock or
//! another server) needs no processor meanwhile. Whoever starts a call says who counts it ([`watched`]);
//! whatever blocks says so ([`waiting`]). On a thread that nobody watches, `waiting` does nothing.

use std::cell::RefCell;
use std::sync::Arc;

/// Counts the calls that compute.
pub trait Watch {
    /// The call begins to wait. Must not block.
    fn rest(&self);

    /// The call computes again. Must not block: the call may hold locks.
    fn resume(&self);
}

thread_local! {
    static WATCH: RefCell<Option<Arc<dyn Watch>>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread; `watch` hears of every wait in it.
pub fn watched<T>(watch: Arc<dyn Watch>, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(WATCH.replace(Some(watch)));
    work()
}

/// Runs `work`, which waits and computes next to nothing.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    // Taken out, so that a wait within a wait counts once.
    let Some(watch) = WATCH.take() else {
        return work();
    };
    watch.rest();
    let _resume = Resume(watch);
    work()
}

/// Restores who watched before, also after a panic: the thread is used again by other calls.
struct Restore(Option<Arc<dyn Watch>>);

impl Drop for Restore {
    fn drop(&mut self) {
        WATCH.set(self.0.take());
    }
}

struct Resume(Arc<dyn Watch>);

impl Drop for Resume {
    fn drop(&mut self) {
        self.0.resume();
        WATCH.set(Some(Arc::clone(&self.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<&'static str>>);

    impl Watch for Heard {
        fn rest(&self) {
            self.0.lock().unwrap().push("rest");
        }

        fn resume(&self) {
            self.0.lock().unwrap().push("resume");
        }
    }

    #[test]
    fn a_wait_is_heard_once_even_if_it_panics() {
        let heard = Arc::new(Heard::default());
        waiting(|| ());
        let panicked = std::panic::catch_unwind(|| {
            watched(heard.clone(), || {
                waiting(|| waiting(|| ()));
                waiting(|| panic!("on purpose"));
            });
        });
        assert!(panicked.is_err());
        waiting(|| ());
        let heard = heard.0.lock().unwrap();
        assert_eq!(*heard, ["rest", "resume", "rest", "resume"]);
    }
}
