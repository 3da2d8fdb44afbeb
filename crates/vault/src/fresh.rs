//! A directory that is made for one piece of work and is gone afterwards.
//!
//! A program that runs as a user of its own cannot walk through directories that are the owner's only.
//! So where that is so, the directory lies among the system's temporary ones and may be walked through
//! by everybody; what is in it has names that nobody can guess.

use crate::dir::Dir;
use crate::fault;
use crate::name::Name;
use kenning_core::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What leftovers of killed processes are known by among others' directories.
const PREFIX: &str = "kenning-";

/// Removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct Fresh {
    parent: cap_std::fs::Dir,
    name: String,
    dir: Dir,
}

impl Fresh {
    /// In a directory of ours: nobody else gets in.
    pub fn beneath(parent: &Dir) -> Result<Self> {
        Self::make(parent, 0o700)
    }

    /// Among the system's temporary directories: everybody may walk through, nobody may look around.
    pub fn for_everybody() -> Result<Self> {
        Self::make(&Dir::open(&std::env::temp_dir())?, 0o711)
    }

    fn make(parent: &Dir, mode: u32) -> Result<Self> {
        let name = format!("{PREFIX}{}", unguessable()?);
        let error = |cause: io::Error| fault::of("directory", &name, cause);
        make_dir(parent.root(), &name, mode).map_err(error)?;
        let dir = Dir::open(&parent.path().join(&name));
        let parent = parent.root().try_clone().map_err(error)?;
        match dir {
            Ok(dir) => Ok(Self { parent, name, dir }),
            Err(error) => {
                // Nothing is in it yet.
                let _ = parent.remove_dir(&name);
                Err(error)
            }
        }
    }

    /// A new directory in it that nobody can guess; `mode` says who may do what there.
    pub fn room(&self, mode: u32) -> Result<Dir> {
        let name = unguessable()?;
        let error = |cause: io::Error| fault::of("directory", &name, cause);
        make_dir(self.dir.root(), &name, mode).map_err(error)?;
        self.dir.subdir(&name)
    }

    /// Removes what killed processes left in a directory of ours and nobody touched for so long.
    pub fn sweep(parent: &Dir, older: Duration) -> Result<()> {
        let error = |cause: io::Error| fault::of("directory", ".", cause);
        for found in parent.root().entries().map_err(error)?.flatten() {
            let name = found.file_name();
            let is_ours = name.to_str().is_some_and(|it| it.starts_with(PREFIX));
            let age = found.metadata().ok().and_then(|it| it.modified().ok());
            let age = age.and_then(|it| SystemTime::now().duration_since(it.into_std()).ok());
            if is_ours && age.is_some_and(|it| it > older) {
                // Another process may be at it too.
                let _ = parent.root().remove_dir_all(&name);
            }
        }
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if self.parent.remove_dir_all(&self.name).is_ok() {
            return;
        }
        // Whoever used it may have shut its own directories.
        open_up(self.dir.root());
        // What is still there is swept away later.
        let _ = self.parent.remove_dir_all(&self.name);
    }
}

impl Dir {
    /// Puts a file where there is none, with its mode. Unlike [`Dir::write`] nothing is waited for: it
    /// is for what is gone after the work.
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

    /// Folders as open as this directory itself.
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

    /// Whether it belongs to this process' user, and nobody else may change what is in it.
    pub fn is_ours_alone(&self) -> bool {
        let about = rustix::fs::fstat(self.root());
        let own = rustix::process::geteuid().as_raw();
        about.is_ok_and(|it| it.st_uid == own && it.st_mode & 0o022 == 0)
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
    let (first, second) = both.map_err(|_| Error::unavailable("there is no randomness"))?;
    Ok(format!("{first:016x}{second:016x}"))
}

/// Lets the owner into every directory beneath.
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
        dir.write("kenning-left/a", b"1").unwrap();
        dir.write("other/a", b"1").unwrap();
        Fresh::sweep(&dir, Duration::from_secs(60)).unwrap();
        assert!(dir.exists("kenning-left").unwrap());
        std::thread::sleep(Duration::from_millis(20));
        Fresh::sweep(&dir, Duration::ZERO).unwrap();
        assert!(!dir.exists("kenning-left").unwrap());
        assert!(dir.exists("other").unwrap());
    }
}
