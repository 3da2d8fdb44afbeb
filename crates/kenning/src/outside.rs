//! What comes from outside: the time, and randomness.

use kenning_core::{Clock, Random};

/// The machine's clock.
pub(crate) struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The machine's randomness.
pub(crate) struct OsRandom;

impl Random for OsRandom {
    #[expect(
        clippy::expect_used,
        reason = "a key from a broken generator is worse than none"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}
