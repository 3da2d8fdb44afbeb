//! Backups of the memory: the store's dump and the files beside it, in a directory or a bucket.
//!
//! Where they go and how long they stay is what `config.yaml` says under `vault`; how they are packed,
//! sealed and brought back is the `backup` crate's. Here is decided what belongs in one, and that a
//! restore replaces nothing unasked.
//!
//! An agent may make a backup with the scope `write`: it is given nothing that it could not see, and
//! the place is the operator's. Whoever wants to look at backups or bring one back needs `admin`.

use crate::Engine;
use jiff::Timestamp;
use kenning_audit::archive::Checked;
use kenning_backup::{Backups, BucketSettings, Kind, Metadata, Passphrase, Place, Request, Source};
use kenning_core::{Code, Error, Result};
use kenning_egress::Policy;
use kenning_kernel::{Caller, PROJECTS_FOLDER, Restored, Scope, check_backup};
use kenning_memory::config::{self, BackupPlace, Bucket, Config, Text};
use kenning_memory::{daily, now};
use kenning_text::list;
use kenning_vault::{Dir, Entry, Lock};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The dump of the store in a backup: what `kenning restore` reads.
const STORE: &str = "store.jsonl";

/// When the last backup was made.
const LAST: &str = ".moltvault_last_backup";

/// The variable with the passphrase.
const PASSPHRASE: &str = "MOLTVAULT_KEY";

/// How long a backup waits for a write to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Names that a message lists before it says how many more there are.
const LISTED_MAX: usize = 5;

/// Whether a backup contains everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupKind {
    /// Every file is in it.
    Full,
    /// Files that are unchanged since the last full backup are only in that one.
    Incremental,
}

impl BackupKind {
    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
        }
    }
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupView {
    /// `omi_{full|incremental}_{YYYYmmdd_HHMMSS}`
    pub backup_id: String,
    /// Whether it contains everything.
    pub kind: BackupKind,
    /// When it was made, in UTC.
    pub created_at: String,
    /// Bytes of the archive.
    pub file_size: u64,
    /// SHA-256 of the archive.
    pub checksum: String,
    /// Whether it is sealed with a passphrase.
    pub encrypted: bool,
    /// The files in its own archive.
    pub files_included: Vec<String>,
    /// A short hash of the directory that the files came from.
    pub base_path_hash: String,
    /// How long it should be kept, when it was made.
    pub retention_days: u32,
    /// The full backup that holds the other files.
    pub based_on: Option<String>,
    /// What a person should know about it.
    pub remarks: Vec<String>,
}

/// The backups at the configured place.
#[derive(Clone, Debug, Default)]
pub struct BackupList {
    /// The newest first.
    pub backups: Vec<BackupView>,
    /// Ids of those that cannot be restored, and why.
    pub broken: Vec<(String, String)>,
}

/// A backup that was read completely and is intact.
#[derive(Clone, Debug)]
pub struct VerifiedBackup {
    /// The backup.
    pub backup: BackupView,
    /// Every file that a restore would bring back.
    pub files: Vec<String>,
    /// Their bytes.
    pub n_bytes: u64,
}

/// How to restore a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether its dump is put into the store, which must be empty.
    pub with_store: bool,
    /// Whether existing files that differ are replaced.
    pub force: bool,
    /// Whether an unencrypted one is accepted although a passphrase is set.
    pub accept_unsealed: bool,
    /// Whether the tokens in it become valid again, including those that were revoked since it was
    /// made.
    pub keep_tokens: bool,
}

/// Where the files of a backup are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTo {
    /// A directory that the operator named; it is created if it is missing, and must be empty.
    Dir(PathBuf),
    /// Where they came from.
    InPlace,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoredBackup {
    /// The backup; its remarks say what is left to do.
    pub backup: BackupView,
    /// The restored files.
    pub files: Vec<String>,
    /// The directory that they are in, for the operator.
    pub directory: PathBuf,
    /// What was put into the store, if that was asked for.
    pub store: Option<Restored>,
}

impl Engine {
    /// Makes a backup and then deletes those that are older than `vault.retention_days`.
    pub fn vault_backup(&self, caller: &Caller, kind: BackupKind) -> Result<BackupView> {
        let dir = self.omi.context_to_write(caller)?;
        let config = self.kernel.memory_config()?;
        if !config.vault.enabled {
            return Err(
                Error::denied("backups are off: config.yaml says `vault.enabled: false`")
                    .hint("set `vault.enabled` to `true`"),
            );
        }
        let backups = self.backups_in(&dir, &config)?;
        let _lock = self.lock_backups()?;
        caller.check()?;

        let (mut files, mut dump) = (self.kernel.data().scratch()?, self.kernel.data().scratch()?);
        let spooled = self.spool_all(caller, &dir, &mut files, &mut dump)?;
        let now = self.timestamp_now();
        let base_path = dir.path().to_string_lossy();
        let request = Request {
            kind: match kind {
                BackupKind::Full => Kind::Full,
                BackupKind::Incremental => Kind::Incremental,
            },
            base_path: &base_path,
            retention_days: config.vault.retention_days,
            now,
            random: self.kernel.log().random(),
        };
        let from_start = Spooled {
            name: STORE.to_owned(),
            start: 0,
            n_bytes: u64::MAX,
        };
        let store = from_start.source(&dump).always();
        let others = spooled.into_iter().map(|it| it.source(&files));
        let metadata = backups.create(&request, std::iter::once(store).chain(others))?;

        let mut view = BackupView::from(metadata);
        if view.kind != kind {
            view.remarks.push(
                "a full backup was made: there is none yet that an incremental one could be based on"
                    .to_owned(),
            );
        }
        self.note_backup(caller, &dir, &view, now)?;
        match backups.cleanup(config.vault.retention_days, now, false) {
            Ok(cleaned) if cleaned.backups.is_empty() => {}
            Ok(cleaned) => view.remarks.push(format!(
                "deleted because they are older than {} days: {}",
                config.vault.retention_days,
                list::quoted(&cleaned.backups, LISTED_MAX)
            )),
            Err(error) => view
                .remarks
                .push(format!("old backups could not be deleted: {error}")),
        }
        Ok(view)
    }

    /// What backups there are.
    pub fn backup_list(&self, caller: &Caller) -> Result<BackupList> {
        let Some(backups) = self.backups_to_read(caller)? else {
            return Ok(BackupList::default());
        };
        let listing = backups.list()?;
        Ok(BackupList {
            backups: listing.backups.into_iter().map(Into::into).collect(),
            broken: listing
                .broken
                .into_iter()
                .map(|it| (it.backup_id, it.why))
                .collect(),
        })
    }

    /// Reads a whole backup, and what it is based on; reads every row of the store's dump, and
    /// computes its roots again.
    ///
    /// An unencrypted one is refused if a passphrase is set, unless `accept_unsealed` says that the
    /// place is trusted.
    pub fn backup_verify(
        &self,
        caller: &Caller,
        id: &str,
        accept_unsealed: bool,
    ) -> Result<VerifiedBackup> {
        let backups = self.backups_to_read(caller)?;
        let backups = backups.ok_or_else(|| Error::not_found("backup", id))?;
        let backups = backups.accepting_unsealed(accept_unsealed);
        let verified = backups.verify(id)?;
        // Intact bytes are of no use if they cannot be read as rows.
        let dump = backups.open_file(id, STORE)?;
        check_backup(BufReader::new(dump), Checked::Signatures)
            .map_err(|error| error.hint("a restore would refuse it; look for an older one"))?;
        Ok(VerifiedBackup {
            backup: verified.metadata.into(),
            files: verified.files,
            n_bytes: verified.n_bytes,
        })
    }

    /// Restores a backup: its files into a directory, and on request its dump into the store, which
    /// must be empty.
    pub fn backup_restore(
        &self,
        caller: &Caller,
        id: &str,
        to: &RestoreTo,
        options: RestoreOptions,
    ) -> Result<RestoredBackup> {
        let RestoreOptions {
            with_store,
            force,
            accept_unsealed,
            keep_tokens,
        } = options;
        let backups = self.backups_to_read(caller)?;
        let backups = backups.ok_or_else(|| Error::not_found("backup", id))?;
        let backups = backups.accepting_unsealed(accept_unsealed);
        if self.kernel.is_read_only() {
            return Err(Error::denied("the store is read-only").hint("start without `--read-only`"));
        }
        let metadata = backups.metadata(id)?;
        if with_store {
            self.refuse_full_store()?;
        }
        let (dir, files) = match to {
            RestoreTo::Dir(path) => {
                let dir = Dir::create(path)?;
                if !force {
                    refuse_occupied(&dir)?;
                }
                let restored = backups.restore(id, &dir)?;
                (dir, restored.files)
            }
            RestoreTo::InPlace => {
                let dir = self.omi.context_to_write(caller)?;
                let _lock = self
                    .kernel
                    .lock_file(&self.kernel.omi().file(now::FILE, 0), LOCK_WAIT)?;
                if !force {
                    refuse_differing(&backups, id, &dir)?;
                }
                let restored = backups.restore_part(id, &dir, &|name| name != STORE)?;
                (dir, restored.files)
            }
        };
        let store = match (with_store, to) {
            (false, _) => None,
            (true, RestoreTo::Dir(_)) => Some(self.load_store(caller, &dir, keep_tokens)?),
            (true, RestoreTo::InPlace) => {
                let work = self.kernel.data().private_subdir("restoring")?;
                backups.restore_part(id, &work, &|name| name == STORE)?;
                let loaded = self.load_store(caller, &work, keep_tokens);
                // What cannot be removed now is replaced by the next restore.
                let _ = work.remove(STORE);
                Some(loaded?)
            }
        };
        let mut backup = BackupView::from(metadata);
        if !backup.encrypted && self.has_passphrase() {
            backup.remarks.push(format!(
                "this backup is not sealed although {PASSPHRASE} is set: whoever can write to the place \
                 could have changed it"
            ));
        }
        if store.is_none() {
            backup.remarks.push(match to {
                RestoreTo::Dir(_) => {
                    format!("the store is as it was; its copy is `{STORE}` in the directory")
                }
                RestoreTo::InPlace => {
                    "the store is as it was: files that differ from what it knows \
                                       are reported by `integrity_check`"
                        .to_owned()
                }
            });
        }
        Ok(RestoredBackup {
            backup,
            files,
            directory: dir.path().to_owned(),
            store,
        })
    }

    /// Copies the files and the store of one moment to temporary files: while the files are copied
    /// nobody writes them, and the store's copy is of the moment in which they may be written again.
    fn spool_all(
        &self,
        caller: &Caller,
        dir: &Dir,
        files: &mut File,
        dump: &mut File,
    ) -> Result<Vec<Spooled>> {
        let space = &caller.principal.space;
        self.kernel
            .with_wait_limit(caller.waited, || self.omi.finish_context_writes(space, dir))?;
        let lock = self
            .kernel
            .lock_file(&self.kernel.omi().file(now::FILE, 0), LOCK_WAIT)?;
        let spooled = spool(dir, files)?;
        // The time limit of store access is for short calls. A copy of everything takes longer, so it
        // has its own thread.
        let dumped = std::thread::scope(|scope| {
            let mut out = io::BufWriter::new(dump);
            let work = move || {
                self.kernel
                    .dump(caller, space, move || drop(lock), &mut out)
            };
            scope.spawn(work).join()
        });
        let dumped = dumped.map_err(|_| Error::internal("the copy of the store panicked"))?;
        dumped.map_err(|error| match error.code {
            Code::Timeout => error.hint("`kenning omi backup create` takes the time that it needs"),
            _ => error,
        })?;
        Ok(spooled)
    }

    /// Records that a backup was made.
    fn note_backup(
        &self,
        caller: &Caller,
        dir: &Dir,
        view: &BackupView,
        now: Timestamp,
    ) -> Result<()> {
        dir.write_private(LAST, now.to_string().as_bytes())?;
        let data = json!({
            "backup_id": view.backup_id, "backup_type": view.kind.as_str(),
            "file_size": view.file_size, "checksum": view.checksum, "encrypted": view.encrypted,
        });
        self.kernel.log().write(&caller.principal.space, move |tx| {
            tx.record("VaultBackedUp", data).map(drop)
        })
    }

    /// The backups for a caller who may list them; `None` if there is no directory.
    fn backups_to_read(&self, caller: &Caller) -> Result<Option<Backups>> {
        caller.principal.require(Scope::Admin)?;
        let Some(dir) = self.kernel.omi().existing(&caller.principal.space)? else {
            return Ok(None);
        };
        let config = self.kernel.memory_config()?;
        self.backups_in(&dir, &config).map(Some)
    }

    fn backups_in(&self, dir: &Dir, config: &Config) -> Result<Backups> {
        let place = match &config.vault.place {
            BackupPlace::Local => Place::Local(dir.clone()),
            BackupPlace::Bucket(bucket) => Place::Bucket(self.bucket(bucket)?),
        };
        let passphrase = (self.kernel.environment())(PASSPHRASE).map(Passphrase::new);
        Ok(Backups::new(place, self.kernel.data().clone()).sealed_with(passphrase.transpose()?))
    }

    fn bucket(&self, bucket: &Bucket) -> Result<kenning_backup::Bucket> {
        let needed = |key: &str, text: &Option<Text>| {
            let text = text.as_ref().ok_or_else(|| config::missing(key))?;
            text.expand(self.kernel.environment())
        };
        let region = bucket.region.as_ref();
        let region = region
            .map(|it| it.expand(self.kernel.environment()))
            .transpose()?;
        let settings = BucketSettings {
            endpoint: needed("vault.endpoint", &bucket.endpoint)?,
            region: region.unwrap_or_else(|| "auto".to_owned()),
            bucket: needed("vault.bucket", &bucket.bucket)?,
            prefix: String::new(),
            access_key_id: needed("vault.access_key_id", &bucket.access_key_id)?,
            secret_access_key: needed("vault.secret_access_key", &bucket.secret_access_key)?.into(),
            session_token: None,
        };
        kenning_backup::Bucket::new(settings, Policy::default())
    }

    fn has_passphrase(&self) -> bool {
        (self.kernel.environment())(PASSPHRASE).is_some()
    }

    /// One at a time, so that repeated requests of an agent cost no more than one.
    fn lock_backups(&self) -> Result<Lock> {
        let locks = self.kernel.data().private_subdir("locks")?;
        locks
            .lock("backup.lock", Duration::ZERO)
            .map_err(|error| match error.code {
                Code::Unavailable => Error::unavailable("another backup is being made")
                    .hint("call again when it is done")
                    .because(error),
                _ => error,
            })
    }

    fn refuse_full_store(&self) -> Result<()> {
        for space in self.kernel.log().store().spaces()? {
            if self.kernel.log().roots(&space)?.seq > 0 {
                return Err(Error::conflict(format!(
                    "the store is not empty: the space `{space}` has events"
                ))
                .hint("restore into a new data directory (`--data DIR`), or leave the store out"));
            }
        }
        Ok(())
    }

    fn load_store(&self, caller: &Caller, dir: &Dir, keep_tokens: bool) -> Result<Restored> {
        self.restore(caller, keep_tokens, || {
            let dump = BufReader::new(dir.open_read(STORE)?);
            Ok(Box::new(dump) as Box<dyn BufRead + Send>)
        })
    }

    fn timestamp_now(&self) -> Timestamp {
        let ms = i64::try_from(self.kernel.log().clock().now_ms()).ok();
        let at = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        at.unwrap_or(Timestamp::MAX)
    }
}

impl From<Metadata> for BackupView {
    fn from(it: Metadata) -> Self {
        Self {
            backup_id: it.backup_id,
            kind: match it.backup_type {
                Kind::Full => BackupKind::Full,
                Kind::Incremental => BackupKind::Incremental,
            },
            created_at: it.created_at,
            file_size: it.file_size,
            checksum: it.checksum,
            encrypted: it.encrypted,
            files_included: it.files_included,
            base_path_hash: it.base_path_hash,
            retention_days: it.retention_days,
            based_on: it.based_on,
            remarks: Vec::new(),
        }
    }
}

/// A copy of a file, made while nobody wrote.
struct Spooled {
    name: String,
    start: u64,
    n_bytes: u64,
}

impl Spooled {
    fn source(self, mut from: &File) -> Source<'_> {
        Source::new(self.name, move |out| {
            from.seek(SeekFrom::Start(self.start)).map_err(unreadable)?;
            copy(&mut from.take(self.n_bytes), out).map(drop)
        })
    }
}

/// Copies the files that belong in a backup, one after the other.
fn spool(dir: &Dir, into: &mut File) -> Result<Vec<Spooled>> {
    let mut spooled = Vec::new();
    let mut start = 0;
    for name in names(dir)? {
        let mut file = match dir.open_read(&name) {
            Ok(file) => file,
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        };
        let n_bytes = copy(&mut file, into)?;
        spooled.push(Spooled {
            name,
            start,
            n_bytes,
        });
        start += n_bytes;
    }
    Ok(spooled)
}

/// The context, the configuration and the checksums; not vectors, which are in the store's dump or
/// can be computed again.
fn names(dir: &Dir) -> Result<Vec<String>> {
    let mut names = names_at(dir, "")?;
    names.push(config::FILE.to_owned());
    // Each project has a folder with the same files.
    for project in entries(dir, PROJECTS_FOLDER)? {
        let place = format!("{PROJECTS_FOLDER}/{}/", project.name);
        names.extend(names_at(dir, &place)?);
    }
    Ok(names)
}

/// The files of a project, or of none, by the beginning of their names.
fn names_at(dir: &Dir, place: &str) -> Result<Vec<String>> {
    let known = [now::FILE, kenning_omi::checksums::MEMORY];
    let mut names: Vec<String> = known.map(|it| format!("{place}{it}")).to_vec();
    let beside = entries(
        dir,
        if place.is_empty() {
            "."
        } else {
            place.trim_end_matches('/')
        },
    )?;
    let sums = beside.into_iter().filter(|it| it.is_file);
    let sums = sums.filter(|it| it.name.starts_with('.') && it.name.ends_with(".hash"));
    names.extend(sums.map(|it| format!("{place}{}", it.name)));
    let logs = entries(dir, &format!("{place}{}", daily::FOLDER))?.into_iter();
    let logs = logs.filter(|it| it.is_file && it.name.ends_with(".md"));
    names.extend(logs.map(|it| format!("{place}{}/{}", daily::FOLDER, it.name)));
    Ok(names)
}

/// What is in a folder; nothing if there is none.
fn entries(dir: &Dir, name: &str) -> Result<Vec<Entry>> {
    match dir.list(name) {
        Err(error) if error.code == Code::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

fn copy(from: &mut dyn Read, mut to: &mut dyn Write) -> Result<u64> {
    io::copy(from, &mut to).map_err(unreadable)
}

/// `vault` puts its own errors inside.
fn unreadable(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(other) => Error::unavailable("a file could not be copied").because(other),
    }
}

fn refuse_occupied(dir: &Dir) -> Result<()> {
    let names: Vec<String> = dir.list(".")?.into_iter().map(|it| it.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let shown = list::quoted(&names, LISTED_MAX);
    Err(
        Error::conflict(format!("the directory is not empty: it has {shown}"))
            .hint("name an empty or a new one, or replace files of the same names with `--force`"),
    )
}

fn refuse_differing(backups: &Backups, id: &str, dir: &Dir) -> Result<()> {
    let differing = backups.differing(id, dir)?;
    if differing.is_empty() {
        return Ok(());
    }
    let shown = list::quoted(&differing, LISTED_MAX);
    Err(
        Error::conflict(format!("the restore would replace {shown}, which differ"))
            .hint("restore into another directory (`--to DIR`) and compare, or use `--force`"),
    )
}
