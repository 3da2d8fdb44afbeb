//! Repositories in the store: which there are, which files of each were read, and who scans them.

use kenning_audit::Tx;
use kenning_core::{NodeId, Result};
use kenning_kernel::{Bucket, Lease, RowCodec};
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The repositories, by their ids.
const REPOSITORIES: Bucket<Repository> = Bucket::new("repositories");
/// The id of the next one.
const COUNTER: Bucket<u64> = Bucket::new("repositories.counter");
/// Who scans a repository, until when, and how far.
const LEASES: Bucket<ScanLease> = Bucket::new("repositories.leases");

/// Changes whenever documents are made differently: then all are made again.
pub(super) const FORMAT: u32 = 1_000 + kenning_code::FORMAT;

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repository {
    pub(super) id: u64,
    /// Where it is, as [`super::source::Source`] shows it.
    pub(super) url: String,
    pub(super) name: String,
    /// The branch that somebody named; else the repository's own default is read.
    #[serde(default)]
    pub(super) branch: Option<String>,
    /// The default branch, as the last scan found it.
    #[serde(default)]
    pub(super) default_branch: Option<String>,
    /// The commit whose files are all in the store.
    #[serde(default)]
    pub(super) commit: Option<String>,
    /// When that was found out.
    #[serde(default)]
    pub(super) scanned_ms: Option<u64>,
    /// When it was last tried.
    #[serde(default)]
    pub(super) tried_ms: Option<u64>,
    /// Why that failed, if it did.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// How often it was scanned to the end.
    #[serde(default)]
    pub(super) n_scans: u64,
    /// Symbols that it had then.
    #[serde(default)]
    pub(super) n_symbols: u64,
    /// What they referred to.
    #[serde(default)]
    pub(super) n_edges: u64,
    /// In which format its files, symbols and edges were made.
    #[serde(default)]
    pub(super) format: u32,
    /// What scans have done since one came to its end.
    #[serde(default)]
    pub(super) pending: Pending,
}

/// What scans did that were broken off: whoever completes them counts it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    pub(super) n_files: u64,
    pub(super) n_removed: u64,
    pub(super) n_symbols: u64,
    pub(super) n_edges: u64,
}

impl Repository {
    /// The branch that is read, as far as that is known.
    pub(super) fn read_branch(&self) -> Option<&String> {
        self.branch.as_ref().or(self.default_branch.as_ref())
    }

    /// Whether everything of a commit is in the store, as it would be made now.
    pub(super) fn is_scanned(&self, commit: &str) -> bool {
        self.commit.as_deref() == Some(commit) && self.format == FORMAT
    }

    pub(super) fn set_scanned(&mut self, commit: String) {
        self.commit = Some(commit);
        self.format = FORMAT;
    }

    /// The bucket of its files.
    pub(super) fn files(&self) -> Bucket<Known> {
        Bucket::named(format!("repositories.files.{}", self.id))
    }

    /// What a document of it is called.
    pub(super) fn rid(&self, path: &str) -> String {
        format!("{}{path}", rid_prefix(&self.name))
    }

    pub(super) fn put(&self, tx: &mut Tx<'_>) -> Result<()> {
        REPOSITORIES.set(tx, &key(self.id), self)
    }

    /// The repository is no longer; its files are the caller's business.
    pub(super) fn unset(&self, tx: &mut Tx<'_>) -> Result<()> {
        LEASES.unset(tx, &key(self.id))?;
        REPOSITORIES.unset(tx, &key(self.id))
    }
}

/// What the names of a repository's documents begin with.
pub(super) fn rid_prefix(name: &str) -> String {
    format!("github:{name}:")
}

/// The one of this name. Case decides only between two that differ in nothing else.
pub(super) fn named(tx: &dyn ReadTx, name: &str) -> Result<Option<Repository>> {
    let mut all = all(tx)?;
    if let Some(place) = all.iter().position(|it| it.name == name) {
        return Ok(Some(all.swap_remove(place)));
    }
    all.retain(|it| it.name.eq_ignore_ascii_case(name));
    let only = all.pop();
    Ok(only.filter(|_| all.is_empty()))
}

/// All repositories, in the order of their ids.
pub(super) fn all(tx: &dyn ReadTx) -> Result<Vec<Repository>> {
    let rows = REPOSITORIES.list(tx)?.into_iter();
    Ok(rows.map(|it| it.1).collect())
}

/// The repository with this id.
pub(super) fn one(tx: &dyn ReadTx, id: u64) -> Result<Option<Repository>> {
    REPOSITORIES.get(tx, &key(id))
}

/// An id that nothing else has or had.
pub(super) fn next_id(tx: &mut Tx<'_>) -> Result<u64> {
    let next = COUNTER.get_readable(&**tx, "last")?.unwrap_or(0) + 1;
    COUNTER.set(tx, "last", &next)?;
    Ok(next)
}

/// Ids in the order of their numbers are keys in the order of their letters.
fn key(id: u64) -> String {
    format!("{id:020}")
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The name of its content.
    pub(super) object: String,
    /// Its document and how many passages that has; none if it is no text.
    pub(super) document: Option<(NodeId, u64)>,
}

impl RowCodec for Known {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let object = &self.object;
        let row = match &self.document {
            Some((node, n_passages)) => format!("{FORMAT} {object} {node} {n_passages}"),
            None => format!("{FORMAT} {object}"),
        };
        Ok(row.into_bytes())
    }

    /// A file whose document would be made otherwise now has no object, so that it differs from what there is.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut words = text.split(' ');
        let format: u32 = words.next()?.parse().ok()?;
        let object = words.next()?;
        let object = if format == FORMAT { object } else { "" }.to_owned();
        let document = match (words.next(), words.next()) {
            (Some(node), Some(n)) => Some((node.parse().ok()?, n.parse().ok()?)),
            _ => None,
        };
        Some(Self { object, document })
    }
}

/// The files of a repository that were read, by their paths.
pub(super) fn known(tx: &dyn ReadTx, repository: &Repository) -> Result<BTreeMap<String, Known>> {
    Ok(repository.files().list(tx)?.into_iter().collect())
}

/// How far a scan is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanProgress {
    /// `waiting`, `fetching`, `reading`, `writing` or `linking`.
    pub phase: String,
    /// Files that are done.
    pub files_done: u64,
    /// Files that differ from what is known; none before that is known.
    pub files_total: Option<u64>,
}

/// Who scans a repository, and how far that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScanLease {
    /// The data directory that it works from.
    pub(super) node: String,
    #[serde(flatten)]
    pub(super) lease: Lease,
    pub(super) progress: ScanProgress,
}

pub(super) fn lease(tx: &dyn ReadTx, id: u64) -> Result<Option<ScanLease>> {
    LEASES.get(tx, &key(id))
}

pub(super) fn put_lease(tx: &mut Tx<'_>, id: u64, lease: &ScanLease) -> Result<()> {
    LEASES.set(tx, &key(id), lease)
}

pub(super) fn end_lease(tx: &mut Tx<'_>, id: u64) -> Result<()> {
    LEASES.unset(tx, &key(id))
}
