//! The operations on names beneath one open directory.
//!
//! Each operation has the same two steps. The directory that holds the last part of the name is opened beneath
//! the root, by the kernel; then one call is made for the last part in that open directory, and that
//! call does not follow links. Whatever is swapped in between, the open directory stays the same one.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Metadata, OpenOptions, OpenOptionsExt};
use kenning_core::{Code, Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::fault;
use crate::lock::{After, Lock};
use crate::name::{Name, is_temp, shown};
use crate::temp::{self, Access, Temp};

/// How many links a name may lead through, as in the kernel.
const LINKS_MAX: usize = 40;

/// An open directory. Every name given to it is resolved beneath it.
///
/// Links are followed as long as they are relative and stay beneath the directory; an absolute link
/// is refused even if it would lead back inside. Cloning is cheap and shares the handle.
#[derive(Clone)]
pub struct Dir {
    inner: Arc<Inner>,
}

struct Inner {
    dir: cap_std::fs::Dir,
    path: PathBuf,
}

/// One thing in a directory.
///
/// A link is shown as its target. A link that leads outside or nowhere, a FIFO, a device or a socket
/// is neither file nor directory, and has no size and no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is called in its directory.
    pub name: String,
    /// Whether it can be read and written.
    pub is_file: bool,
    /// Whether it can be listed.
    pub is_dir: bool,
    /// The size of a file; zero for everything else.
    pub size_bytes: u64,
    /// When it was last changed, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// The open directory that holds the last part of a name, and that last part.
pub(crate) struct Place {
    pub(crate) dir: cap_std::fs::Dir,
    pub(crate) last: String,
}

impl Dir {
    /// Opens a directory from the operator's configuration. The path is trusted and may be any.
    pub fn open(path: &Path) -> Result<Self> {
        let name = display_name(path);
        let error = |cause: io::Error| fault::of("directory", &name, cause);
        let path = std::fs::canonicalize(path).map_err(error)?;
        let dir = cap_std::fs::Dir::open_ambient_dir(&path, ambient_authority()).map_err(error)?;
        Ok(Self::new(dir, path))
    }

    /// Opens a directory that the operator named, after making it and its parents where they are
    /// missing. Those are the owner's only (mode 0700); one that exists stays as it is.
    pub fn create(path: &Path) -> Result<Self> {
        let name = display_name(path);
        let error = |cause: io::Error| fault::of("directory", &name, cause);
        let path = std::path::absolute(path).map_err(error)?;
        let missing: Vec<&Path> = path.ancestors().take_while(|it| !it.exists()).collect();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(error)?;
        // A directory whose own name is lost in a power cut loses everything in it.
        for made in missing.iter().rev() {
            if let Some(parent) = made.parent() {
                let parent = cap_std::fs::Dir::open_ambient_dir(parent, ambient_authority());
                parent.and_then(|it| temp::sync(&it)).map_err(error)?;
            }
        }
        Self::open(&path)
    }

    fn new(dir: cap_std::fs::Dir, path: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner { dir, path }),
        }
    }

    /// The absolute path as it was when the directory was opened.
    ///
    /// For SQLite, which takes only paths, and to show to the operator. Never for a message to a
    /// caller, and never to build another path from.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Whether [`Dir::path`] still leads to this directory: it may have been moved, removed or replaced.
    pub fn is_at_its_path(&self) -> bool {
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let ours = rustix::fs::fstat(self.root()).map(identity);
        ours.is_ok() && ours == rustix::fs::stat(self.path()).map(identity)
    }

    /// The whole content of a regular file of at most this many bytes.
    pub fn read(&self, name: &str, max_bytes: u64) -> Result<Vec<u8>> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let file = self.open_read(name)?;
        let size_bytes = file.metadata().map_err(error)?.len();
        let mut bytes = Vec::new();
        if size_bytes <= max_bytes {
            // The file may grow while it is read, so its size is checked again.
            let mut part = file.take(max_bytes.saturating_add(1));
            part.read_to_end(&mut bytes).map_err(error)?;
        }
        if size_bytes > max_bytes || bytes.len() as u64 > max_bytes {
            return Err(Error::too_large(format!("`{}` is too large", shown(name)))
                .hint(format!("at most {max_bytes} bytes")));
        }
        Ok(bytes)
    }

    /// A regular file to read piece by piece, for what is too large to hold.
    pub fn open_read(&self, name: &str) -> Result<std::fs::File> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_file(name)?;
        // Non-blocking, because opening a FIFO would wait for a writer that never comes.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = self
            .root()
            .open_with(plain.as_path(), &options)
            .map_err(error)?;
        if !file.metadata().map_err(error)?.is_file() {
            return Err(fault::wrong_kind(name, "regular file"));
        }
        Ok(file.into_std())
    }

    /// As [`Dir::write_private`], for what is too large to hold: `fill` writes it piece by piece.
    /// When it fails, the name has its whole old content.
    pub fn write_with(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut failed = None;
        let written = self.write_as(name, Access::Private, |file| {
            let mut file = io::BufWriter::new(file);
            if let Err(error) = fill(&mut file) {
                failed = Some(error);
                return Err(io::Error::other("stopped by the caller"));
            }
            file.flush()
        });
        failed.map_or(written, Err)
    }

    /// Gives a file this content, all of it or none: after an error, and after a power cut at any
    /// moment, the name has its whole old content. One error is different: after
    /// [`crate::is_unconfirmed`] the name has its whole new content, and a power cut may undo that.
    ///
    /// Missing directories on the way are made. The permission bits of an existing file are kept. A
    /// link is followed, and what it leads to is replaced, never the link. Other hard links to the
    /// old file keep the old content, because only this name is replaced.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_as(name, Access::Shared, |file| file.write_all(bytes))
    }

    /// As [`Dir::write`], for a key: only the owner may read it (mode 0600), whatever was before.
    pub fn write_private(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_as(name, Access::Private, |file| file.write_all(bytes))
    }

    fn write_as(
        &self,
        name: &str,
        access: Access,
        fill: impl FnOnce(&mut std::fs::File) -> io::Result<()>,
    ) -> Result<()> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_file(name)?;
        let place = self.place_followed(name, &plain, Some(access))?;
        let old = place.old_file(name)?;
        let mut temp = Temp::create(&place.dir, access, old.as_ref()).map_err(error)?;
        fill(temp.file()).map_err(error)?;
        temp.replace(&place.last).map_err(error)
    }

    /// Makes a file that only the owner may read (mode 0600), whole and at once. False if the name
    /// is taken: of two processes that make a key at the same moment one wins and both know.
    pub fn create_new_private(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_file(name)?;
        let place = self.place(name, plain.as_path(), Some(Access::Private))?;
        if place.stat(name)?.is_some() {
            return Ok(false);
        }
        let mut temp = Temp::create(&place.dir, Access::Private, None).map_err(error)?;
        temp.file().write_all(bytes).map_err(error)?;
        temp.claim(&place.last).map_err(error)
    }

    /// What is in a directory, one level, sorted by name. `""` and `"."` are the root.
    ///
    /// Every name listed can be given to the other operations. Left out are therefore unfinished
    /// writes, names that are not UTF-8, and names with a backslash or a control character.
    pub fn list(&self, name: &str) -> Result<Vec<Entry>> {
        let error = |cause: io::Error| fault::of("directory", name, cause);
        let plain = Name::parse(if name.is_empty() { "." } else { name })?;
        let dir = self.root().open_dir(plain.as_path()).map_err(error)?;
        let mut entries = Vec::new();
        for found in dir.entries().map_err(error)? {
            let Ok(found) = found.map_err(error)?.file_name().into_string() else {
                continue;
            };
            if is_temp(&found) || !Name::is_valid_entry(&found) {
                continue;
            }
            let metadata = match dir.symlink_metadata(&found) {
                // From the root: a link may lead out of this directory and still stay beneath.
                Ok(it) if it.is_symlink() => {
                    self.root().metadata(plain.as_path().join(&found)).ok()
                }
                Ok(it) => Some(it),
                // It was removed since.
                Err(cause) if fault::code(&cause) == Code::NotFound => continue,
                Err(cause) => return Err(error(cause)),
            };
            entries.push(Entry::new(found, metadata.as_ref()));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Syncs an earlier change of a name that the disk did not confirm, see
    /// [`crate::is_unconfirmed`].
    pub fn confirm(&self, name: &str) -> Result<()> {
        let plain = Name::parse_file(name)?;
        let place = self.place_followed(name, &plain, None)?;
        temp::confirm(&place.dir).map_err(|cause| fault::of("file", name, cause))
    }

    /// Removes a regular file, or a link itself and not what it leads to.
    pub fn remove(&self, name: &str) -> Result<()> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_file(name)?;
        let place = self.place(name, plain.as_path(), None)?;
        match place.stat(name)? {
            Some((FileType::RegularFile | FileType::Symlink, _)) => {}
            Some(_) => return Err(fault::wrong_kind(name, "regular file")),
            None => return Err(Error::not_found("file", shown(name))),
        }
        rustix::fs::unlinkat(&place.dir, &place.last, AtFlags::empty())
            .map_err(|cause| error(cause.into()))?;
        temp::confirm(&place.dir).map_err(error)
    }

    /// Removes a directory that is empty.
    pub fn remove_dir(&self, name: &str) -> Result<()> {
        let error = |cause: io::Error| fault::of("directory", name, cause);
        let plain = Name::parse_beneath(name)?;
        let place = self.place(name, plain.as_path(), None)?;
        rustix::fs::unlinkat(&place.dir, &place.last, AtFlags::REMOVEDIR)
            .map_err(|cause| error(cause.into()))?;
        temp::confirm(&place.dir).map_err(error)
    }

    /// Removes a directory with everything in it, if it is there. A link is removed itself and not what
    /// it leads to, at any depth.
    pub fn remove_tree(&self, name: &str) -> Result<()> {
        let plain = Name::parse_beneath(name)?;
        match self.root().remove_dir_all(plain.as_path()) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|cause| fault::of("directory", name, cause)),
        }
    }

    /// A file without a name, to write and read what is too large to hold. It has no
    /// path, and it is gone when it is closed, however the process ends.
    pub fn scratch(&self) -> Result<std::fs::File> {
        temp::unnamed(self.root()).map_err(|cause| fault::of("file", "scratch", cause))
    }

    /// Whether there is something of this name, of any kind. A link that leads nowhere is nothing.
    pub fn exists(&self, name: &str) -> Result<bool> {
        match self.metadata(name) {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            // A file is in the place of a directory: nothing can be beneath it.
            Err(error) if is_caused_by(&error, Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What is there of this name, as [`Dir::list`] would say.
    pub fn metadata(&self, name: &str) -> Result<Entry> {
        let plain = Name::parse_beneath(name)?;
        let metadata = self
            .root()
            .metadata(plain.as_path())
            .map_err(|cause| fault::of("file or directory", name, cause))?;
        if plain.must_be_dir() && !metadata.is_dir() {
            return Err(fault::wrong_kind(name, "directory"));
        }
        Ok(Entry::new(plain.last().to_owned(), Some(&metadata)))
    }

    /// A directory beneath this one, as a root of its own.
    pub fn subdir(&self, name: &str) -> Result<Self> {
        let error = |cause: io::Error| fault::of("directory", name, cause);
        let plain = Name::parse_beneath(name)?;
        let dir = self.root().open_dir(plain.as_path()).map_err(error)?;
        self.adopt(name, &plain, dir)
    }

    /// As [`Dir::subdir`], after making it and the directories on the way where they are missing.
    pub fn create_subdir(&self, name: &str) -> Result<Self> {
        let plain = Name::parse_beneath(name)?;
        let dir = self.dir_made(name, plain.as_path(), Some(Access::Shared))?;
        self.adopt(name, &plain, dir)
    }

    /// As [`Dir::create_subdir`], but what is made is the owner's only (mode 0700).
    pub fn private_subdir(&self, name: &str) -> Result<Self> {
        let plain = Name::parse_beneath(name)?;
        let dir = self.dir_made(name, plain.as_path(), Some(Access::Private))?;
        self.adopt(name, &plain, dir)
    }

    /// Finds the path of a directory that is open already, for [`Dir::path`].
    fn adopt(&self, name: &str, plain: &Name, dir: cap_std::fs::Dir) -> Result<Self> {
        let error = |cause: io::Error| fault::of("directory", name, cause);
        let path = std::fs::canonicalize(self.inner.path.join(plain.as_path())).map_err(error)?;
        let (ours, theirs) = (
            rustix::fs::fstat(&dir).map_err(|it| error(it.into()))?,
            rustix::fs::stat(&path).map_err(|it| error(it.into()))?,
        );
        if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) {
            // The path is for SQLite, which would then use another directory.
            return Err(
                Error::conflict(format!("`{}` was moved meanwhile", shown(name))).hint("try again"),
            );
        }
        Ok(Self::new(dir, path))
    }

    /// Gives a file or a directory another name. A file that has that name is replaced.
    ///
    /// Missing directories on the way to the new name are made. A link is moved itself; if the new
    /// name is a link, what it leads to is replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let error = |cause: Errno| fault::of("file or directory", from, cause);
        let (old, new) = (Name::parse_beneath(from)?, Name::parse_beneath(to)?);
        let source = self.place(from, old.as_path(), None)?;
        let Some((kind, stat)) = source.stat(from)? else {
            return Err(Error::not_found("file or directory", shown(from)));
        };
        match kind {
            FileType::Directory => {}
            FileType::RegularFile | FileType::Symlink if !old.must_be_dir() => {}
            _ => return Err(fault::wrong_kind(from, "regular file or directory")),
        }
        if new.must_be_dir() && kind != FileType::Directory {
            return Err(fault::wrong_kind(from, "directory"));
        }
        if old == new {
            return Ok(());
        }
        let target = self.place_followed(to, &new, Some(Access::Shared))?;
        if let Some((there, there_stat)) = target.stat(to)? {
            if !matches!(there, FileType::RegularFile | FileType::Directory) {
                return Err(fault::wrong_kind(to, "regular file"));
            }
            // A link moved over what it leads to would destroy it; two hard links stay two names.
            // A name that differs in case only may well be the same file, and is not in danger.
            let followed = self
                .place_followed(from, &old, None)
                .and_then(|it| it.stat(from));
            let followed = followed.ok().flatten().map(|(_, it)| it);
            let is_same = [Some(stat), followed]
                .into_iter()
                .flatten()
                .any(|stat| (stat.st_dev, stat.st_ino) == (there_stat.st_dev, there_stat.st_ino));
            if is_same && old.as_str().to_lowercase() != new.as_str().to_lowercase() {
                return Err(Error::conflict(format!(
                    "`{}` and `{}` are the same file",
                    shown(from),
                    shown(to)
                )));
            }
        }
        rustix::fs::renameat(&source.dir, &source.last, &target.dir, &target.last).map_err(
            |cause| match cause {
                // The source was there a moment ago; these are about the new name.
                Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST => {
                    fault::of("file or directory", to, cause)
                }
                _ => error(cause),
            },
        )?;
        // The new name first: after a power cut there are two names rather than none.
        for dir in [&target.dir, &source.dir] {
            temp::confirm(dir).map_err(|cause| fault::of("file or directory", to, cause))?;
        }
        Ok(())
    }

    /// Locks a file, which is made if it is missing, against every other holder on this machine.
    /// Waits at most this long; then the error is `unavailable`.
    pub fn lock(&self, name: &str, wait: Duration) -> Result<Lock> {
        let plain = Name::parse_file(name)?;
        let place = self.place_followed(name, &plain, None)?;
        Lock::acquire(&place.dir, &place.last, name, wait, After::Stays)
    }

    /// As [`Dir::lock`], but the lock file is removed with the lock: for an unbounded set of names.
    pub fn lock_briefly(&self, name: &str, wait: Duration) -> Result<Lock> {
        let plain = Name::parse_file(name)?;
        let place = self.place_followed(name, &plain, None)?;
        Lock::acquire(&place.dir, &place.last, name, wait, After::Goes)
    }

    pub(crate) fn root(&self) -> &cap_std::fs::Dir {
        &self.inner.dir
    }

    /// Opens the directory that holds the last part of a path.
    fn place(&self, name: &str, path: &Path, make: Option<Access>) -> Result<Place> {
        let Some(last) = path.file_name().and_then(OsStr::to_str) else {
            // A link can end in `..`, which is a directory if it is inside at all.
            self.dir_made(name, path, None)?;
            return Err(fault::wrong_kind(name, "regular file"));
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok(Place {
            dir: self.dir_made(name, parent, make)?,
            last: last.to_owned(),
        })
    }

    /// As [`Dir::place`], but if the last part is a link, the place that it leads to.
    ///
    /// Each link is resolved as a new path from the root, so that the kernel checks whether it stays
    /// beneath.
    pub(crate) fn place_followed(
        &self,
        name: &str,
        plain: &Name,
        make: Option<Access>,
    ) -> Result<Place> {
        let mut path = plain.as_path().to_owned();
        let mut make = make;
        for _ in 0..LINKS_MAX {
            let place = self.place(name, &path, make)?;
            match rustix::fs::readlinkat(&place.dir, &place.last, Vec::new()) {
                Ok(link) => {
                    let link = link.to_str().map_err(|_| fault::escape(name))?;
                    if link.starts_with('/') {
                        return Err(fault::escape(name));
                    }
                    path.pop();
                    path.push(link);
                    // Directories are created for the given name, not for the target of a link.
                    make = None;
                }
                // Not a link, or nothing yet.
                Err(Errno::INVAL | Errno::NOENT) => return Ok(place),
                Err(cause) => return Err(fault::of("file", name, cause)),
            }
        }
        Err(fault::of("file", name, Errno::LOOP))
    }

    /// Opens a directory beneath the root, after making what is missing if that is wanted.
    fn dir_made(&self, name: &str, path: &Path, make: Option<Access>) -> Result<cap_std::fs::Dir> {
        let error = |cause: io::Error| fault::of("directory", name, cause);
        let root = self.root();
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let access = match (root.open_dir(path), make) {
            (Err(cause), Some(access)) if fault::code(&cause) == Code::NotFound => access,
            (res, _) => return res.map_err(error),
        };
        let mode = Mode::from_raw_mode(match access {
            Access::Shared => 0o777,
            Access::Private => 0o700,
        });
        let mut dir = root.open_dir(".").map_err(error)?;
        let mut at = PathBuf::new();
        for part in path {
            at.push(part);
            dir = match root.open_dir(&at) {
                Err(cause) if fault::code(&cause) == Code::NotFound => {
                    match rustix::fs::mkdirat(&dir, part, mode) {
                        // Another process has already created it.
                        Ok(()) | Err(Errno::EXIST) => temp::sync(&dir).map_err(error)?,
                        Err(cause) => return Err(error(cause.into())),
                    }
                    root.open_dir(&at).map_err(error)?
                }
                res => res.map_err(error)?,
            };
        }
        Ok(dir)
    }
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dir").field(&self.inner.path).finish()
    }
}

impl Place {
    fn stat(&self, name: &str) -> Result<Option<(FileType, Stat)>> {
        temp::stat(&self.dir, &self.last).map_err(|cause| fault::of("file", name, cause))
    }

    /// The file that is to be replaced. Only a regular file may be.
    pub(crate) fn old_file(&self, name: &str) -> Result<Option<Stat>> {
        match self.stat(name)? {
            None => Ok(None),
            Some((FileType::RegularFile, stat)) => Ok(Some(stat)),
            Some(_) => Err(fault::wrong_kind(name, "regular file")),
        }
    }
}

impl Entry {
    fn new(name: String, metadata: Option<&Metadata>) -> Self {
        let metadata = metadata.filter(|metadata| metadata.is_file() || metadata.is_dir());
        let is_file = metadata.is_some_and(Metadata::is_file);
        let modified = metadata
            .and_then(|it| it.modified().ok())
            .and_then(|it| it.into_std().duration_since(UNIX_EPOCH).ok())
            .unwrap_or_default();
        Self {
            name,
            is_file,
            is_dir: metadata.is_some_and(Metadata::is_dir),
            size_bytes: metadata.filter(|_| is_file).map_or(0, Metadata::len),
            modified_ms: u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The part of an operator's path that a message may show: the last one.
fn display_name(path: &Path) -> String {
    let last = path.file_name().unwrap_or(path.as_os_str());
    last.to_string_lossy().into_owned()
}

fn is_caused_by(error: &Error, errno: Errno) -> bool {
    let cause = error.source.as_ref().and_then(|it| it.downcast_ref());
    cause.is_some_and(|it: &io::Error| Errno::from_io_error(it) == Some(errno))
}

#[cfg(test)]
mod tests;
