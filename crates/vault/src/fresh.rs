//! A temporary directory for one run of a program.
//!
//! A program that runs as another user cannot enter directories of mode 0700. For such a program the
//! directory is among the system's temporary ones, everybody may traverse it, and what is in it has
//! unguessable names.
//!
//! It is locked for as long as the work lasts. The kernel releases the lock of a process that was
//! killed, so an unlocked directory is a leftover, which the next run removes.

use crate::dir::Dir;
use crate::fault;
use crate::name::Name;
use kenning_core::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The prefix by which leftovers are recognized.
const PREFIX: &str = "kenning-";

/// How many names are tried: a concurrent sweep may remove a new directory before it is locked.
const TRIES: usize = 100;

/// Removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct Fresh {
    parent: cap_std::fs::Dir,
    name: String,
    dir: Dir,
    /// The directory, locked.
    held: std::fs::File,
}

impl Fresh {
    /// In a private directory that no other user can enter.
    pub fn beneath(parent: &Dir) -> Result<Self> {
        Self::make(parent, 0o700)
    }

    /// Among the system's temporary directories: all users may traverse it, but not list it.
    pub fn for_everybody() -> Result<Self> {
        Self::make(&Dir::open(&std::env::temp_dir())?, 0o711)
    }

    fn make(parent: &Dir, mode: u32) -> Result<Self> {
        for _ in 0..TRIES {
            let name = format!("{PREFIX}{}", unguessable()?);
            let error = |cause: io::Error| fault::of("directory", &name, cause);
            let made = make_dir(parent.root(), &name, mode);
            let held = match made.and_then(|()| hold(parent.root(), &name)) {
                Ok(Some(held)) => held,
                // Another process swept it away before it was locked.
                Ok(None) => continue,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(error(cause)),
            };
            let dir = Dir::open(&parent.path().join(&name));
            let parent = parent.root().try_clone().map_err(error)?;
            return match dir {
                Ok(dir) => Ok(Self {
                    parent,
                    name,
                    dir,
                    held,
                }),
                Err(error) => {
                    // Nothing is in it yet.
                    let _ = parent.remove_dir(&name);
                    Err(error)
                }
            };
        }
        Err(Error::unavailable("the directory for the run could not be created").hint("try again"))
    }

    /// A new directory in it with an unguessable name and this mode.
    pub fn room(&self, mode: u32) -> Result<Dir> {
        let name = unguessable()?;
        let error = |cause: io::Error| fault::of("directory", &name, cause);
        make_dir(self.dir.root(), &name, mode).map_err(error)?;
        self.dir.subdir(&name)
    }

    /// Removes what killed processes of this user left in a directory. Says how many there were.
    pub fn sweep(parent: &Dir) -> Result<usize> {
        let error = |cause: io::Error| fault::of("directory", ".", cause);
        let own = rustix::process::geteuid().as_raw();
        let mut n_removed = 0;
        for found in parent.root().entries().map_err(error)?.flatten() {
            let name = found.file_name();
            let Some(name) = name.to_str().filter(|it| is_ours(it)) else {
                continue;
            };
            // A locked directory is in use; one that cannot be locked belongs to another user or is gone.
            let Ok(Some(held)) = hold(parent.root(), name) else {
                continue;
            };
            if rustix::fs::fstat(&held).is_ok_and(|it| it.st_uid == own) {
                n_removed += usize::from(remove(parent.root(), name, &held));
            }
        }
        Ok(n_removed)
    }

    /// The same among the system's temporary directories, where those for everybody are.
    pub fn sweep_for_everybody() -> Result<usize> {
        Self::sweep(&Dir::open(&std::env::temp_dir())?)
    }
}

/// The directory of this name with its lock, if nobody else holds it and it is still there.
fn hold(parent: &cap_std::fs::Dir, name: &str) -> io::Result<Option<std::fs::File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = std::fs::File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    match held.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
        Err(std::fs::TryLockError::Error(cause)) => return Err(cause),
    }
    let (about, now) = (
        rustix::fs::fstat(&held)?,
        rustix::fs::statat(parent, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW),
    );
    let is_there = now.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (about.st_dev, about.st_ino));
    Ok(is_there.then_some(held))
}

/// Whether a name was generated here.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit())
}

fn remove(parent: &cap_std::fs::Dir, name: &str, held: &std::fs::File) -> bool {
    if parent.remove_dir_all(name).is_ok() {
        return true;
    }
    // The program may have removed permissions from its directories.
    if let Ok(handle) = held.try_clone() {
        open_up(&cap_std::fs::Dir::from_std_file(handle));
    }
    // What cannot be removed now is removed by a later sweep.
    parent.remove_dir_all(name).is_ok()
}

impl Drop for Fresh {
    fn drop(&mut self) {
        remove(&self.parent, &self.name, &self.held);
    }
}

impl Dir {
    /// Creates a file with this mode. Unlike [`Dir::write`] it does not sync, because the file is
    /// temporary.
    pub fn put(&self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_beneath(name)?;
        let path = plain.as_path();
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            self.folders(folder).map_err(error)?;
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.root(), path, flags, Mode::from_raw_mode(0o600));
        let mut file = std::fs::File::from(fd.map_err(|it| error(it.into()))?);
        file.write_all(bytes).map_err(error)?;
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::fchmod(&file, mode).map_err(|it| error(it.into()))
    }

    /// Creates folders with the same mode as this directory.
    fn folders(&self, path: &Path) -> io::Result<()> {
        let mode = rustix::fs::fstat(self.root())?.st_mode & 0o777;
        let mut at = std::path::PathBuf::new();
        for part in path {
            at.push(part);
            match make_dir(self.root(), &at, mode) {
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Whether it belongs to the user of this process, and no other user can change it.
    pub fn is_ours_alone(&self) -> bool {
        let about = rustix::fs::fstat(self.root());
        let own = rustix::process::geteuid().as_raw();
        about.is_ok_and(|stat| stat.st_uid == own && stat.st_mode & 0o022 == 0)
    }

    /// Whether the modes of the directory and of all above it let everybody read in it.
    pub fn is_open_to_everybody(&self) -> bool {
        let allows = |path: &Path, bits: u32| {
            std::fs::metadata(path).is_ok_and(|it| it.mode() & bits == bits)
        };
        let mut above = self.path().ancestors().skip(1);
        allows(self.path(), 0o005) && above.all(|it| allows(it, 0o001))
    }
}

/// A directory with just this mode, whatever the process' mask says.
fn make_dir(parent: &cap_std::fs::Dir, name: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    let name = name.as_ref();
    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    Ok(rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?)
}

fn unguessable() -> Result<String> {
    let random = || getrandom::u64();
    let both = random().and_then(|first| Ok((first, random()?)));
    let (first, second) =
        both.map_err(|_| Error::unavailable("the operating system gave no random bytes"))?;
    Ok(format!("{first:016x}{second:016x}"))
}

/// Gives the owner access to every directory beneath.
fn open_up(dir: &cap_std::fs::Dir) {
    // Those of a directory that just was opened up are looked at too.
    let Ok(entries) = dir.entries() else { return };
    for found in entries.flatten() {
        if !found.file_type().is_ok_and(|it| it.is_dir()) {
            continue;
        }
        let name = found.file_name();
        let mode = Mode::from_raw_mode(0o700);
        let _ = rustix::fs::chmodat(dir, &name, mode, rustix::fs::AtFlags::empty());
        if let Ok(inner) = found.open_dir() {
            open_up(&inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_that_a_sweep_removes_before_it_is_locked_is_made_again() {
        let home = tempfile::tempdir().unwrap();
        let parent = Dir::open(home.path()).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    Fresh::sweep(&parent).unwrap();
                }
            });
            let make = |_| Fresh::beneath(&parent).map(|fresh| fresh.dir.path().exists());
            let made: Vec<_> = (0..2_000).map(make).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            sweeper.join().unwrap();
            assert!(made.into_iter().all(|is_there| is_there.unwrap()));
        });
    }

    #[test]
    fn it_is_gone_with_everything_even_what_was_shut() {
        let home = tempfile::tempdir().unwrap();
        let fresh = Fresh::beneath(&Dir::open(home.path()).unwrap()).unwrap();
        let room = fresh.room(0o755).unwrap();
        room.put("a/b/c", b"1", 0o755).unwrap();
        assert!(room.put("a/b/c", b"2", 0o755).is_err());
        assert!(room.put("../c", b"2", 0o755).is_err());
        let path = room.path().to_owned();
        assert_eq!(mode(&path), 0o755);
        assert_eq!(mode(&path.join("a/b")), 0o755);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(std::fs::read(path.join("a/b/c")).unwrap(), b"1");
        std::os::unix::fs::symlink(home.path(), path.join("out")).unwrap();
        let shut = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(path.join("a"), shut).unwrap();
        std::fs::write(home.path().join("stays"), b"").unwrap();
        drop(fresh);
        let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn everybody_may_walk_through_and_nobody_may_look_around() {
        let fresh = Fresh::for_everybody().unwrap();
        assert_eq!(mode(fresh.dir.path()), 0o711);
        assert!(!fresh.dir.is_open_to_everybody());
        let (open, shut) = (fresh.room(0o755).unwrap(), fresh.room(0o700).unwrap());
        assert!(open.is_open_to_everybody());
        assert!(!shut.is_open_to_everybody());
        assert!(open.is_ours_alone() && shut.is_ours_alone());
        assert!(!fresh.room(0o777).unwrap().is_ours_alone());
    }

    #[test]
    fn leftovers_are_swept_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let left = format!("kenning-{}", "0123456789abcdef".repeat(2));
        dir.write(&format!("{left}/shut/a"), b"1").unwrap();
        let shut = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(dir.path().join(&left).join("shut"), shut).unwrap();
        for other in ["other/a", "kenning-venvs-0123456789abcdef/a"] {
            dir.write(other, b"1").unwrap();
        }
        let used = Fresh::beneath(&dir).unwrap();
        assert_eq!(Fresh::sweep(&dir).unwrap(), 1);
        assert!(!dir.exists(&left).unwrap());
        assert!(used.dir.path().exists());
        assert!(dir.exists("other").unwrap());
        assert!(dir.exists("kenning-venvs-0123456789abcdef").unwrap());
        // Dropped without being removed is what a killed process leaves.
        let (name, parent) = (used.name.clone(), used.parent.try_clone().unwrap());
        assert!(matches!(hold(&parent, &name), Ok(None)));
        drop(used);
        assert_eq!(Fresh::sweep(&dir).unwrap(), 0);
    }
}
