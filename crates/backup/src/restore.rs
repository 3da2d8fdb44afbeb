//! Checking a backup and bringing it back.
//!
//! Checking and restoring begin the same way: the manifest and every archive that is needed are fetched, compared with
//! their checksums, opened and read through to the last byte, and each file is compared with the
//! manifest. Only then does a restore write: first to temporary files, which are renamed when all are
//! complete.

use crate::archive::{scan, shown};
use crate::place::checksum_mismatch;
use crate::record::{FileRecord, Manifest, RECORD_BYTES_MAX};
use crate::seal::Opener;
use crate::stream::{Measured, copy, unwrap_error};
use crate::{Backups, Kind, Metadata};
use kenning_core::{Code, Error, Result};
use kenning_text::hex;
use kenning_vault::Dir;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, sink};
use std::time::Duration;

/// A backup that was read through and is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// What is known of it.
    pub metadata: Metadata,
    /// Every file that a restore would bring back, sorted.
    pub files: Vec<String>,
    /// Their bytes.
    pub n_bytes: u64,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What is known of the backup.
    pub metadata: Metadata,
    /// The files that are now in the directory as they were, sorted.
    pub files: Vec<String>,
}

/// A checked archive on this machine.
struct Fetched {
    metadata: Metadata,
    file: File,
    is_base: bool,
}

impl Backups {
    /// Reads a backup through, and what it is based on, without writing anything.
    pub fn verify(&self, id: &str) -> Result<Verified> {
        let metadata = self.metadata(id)?;
        let manifest = self.manifest(&metadata)?;
        self.fetch_checked(&metadata, &manifest)?;
        let mut files: Vec<String> = manifest.files.iter().map(|it| it.name.clone()).collect();
        files.sort();
        Ok(Verified {
            metadata,
            files,
            n_bytes: manifest.files.iter().map(|it| it.n_bytes).sum(),
        })
    }

    /// The content of one file of a backup, checked as [`Backups::verify`] does, in a file without a
    /// name.
    pub fn open_file(&self, id: &str, name: &str) -> Result<File> {
        let metadata = self.metadata(id)?;
        let manifest = self.manifest(&metadata)?;
        let mut file = self.scratch.scratch()?;
        let mut is_found = false;
        let listed = manifest.by_name();
        for mut one in self.fetch_checked(&metadata, &manifest)? {
            let is_base = one.is_base;
            self.entries(&mut one, |entry, _, content| {
                if entry == name && listed.get(entry).is_some_and(|it| it.is_here != is_base) {
                    is_found = true;
                    copy(content, &mut file)?;
                }
                Ok(())
            })?;
        }
        if !is_found {
            return Err(Error::corrupt(format!("backup `{id}` has no `{name}`")));
        }
        let rewound = file.rewind();
        rewound.map_err(|error| unwrap_error(error, "the backup could not be read"))?;
        Ok(file)
    }

    /// Puts every file of a backup into a directory. Files of the same name are replaced; others stay.
    ///
    /// Nothing is changed before the whole backup is known to be good and every file lies beside its
    /// place. The last step, renaming, can only be stopped by the disk itself or by the end of the
    /// process; then the same restore can be run again.
    pub fn restore(&self, id: &str, into: &Dir) -> Result<Restored> {
        self.restore_part(id, into, &|_| true)
    }

    /// As [`Backups::restore`], of those files only whose names are wanted. The whole backup must be
    /// good all the same.
    pub fn restore_part(
        &self,
        id: &str,
        into: &Dir,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Restored> {
        let metadata = self.metadata(id)?;
        let mut manifest = self.manifest(&metadata)?;
        let fetched = self.fetch_checked(&metadata, &manifest)?;
        manifest.files.retain(|it| is_wanted(&it.name));
        check_targets(&manifest, into)?;
        let lock_name = format!(".restore-{id}.lock");
        let lock = into.lock(&lock_name, Duration::ZERO)?;
        let restored = self.restore_locked(&manifest, fetched, into);
        // The next holder checks whether the file still exists, so it can be removed.
        let _ = into.remove(&lock_name);
        drop(lock);
        restored?;
        let mut files: Vec<String> = manifest.files.into_iter().map(|it| it.name).collect();
        files.sort();
        Ok(Restored { metadata, files })
    }

    /// The files of a backup that a directory has with another content, sorted. A restore there would
    /// replace them.
    pub fn differing(&self, id: &str, dir: &Dir) -> Result<Vec<String>> {
        let metadata = self.metadata(id)?;
        let mut differing = Vec::new();
        for file in self.manifest(&metadata)?.files {
            let mut content = match dir.open_read(&file.name) {
                Ok(content) => content,
                Err(error) if error.code == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            let mut measured = Measured::new(sink(), "the file", u64::MAX);
            copy(&mut content, &mut measured)?;
            if measured.measure().sha256 != file.sha256 {
                differing.push(file.name);
            }
        }
        differing.sort();
        Ok(differing)
    }

    fn restore_locked(&self, manifest: &Manifest, fetched: Vec<Fetched>, into: &Dir) -> Result<()> {
        let staging = Staging::new(manifest, into)?;
        let staged = self.stage(manifest, fetched, &staging);
        let moved = staged.and_then(|()| staging.move_into_place(manifest));
        // Also after a failure: temporary files are useless then.
        staging.clear(manifest);
        moved
    }

    /// Which files a backup has, from its manifest.
    pub(crate) fn manifest(&self, metadata: &Metadata) -> Result<Manifest> {
        let key = metadata.manifest_key();
        let mut bytes = Vec::new();
        self.place.get(&key, RECORD_BYTES_MAX, &mut bytes)?;
        let found = hex::sha256(&bytes);
        if found != metadata.manifest_checksum {
            return Err(checksum_mismatch(&key, &metadata.manifest_checksum, &found));
        }
        let mut plain = Vec::new();
        self.open_stream(&bytes[..], &key, metadata.encrypted)?
            .take(RECORD_BYTES_MAX)
            .read_to_end(&mut plain)
            .map_err(|error| unwrap_error(error, "the manifest could not be read"))?;
        Manifest::parse(&plain, metadata, &self.limits)
    }

    fn open_stream<'a>(
        &self,
        bytes: impl Read + 'a,
        key: &str,
        is_sealed: bool,
    ) -> Result<Box<dyn Read + 'a>> {
        if !is_sealed {
            if self.passphrase.is_some() && !self.accepts_unsealed {
                return Err(Error::denied(format!(
                    "`{key}` is not encrypted, although a passphrase is set (`MOLTVAULT_KEY`): anyone who can \
                     write to the backups could have put it there"
                ))
                .hint("if you made it before you had a passphrase, add `--unsealed`"));
            }
            return Ok(Box::new(bytes));
        }
        let Some(passphrase) = &self.passphrase else {
            return Err(
                Error::denied(format!("`{key}` is encrypted with a passphrase"))
                    .hint("give the passphrase (`MOLTVAULT_KEY`) that the backup was made with"),
            );
        };
        Ok(Box::new(Opener::new(bytes, key, passphrase)?))
    }

    /// Downloads the archives and checks every byte.
    fn fetch_checked(&self, metadata: &Metadata, manifest: &Manifest) -> Result<Vec<Fetched>> {
        let mut fetched = vec![self.fetch(metadata.clone(), false)?];
        if let Some(base) = &metadata.based_on {
            let id = &metadata.backup_id;
            let base = self.metadata(base).map_err(|error| match error.code {
                Code::NotFound => {
                    Error::not_found("backup", base).hint(format!("backup `{id}` is based on it"))
                }
                _ => error,
            })?;
            // A base must not have a base itself.
            if base.backup_type != Kind::Full {
                let base = &base.backup_id;
                return Err(Error::corrupt(format!(
                    "backup `{base}` is not a full backup"
                )));
            }
            fetched.push(self.fetch(base, true)?);
        }
        for one in &mut fetched {
            self.check(one, manifest)?;
        }
        Ok(fetched)
    }

    fn fetch(&self, metadata: Metadata, is_base: bool) -> Result<Fetched> {
        let key = metadata.archive_key();
        let mut file = self.scratch.scratch()?;
        let max_bytes = metadata.file_size.min(self.limits.archive_bytes_max);
        let mut measured = Measured::new(&mut file, "the backup", max_bytes);
        let got = self.place.get(&key, max_bytes, &mut measured);
        got.map_err(|error| match error.code {
            Code::TooLarge if metadata.file_size <= self.limits.archive_bytes_max => {
                let expected = metadata.file_size;
                Error::corrupt(format!("`{key}` has more than its {expected} bytes"))
            }
            _ => error,
        })?;
        let found = measured.measure().sha256;
        if found != metadata.checksum {
            return Err(checksum_mismatch(&key, &metadata.checksum, &found));
        }
        Ok(Fetched {
            metadata,
            file,
            is_base,
        })
    }

    fn entries(
        &self,
        one: &mut Fetched,
        each: impl FnMut(&str, u64, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let failed = |error| unwrap_error(error, "the backup could not be read");
        one.file.rewind().map_err(failed)?;
        let key = one.metadata.archive_key();
        let plain = self.open_stream(&one.file, &key, one.metadata.encrypted)?;
        scan(plain, &self.limits, each)
    }

    /// Compares an archive with the manifest, file by file.
    fn check(&self, one: &mut Fetched, manifest: &Manifest) -> Result<()> {
        let listed = manifest.by_name();
        let (id, is_base) = (one.metadata.backup_id.clone(), one.is_base);
        let mut missing: BTreeSet<&str> = manifest
            .files
            .iter()
            .filter(|it| it.is_here != is_base)
            .map(|it| it.name.as_str())
            .collect();
        self.entries(one, |name, n_bytes, content| {
            if !missing.remove(name) {
                // The base may have files that were changed or deleted since.
                if is_base {
                    return Ok(());
                }
                let shown = shown(name);
                let why = format!(
                    "the archive of `{id}` contains `{shown}`, which is not in its manifest"
                );
                return Err(Error::corrupt(why));
            }
            let mut measured = Measured::new(sink(), "the file", n_bytes);
            copy(content, &mut measured)?;
            let measure = measured.measure();
            let same = |record: &&FileRecord| {
                record.n_bytes == measure.n_bytes && record.sha256 == measure.sha256
            };
            if listed.get(name).is_none_or(|it| !same(it)) {
                let shown = shown(name);
                let why =
                    format!("`{shown}` in the archive of `{id}` differs from what was backed up");
                return Err(Error::corrupt(why));
            }
            Ok(())
        })?;
        match missing.first() {
            None => Ok(()),
            Some(name) => Err(Error::corrupt(format!(
                "the archive of `{id}` lacks `{}`, which is in its manifest",
                shown(name)
            ))),
        }
    }

    /// Writes every file to the staging directory.
    fn stage(&self, manifest: &Manifest, fetched: Vec<Fetched>, staging: &Staging) -> Result<()> {
        let listed = manifest.by_name();
        for mut one in fetched {
            let is_base = one.is_base;
            self.entries(&mut one, |name, _, content| {
                let is_wanted = listed.get(name).is_some_and(|it| it.is_here != is_base);
                if !is_wanted {
                    return Ok(());
                }
                staging
                    .dir
                    .write_with(name, |out| copy(content, out).map(drop))
            })?;
        }
        Ok(())
    }
}

/// Finds conflicts before anything is changed: a directory where a file should be, a
/// file where a directory should be, a link that leads outside.
fn check_targets(manifest: &Manifest, into: &Dir) -> Result<()> {
    let occupied = |name: &str, what: &str| {
        Error::conflict(format!("`{}` exists as a {what}", shown(name)))
            .hint("restore into an empty directory")
    };
    let mut seen = BTreeSet::new();
    for file in &manifest.files {
        let name = &file.name;
        let above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
        for dir in above {
            if seen.insert(dir) && into.exists(dir)? && !into.metadata(dir)?.is_dir {
                return Err(occupied(dir, "file"));
            }
        }
        if into.exists(name)? && !into.metadata(name)?.is_file {
            return Err(occupied(name, "directory"));
        }
    }
    Ok(())
}

/// A directory in the target, so that a rename moves and does not copy.
struct Staging {
    into: Dir,
    dir: Dir,
    name: String,
}

impl Staging {
    /// Empty, also when a restore of the same backup was killed here before.
    fn new(manifest: &Manifest, into: &Dir) -> Result<Self> {
        let name = format!(".restore-{}", manifest.backup_id);
        let staging = Self {
            into: into.clone(),
            dir: into.create_subdir(&name)?,
            name,
        };
        if !staging.dir.list(".")?.is_empty() {
            staging.clear(manifest);
            return Ok(Self {
                dir: into.create_subdir(&staging.name)?,
                ..staging
            });
        }
        Ok(staging)
    }

    fn move_into_place(&self, manifest: &Manifest) -> Result<()> {
        for file in &manifest.files {
            let (staged, name) = (format!("{}/{}", self.name, file.name), &file.name);
            self.into.rename(&staged, name)?;
        }
        Ok(())
    }

    /// Removes what is left in it. If that fails, a directory with a telling name stays.
    fn clear(&self, manifest: &Manifest) {
        let mut dirs = BTreeSet::new();
        for name in manifest.files.iter().map(|it| it.name.as_str()) {
            let _ = self.dir.remove(name);
            dirs.extend(name.match_indices('/').filter_map(|(at, _)| name.get(..at)));
        }
        // The deepest first, because they sort after those above them.
        for name in dirs.iter().rev() {
            let _ = self.dir.remove_dir(name);
        }
        let _ = self.into.remove_dir(&self.name);
    }
}
