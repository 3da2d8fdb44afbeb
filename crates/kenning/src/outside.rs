//! What comes from outside: the time, randomness, and variables of the environment.

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

/// A variable of the environment. One that is not text is still set: a passphrase that cannot be read
/// must not mean that there is none.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|it| it.to_string_lossy().into_owned())
}
