//! What nobody else removes: files that killed processes left, and how much there is of what grows.
//!
//! | what | who removes it | when |
//! |---|---|---|
//! | grants of directives' runs | the next run of a directive | after an hour, or above 1,000 in a space |
//! | pages that were previewed only | every sixteenth new preview | after 30 days, or above 2,000 in a space |
//! | virtual environments of tools | the next installation | 30 days after their last use, or above 20 |
//! | lock files | whoever held the lock; those of killed processes, this | at once; every six hours |
//! | files of killed writes | this | a day after they were written to, unless an intent names them |
//! | indexes, documents and names in memory | the next space that is asked for | above 32 spaces |
//! | SQLite's write-ahead log | SQLite, after the next checkpoint | above 32 MiB, once nobody reads what was there before; long reads have a copy (`Store::read_long`) |
//! | events of reads | nobody: the log is for ever | `events.reads` says which there are |

use crate::Engine;
use kenning_core::{Code, Error, Result};
use kenning_kernel::{Doctor, journal};
use kenning_memory::config::{READS_SAMPLED, Reads};
use kenning_search::SPACES_MAX;
use kenning_vault::{Dir, Unfinished};
use std::collections::BTreeSet;
use std::time::Duration;

/// When this was last done; a file in the data directory.
const STAMP: &str = "cleaned";
const LOCK: &str = "cleaned.lock";
const EVERY_MS: u64 = 6 * 60 * 60 * 1_000;
/// A temporary file that was not written for this long belongs to no running write.
const UNFINISHED_MS: u64 = 24 * 60 * 60 * 1_000;
/// At most this many entries of a tree are looked at.
const ENTRIES_MAX: usize = 200_000;
/// At most this many lock files are looked at in one pass.
const LOCKS_MAX: usize = 10_000;
const LOCKS: &str = "locks";
/// SQLite cuts its write-ahead log to this size; one that is larger is being kept by a read.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Files of killed writes.
    pub unfinished: usize,
    /// Lock files that nobody held.
    pub locks: usize,
}

impl Engine {
    /// Removes what killed processes left, if that was not done recently; `None` if it was, or if
    /// another process does it. For a server: it may take a while.
    ///
    /// # Errors
    /// Those of the data directory. Other places that cannot be read are left alone.
    pub fn clean_up(&self) -> Result<Option<Cleaned>> {
        if self.kernel.is_read_only() {
            return Ok(None);
        }
        let now_ms = self.kernel.log().clock().now_ms();
        let last_ms = match self.kernel.data().read(STAMP, 64) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0),
            Err(error) if error.code == Code::NotFound => 0,
            Err(error) => return Err(error),
        };
        // A stamp in the future comes from a wrong clock.
        if last_ms <= now_ms && now_ms - last_ms < EVERY_MS {
            return Ok(None);
        }
        let _lock = match self.kernel.data().lock_briefly(LOCK, Duration::ZERO) {
            Ok(lock) => lock,
            Err(error) if error.code == Code::Unavailable => return Ok(None),
            Err(error) => return Err(error),
        };
        self.kernel
            .data()
            .write_private(STAMP, now_ms.to_string().as_bytes())?;
        let mut cleaned = Cleaned::default();
        let mut kept = BTreeSet::new();
        for space in self.kernel.log().store().spaces()? {
            kept.extend(self.kernel.log().read(&space, journal::staged_ids)?);
        }
        for dir in self.written_dirs() {
            let before_ms = now_ms.saturating_sub(UNFINISHED_MS);
            match dir.unfinished(Some(before_ms), ENTRIES_MAX, &kept) {
                Ok(found) => cleaned.unfinished += found.n_removed,
                Err(error) => {
                    tracing::warn!("files of killed writes could not be removed: {error}");
                }
            }
        }
        if self.kernel.data().exists(LOCKS)? {
            cleaned.locks = free_locks(&self.kernel.data().subdir(LOCKS)?);
        }
        if cleaned != Cleaned::default() {
            let Cleaned { unfinished, locks } = cleaned;
            tracing::info!("removed {unfinished} files of killed writes and {locks} lock files");
        }
        Ok(Some(cleaned))
    }

    /// The directories that this process writes to.
    fn written_dirs(&self) -> Vec<Dir> {
        let mut dirs = vec![self.kernel.data().clone()];
        for root in [self.kernel.vault(), self.kernel.omi()] {
            dirs.extend(root.place().and_then(|it| Dir::open(&it).ok()));
        }
        let project = self.kernel.project().place().map(|it| it.join(".ai"));
        let user = self.kiwi.user_dir();
        let items = [project, user].into_iter().flatten();
        dirs.extend(items.filter_map(|it| Dir::open(&it).ok()));
        dirs
    }

    /// The size of everything that grows, and its limits.
    pub(crate) fn examine_growth(&self, found: &mut Doctor) -> Result<()> {
        let (mut n_grants, mut n_pages) = (0, 0);
        for space in self.kernel.log().store().spaces()? {
            let (grants, pages) = self.kernel.log().read(&space, |tx| {
                Ok((
                    kenning_kiwi::GRANTS.keys(tx)?.len(),
                    kenning_koi::n_previewed(tx)?,
                ))
            })?;
            n_grants += grants;
            n_pages += pages;
        }
        let log_bytes = self.kernel.log().store().log_bytes();
        if let Some(bytes) = log_bytes.filter(|it| *it > LOG_BYTES_MAX) {
            found.warnings.push(format!(
                "the write-ahead log has {}: a read that does not end keeps it; look for a process that uses \
                 this data directory and hangs, and end it",
                mebibytes(bytes)
            ));
        }
        let mut see = |name: &str, text: String| found.seen.push((name.to_owned(), text));
        if let Some(bytes) = log_bytes {
            see(
                "write-ahead log",
                format!(
                    "{}; it is cut to {} once nobody reads what was there before",
                    mebibytes(bytes),
                    mebibytes(LOG_BYTES_MAX)
                ),
            );
        }
        see(
            "run grants",
            format!(
                "{n_grants}; each is removed after an hour, at most {} in a space",
                kenning_kiwi::GRANTS_MAX
            ),
        );
        see(
            "previewed pages",
            format!(
                "{n_pages}; each is removed after {} days, at most {} in a space",
                kenning_koi::PREVIEW_DAYS_MAX,
                kenning_koi::PREVIEWS_MAX
            ),
        );
        see(
            "environments",
            format!(
                "{}; each is removed {} days after its last use, at most {}",
                self.kiwi.n_environments(),
                kenning_kiwi::VENV_DAYS_MAX,
                kenning_kiwi::VENVS_MAX
            ),
        );
        let n_locks = self.kernel.data().list(LOCKS).map_or(0, |it| it.len());
        see(
            "lock files",
            format!("{n_locks}; those that nobody holds are removed"),
        );
        let mut unfinished = Unfinished::default();
        for dir in self.written_dirs() {
            if let Ok(here) = dir.unfinished(None, ENTRIES_MAX, &BTreeSet::new()) {
                unfinished.n_found += here.n_found;
                unfinished.is_partial |= here.is_partial;
            }
        }
        let partly = if unfinished.is_partial {
            " or more"
        } else {
            ""
        };
        see(
            "killed writes",
            format!(
                "{} files{partly}; each is removed after a day",
                unfinished.n_found
            ),
        );
        see("in memory", format!("at most {SPACES_MAX} spaces at once"));
        let reads = match self.kernel.memory_config().unwrap_or_default().reads {
            Reads::All => "all are events (`events.reads` can change that)".to_owned(),
            Reads::Sampled => format!("one in {READS_SAMPLED} is an event"),
            Reads::Off => "none is an event".to_owned(),
        };
        see("reads", reads);
        Ok(())
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Removes the lock files that nobody holds, and returns how many.
fn free_locks(locks: &Dir) -> usize {
    let entries = locks.list(".").unwrap_or_default().into_iter();
    let files = entries.filter(|it| it.is_file).take(LOCKS_MAX);
    let is_free = |name: &str| -> Result<(), Error> {
        // The file is removed with the lock.
        locks.lock_briefly(name, Duration::ZERO).map(drop)
    };
    files.filter(|it| is_free(&it.name).is_ok()).count()
}
