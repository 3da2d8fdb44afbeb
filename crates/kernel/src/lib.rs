//! What every wing stands on.
//!
//! [`Kernel`] knows who is calling and what they may do, and has the log, the directories, the index
//! and what is done in the background. It is synchronous: doors call on threads that may wait. It keeps
//! nothing between calls that is not in the store, so that any number of processes can use one data
//! directory. It knows no wing: what a wing knows of files and nodes is asked for by [`Hooks`].
//!
//! Reading order: [`Kernel::open`], then `roots` and `file_node`, then `files` (a write that is also a
//! file), then `events` and `tokens`; `bucket`, `lease` and `worker` are what wings are built with.

mod authors;
mod bucket;
mod caller;
mod config;
mod copy;
pub mod edges;
mod embedding;
mod events;
mod file_node;
pub mod files;
pub mod follow;
mod index_files;
pub mod later;
pub mod lease;
mod lines;
mod local_token;
mod moments;
pub mod paging;
mod principal;
mod process;
pub mod roots;
pub mod search;
mod tokens;
mod transfer;
pub mod worker;

pub use authors::AuthorView;
pub use bucket::{Bucket, Kept, Text};
pub use caller::{ANSWER_CHARS_MAX, Caller, DEADLINE_DEFAULT, Progress, Waited};
pub use copy::{Restored, check_backup, read_back};
pub use embedding::{EmbeddingStatus, Reindexed};
pub use events::{EventView, KeptCheckpoints, Proof};
pub use file_node::{FileForm, FileNode, Forms, NOTE_BYTES_MAX, PlainFile, PlainForm, ReadFile};
pub use lease::Lease;
pub use local_token::{LOCAL_TOKEN_PREFIX, local_token};
pub use moments::{parse_moment, timestamp};
pub use paging::Page;
pub use principal::{Principal, Scope};
pub use process::ProcessMemory;
pub use tokens::{NewToken, TokenView};
pub use transfer::{ImportedFiles, Transferred};

use embedding::Chosen;
use index_files::IndexFiles;
use jiff::tz::TimeZone;
use kenning_audit::{Continuity, Log, Signer};
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

/// How long a call waits in all for the store, when that is a database that may fall silent, and for
/// the files of others: whoever holds a file's lock meanwhile makes others wait too.
const SHARED_WAIT: Duration = Duration::from_millis(4_500);

/// What wings know of files and nodes, for a kernel that knows no wing.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Of the files of each root.
    pub forms: Forms,
    /// By which passages a node is found.
    pub passages_of: fn(&Node) -> Vec<Passage>,
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
    /// The space that these directories belong to: their files are nobody else's to see.
    pub space: Space,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Where that clock hangs: files for people have local time.
    pub zone: TimeZone,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Variables of the environment.
    pub environment: Environment,
    /// Whether other machines may use the same store: then a file is locked beside itself, not in the
    /// data directory, which is each one's own.
    pub shared: bool,
    /// Whether nothing may be written, not even what was left unfinished.
    pub read_only: bool,
    /// What the wings know.
    pub hooks: Hooks,
}

/// What every wing stands on.
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
    searcher: Arc<Searcher>,
    collections: Collections,
    later: Later,
    read_only: bool,
    hooks: Hooks,
}

impl Kernel {
    /// Opens the store: finds or makes the node's key. What a killed process left unfinished is left so.
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
        let later = Later::new(log.clone(), read_only);
        let forms = hooks.forms;
        Ok(Self {
            log,
            searcher: Arc::new(Searcher::kept_by(IndexFiles::new(data.clone(), read_only))),
            collections: Collections::default(),
            later,
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
        })
    }

    /// Runs a call: all its waits together have one end, and what its door has waited for is taken
    /// off. Every call of a tool is made through this, and so is everything else here that a door asks
    /// for while somebody waits. Long work (backup, restore, verify, import, export) is not.
    pub fn patiently<T>(&self, waited: Waited, work: impl FnOnce() -> T) -> T {
        if self.shared {
            patience::within(SHARED_WAIT.saturating_sub(waited.0), work)
        } else {
            work()
        }
    }

    /// Whether the caller may change things, and this process may write.
    ///
    /// # Errors
    /// Denied when either may not.
    pub fn may_write(&self, caller: &Caller) -> Result<()> {
        caller.principal.require(Scope::Write)?;
        self.writable()
    }

    /// Whether this process may write.
    ///
    /// # Errors
    /// Denied when it may not.
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

    /// Calls `wake` after appends that the store hears of, and gives how often to look for others.
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

    /// Whether the log is still the one that it was.
    pub fn continuity(&self) -> &Arc<Continuity> {
        &self.continuity
    }

    /// Where the clock hangs.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Looks up a variable of the environment.
    pub fn environment(&self) -> &(dyn Fn(&str) -> Option<String> + Send + Sync) {
        &*self.environment
    }

    /// The index of passages.
    pub fn searcher(&self) -> &Arc<Searcher> {
        &self.searcher
    }

    /// The collections of callers' vectors.
    pub fn collections(&self) -> &Collections {
        &self.collections
    }

    /// What is done in the background.
    pub fn later(&self) -> &Later {
        &self.later
    }

    /// Whether other machines may use the same store.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether nothing may be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// What `doctor` found.
#[derive(Debug, Default)]
pub struct Doctor {
    /// What was looked at, and how it is.
    pub seen: Vec<(String, String)>,
    /// What is wrong.
    pub faults: Vec<String>,
    /// What works and is not as somebody meant it.
    pub warnings: Vec<String>,
}

/// The name of a memory: the one its caller gave it, or one made of its node's.
pub fn memory_id(node: &Node) -> String {
    match node.props.get("memory_id").and_then(Value::as_str) {
        Some(given) => given.to_owned(),
        None if node.kind == Kind::Memory => {
            format!("mem_{}", node.id.to_string().replace('-', ""))
        }
        // Evidence may be a note, an item, a page: those go by their key.
        None => node.key.clone(),
    }
}

/// Two processes that start at once agree on one key: whoever makes the file first.
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
