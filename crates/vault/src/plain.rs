//! Lists a directory without following links, for granting its entries to a program.

use crate::dir::Dir;
use crate::fault;
use crate::name::Name;
use cap_std::fs::{Metadata, MetadataExt as _};
use kenning_core::{Code, Result};
use std::io;
use std::path::{Path, PathBuf};

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A link, or something that is reached through one.
    Link,
    /// A FIFO, a device or a socket.
    Other,
}

/// A directory entry; links are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// What it is called in its directory.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Whether its own mode lets everybody read it.
    pub is_for_everybody: bool,
}

impl Plain {
    fn new(name: String, about: &Metadata) -> Self {
        let kind = match about.file_type() {
            it if it.is_symlink() => Kind::Link,
            it if it.is_dir() => Kind::Folder,
            it if it.is_file() => Kind::File,
            _ => Kind::Other,
        };
        let bits = if kind == Kind::Folder { 0o005 } else { 0o004 };
        Self {
            name,
            kind,
            is_for_everybody: about.mode() & bits == bits,
        }
    }
}

impl Dir {
    /// What is in a folder, in the order of names. Names that are not UTF-8 are left out.
    pub fn list_plain(&self, folder: &str) -> Result<Vec<Plain>> {
        let error = |cause: io::Error| fault::of("directory", folder, cause);
        let name = Name::parse(if folder.is_empty() { "." } else { folder })?;
        let dir = self.root().open_dir(name.as_path()).map_err(error)?;
        let mut found = Vec::new();
        for entry in dir.entries().map_err(error)?.flatten() {
            let (Ok(name), Ok(about)) = (entry.file_name().into_string(), entry.metadata()) else {
                continue;
            };
            found.push(Plain::new(name, &about));
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The entry of this name, if it exists. Beneath a link everything is a link.
    pub fn look_plain(&self, name: &str) -> Result<Option<Plain>> {
        let error = |cause: io::Error| fault::of("file", name, cause);
        let plain = Name::parse(if name.is_empty() { "." } else { name })?;
        let mut at = PathBuf::from(".");
        let mut last = None;
        for part in plain.as_path() {
            at.push(part);
            let about = match self.root().symlink_metadata(&at) {
                Ok(about) => about,
                Err(cause) if fault::code(&cause) == Code::NotFound => return Ok(None),
                Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => return Ok(None),
                Err(cause) => return Err(error(cause)),
            };
            let found = Plain::new(part.to_string_lossy().into_owned(), &about);
            if found.kind == Kind::Link {
                return Ok(Some(found));
            }
            last = Some(found);
        }
        match last {
            Some(found) => Ok(Some(found)),
            None => {
                let about = self
                    .root()
                    .symlink_metadata(Path::new("."))
                    .map_err(error)?;
                Ok(Some(Plain::new(String::new(), &about)))
            }
        }
    }

    /// Whether everybody may walk through this directory and all above it.
    pub fn is_passable_by_everybody(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let passes =
            |path: &Path| std::fs::metadata(path).is_ok_and(|it| it.mode() & 0o001 == 0o001);
        self.path().ancestors().all(passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_link_is_a_link_and_so_is_what_is_beneath_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        dir.write("a/b.md", b"1").unwrap();
        symlink("a", home.path().join("l")).unwrap();
        symlink("b.md", home.path().join("a/c.md")).unwrap();
        let shut = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(home.path().join("a/b.md"), shut).unwrap();
        let listed: Vec<_> = dir.list_plain("a").unwrap();
        let shown: Vec<_> = listed
            .iter()
            .map(|entry| (&*entry.name, entry.kind))
            .collect();
        assert_eq!(shown, [("b.md", Kind::File), ("c.md", Kind::Link)]);
        assert!(!listed[0].is_for_everybody);
        for (name, kind) in [
            ("", Some(Kind::Folder)),
            ("a", Some(Kind::Folder)),
            ("a/b.md", Some(Kind::File)),
            ("a/c.md", Some(Kind::Link)),
            ("l", Some(Kind::Link)),
            ("l/b.md", Some(Kind::Link)),
            ("a/none", None),
            ("a/b.md/c", None),
        ] {
            let found = dir.look_plain(name).unwrap();
            assert_eq!(found.map(|it| it.kind), kind, "{name}");
        }
        assert!(dir.look_plain("../a").is_err());
    }
}
