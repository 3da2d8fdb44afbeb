//! A lock file: it excludes other processes and is released when its holder ends.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use kenning_core::{Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::name::shown;
use crate::{fault, temp};

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(5);

/// An exclusive lock, held until it is dropped or its process ends in any way.
///
/// The file stays when the lock is released, unless it is to be removed.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The file to remove with the lock.
    passing: Option<(Dir, String)>,
}

/// What happens to the file when the lock is released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays for the next holder.
    Stays,
    /// It is removed, for an unbounded set of names.
    Goes,
}

impl Lock {
    /// Locks one file of one open directory. `name` is for messages.
    pub(crate) fn acquire(
        dir: &Dir,
        last: &str,
        name: &str,
        wait: Duration,
        after: After,
    ) -> Result<Self> {
        let start = Instant::now();
        let passing = match after {
            After::Stays => None,
            After::Goes => {
                let dir = dir.try_clone().map_err(|it| fault::of("file", name, it))?;
                Some((dir, last.to_owned()))
            }
        };
        loop {
            let file = open(dir, last).map_err(|cause| fault::of("file", name, cause))?;
            let stat = rustix::fs::fstat(&file).map_err(|cause| fault::of("file", name, cause))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(fault::wrong_kind(name, "regular file"));
            }
            match file.try_lock() {
                Ok(()) => {
                    // The previous holder may have removed the file; then this lock excludes no one, and the file
                    // that has the name now must be locked.
                    let now = temp::stat(dir, last).map_err(|it| fault::of("file", name, it))?;
                    if now.is_some_and(|it| is_same(&it.1, &stat)) {
                        return Ok(Self { file, passing });
                    }
                    continue;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(fault::of("file", name, cause)),
            }
            let left = wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(Error::unavailable(format!(
                    "`{}` is locked by another holder",
                    shown(name)
                ))
                .hint("stop the other process or try again later"));
            }
            std::thread::sleep(PAUSE.min(left));
        }
    }
}

fn is_same(a: &rustix::fs::Stat, b: &rustix::fs::Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held, no other holder removes the file of this name, so it is this one.
        if let Some((dir, last)) = &self.passing
            && let (Ok(Some(now)), Ok(own)) = (temp::stat(dir, last), rustix::fs::fstat(&self.file))
            && is_same(&now.1, &own)
        {
            // If it cannot be removed, the next holder uses it.
            let _ = rustix::fs::unlinkat(dir, last, AtFlags::empty());
        }
        // Closing would do, unless a child process has inherited the handle.
        let _ = self.file.unlock();
    }
}

fn open(dir: &Dir, last: &str) -> io::Result<File> {
    // Non-blocking, for the case that somebody put a FIFO there.
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, last, flags, Mode::from_raw_mode(0o600))?;
    Ok(File::from(fd))
}

#[cfg(test)]
mod tests {
    use crate::dir::Dir;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// The file goes with each lock, and still no two hold it at once.
    #[test]
    fn a_brief_lock_excludes_others_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (inside, n_held) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = dir.lock_briefly("a.lock", Duration::from_secs(60)).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        n_held.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(n_held.into_inner(), 400);
        assert_eq!(dir.list(".").unwrap(), []);
        let held = dir.lock_briefly("a.lock", Duration::ZERO).unwrap();
        assert!(dir.lock_briefly("a.lock", Duration::ZERO).is_err());
        assert!(dir.lock("a.lock", Duration::ZERO).is_err());
        drop(held);
        drop(dir.lock("a.lock", Duration::ZERO).unwrap());
        assert!(dir.exists("a.lock").unwrap());
    }
}
