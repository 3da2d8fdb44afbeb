//! What every wing stands on.
//!
//! [`Kernel`] knows who is calling and what they may do, and has the log, the directories, the index
//! and what is done in the background. It is synchronous: doors call on threads that may wait. It keeps
//! nothing between calls that is not in the store, so that any number of processes can use one data
//! directory. It knows no wing: what a wing knows of files and nodes is asked for by [`Hooks`].
//!
//! Reading order: [`Kernel::open`], then `roots` and `file_node`, then `journal` and `files` (a write
//! that is also a file), then `events` and `tokens`; `bucket`, `lease` and `worker` are what wings are built with.

mod agents;
mod authors;
mod bucket;
mod caller;
mod checkpoints;
mod config;
mod copy;
pub mod edges;
mod embedding;
mod events;
mod file_node;
mod file_set;
pub mod files;
pub mod follow;
pub mod forget;
mod index_files;
pub mod journal;
mod language;
pub mod later;
pub mod lease;
mod lines;
mod local_token;
mod log_query;
mod moments;
mod open_conflicts;
pub mod paging;
mod peers;
mod principal;
mod process;
mod project;
pub mod projects;
mod proofs;
pub mod roots;
pub mod search;
mod tokens;
mod transfer;
mod verified;
pub mod worker;

pub use agents::AgentView;
pub use authors::AuthorView;
pub use bucket::{Bucket, Mark, Raw, RowCodec, Text, VECTOR_ACCOUNTS};
pub use caller::{ANSWER_CHARS_MAX, Caller, DEADLINE_DEFAULT, Progress, Waited};
pub use checkpoints::{CheckpointView, Validator};
pub use copy::{Restored, check_backup, read_back};
pub use embedding::{EmbeddingStatus, Reindexed};
pub use events::{EventView, KeptCheckpoints, Proof};
pub use file_node::{FileForm, FileNode, Forms, NOTE_BYTES_MAX, PlainFile, PlainForm, ReadFile};
pub use file_set::FileEdit;
pub use kenning_peers::{
    Done, Evidence, MESSAGE_BYTES_MAX as PEER_MESSAGE_BYTES_MAX, PageEntry, Peer,
    Policy as PeerPolicy,
};
pub use language::LanguageModel;
pub use lease::Lease;
pub use local_token::{LOCAL_TOKEN_PREFIX, local_token};
pub use log_query::{CONTRACT_KINDS, LogPage, LogQuery, LogStats, LoggedEvent};
pub use moments::{parse_end, parse_moment, timestamp};
pub use paging::Page;
pub use peers::{
    Carrier, Choice, ExchangeView, NewPeer, OpenConflict, PeerAnswer, PeerMessage, PeerSync,
    PeerView, SyncStatus,
};
pub use principal::{Principal, Scope};
pub use process::ProcessMemory;
pub use project::{FOLDER as PROJECTS_FOLDER, Project};
pub use proofs::{CheckedFile, check_export, check_proof, parse_public_key};
pub use tokens::{NewToken, TokenView, check_plain_name};
pub use transfer::{Imported, ImportedFiles, Transferred};
pub use verified::Verified;

use embedding::Chosen;
use index_files::{IndexFiles, IndexWorker};
use jiff::tz::TimeZone;
use journal::Journal;
use kenning_audit::foreign::{Batch, Merged};
use kenning_audit::{CHECKPOINT_EVERY, CHECKPOINT_EVERY_MIN, Continuity, Log, Signer, Tx};
use kenning_core::{Clock, Error, Hash, Kind, Random, Result, Space};
use kenning_search::{Collections, Searcher};
use kenning_store::{Node, Passage, Store, patience};
use kenning_vault::Dir;
use later::Later;
use roots::Root;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the key file in the data directory.
const KEY_FILE: &str = "node.key";

/// Looks up a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long a call waits in total for the store, if that is a database that may become unreachable,
/// and for the files of others: whoever holds a file's lock meanwhile makes others wait too.
const SHARED_WAIT: Duration = Duration::from_millis(4_500);

/// What domain crates know of files and nodes, for a kernel that knows none of them.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// The forms of the files of each root.
    pub forms: Forms,
    /// The passages of a node.
    pub passages_of: fn(&Node) -> Vec<Passage>,
    /// Keeps events of a peer aside that must not be applied without a second key, and reduces each to its id.
    pub hold: fn(&mut Tx<'_>, &mut Batch) -> Result<()>,
    /// Brings derived rows up to date with what came from a peer, in the same transaction.
    pub merged: fn(&mut Tx<'_>, &Merged) -> Result<()>,
}

/// What a process needs to open the kernel.
pub struct Options {
    /// Where everything is kept.
    pub store: Store,
    /// The data directory: key, locks.
    pub data: Dir,
    /// Where the vault is (`VAULT_PATH`). Only the vault tools need it.
    pub vault: Option<PathBuf>,
    /// Where NOW.md and the daily logs are (`OMI_BASE_PATH`). It is made by the first write.
    pub omi: Option<PathBuf>,
    /// Where the project is, whose documents make the graph.
    pub project: Option<PathBuf>,
    /// The space that these directories belong to: only it sees their files.
    pub space: Space,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// The local time zone: files for people have local time.
    pub zone: TimeZone,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Variables of the environment.
    pub environment: Environment,
    /// Whether other machines may use the same store: then a file is locked beside itself, not in the
    /// data directory, which each machine has for itself.
    pub shared: bool,
    /// Whether nothing may be written, not even to finish an interrupted write.
    pub read_only: bool,
    /// What the domain crates know.
    pub hooks: Hooks,
}

/// What every domain crate uses.
pub struct Kernel {
    log: Log,
    data: Dir,
    vault: Root,
    omi: Root,
    project: Root,
    continuity: Arc<Continuity>,
    opened: Instant,
    zone: TimeZone,
    environment: Environment,
    chosen: Chosen,
    shared: bool,
    /// Before the indexes that it tends: dropped first.
    _index_worker: IndexWorker,
    searcher: Arc<Searcher>,
    collections: Collections,
    later: Later,
    journal: Arc<Journal>,
    read_only: bool,
    hooks: Hooks,
    exchanges: peers::Exchanges,
}

impl Kernel {
    /// Opens the store: finds or makes the node's key. Unfinished writes of a killed process are left
    /// as they are.
    pub fn open(options: Options) -> Result<Self> {
        let Options {
            store,
            data,
            vault,
            omi,
            project,
            space,
            clock,
            zone,
            random,
            environment,
            shared,
            read_only,
            hooks,
        } = options;
        let signer = find_or_make_key(&data, &*random)?;
        let log = Log::new(store, signer, clock, random);
        let log = log.with_checkpoints_every(checkpoints_every(&*environment)?);
        let later = Later::new(log.clone(), read_only);
        let exchanges = peers::Exchanges::new(log.random());
        let forms = hooks.forms;
        let index_worker = IndexWorker::default();
        let index_files = IndexFiles::new(data.clone(), read_only, &index_worker);
        let searcher = Arc::new(Searcher::kept_by(index_files));
        index_worker.works_for(&searcher, &log);
        Ok(Self {
            log,
            _index_worker: index_worker,
            searcher,
            collections: Collections::default(),
            later,
            journal: Arc::default(),
            data,
            vault: Root::new(&roots::VAULT, forms.vault, vault, space.clone()),
            omi: Root::new(&roots::OMI, forms.omi, omi, space.clone()),
            project: Root::new(&roots::PROJECT, &PlainForm, project, space),
            continuity: Arc::default(),
            opened: Instant::now(),
            zone,
            environment,
            chosen: Chosen::default(),
            shared,
            read_only,
            hooks,
            exchanges,
        })
    }

    /// Runs a call: all its waits together have one limit, from which the time it has waited before
    /// is subtracted, and the configuration is read once. Every call of a tool runs through this, and so does everything else here that a
    /// client waits for. Long work (backup, restore, verify, import, export) does not.
    pub fn with_wait_limit<T>(&self, waited: Waited, work: impl FnOnce() -> T) -> T {
        self.with_one_config(|| {
            if self.shared {
                patience::within(SHARED_WAIT.saturating_sub(waited.0), work)
            } else {
                work()
            }
        })
    }

    /// Checks that the caller may change things, and that this process may write.
    ///
    /// # Errors
    /// Denied if either may not.
    pub fn may_write(&self, caller: &Caller) -> Result<()> {
        caller.principal.require(Scope::Write)?;
        self.writable()
    }

    /// Checks that this process may write.
    ///
    /// # Errors
    /// Denied if it may not.
    pub fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(
                Error::denied("this process only reads").hint("start it without `--read-only`")
            );
        }
        Ok(())
    }

    /// How long this has been open, and what memory it holds.
    pub fn process(&self) -> (Duration, ProcessMemory) {
        (self.opened.elapsed(), ProcessMemory::now())
    }

    /// Calls `wake` after appends that the store is notified of, and returns how often to check for
    /// others.
    pub fn on_append(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Duration {
        self.log.store().subscribe(wake)
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The data directory.
    pub fn data(&self) -> &Dir {
        &self.data
    }

    /// The directory of notes.
    pub fn vault(&self) -> &Root {
        &self.vault
    }

    /// The directory of NOW.md, the daily logs and `config.yaml`.
    pub fn omi(&self) -> &Root {
        &self.omi
    }

    /// The project whose documents make the graph.
    pub fn project(&self) -> &Root {
        &self.project
    }

    /// Detects whether the log is still the same one.
    pub fn continuity(&self) -> &Arc<Continuity> {
        &self.continuity
    }

    /// The local time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Looks up a variable of the environment.
    pub fn environment(&self) -> &(dyn Fn(&str) -> Option<String> + Send + Sync) {
        &*self.environment
    }

    /// The same, for a thread of its own.
    pub fn shared_environment(&self) -> Environment {
        Arc::clone(&self.environment)
    }

    /// The index of passages.
    pub(crate) fn searcher(&self) -> &Arc<Searcher> {
        &self.searcher
    }

    /// The collections of callers' vectors.
    pub fn collections(&self) -> &Collections {
        &self.collections
    }

    /// The background work.
    pub fn later(&self) -> &Later {
        &self.later
    }

    /// Writes of files that are not carried out yet.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Whether other machines may use the same store.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether this process may not write.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// What `doctor` found.
#[derive(Debug, Default)]
pub struct Doctor {
    /// What was checked, and its state.
    pub seen: Vec<(String, String)>,
    /// What is wrong.
    pub faults: Vec<String>,
    /// What works, but perhaps not as intended.
    pub warnings: Vec<String>,
}

/// The id of a memory: the one its caller gave it, or one made from its node's.
pub fn memory_id(node: &Node) -> String {
    match node.props.get("memory_id").and_then(Value::as_str) {
        Some(given) => given.to_owned(),
        None if node.kind == Kind::Memory => {
            format!("mem_{}", node.id.to_string().replace('-', ""))
        }
        // Evidence may be a note, an item, a page: those are named by their key.
        None => node.key.clone(),
    }
}

/// After how many events the log signs a checkpoint by itself: our name of the setting, and that of the graph
/// contract.
const CHECKPOINT_VARIABLES: [&str; 2] =
    ["KENNING_CHECKPOINT_EVERY", "EXOCHAIN_CHECKPOINT_INTERVAL"];

fn checkpoints_every(environment: &dyn Fn(&str) -> Option<String>) -> Result<u64> {
    let given = |name: &'static str| Some((name, environment(name).filter(|it| !it.is_empty())?));
    let Some((name, text)) = CHECKPOINT_VARIABLES.into_iter().find_map(given) else {
        return Ok(CHECKPOINT_EVERY);
    };
    let n_events = text.trim().parse().ok();
    n_events
        .filter(|it| *it >= CHECKPOINT_EVERY_MIN)
        .ok_or_else(|| {
            Error::invalid(format!("`{name}`: `{text}` is not a number of events"))
                .hint(format!("use {CHECKPOINT_EVERY_MIN} or more"))
        })
}

/// Two processes that start at once agree on one key: the one that creates the file first.
fn find_or_make_key(data: &Dir, random: &dyn Random) -> Result<Signer> {
    if !data.exists(KEY_FILE)? {
        let secret = Signer::generate(random).secret();
        data.create_new_private(KEY_FILE, Hash(secret).to_string().as_bytes())?;
    }
    read_key(data, KEY_FILE)
}

fn read_key(data: &Dir, name: &str) -> Result<Signer> {
    let bytes = data.read(name, 1_024)?;
    let text = String::from_utf8_lossy(&bytes);
    let secret = Hash::from_hex(text.trim()).ok_or_else(|| {
        Error::corrupt(format!("`{name}` in the data directory is not a key"))
            .hint("restore it from a copy, or remove it to go on under a new identity")
    })?;
    Ok(Signer::from_secret(&secret.0))
}
