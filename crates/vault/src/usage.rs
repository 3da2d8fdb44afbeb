//! A directory's own handle and its usage, for a sandbox.

use crate::dir::Dir;
use crate::fault;
use kenning_core::{Code, Result};
use std::io;
use std::path::PathBuf;

impl Dir {
    /// How much is in it at any depth: files and directories, and bytes of files. Links count as
    /// files and are not followed; names that [`Dir::list`] leaves out count too. Stops counting
    /// when there are more than this many.
    pub fn usage(&self, entries_max: u64) -> Result<(u64, u64)> {
        let error = |cause: io::Error| fault::of("directory", ".", cause);
        let (mut entries, mut bytes) = (0_u64, 0_u64);
        // Names and not handles: a directory with very many others in it would use them all up.
        let mut unseen = vec![PathBuf::from(".")];
        while let Some(name) = unseen.pop() {
            let dir = match self.root().open_dir(&name) {
                Ok(dir) => dir,
                // What is removed meanwhile takes no room.
                Err(cause) if fault::code(&cause) == Code::NotFound => continue,
                Err(cause) => return Err(error(cause)),
            };
            for found in dir.entries().map_err(error)? {
                let found = found.map_err(error)?;
                entries += 1;
                if entries > entries_max {
                    return Ok((entries, bytes));
                }
                let metadata = match found.metadata() {
                    Ok(metadata) => metadata,
                    Err(cause) if fault::code(&cause) == Code::NotFound => continue,
                    Err(cause) => return Err(error(cause)),
                };
                if metadata.is_dir() {
                    unseen.push(name.join(found.file_name()));
                } else if metadata.is_file() {
                    bytes = bytes.saturating_add(metadata.len());
                }
            }
        }
        Ok((entries, bytes))
    }

    /// Another handle of this directory, for a sandbox that resolves names beneath it by itself.
    pub fn handle(&self) -> Result<std::fs::File> {
        let handle = self.root().try_clone();
        let handle = handle.map_err(|cause| fault::of("directory", ".", cause))?;
        Ok(handle.into_std_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_everything_and_follows_nothing() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::create(&home.path().join("dir")).unwrap();
        std::fs::write(home.path().join("outside"), [0; 1000]).unwrap();
        dir.write("a", b"12345").unwrap();
        dir.write("b/c/d", b"123").unwrap();
        std::fs::write(dir.path().join("odd\\name"), b"12").unwrap();
        std::os::unix::fs::symlink(home.path().join("outside"), dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("b/up")).unwrap();
        assert_eq!(dir.usage(100).unwrap(), (7, 10));
        assert_eq!(dir.usage(3).unwrap().0, 4);
    }

    #[test]
    fn a_handle_is_of_the_same_directory() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        dir.write("a", b"1").unwrap();
        let handle = cap_std::fs::Dir::from_std_file(dir.handle().unwrap());
        assert_eq!(handle.read("a").unwrap(), b"1");
    }
}
