//! Deleting old backups, and never the last good one.

use crate::record::{FOLDER, Metadata, claim_key, metadata_key, parse_id, split_key};
use crate::stream::Measured;
use crate::{Backups, Kind};
use jiff::{SignedDuration, Timestamp};
use kenning_core::{Code, Result};
use std::collections::BTreeSet;

/// After this time an upload without metadata is considered abandoned.
const UNFINISHED_HOURS: i64 = 48;

/// A pause of up to this many days between two backups is plausible.
const PAUSE_DAYS_MAX: i64 = 90;

/// A longer one counts as at least this many days.
const JUMP_DAYS: i64 = 7;

/// What was deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Backups, the newest first.
    pub backups: Vec<String>,
    /// Objects of attempts that never became a backup.
    pub remains: Vec<String>,
    /// Backups that are old enough but stay, because they are the newest good full one or because a
    /// younger one is based on them.
    pub kept: Vec<String>,
    /// The bytes of all that was deleted.
    pub n_bytes: u64,
}

impl Backups {
    /// Deletes backups that are older than this many days, and what interrupted attempts left.
    ///
    /// A time of more than three months, and of more than twice that many days, in which no backup was
    /// made counts as half of them, or a week: a clock that jumped far ahead makes no backup old that was
    /// young yesterday.
    ///
    /// The newest full backup whose bytes still match its checksum always stays, and so does what a
    /// remaining incremental backup is based on. Backups that are listed as broken are not touched:
    /// a person may still recover parts of them.
    pub fn cleanup(&self, retention_days: u32, now: Timestamp, dry_run: bool) -> Result<Cleaned> {
        let objects = self.place.list(FOLDER)?;
        let listing = self.listing_of(&objects)?;
        let keep = SignedDuration::from_hours(24 * i64::from(retention_days));
        let is_older = |time: Timestamp, age: SignedDuration| now.duration_since(time) > age;

        let days = |n: i64| SignedDuration::from_hours(24 * n);
        let pause_max = (keep * 2).max(days(PAUSE_DAYS_MAX));
        let jump = (keep / 2).max(days(JUMP_DAYS));
        let mut old = Vec::new();
        let mut young = Vec::new();
        let (mut age, mut later) = (SignedDuration::ZERO, now);
        for backup in &listing.backups {
            let created = backup.created()?;
            // A backup from the future counts as new.
            if created < later {
                let pause = later.duration_since(created);
                age += if pause > pause_max { jump } else { pause };
                later = created;
            }
            match age > keep {
                true => old.push(backup),
                false => young.push(backup),
            }
        }
        let mut needed: BTreeSet<&str> = young
            .iter()
            .filter_map(|it| it.based_on.as_deref())
            .collect();
        let old_fulls = old.iter().filter(|it| it.backup_type == Kind::Full);
        let mut old_fulls = old_fulls.map(|it| it.backup_id.as_str()).peekable();
        if old_fulls.peek().is_some() {
            match self.newest_good(&listing.backups)? {
                Some(good) => drop(needed.insert(&good.backup_id)),
                // All are damaged: a person must decide what can be saved.
                None => needed.extend(old_fulls),
            }
        }

        let mut cleaned = Cleaned::default();
        let size_of = |key: &str| {
            let found = objects.iter().find(|it| it.key == key);
            found.map_or(0, |it| it.n_bytes)
        };
        // Incremental ones first: if this stops half way, none is left without its base.
        old.sort_by_key(|it| it.backup_type == Kind::Full);
        for backup in old {
            if needed.contains(backup.backup_id.as_str()) {
                cleaned.kept.push(backup.backup_id.clone());
                continue;
            }
            for key in keys(backup) {
                cleaned.n_bytes += size_of(&key);
                if !dry_run {
                    self.place.delete(&key)?;
                }
            }
            cleaned.backups.push(backup.backup_id.clone());
        }

        let with_metadata: BTreeSet<&str> = objects
            .iter()
            .filter_map(|it| split_key(&it.key))
            .filter_map(|(id, ending)| (ending == "json").then_some(id))
            .collect();
        for object in &objects {
            let Some((id, _)) = split_key(&object.key) else {
                continue;
            };
            let (_, begun) = parse_id(id)?;
            let is_unfinished = !with_metadata.contains(id) || object.key == claim_key(id);
            if is_unfinished && is_older(begun, SignedDuration::from_hours(UNFINISHED_HOURS)) {
                if !dry_run {
                    self.place.delete(&object.key)?;
                }
                cleaned.n_bytes += object.n_bytes;
                cleaned.remains.push(object.key.clone());
            }
        }
        Ok(cleaned)
    }

    /// The newest full backup that matches its checksum. It is read completely to check that.
    fn newest_good<'a>(&self, newest_first: &'a [Metadata]) -> Result<Option<&'a Metadata>> {
        for backup in newest_first
            .iter()
            .filter(|it| it.backup_type == Kind::Full)
        {
            if self.is_intact(&backup.archive_key(), backup.file_size, &backup.checksum)?
                && self.is_intact(
                    &backup.manifest_key(),
                    crate::record::RECORD_BYTES_MAX,
                    &backup.manifest_checksum,
                )?
            {
                return Ok(Some(backup));
            }
        }
        Ok(None)
    }

    fn is_intact(&self, key: &str, max_bytes: u64, checksum: &str) -> Result<bool> {
        let mut measured = Measured::new(std::io::sink(), "the backup", max_bytes);
        match self.place.get(key, max_bytes, &mut measured) {
            Ok(()) => Ok(measured.measure().sha256 == checksum),
            Err(error) if matches!(error.code, Code::NotFound | Code::TooLarge) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The objects of a backup in the order in which they are deleted.
fn keys(backup: &Metadata) -> [String; 3] {
    [
        metadata_key(&backup.backup_id),
        backup.manifest_key(),
        backup.archive_key(),
    ]
}
