//! New contents that lie beside the files that they will replace.
//!
//! A staged content is on the disk before it has a name, so a full disk is found before anything else
//! happens. Whoever keeps a record of it can take it up again after the process was killed: the record
//! has the file's name and the name of the staged content ([`Staged::id`]).

use crate::dir::{Dir, Place};
use crate::fault;
use crate::name::Name;
use crate::temp::{self, Access, Temp};
use crate::unfinished::is_generated;
use kenning_core::{Error, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Write as _};

/// A new content, already on the disk beside the file that it will replace. Removed when it is dropped.
pub struct Staged {
    temp: Temp<cap_std::fs::Dir>,
    last: String,
    name: String,
}

impl Staged {
    /// Gives the file this content: the rest of [`Dir::write`].
    pub fn take_name(self) -> Result<()> {
        let Self { temp, last, name } = self;
        temp.take_name(&last)
            .map_err(|cause| fault::of("file", &name, cause))
    }

    /// What the content is called until it has the file's name.
    pub fn id(&self) -> &str {
        self.temp.name()
    }

    /// Makes the content findable by its id after a power cut: its bytes are on the disk, but the
    /// directory that lists it may not be.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync_id(&self) -> Result<()> {
        let synced = temp::sync(self.temp.dir());
        synced.map_err(|cause| fault::of("file", &self.name, cause))
    }

    /// Leaves the content where it is, for [`Dir::take_staged`].
    pub fn leave(self) {
        self.temp.leave();
    }
}

impl Dir {
    /// Does the first part of [`Dir::write`]: the content is on the disk, and the file is as it was.
    pub fn stage(&self, name: &str, bytes: &[u8]) -> Result<Staged> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse_file(name)?;
        let place = self.place_followed(name, &plain, Some(Access::Shared))?;
        let old = place.old_file(name)?;
        let mut temp = Temp::create(place.dir, Access::Shared, old.as_ref()).map_err(error)?;
        temp.file().write_all(bytes).map_err(error)?;
        temp.sync().map_err(error)?;
        Ok(Staged {
            temp,
            last: place.last,
            name: name.to_owned(),
        })
    }

    /// The bytes that were staged for a file under this id and left; `None` if they are not there.
    ///
    /// # Errors
    /// Invalid if the id is none, too large if there is more than `bytes_max`, and those of the disk.
    pub fn read_staged(&self, name: &str, id: &str, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let Some(place) = self.place_of_staged(name, id)? else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&place.dir, id, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(cause) => return Err(error(cause.into())),
        };
        if !file.metadata().map_err(error)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let mut part = file.take(bytes_max.saturating_add(1));
        part.read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 > bytes_max {
            let message = format!("what was staged for `{name}` is too large");
            return Err(Error::too_large(message).hint(format!("at most {bytes_max} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Gives a file the content that was staged for it under this id and left. False if it is not there.
    ///
    /// # Errors
    /// Those of the disk, as of [`Dir::write`].
    pub fn take_staged(&self, name: &str, id: &str) -> Result<bool> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let Some(place) = self.place_of_staged(name, id)? else {
            return Ok(false);
        };
        place.old_file(name)?;
        match rustix::fs::renameat(&place.dir, id, &place.dir, &place.last) {
            Ok(()) => temp::confirm(&place.dir).map_err(error)?,
            Err(Errno::NOENT) => return Ok(false),
            Err(cause) => return Err(error(cause.into())),
        }
        Ok(true)
    }

    /// Removes what was staged for a file under this id and left; there need not be anything.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn discard_staged(&self, name: &str, id: &str) -> Result<()> {
        let Some(place) = self.place_of_staged(name, id)? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(&place.dir, id, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(cause) => Err(fault::of("file", name, cause)),
        }
    }

    /// Where a file lies, if its folder is there.
    fn place_of_staged(&self, name: &str, id: &str) -> Result<Option<Place>> {
        if !is_generated(id) {
            return Err(Error::invalid(format!("`{id}` is no staged content")));
        }
        let plain = Name::parse_file(name)?;
        match self.place_followed(name, &plain, None) {
            Ok(place) => Ok(Some(place)),
            Err(error) if error.code == kenning_core::Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Code;

    #[test]
    fn what_was_left_beside_a_file_can_be_read_taken_and_removed_by_its_id_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        dir.write("a/note.md", b"old").unwrap();
        let leave = || {
            let staged = dir.stage("a/note.md", b"new").unwrap();
            staged.sync_id().unwrap();
            let id = staged.id().to_owned();
            staged.leave();
            id
        };
        let id = leave();
        assert_eq!(dir.read("a/note.md", 9).unwrap(), b"old");
        let read = |id: &str, max| dir.read_staged("a/note.md", id, max);
        assert_eq!(read(&id, 9).unwrap().unwrap(), b"new");
        assert_eq!(read(&id, 2).unwrap_err().code, Code::TooLarge);
        // It lies beside the file that it is for, and nowhere else.
        assert_eq!(dir.read_staged("note.md", &id, 9).unwrap(), None);
        assert_eq!(dir.read_staged("b/note.md", &id, 9).unwrap(), None);
        assert!(dir.take_staged("a/note.md", &id).unwrap());
        assert_eq!(dir.read("a/note.md", 9).unwrap(), b"new");
        assert!(!dir.take_staged("a/note.md", &id).unwrap());
        let id = leave();
        dir.discard_staged("a/note.md", &id).unwrap();
        dir.discard_staged("a/note.md", &id).unwrap();
        assert_eq!(read(&id, 9).unwrap(), None);
        // Nothing else can be named by an id.
        for other in ["note.md", "../a/note.md", ".x.kenning-tmp", ""] {
            assert_eq!(read(other, 9).unwrap_err().code, Code::InvalidInput);
            assert!(dir.take_staged("a/note.md", other).is_err());
            assert!(dir.discard_staged("a/note.md", other).is_err());
        }
    }

    #[test]
    fn what_is_dropped_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let staged = dir.stage("note.md", b"new").unwrap();
        let id = staged.id().to_owned();
        drop(staged);
        assert_eq!(dir.read_staged("note.md", &id, 9).unwrap(), None);
    }
}
