//! Backups of the data directory, in another directory or a bucket.
//!
//! A backup is three objects under one id. The archive (`backups/{id}.tar.gz`) holds files, the
//! manifest (`backups/{id}.files`) says which files there were and what their bytes hash to, and the
//! metadata (`backups/{id}.json`) says that the other two are whole. The metadata is written last and
//! deleted first: a backup without metadata does not exist. With a passphrase the first two are
//! sealed and end in `.enc`; the metadata stays readable, and so do the file names in it.
//!
//! This crate does not know what the files mean. The engine hands it a snapshot of the store as one
//! of them and gets it back as one of them.
//!
//! Its one invariant: a restore either puts back every file as it was, or says why not before it has
//! changed anything.
//!
//! # Choices
//!
//! - **An incremental backup is based on a full one, never on another incremental.** A restore needs
//!   at most two archives, and losing one incremental harms no other. Where there is no full backup
//!   that it could be based on, it becomes a full one and says so.
//! - **The manifest lists every file, not only those in the archive**, so files that were deleted
//!   before an incremental backup do not come back, and one that is missing from the base is noticed.
//! - **What restore would refuse, create refuses to make**: both hold the same [`Limits`].
//! - **The checksum finds damage, not malice.** Anyone who can write to the place can replace an
//!   unsealed backup together with its checksum. Only a sealed one is known to come from someone who
//!   knew the passphrase.
//!
//! Read [`Backups`] first, then `archive` for what is refused and `seal` for the format.

#![deny(missing_docs)]

mod archive;
mod bucket;
mod cleanup;
mod create;
mod place;
mod record;
mod restore;
mod s3;
mod seal;
mod stream;
#[cfg(test)]
mod tests;

pub use bucket::{Bucket, BucketSettings};
pub use cleanup::Cleaned;
pub use create::{Request, Source};
pub use place::Place;
pub use record::{Broken, Kind, Listing, Metadata};
pub use restore::{Restored, Verified};
pub use seal::Passphrase;

use kenning_vault::Dir;

/// Limits of a backup, enforced when it is made and when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files in one backup.
    pub files_max: usize,
    /// Bytes of one file.
    pub file_bytes_max: u64,
    /// Bytes of all files, unpacked.
    pub total_bytes_max: u64,
    /// Bytes of the archive itself. A bucket takes no more than 10,000 parts of 5 MiB.
    pub archive_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self {
            files_max: 100_000,
            file_bytes_max: 32 * GIB,
            total_bytes_max: 64 * GIB,
            archive_bytes_max: 48 * GIB,
        }
    }
}

/// The backups in one place.
///
/// Every call works on the calling thread until it is done; with a bucket it must not be called from
/// an asynchronous task.
#[derive(Clone, Debug)]
pub struct Backups {
    place: Place,
    scratch: Dir,
    passphrase: Option<Passphrase>,
    accepts_unsealed: bool,
    limits: Limits,
}

impl Backups {
    /// The backups in `place`. What does not fit in memory waits in files without a name in
    /// `scratch`, unsealed.
    pub fn new(place: Place, scratch: Dir) -> Self {
        Self {
            place,
            scratch,
            passphrase: None,
            accepts_unsealed: false,
            limits: Limits::default(),
        }
    }

    /// Seals new backups with this passphrase, and opens sealed ones with it. One that is not sealed is then
    /// refused: that it is sealed is said by its metadata, which anyone who can write to the place can change.
    #[must_use]
    pub fn sealed_with(mut self, passphrase: Option<Passphrase>) -> Self {
        self.passphrase = passphrase;
        self
    }

    /// Opens backups that are not sealed although there is a passphrase, such as those from before there was
    /// one. The caller vouches for the place.
    #[must_use]
    pub fn accepting_unsealed(mut self, accepts_unsealed: bool) -> Self {
        self.accepts_unsealed = accepts_unsealed;
        self
    }

    /// With other bounds.
    #[must_use]
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
