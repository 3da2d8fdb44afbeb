//! Making a backup.
//!
//! The order of steps makes an interruption harmless: claim the id, write the archive, read it back,
//! write the manifest, read it back, write the metadata. Until the last step nothing is listed, and
//! what an interrupted attempt left is swept by a later cleanup.

use crate::archive::{Names, Packer};
use crate::place::checksum_mismatch;
use crate::record::{
    FOLDER, FileRecord, Manifest, RECORD_BYTES_MAX, archive_key, claim_key, id_at, manifest_key,
    metadata_key,
};
use crate::seal::Sealer;
use crate::stream::{Measure, Measured, copy, too_large, unwrap_error};
use crate::{Backups, Kind, Metadata};
use jiff::Timestamp;
use kenning_core::{Code, Error, Random, Result};
use kenning_text::hex;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, Write};

/// How many ids are tried before giving up: a second has no more backups than that.
const IDS_MAX: usize = 100;

/// What kind of backup is wanted.
pub struct Request<'a> {
    /// Whether it may leave files to the last full backup.
    pub kind: Kind,
    /// Where the files come from. Only a hash of it is kept; an incremental backup is based on one
    /// from the same place.
    pub base_path: &'a str,
    /// How long it should be kept, for information only.
    pub retention_days: u32,
    /// The present moment.
    pub now: Timestamp,
    /// For the salt and the nonce, and for an id that is taken.
    pub random: &'a dyn Random,
}

type Fill<'a> = Box<dyn FnOnce(&mut dyn Write) -> Result<()> + 'a>;

/// A file to back up: a name, and how to get its content.
pub struct Source<'a> {
    name: String,
    is_always_included: bool,
    fill: Fill<'a>,
}

impl<'a> Source<'a> {
    /// Content that a function writes, such as a snapshot of the store.
    pub fn new(
        name: impl Into<String>,
        fill: impl FnOnce(&mut dyn Write) -> Result<()> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            is_always_included: false,
            fill: Box::new(fill),
        }
    }

    /// Content that is read.
    pub fn reader(name: impl Into<String>, mut content: impl Read + 'a) -> Self {
        Self::new(name, move |out| copy(&mut content, out).map(drop))
    }

    /// In every backup, also in an incremental one for which it did not change.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.is_always_included = true;
        self
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.name).finish()
    }
}

/// The full backup that an incremental one leaves files to.
struct Base {
    id: String,
    /// Names and hashes.
    files: BTreeMap<String, String>,
}

impl Backups {
    /// Makes a backup of these files and reads it back.
    pub fn create<'a>(
        &self,
        request: &Request<'_>,
        files: impl IntoIterator<Item = Source<'a>>,
    ) -> Result<Metadata> {
        let base = match request.kind {
            Kind::Full => None,
            Kind::Incremental => self.base(&path_hash(request.base_path))?,
        };
        let kind = match base {
            Some(_) => Kind::Incremental,
            None => Kind::Full,
        };
        let id = self.claim(kind, request)?;
        let made = self.make(&id, request, base, files);
        if made.is_err() {
            self.forget(&id);
        }
        // A claim that is left behind is removed by a later cleanup.
        let _ = self.place.delete(&claim_key(&id));
        made
    }

    /// The newest full backup of the same files that the passphrase opens.
    fn base(&self, base_path_hash: &str) -> Result<Option<Base>> {
        let is_sealed = self.passphrase.is_some();
        let newest = self.list()?.backups.into_iter().find(|backup| {
            backup.backup_type == Kind::Full
                && backup.encrypted == is_sealed
                && backup.base_path_hash == base_path_hash
        });
        let Some(metadata) = newest else {
            return Ok(None);
        };
        let manifest = match self.manifest(&metadata) {
            Ok(manifest) => manifest,
            // Another passphrase or damage: it cannot be the base.
            Err(error) if matches!(error.code, Code::Denied | Code::Corrupt | Code::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let files = manifest
            .files
            .into_iter()
            .map(|file| (file.name, file.sha256));
        Ok(Some(Base {
            id: metadata.backup_id,
            files: files.collect(),
        }))
    }

    /// Reserves an unused id.
    fn claim(&self, kind: Kind, request: &Request<'_>) -> Result<String> {
        let first = id_at(kind, request.now);
        let moment = request.now.to_string();
        let mut id = first.clone();
        for _ in 0..IDS_MAX {
            let claim = claim_key(&id);
            if self.place.put_new(&claim, moment.as_bytes())? {
                // Checked after claiming: a previous holder of the id has finished by now.
                let of_id = format!("{FOLDER}{id}.");
                let is_other = |key: &str| key.starts_with(&of_id) && key != claim;
                let there = self.place.list(FOLDER)?;
                if !there.iter().any(|it| is_other(&it.key)) {
                    return Ok(id);
                }
                self.place.delete(&claim)?;
            }
            let mut suffix = [0; 3];
            request.random.fill(&mut suffix);
            id = format!("{first}_{}", hex::encode(&suffix));
        }
        Err(
            Error::conflict(format!("too many backups are called `{first}`"))
                .hint("try again in a second"),
        )
    }

    fn make<'a>(
        &self,
        id: &str,
        request: &Request<'_>,
        base: Option<Base>,
        files: impl IntoIterator<Item = Source<'a>>,
    ) -> Result<Metadata> {
        let encrypted = self.passphrase.is_some();
        let archive_key = archive_key(id, encrypted);
        let mut records = Vec::new();
        let archive = self.put_sealed(
            &archive_key,
            request.random,
            self.limits.archive_bytes_max,
            |out| {
                records = self.pack(out, request.now, base.as_ref(), files)?;
                Ok(())
            },
        )?;
        let is_here = |it: &&FileRecord| it.is_here;
        let files_included = records.iter().filter(is_here).map(|it| it.name.clone());
        let files_included = files_included.collect();

        let based_on = base.map(|it| it.id);
        let manifest = Manifest::new(id, based_on.clone(), records);
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|cause| Error::internal("the manifest could not be written").because(cause))?;
        let manifest_key = manifest_key(id, encrypted);
        let manifest = self.put_sealed(&manifest_key, request.random, RECORD_BYTES_MAX, |out| {
            let written = out.write_all(&manifest);
            written.map_err(|error| unwrap_error(error, "the manifest could not be written"))
        })?;

        let metadata = Metadata {
            backup_id: id.to_owned(),
            backup_type: match based_on {
                Some(_) => Kind::Incremental,
                None => Kind::Full,
            },
            created_at: request.now.to_string(),
            file_size: archive.n_bytes,
            checksum: archive.sha256,
            encrypted,
            files_included,
            base_path_hash: path_hash(request.base_path),
            retention_days: request.retention_days,
            based_on,
            manifest_checksum: manifest.sha256,
        };
        let bytes = serde_json::to_vec_pretty(&metadata)
            .map_err(|cause| Error::internal("the metadata could not be written").because(cause))?;
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            return Err(too_large("the list of the files", RECORD_BYTES_MAX));
        }
        self.place.put(&metadata_key(id), |out| {
            let written = out.write_all(&bytes);
            written.map_err(|error| unwrap_error(error, "the metadata could not be written"))
        })?;
        Ok(metadata)
    }

    /// Stores what `fill` writes, sealed if there is a passphrase, and reads it back: a disk or a
    /// service that lost a byte is found now and not when the backup is needed.
    fn put_sealed(
        &self,
        key: &str,
        random: &dyn Random,
        max_bytes: u64,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<Measure> {
        let mut measure = None;
        self.place.put(key, |out| {
            let mut out = Measured::new(out, "the backup", max_bytes);
            match &self.passphrase {
                None => fill(&mut out)?,
                Some(passphrase) => {
                    let mut sealer = Sealer::new(&mut out, key, passphrase, random)?;
                    fill(&mut sealer)?;
                    let sealed = sealer.finish();
                    sealed
                        .map_err(|error| unwrap_error(error, "the backup could not be written"))?;
                }
            }
            measure = Some(out.measure());
            Ok(())
        })?;
        let written = measure.ok_or_else(|| Error::internal("nothing was written"))?;
        let mut read = Measured::new(std::io::sink(), "the backup", max_bytes);
        self.place.get(key, max_bytes, &mut read)?;
        let read = read.measure();
        if read != written {
            return Err(checksum_mismatch(key, &written.sha256, &read.sha256));
        }
        Ok(written)
    }

    /// Puts those files into an archive that the base does not have, and notes all of them.
    fn pack<'a>(
        &self,
        out: &mut dyn Write,
        now: Timestamp,
        base: Option<&Base>,
        files: impl IntoIterator<Item = Source<'a>>,
    ) -> Result<Vec<FileRecord>> {
        let modified_s = u64::try_from(now.as_second()).unwrap_or_default();
        let mut packer = Packer::new(out, self.limits, modified_s);
        let mut names = Names::default();
        let mut records = Vec::new();
        // An archive names the size of a file before its bytes, and a file may grow while it is
        // read: so its bytes wait here until they are all there.
        let mut waiting = self.scratch.scratch()?;
        let failed = |error| unwrap_error(error, "a file could not be written");
        for source in files {
            let name = source.name;
            waiting
                .set_len(0)
                .and_then(|()| waiting.rewind())
                .map_err(failed)?;
            let what = format!("`{}`", crate::archive::shown(&name));
            let mut measured = Measured::new(&mut waiting, what, self.limits.file_bytes_max);
            (source.fill)(&mut measured)?;
            let Measure { n_bytes, sha256 } = measured.measure();
            names.admit(&name, n_bytes, &self.limits)?;
            let in_base = base.and_then(|it| it.files.get(&name));
            let is_here = source.is_always_included || in_base != Some(&sha256);
            if is_here {
                waiting.rewind().map_err(failed)?;
                packer.add(&name, n_bytes, &mut waiting)?;
            }
            records.push(FileRecord {
                name,
                n_bytes,
                sha256,
                is_here,
            });
        }
        packer.finish()?;
        Ok(records)
    }

    /// Deletes the objects of a failed attempt, metadata first. What cannot be deleted now is not a
    /// backup without metadata, and is removed by a later cleanup.
    fn forget(&self, id: &str) {
        let is_sealed = self.passphrase.is_some();
        for key in [
            metadata_key(id),
            manifest_key(id, is_sealed),
            archive_key(id, is_sealed),
        ] {
            let _ = self.place.delete(&key);
        }
    }
}

/// Other readers of this metadata expect sixteen digits.
fn path_hash(path: &str) -> String {
    let mut hash = hex::sha256(path.as_bytes());
    hash.truncate(16);
    hash
}
