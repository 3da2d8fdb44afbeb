//! Faults to inject, and which of them occurred.

/// Which calls a fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls that need space: writing, growing, and creating a file, a directory or a name.
    NeedsRoom,
    /// Only writing and growing.
    Write,
    /// Reading what a file holds.
    Read,
    /// Waiting for the disk, for a file or a directory.
    Sync,
}

/// An error instead of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// The first call of this kind that fails, counted from 1.
    pub at: u64,
    /// Whether all later ones fail too: a full disk stays full.
    pub stays: bool,
    /// The kernel's number of the error.
    pub errno: i32,
}

impl Fault {
    /// No space left from the `at`-th call on.
    pub fn full(at: u64) -> Self {
        Self {
            kind: Kind::NeedsRoom,
            at,
            stays: true,
            errno: libc::ENOSPC,
        }
    }

    /// The disk fails once.
    pub fn broken(kind: Kind, at: u64) -> Self {
        Self {
            kind,
            at,
            stays: false,
            errno: libc::EIO,
        }
    }
}

/// The result of a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Calls of its kind.
    pub n_calls: u64,
    /// Those that failed: the call and its file.
    pub failed: Vec<String>,
}

/// Syncs that only claim to have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaves {
    /// All happen.
    #[default]
    Nothing,
    /// Syncs of files whose name begins with this are skipped.
    Files(&'static str),
    /// Syncs of all other files are skipped.
    FilesBut(&'static str),
    /// Syncs of directories are skipped.
    Directories,
}

impl Leaves {
    /// Whether the sync of a file or directory of this path is left out.
    pub(crate) fn out(self, path: &str, is_dir: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match self {
            Self::Nothing => false,
            Self::Files(prefix) => !is_dir && name.starts_with(prefix),
            Self::FilesBut(prefix) => !is_dir && !name.starts_with(prefix),
            Self::Directories => is_dir,
        }
    }
}
