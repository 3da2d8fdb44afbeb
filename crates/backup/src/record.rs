//! The records of a backup: its id, its metadata and its manifest.

use crate::Backups;
use crate::Limits;
use crate::archive::{Names, shown};
use crate::place::Object;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kenning_core::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the objects of all backups are.
pub(crate) const FOLDER: &str = "backups/";
/// The largest metadata and manifest that are read or written.
pub(crate) const RECORD_BYTES_MAX: u64 = 64 * 1024 * 1024;

const MANIFEST_VERSION: u32 = 1;

/// Whether a backup is complete by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Every file is in its archive.
    Full,
    /// Files that are as they were in a full backup are only in that one.
    Incremental,
}

impl Kind {
    /// The name in ids and metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
        }
    }
}

/// What is known of a backup without opening it. This is the content of `backups/{id}.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// `omi_{full|incremental}_{YYYYmmdd_HHMMSS}`; the second backup of a second has six more digits.
    pub backup_id: String,
    /// Whether it is complete by itself.
    pub backup_type: Kind,
    /// When it was made, in UTC.
    pub created_at: String,
    /// Bytes of the archive as it lies in the place.
    pub file_size: u64,
    /// SHA-256 of the archive as it lies in the place.
    pub checksum: String,
    /// Whether archive and manifest are sealed with a passphrase.
    pub encrypted: bool,
    /// The files in this archive. Those of an incremental backup are not all that it restores.
    pub files_included: Vec<String>,
    /// The first half of the SHA-256 of where the files came from, in short.
    pub base_path_hash: String,
    /// How long its maker wanted it kept.
    pub retention_days: u32,
    /// The full backup that holds the other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<String>,
    /// SHA-256 of the manifest as it lies in the place.
    pub manifest_checksum: String,
}

impl Metadata {
    /// When it was made.
    pub fn created(&self) -> Result<Timestamp> {
        let id = &self.backup_id;
        self.created_at.parse().map_err(|cause| {
            Error::corrupt(format!("`created_at` of backup `{id}` is not a time")).because(cause)
        })
    }

    pub(crate) fn archive_key(&self) -> String {
        archive_key(&self.backup_id, self.encrypted)
    }

    pub(crate) fn manifest_key(&self) -> String {
        manifest_key(&self.backup_id, self.encrypted)
    }
}

/// The backups of a place.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The newest first.
    pub backups: Vec<Metadata>,
    /// Those that cannot be restored, as far as can be told without reading them.
    pub broken: Vec<Broken>,
}

/// A backup with metadata but without the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its id.
    pub backup_id: String,
    /// What is wrong with it.
    pub why: String,
}

/// Every file of the backup, in its own archive or in the base's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    pub(crate) backup_id: String,
    pub(crate) based_on: Option<String>,
    pub(crate) files: Vec<FileRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) name: String,
    pub(crate) n_bytes: u64,
    pub(crate) sha256: String,
    /// In this backup's own archive, not in that of the backup it is based on.
    pub(crate) is_here: bool,
}

impl Manifest {
    pub(crate) fn new(backup_id: &str, based_on: Option<String>, files: Vec<FileRecord>) -> Self {
        Self {
            version: MANIFEST_VERSION,
            backup_id: backup_id.to_owned(),
            based_on,
            files,
        }
    }

    /// Reads one, and refuses anything that we would not have written.
    pub(crate) fn parse(bytes: &[u8], metadata: &Metadata, limits: &Limits) -> Result<Self> {
        let id = &metadata.backup_id;
        let damaged = |why: &str| Error::corrupt(format!("the manifest of backup `{id}` {why}"));
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|cause| damaged("cannot be read").because(cause))?;
        if manifest.version != MANIFEST_VERSION {
            return Err(damaged("has an unknown version"));
        }
        if manifest.backup_id != *id || manifest.based_on != metadata.based_on {
            return Err(damaged("belongs to another backup"));
        }
        let mut names = Names::default();
        for file in &manifest.files {
            names.admit(&file.name, file.n_bytes, limits)?;
            if !file.is_here && manifest.based_on.is_none() {
                let why = format!(
                    "refers `{}` to a base backup, but has no base",
                    shown(&file.name)
                );
                return Err(damaged(&why));
            }
        }
        Ok(manifest)
    }

    pub(crate) fn by_name(&self) -> BTreeMap<&str, &FileRecord> {
        let rows = self.files.iter().map(|file| (file.name.as_str(), file));
        rows.collect()
    }
}

/// The first id that a backup of this moment would have.
pub(crate) fn id_at(kind: Kind, now: Timestamp) -> String {
    let now = now.to_zoned(TimeZone::UTC);
    format!("omi_{}_{}", kind.as_str(), now.strftime("%Y%m%d_%H%M%S"))
}

/// The kind and the time in an id, or an error about the expected format.
pub(crate) fn parse_id(id: &str) -> Result<(Kind, Timestamp)> {
    let invalid = || {
        Error::invalid(format!("`{}` is not the id of a backup", shown(id)))
            .hint("ids look like `omi_full_20260131_235959`")
    };
    let (kind, rest) = match id.strip_prefix("omi_full_") {
        Some(rest) => (Kind::Full, rest),
        None => (
            Kind::Incremental,
            id.strip_prefix("omi_incremental_").ok_or_else(invalid)?,
        ),
    };
    let (time, suffix) = rest.split_at_checked(15).ok_or_else(invalid)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_suffix = suffix.is_empty()
        || suffix
            .strip_prefix('_')
            .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(is_digit));
    let time = jiff::civil::DateTime::strptime("%Y%m%d_%H%M%S", time).ok();
    let time = time.and_then(|it| it.to_zoned(TimeZone::UTC).ok());
    match time {
        Some(time) if is_suffix => Ok((kind, time.timestamp())),
        _ => Err(invalid()),
    }
}

fn ending(is_sealed: bool) -> &'static str {
    if is_sealed { ".enc" } else { "" }
}

pub(crate) fn archive_key(id: &str, is_sealed: bool) -> String {
    format!("{FOLDER}{id}.tar.gz{}", ending(is_sealed))
}

pub(crate) fn manifest_key(id: &str, is_sealed: bool) -> String {
    format!("{FOLDER}{id}.files{}", ending(is_sealed))
}

pub(crate) fn metadata_key(id: &str) -> String {
    format!("{FOLDER}{id}.json")
}

/// Exists only while a backup is being made: of two that begin in one second, one gets the id.
pub(crate) fn claim_key(id: &str) -> String {
    format!("{FOLDER}{id}.claim")
}

/// The id in the key of one of our objects, and what follows it.
pub(crate) fn split_key(key: &str) -> Option<(&str, &str)> {
    let name = key.strip_prefix(FOLDER)?;
    let (id, ending) = name.split_once('.')?;
    parse_id(id).is_ok().then_some((id, ending))
}

impl Backups {
    /// What backups there are.
    pub fn list(&self) -> Result<Listing> {
        self.listing_of(&self.place.list(FOLDER)?)
    }

    pub(crate) fn listing_of(&self, objects: &[Object]) -> Result<Listing> {
        let sizes: BTreeMap<&str, u64> = objects
            .iter()
            .map(|object| (object.key.as_str(), object.n_bytes))
            .collect();
        let mut listing = Listing::default();
        for (id, ending) in sizes.keys().filter_map(|key| split_key(key)) {
            if ending != "json" {
                continue;
            }
            let broken = |why: String| Broken {
                backup_id: id.to_owned(),
                why,
            };
            let metadata = match self.metadata(id) {
                Ok(metadata) => metadata,
                Err(error) if error.code == Code::Corrupt => {
                    listing.broken.push(broken(error.message));
                    continue;
                }
                // It was deleted since.
                Err(error) if error.code == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            match sizes.get(metadata.archive_key().as_str()) {
                None => listing
                    .broken
                    .push(broken("its archive is missing".to_owned())),
                Some(_) if !sizes.contains_key(metadata.manifest_key().as_str()) => {
                    listing
                        .broken
                        .push(broken("its manifest is missing".to_owned()));
                }
                Some(n_bytes) if *n_bytes != metadata.file_size => {
                    let expected = metadata.file_size;
                    let why = format!("its archive has {n_bytes} bytes, expected {expected}");
                    listing.broken.push(broken(why));
                }
                Some(_) => listing.backups.push(metadata),
            }
        }
        let newest_first =
            |metadata: &Metadata| (metadata.created().ok(), metadata.backup_id.clone());
        listing.backups.sort_by_cached_key(newest_first);
        listing.backups.reverse();
        Ok(listing)
    }

    /// What is known of one backup.
    pub fn metadata(&self, id: &str) -> Result<Metadata> {
        let (kind, _) = parse_id(id)?;
        let damaged = |why: &str| Error::corrupt(format!("the metadata of backup `{id}` {why}"));
        let mut bytes = Vec::new();
        let got = self
            .place
            .get(&metadata_key(id), RECORD_BYTES_MAX, &mut bytes);
        got.map_err(|error| match error.code {
            Code::NotFound => Error::not_found("backup", id),
            _ => error,
        })?;
        let metadata: Metadata = serde_json::from_slice(&bytes)
            .map_err(|cause| damaged("cannot be read").because(cause))?;
        if metadata.backup_id != id || metadata.backup_type != kind {
            return Err(damaged("belongs to another backup"));
        }
        metadata.created()?;
        match &metadata.based_on {
            None if kind == Kind::Full => {}
            Some(base) if kind == Kind::Incremental => match parse_id(base) {
                Ok((Kind::Full, _)) => {}
                _ => return Err(damaged("is not based on a full backup")),
            },
            _ => return Err(damaged("contradicts itself about `based_on`")),
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_anything_else_is_no_id() {
        let now: Timestamp = "2026-11-15T09:53:18.25Z".parse().unwrap();
        for kind in [Kind::Full, Kind::Incremental] {
            let id = id_at(kind, now);
            assert_eq!(id, format!("omi_{}_20261115_095318", kind.as_str()));
            let second = now.as_second();
            for id in [id.clone(), format!("{id}_0a1b2c")] {
                let (read, time) = parse_id(&id).unwrap();
                assert_eq!((read, time.as_second()), (kind, second));
            }
        }
        for bad in [
            "",
            "omi_full_",
            "omi_half_20261115_095318",
            "omi_full_20261315_095318",
            "omi_full_20261115_095318_",
            "omi_full_20261115_095318_0a1b2",
            "omi_full_20261115_095318_0A1B2C",
            "omi_full_20261115_095318/../x",
            "omi_full_20261115_09531é",
            "../omi_full_20261115_095318",
            "omi_full_20261115_095318.json",
        ] {
            assert!(parse_id(bad).is_err(), "{bad}");
        }
    }
}
