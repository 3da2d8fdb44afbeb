//! Fixtures of benchmarks: a log over a real store, on the disk that is measured.

use anyhow::{Context as _, Result};
use kenning_audit::{Log, Signer};
use kenning_core::{Clock, SeededRandom};
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A fresh directory beside this program: the build directory is on a disk, but `/tmp` may be in memory.
pub(super) fn directory() -> Result<TempDir> {
    let program = std::env::current_exe()?;
    let beside = program.parent().context("this program is nowhere")?;
    Ok(tempfile::tempdir_in(beside)?)
}

/// The log of a new store.
pub(super) fn open(directory: &Path) -> Result<Log> {
    Ok(over(Store::new(Sqlite::open(directory)?)))
}

/// The log of any store, signed with a key of its own.
pub(super) fn over(store: Store) -> Log {
    // Several logs of one run stand on one store: none may make the ids of another.
    let random = Arc::new(SeededRandom::new(RandomState::new().hash_one(0)));
    let signer = Signer::generate(&*random);
    Log::new(store, signer, Arc::new(WallClock), random)
}

/// About `bytes` of words, the same for the same seed.
pub(super) fn words(seed: u64, bytes: usize) -> String {
    const WORDS: &[&str] = &[
        "river", "ledger", "quiet", "harbor", "signal", "copper", "meadow", "winter", "lantern",
        "archive", "thread", "orchard", "summit", "candle", "border", "engine",
    ];
    let random = SeededRandom::new(seed);
    let mut text = String::new();
    while text.len() < bytes {
        let place = usize::try_from(random.below(WORDS.len() as u64)).unwrap_or(0);
        text += WORDS[place];
        text += &format!("{} ", random.below(1_000));
    }
    text.truncate(bytes);
    text
}
