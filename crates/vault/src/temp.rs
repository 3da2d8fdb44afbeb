//! Writing so that a name always has its whole old or its whole new content.
//!
//! The bytes go to a new file beside the old one, reach the disk, and only then take the name. Every
//! call here is about one name in one open directory: none of them follows a link.

use std::borrow::Borrow;
use std::fs::File;
use std::io;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use crate::name::TEMP_SUFFIX;

/// Who may read the new file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As the old file, or as the process makes new files.
    Shared,
    /// The owner only.
    Private,
}

/// A file that has no name yet. Removed when dropped, unless it took one.
pub(crate) struct Temp<D: Borrow<Dir>> {
    dir: D,
    name: String,
    file: File,
    has_name: bool,
}

impl<D: Borrow<Dir>> Temp<D> {
    /// A new file in the directory, which will take the place of `old`.
    ///
    /// It is never open to more readers than the old file, not even while it is written.
    pub(crate) fn create(dir: D, access: Access, old: Option<&Stat>) -> io::Result<Self> {
        let mode = match (access, old) {
            (Access::Shared, None) => Mode::from_raw_mode(0o666),
            _ => Mode::from_raw_mode(0o600),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..16 {
            let random = getrandom::u64().map_err(|_| Errno::IO)?;
            let name = format!(".{random:016x}{TEMP_SUFFIX}");
            match rustix::fs::openat(dir.borrow(), &name, flags, mode) {
                Ok(fd) => {
                    let temp = Self {
                        dir,
                        name,
                        file: File::from(fd),
                        has_name: false,
                    };
                    if let (Access::Shared, Some(old)) = (access, old) {
                        temp.inherit(old)?;
                    }
                    return Ok(temp);
                }
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// What it is called meanwhile.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directory that it is in.
    pub(crate) fn dir(&self) -> &Dir {
        self.dir.borrow()
    }

    /// Leaves the file under the name that it has.
    pub(crate) fn leave(mut self) {
        self.has_name = true;
    }

    /// Takes the owner, where that is permitted, and the permission bits of the old file.
    fn inherit(&self, old: &Stat) -> io::Result<()> {
        let ours = rustix::fs::fstat(&self.file)?;
        let mut bits = old.st_mode & 0o777;
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        if (ours.st_uid, ours.st_gid) != (old.st_uid, old.st_gid)
            && rustix::fs::fchown(&self.file, Some(uid), Some(gid)).is_err()
            && rustix::fs::fchown(&self.file, None, Some(gid)).is_err()
        {
            // The permissions of the old group must not pass to another group.
            bits &= !0o070;
        }
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(bits))?;
        Ok(())
    }

    /// Takes the name, replacing any file that has it.
    pub(crate) fn replace(self, name: &str) -> io::Result<()> {
        self.sync()?;
        self.take_name(name)
    }

    /// Makes the content reach the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        require_synced(self.file.sync_all())
    }

    /// Takes the name, once the content has reached the disk.
    pub(crate) fn take_name(mut self, name: &str) -> io::Result<()> {
        let dir = self.dir.borrow();
        rustix::fs::renameat(dir, &self.name, dir, name)?;
        self.has_name = true;
        confirm(self.dir.borrow())
    }

    /// Takes the name if it is free. Of any number of concurrent attempts exactly one returns true.
    pub(crate) fn claim(mut self, name: &str) -> io::Result<bool> {
        self.sync()?;
        let flags = RenameFlags::NOREPLACE;
        let dir = self.dir.borrow();
        let mut res = rustix::fs::renameat_with(dir, &self.name, dir, name, flags);
        match res {
            Ok(()) => self.has_name = true,
            // Some file systems cannot rename without replacing. A link is as good: the first name
            // is then removed when this is dropped.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                res = rustix::fs::linkat(dir, &self.name, dir, name, AtFlags::empty());
            }
            Err(_) => {}
        }
        match res {
            Ok(()) | Err(Errno::EXIST) => {
                // The loser syncs too, because it continues with the winner's file.
                confirm(self.dir.borrow())?;
                Ok(res.is_ok())
            }
            Err(cause) => Err(cause.into()),
        }
    }
}

impl<D: Borrow<Dir>> Drop for Temp<D> {
    fn drop(&mut self) {
        if !self.has_name {
            // Nothing can be done about a failure here; the file is not listed and cannot be named.
            let _ = rustix::fs::unlinkat(self.dir.borrow(), &self.name, AtFlags::empty());
        }
    }
}

/// A file to write and read that loses its name at once.
pub(crate) fn unnamed(dir: &Dir) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let random = getrandom::u64().map_err(|_| Errno::IO)?;
    let name = format!(".{random:016x}{TEMP_SUFFIX}");
    let file = rustix::fs::openat(dir, &name, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::unlinkat(dir, &name, AtFlags::empty())?;
    Ok(File::from(file))
}

/// A name was changed, but the sync of its directory failed.
#[derive(Debug)]
pub(crate) struct Unconfirmed(io::Error);

impl std::fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the directory could not be synced: {}", self.0)
    }
}

impl std::error::Error for Unconfirmed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Syncs a directory after a name in it was changed. The change is there whatever the disk says, so a
/// failure is another error than that of a write that did not happen.
pub(crate) fn confirm(dir: &Dir) -> io::Result<()> {
    sync(dir)
        .or_else(|_| sync(dir))
        .map_err(|cause| io::Error::other(Unconfirmed(cause)))
}

#[cfg(test)]
thread_local! {
    /// How many of the next syncs of a directory fail.
    pub(crate) static FAILING_SYNCS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Makes the names in a directory reach the disk.
pub(crate) fn sync(dir: &Dir) -> io::Result<()> {
    #[cfg(test)]
    if FAILING_SYNCS.get() > 0 {
        FAILING_SYNCS.set(FAILING_SYNCS.get() - 1);
        return Err(Errno::IO.into());
    }
    // The handle itself only names the directory and cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, ".", flags, Mode::empty())?;
    match rustix::fs::fsync(opened) {
        // Some network file systems have nothing to sync and say so.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(cause) => require_synced(Err(cause.into())),
    }
}

/// Handles the result of a sync. After a failed sync the state on disk is unknown: the kernel may have
/// dropped the data, and the next sync would succeed. So the process stops, as it does after a failed
/// commit, and the next process that opens the store recovers. A full disk is an ordinary error.
#[expect(
    clippy::exit,
    reason = "going on could acknowledge what is not on disk"
)]
fn require_synced(synced: io::Result<()>) -> io::Result<()> {
    if let Err(cause) = &synced
        && Errno::from_io_error(cause) == Some(Errno::IO)
    {
        tracing::error!("a sync failed, the state on disk is unknown: {cause}");
        std::process::exit(i32::from(kenning_core::Code::Corrupt.row().exit));
    }
    synced
}

/// The metadata of a name; links are not followed.
pub(crate) fn stat(dir: &Dir, name: &str) -> io::Result<Option<(FileType, Stat)>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some((FileType::from_raw_mode(stat.st_mode), stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}
