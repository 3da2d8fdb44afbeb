//! What may be done: the operations on names beneath one open directory.
//!
//! Each has the same two steps. The directory that holds the last part of the name is opened beneath
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
/// A link is what it leads to. A link that leads outside or nowhere, and a FIFO, a device or a socket
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
struct Place {
    dir: cap_std::fs::Dir,
    last: String,
}

impl Dir {
    /// Opens a directory that the operator named. This is where trust comes in: the path may be any.
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
        let identity = |it: rustix::fs::Stat| (it.st_dev, it.st_ino);
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
            // The file may grow while it is read, so the size it had is no promise.
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
            if is_temp(&found) || !Name::can_be_said(&found) {
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

    /// Makes sure that a name that was changed before is kept: after a change that the disk did not
    /// confirm, see [`crate::is_unconfirmed`].
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

    /// A file without a name, to write and read what is too large to hold. Only the owner could open
    /// it, nobody can find it, and it is gone when it is closed, however the process ends.
    pub fn scratch(&self) -> Result<std::fs::File> {
        temp::unnamed(self.root()).map_err(|cause| fault::of("file", "scratch", cause))
    }

    /// Whether there is something of this name, of any kind. A link that leads nowhere is nothing.
    pub fn exists(&self, name: &str) -> Result<bool> {
        match self.metadata(name) {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            // A file where a directory would have to be: nothing can be beneath it.
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
            // The path is for SQLite, which would then work in another directory than we.
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
                .any(|it| (it.st_dev, it.st_ino) == (there_stat.st_dev, there_stat.st_ino));
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

    /// As [`Dir::lock`], for one of names without end: the file goes with the lock.
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
            // A link can end in `..`. That is a directory, if it is inside at all.
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
    /// Each link is put before the kernel as a new path from the root, so that it is the kernel that
    /// says whether it stays beneath.
    fn place_followed(&self, name: &str, plain: &Name, make: Option<Access>) -> Result<Place> {
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
                    // Directories are made for a name somebody said, not for a link somebody left.
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
                        // Somebody else was faster, which is as good.
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
    fn old_file(&self, name: &str) -> Result<Option<Stat>> {
        match self.stat(name)? {
            None => Ok(None),
            Some((FileType::RegularFile, stat)) => Ok(Some(stat)),
            Some(_) => Err(fault::wrong_kind(name, "regular file")),
        }
    }
}

impl Entry {
    fn new(name: String, metadata: Option<&Metadata>) -> Self {
        let metadata = metadata.filter(|it| it.is_file() || it.is_dir());
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

/// What a message may say of a path that the operator named: its last part.
fn display_name(path: &Path) -> String {
    let last = path.file_name().unwrap_or(path.as_os_str());
    last.to_string_lossy().into_owned()
}

fn is_caused_by(error: &Error, errno: Errno) -> bool {
    let cause = error.source.as_ref().and_then(|it| it.downcast_ref());
    cause.is_some_and(|it: &io::Error| Errno::from_io_error(it) == Some(errno))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;

    use super::*;

    fn fresh() -> (tempfile::TempDir, Dir) {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::create(&home.path().join("made/root")).unwrap();
        (home, dir)
    }

    fn mode(dir: &Dir, name: &str) -> u32 {
        let metadata = std::fs::metadata(dir.path().join(name)).unwrap();
        metadata.permissions().mode() & 0o7777
    }

    fn set_mode(dir: &Dir, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path().join(name), mode).unwrap();
    }

    /// Every name on the disk, unfinished writes as well.
    fn raw_names(dir: &Dir) -> Vec<String> {
        let names = std::fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> = names
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[track_caller]
    fn check<T: fmt::Debug>(res: Result<T>, code: Code, message: &str) {
        let error = res.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (code, message));
    }

    #[test]
    fn what_was_written_is_read_and_listed() {
        let (_home, dir) = fresh();
        dir.write("a/b/note.md", b"one").unwrap();
        dir.write("./a/x/../b/note.md", b"three").unwrap();
        assert_eq!(dir.read("a/b/note.md", 5).unwrap(), b"three");
        let listed = dir.list("a/b").unwrap();
        assert_eq!(listed, [dir.metadata("a/b/note.md").unwrap()]);
        let entry = listed.first().unwrap();
        assert!(entry.is_file && !entry.is_dir && entry.modified_ms > 0);
        assert_eq!((entry.name.as_str(), entry.size_bytes), ("note.md", 5));
        assert!(dir.list("").unwrap().first().unwrap().is_dir);
        assert!(dir.exists("a/b/note.md").unwrap());
        assert!(!dir.exists("a/b/note.md/beneath").unwrap());
        dir.remove("a/b/note.md").unwrap();
        assert!(!dir.exists("a/b/note.md").unwrap());
    }

    #[test]
    fn messages_name_what_was_asked_for_and_nothing_of_the_machine() {
        let (home, dir) = fresh();
        dir.write("note.md", b"12345").unwrap();
        std::os::unix::fs::symlink("../../elsewhere", dir.path().join("out")).unwrap();
        check(dir.read("no.md", 9), Code::NotFound, "no file `no.md`");
        check(dir.list("no"), Code::NotFound, "no directory `no`");
        check(
            dir.read("note.md", 4),
            Code::TooLarge,
            "`note.md` is too large",
        );
        check(dir.read("out/x", 4), Code::Denied, "`out/x` leads outside");
        check(dir.write("out", b""), Code::Denied, "`out` leads outside");
        check(
            dir.read(".", 4),
            Code::InvalidInput,
            "`.` is the directory itself",
        );
        check(
            dir.write("note.md/x", b""),
            Code::InvalidInput,
            "`note.md/x` is not a directory that can be used: a part of it is not a directory",
        );
        check(
            Dir::open(&home.path().join("absent")),
            Code::NotFound,
            "no directory `absent`",
        );
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_trace() {
        let (_home, dir) = fresh();
        dir.write("note.md", b"old").unwrap();
        let res = dir.write_as("note.md", Access::Shared, |file| {
            file.write_all(b"half of the n")?;
            Err(Errno::NOSPC.into())
        });
        check(
            res,
            Code::Unavailable,
            "`note.md` cannot be reached: the disk is full",
        );
        assert_eq!(dir.read("note.md", 99).unwrap(), b"old");
        dir.create_subdir("taken").unwrap();
        check(
            dir.write("taken", b"new"),
            Code::InvalidInput,
            "`taken` is not a regular file",
        );
        assert_eq!(raw_names(&dir), ["note.md", "taken"]);
    }

    #[test]
    fn a_failed_rename_at_the_end_of_a_write_leaves_no_trace() {
        let (_home, dir) = fresh();
        let inside = dir.clone();
        let res = dir.write_as("note.md", Access::Shared, move |_| {
            // Somebody takes the name for a directory while the bytes are on their way.
            inside
                .create_subdir("note.md")
                .map(drop)
                .map_err(io::Error::other)
        });
        assert_eq!(res.unwrap_err().code, Code::InvalidInput);
        assert_eq!(raw_names(&dir), ["note.md"]);
    }

    #[test]
    fn a_reader_sees_only_whole_contents_during_two_thousand_overwrites() {
        let (_home, dir) = fresh();
        let content = |n: usize| vec![b'a' + (n % 26) as u8; 1 + (n % 7) * 5_000];
        dir.write("note.md", &content(0)).unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        let n_reads = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut n_reads = 0;
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    let bytes = dir.read("note.md", 1 << 20).unwrap();
                    let first = *bytes.first().unwrap();
                    assert!(bytes.iter().all(|it| *it == first), "a torn content");
                    assert_eq!(bytes.len() % 5_000, 1, "a cut content");
                    n_reads += 1;
                }
                n_reads
            });
            for n in 0..2_000 {
                dir.write("note.md", &content(n)).unwrap();
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            reader.join().unwrap()
        });
        println!("atomicity: 2000 overwrites, {n_reads} reads, all whole");
        assert_eq!(raw_names(&dir), ["note.md"]);
    }

    #[test]
    fn leftovers_of_a_power_cut_are_not_listed_and_cannot_be_named() {
        let (_home, dir) = fresh();
        let leftover = ".0123456789abcdef.kenning-tmp";
        std::fs::write(dir.path().join(leftover), "half").unwrap();
        std::fs::write(dir.path().join("back\\slash"), "odd").unwrap();
        std::fs::write(dir.path().join("line\nbreak"), "odd").unwrap();
        dir.write("note.md", b"whole").unwrap();
        let names: Vec<_> = dir
            .list(".")
            .unwrap()
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["note.md"]);
        assert_eq!(dir.read(leftover, 9).unwrap_err().code, Code::InvalidInput);
    }

    #[test]
    fn permissions_are_kept_and_keys_are_private() {
        let (_home, dir) = fresh();
        assert_eq!(mode(&dir, "."), 0o700);
        assert_eq!(mode(&dir, ".."), 0o700);
        dir.write("note.md", b"one").unwrap();
        set_mode(&dir, "note.md", 0o640);
        dir.write("note.md", b"two").unwrap();
        assert_eq!(mode(&dir, "note.md"), 0o640);
        dir.write("key", b"one").unwrap();
        set_mode(&dir, "key", 0o666);
        dir.write_private("key", b"two").unwrap();
        assert_eq!(mode(&dir, "key"), 0o600);
        assert!(dir.create_new_private("keys/new", b"three").unwrap());
        assert_eq!(mode(&dir, "keys/new"), 0o600);
        assert_eq!(mode(&dir, "keys"), 0o700);
    }

    #[test]
    fn of_eight_who_make_a_key_at_once_one_wins_and_all_agree() {
        let (_home, dir) = fresh();
        for round in 0..25 {
            let name = format!("key-{round}");
            let barrier = Barrier::new(8);
            let results: Vec<(bool, Vec<u8>)> = std::thread::scope(|scope| {
                let make = |n: u8| {
                    let (dir, name, barrier) = (&dir, &name, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let has_won = dir.create_new_private(name, &[n; 32]).unwrap();
                        (has_won, dir.read(name, 32).unwrap())
                    })
                };
                let threads: Vec<_> = (0..8).map(make).collect();
                threads.into_iter().map(|it| it.join().unwrap()).collect()
            });
            assert_eq!(results.iter().filter(|it| it.0).count(), 1);
            let winner = results.iter().find(|it| it.0).unwrap();
            assert!(results.iter().all(|it| it.1 == winner.1));
        }
        assert_eq!(raw_names(&dir).len(), 25);
    }

    #[test]
    fn a_link_inside_is_followed_and_stays_a_link() {
        let (_home, dir) = fresh();
        dir.write("real/note.md", b"old").unwrap();
        dir.create_subdir("links").unwrap();
        std::os::unix::fs::symlink("../real/note.md", dir.path().join("links/a")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("links/b")).unwrap();
        std::os::unix::fs::symlink("../real/new.md", dir.path().join("links/c")).unwrap();
        dir.write("links/b", b"new").unwrap();
        assert_eq!(dir.read("real/note.md", 9).unwrap(), b"new");
        dir.write("links/c", b"made").unwrap();
        assert_eq!(dir.read("real/new.md", 9).unwrap(), b"made");
        for name in ["links/a", "links/b", "links/c"] {
            assert!(dir.path().join(name).is_symlink(), "{name}");
        }
        check(
            dir.rename("links/a", "real/note.md"),
            Code::Conflict,
            "`links/a` and `real/note.md` are the same file",
        );
        dir.remove("links/a").unwrap();
        assert_eq!(dir.read("real/note.md", 9).unwrap(), b"new");
    }

    #[test]
    fn another_hard_link_keeps_its_old_content() {
        let (home, dir) = fresh();
        let other = home.path().join("other.md");
        dir.write("note.md", b"old").unwrap();
        std::fs::hard_link(dir.path().join("note.md"), &other).unwrap();
        dir.write("note.md", b"new").unwrap();
        assert_eq!(std::fs::read(other).unwrap(), b"old");
    }

    #[test]
    fn a_rename_moves_files_and_directories_beneath() {
        let (_home, dir) = fresh();
        dir.write("a/note.md", b"one").unwrap();
        dir.write("other.md", b"two").unwrap();
        dir.rename("a/note.md", "b/c/moved.md").unwrap();
        assert_eq!(dir.read("b/c/moved.md", 9).unwrap(), b"one");
        dir.rename("b/", "d/").unwrap();
        dir.rename("other.md", "d/c/moved.md").unwrap();
        assert_eq!(dir.read("d/c/moved.md", 9).unwrap(), b"two");
        dir.rename("d", "d").unwrap();
        for (from, to, code) in [
            ("d", "d/c/inside-itself", Code::InvalidInput),
            ("d/c/moved.md", "a", Code::InvalidInput),
            ("d/c/moved.md", "a/", Code::InvalidInput),
            ("a", "d", Code::Conflict),
            ("absent", "x", Code::NotFound),
            ("a", "../a", Code::Denied),
        ] {
            let error = dir.rename(from, to).unwrap_err();
            assert_eq!(error.code, code, "{from} to {to}: {error}");
        }
    }

    #[test]
    fn a_subdirectory_is_a_root_of_its_own() {
        let (_home, dir) = fresh();
        dir.write("secret.md", b"above").unwrap();
        let sub = dir.create_subdir("a/b").unwrap();
        assert_eq!(sub.path(), dir.path().join("a/b"));
        assert_eq!(
            sub.read("../../secret.md", 9).unwrap_err().code,
            Code::Denied
        );
        std::os::unix::fs::symlink("../../secret.md", sub.path().join("up")).unwrap();
        assert_eq!(sub.read("up", 9).unwrap_err().code, Code::Denied);
        assert_eq!(dir.read("a/b/up", 9).unwrap(), b"above");
    }

    #[test]
    fn a_scratch_file_has_no_name_and_keeps_what_was_written() {
        use std::io::Seek as _;
        let (_home, dir) = fresh();
        let mut file = dir.scratch().unwrap();
        assert!(raw_names(&dir).is_empty());
        file.write_all(b"kept").unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "kept");
    }

    #[test]
    fn only_an_empty_directory_is_removed() {
        let (_home, dir) = fresh();
        dir.write("a/b/note.md", b"one").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        for (name, code) in [
            ("a/b", Code::Conflict),
            ("a/b/note.md", Code::InvalidInput),
            ("link", Code::InvalidInput),
            ("absent", Code::NotFound),
            ("..", Code::Denied),
            (".", Code::InvalidInput),
        ] {
            let error = dir.remove_dir(name).unwrap_err();
            assert_eq!(error.code, code, "{name}: {error}");
        }
        dir.remove("a/b/note.md").unwrap();
        dir.remove_dir("a/b/").unwrap();
        assert!(dir.list("a").unwrap().is_empty());
    }

    #[test]
    fn a_directory_can_be_shared_between_threads() {
        fn check<T: Clone + Send + Sync>(_: &T) {}
        check(&fresh().1);
    }

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let (_home, dir) = fresh();
        let lock = dir.lock("data.lock", Duration::ZERO).unwrap();
        check(
            dir.lock("data.lock", Duration::from_millis(20)),
            Code::Unavailable,
            "`data.lock` is locked by another holder",
        );
        drop(lock);
        let lock = dir.lock("data.lock", Duration::ZERO).unwrap();
        // A lock on a file that is no longer there excludes nobody, so the next holder makes a new one.
        dir.remove("data.lock").unwrap();
        dir.lock("data.lock", Duration::ZERO).unwrap();
        drop(lock);
    }

    #[test]
    fn a_change_that_the_disk_did_not_confirm_is_told_apart_from_one_that_did_not_happen() {
        let (_home, dir) = fresh();
        dir.write("a.md", b"old").unwrap();
        // A second attempt is made.
        crate::temp::FAILING_SYNCS.set(1);
        dir.write("a.md", b"newer").unwrap();
        crate::temp::FAILING_SYNCS.set(2);
        let error = dir.write("a.md", b"newest").unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(crate::is_unconfirmed(&error), "{error:?}");
        assert!(error.message.contains("`a.md` was changed"), "{error}");
        assert_eq!(dir.read("a.md", 100).unwrap(), b"newest");
        crate::temp::FAILING_SYNCS.set(2);
        assert!(crate::is_unconfirmed(&dir.confirm("a.md").unwrap_err()));
        dir.confirm("a.md").unwrap();
        crate::temp::FAILING_SYNCS.set(2);
        assert!(crate::is_unconfirmed(&dir.remove("a.md").unwrap_err()));
        assert!(!dir.exists("a.md").unwrap());
        let missing = dir.remove("a.md").unwrap_err();
        assert!(!crate::is_unconfirmed(&missing));
        assert_eq!(raw_names(&dir), [""; 0]);
    }
}
