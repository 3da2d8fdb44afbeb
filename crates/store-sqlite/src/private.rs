//! Makes the file readable by its owner only.
//!
//! The data directory may have existed before, with a mode that lets other users in. SQLite gives the log
//! and the shared memory beside the file the same mode as the file.

use kenning_core::{Error, Result};
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const MODE: u32 = 0o600;

/// Creates the file if it is missing, and removes all permissions but the owner's.
pub(crate) fn keep_private(path: &Path) -> Result<()> {
    let failed = |cause: io::Error| {
        Error::unavailable("the store could not be opened")
            .hint("check that the data directory exists and can be written")
            .because(cause)
    };
    if !path.exists() {
        make(path).map_err(failed)?;
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        restrict(&PathBuf::from(name));
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the same path that SQLite opens, and an empty file is an empty store"
)]
fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(MODE).open(path);
    match made {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// A file that belongs to another user cannot be restricted; its mode is then that user's decision.
fn restrict(path: &Path) {
    let Ok(metadata) = path.metadata() else {
        return;
    };
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let restricted = std::fs::set_permissions(path, Permissions::from_mode(MODE));
        if let Err(cause) = restricted {
            tracing::warn!("other users of this machine can read the store: {cause}");
        }
    }
}
