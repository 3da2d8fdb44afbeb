//! Tools of our own that work the way the board's do: on a thread that waits.
//!
//! The suite does not look at cancellation, panics or who calls. These let our tests look at them from
//! outside, through the same path that every real tool takes.

use super::Fixtures;
use kenning_engine::Caller;
use kenning_tools::Reply;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Names and descriptions, in the order of the listing.
pub(super) const TOOLS: &[(&str, &str)] = &[
    ("test_wait", "Waits until it is cancelled."),
    ("test_waiting", "Counts the calls of `test_wait` that wait."),
    ("test_principal", "Returns the name of the caller."),
    ("test_steps", "Tells how far it is, from a thread."),
    ("test_panic", "Panics."),
];

impl Fixtures {
    /// Calls one of these tools; `None` when it is none of these.
    pub(crate) fn work(&self, name: &str, caller: &Caller) -> Option<Reply> {
        let (text, error) = match name {
            "test_wait" => {
                self.n_waiting.fetch_add(1, Ordering::SeqCst);
                let error = loop {
                    if let Err(error) = caller.check() {
                        break error;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                self.n_waiting.fetch_sub(1, Ordering::SeqCst);
                (error.to_string(), Some(error))
            }
            "test_waiting" => (self.n_waiting.load(Ordering::SeqCst).to_string(), None),
            "test_principal" => (caller.principal.name.clone(), None),
            "test_steps" => {
                for done in [1.0, 2.0, 3.0] {
                    caller.progress(done, Some(3.0), "a step");
                }
                ("three steps".to_owned(), None)
            }
            #[expect(clippy::panic, reason = "this is what it is for")]
            "test_panic" => panic!("a panic on purpose"),
            _ => return None,
        };
        Some(Reply {
            text,
            error,
            ..Reply::default()
        })
    }
}
