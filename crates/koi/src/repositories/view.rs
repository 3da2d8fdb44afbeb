//! How repositories and their scans stand, as callers see it.

use super::ScanProgress;
use serde_json::Value;
use std::time::Duration;

/// What a scan did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The repository.
    pub repo: String,
    /// The commit whose files are all in the store.
    pub head_sha: String,
    /// Files that were new or other than before.
    pub files_processed: u64,
    /// Files that are gone.
    pub files_removed: u64,
    /// Files that the repository has.
    pub total_files: u64,
    /// Symbols of the files that were read: functions, types, constants …
    pub n_symbols: u64,
    /// Edges of the files whose references were resolved.
    pub n_edges: u64,
    /// Files whose references were resolved: those that changed, and those that depend on them.
    pub n_resolved: u64,
    /// Files that were not read, or only as texts, with the reason.
    pub skipped: Vec<Skipped>,
    /// How many there are.
    pub n_skipped: u64,
}

/// A file that was not read, or only as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the repository.
    pub path: String,
    /// Why it was not read.
    pub reason: String,
}

/// The state of a repository's scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// It is over.
    Done(Scanned),
    /// It failed; the next one tries again.
    Failed {
        /// The repository.
        repo: String,
        /// Why, and what to do about it.
        error: String,
    },
    /// It is running.
    Running {
        /// The repository.
        repo: String,
        /// Its progress.
        progress: ScanProgress,
    },
}

/// A repository, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// The branch that is read; none before the first scan has found it out.
    pub branch: Option<String>,
    /// When it was last scanned to the end, in milliseconds since 1970.
    pub scanned_ms: Option<u64>,
    /// The commit of that scan.
    pub commit: Option<String>,
    /// Files that it has.
    pub n_files: u64,
    /// Symbols that it has.
    pub n_symbols: u64,
    /// Edges of its code.
    pub n_edges: u64,
    /// Why the last scan failed, if it did.
    pub error: Option<String>,
    /// How far the scan is that goes on, here or elsewhere.
    pub progress: Option<ScanProgress>,
}

/// All repositories, as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryStatus {
    /// Whether this process scans what is due, or a scan goes on anywhere.
    pub is_running: bool,
    /// How often each is scanned.
    pub interval: Duration,
    /// When a scan last came to its end.
    pub last_scan_ms: Option<u64>,
    /// How many did.
    pub n_scans: u64,
    /// Documents of all repositories.
    pub n_documents: u64,
    /// Their passages.
    pub n_passages: u64,
    /// Those of them that have a vector.
    pub n_embedded: u64,
    /// In the order of their numbers.
    pub repositories: Vec<RepositoryView>,
}

/// A file of a repository that is a document.
#[derive(Clone, Debug, PartialEq)]
pub struct RepositoryFile {
    /// The document's name.
    pub rid: String,
    /// What is known of it: `repo`, `path`, `commit_sha`, `author`, `content_hash`, …
    pub props: serde_json::Map<String, Value>,
    /// When it was last read as another than before, in milliseconds since 1970.
    pub updated_ms: u64,
}
