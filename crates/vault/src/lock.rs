//! A lock that is a file: it excludes other processes and dies with its holder.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use kenning_core::{Error, Result};
use rustix::fs::{FileType, Mode, OFlags};

use crate::name::shown;
use crate::{fault, temp};

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(5);

/// An exclusive lock, held until it is dropped or its process ends in any way.
///
/// The file stays when the lock goes: removing it would let two holders lock two files of one name.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Locks one file of one open directory. `name` is for messages.
    pub(crate) fn acquire(dir: &Dir, last: &str, name: &str, wait: Duration) -> Result<Self> {
        let start = Instant::now();
        loop {
            let file = open(dir, last).map_err(|cause| fault::of("file", name, cause))?;
            let stat = rustix::fs::fstat(&file).map_err(|cause| fault::of("file", name, cause))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(fault::wrong_kind(name, "regular file"));
            }
            match file.try_lock() {
                Ok(()) => {
                    // Somebody may have removed the file in between; then this lock excludes nobody.
                    let now = temp::stat(dir, last).map_err(|it| fault::of("file", name, it))?;
                    if now.is_some_and(|(_, now)| {
                        (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino)
                    }) {
                        return Ok(Self { file });
                    }
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

impl Drop for Lock {
    fn drop(&mut self) {
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
