//! The hall: what all doors open onto.
//!
//! [`Engine`] knows who may do what, in which transaction, and composes the wings. It is synchronous:
//! doors call it on threads that may wait. It keeps nothing between calls that is not in the store,
//! so that any number of processes can stand on one data directory.
//!
//! Reading order: [`Engine::open`], then `files` (a write that is also a file), then `notes` and
//! `context`, which write such files.

mod authors;
mod backups;
mod bus;
mod caller;
mod cleanup;
mod context;
mod edges;
mod embedding;
mod entities;
mod events;
mod far;
mod files;
mod follow;
mod graph;
mod index_files;
mod items;
mod later;
mod local_token;
mod mail;
mod memories;
mod moments;
mod notes;
mod paging;
mod principal;
mod process;
mod repositories;
mod roots;
mod sensors;
mod sessions;
mod tokens;
mod transfer;
mod vectors;
mod wasm_tools;
mod web;
mod webhooks;

pub use authors::AuthorView;
pub use backups::{
    BackupKind, BackupList, BackupView, RestoreOptions, RestoreTo, RestoredBackup, VerifiedBackup,
};
pub use bus::{EVENT_TYPES, EventQuery, EventType, MemoryEvent, MemoryEvents};
pub use caller::{ANSWER_CHARS_MAX, Caller, DEADLINE_DEFAULT, Progress, Waited};
pub use cleanup::Cleaned;
pub use context::{FilesIntegrity, Now, NowFile, NowUpdate};
pub use embedding::{EmbeddingStatus, Reindexed};
pub use entities::{
    Company, EntityCandidate, EntityContext, EntityDocument, EntityDocuments, EntityImport,
    EntityResolution, EntityStats, EntityType, EntityTypes, EntityView, FoundDocument,
    FoundEntities, FoundEntity, FoundKnowledge, FoundPassage, Identities, ImportedEntities,
    InCompany, KnowledgeQuery, MergeOutcome, MergeProposal, MergedEntity, Neighborhood, NoteState,
    PendingRelationship, ProposedEntity, RegisterEntity, RegisteredEntity, Relationship,
    RelationshipStats, SaidEntity, SaidEntityOutcome, SaidMerge, SaidOutcome, SaidRelation,
    SaidRelationOutcome, SearchMethod, StatedDocument, SyncedRelationships, Veto,
    frontmatter_fault, normalized_name,
};
pub use events::{EventView, KeptCheckpoints, Proof};
pub use far::{FORWARDED, FarAnswer, FarServer};
pub use graph::{
    Backlink, Backlinks, BrokenLink, Community, DocumentName, ExportFormat, Orphan, PathStep,
    Suggestion, SuggestionReason,
};
pub use graph::{
    CacheStats, Connected, DocType, Document, DocumentContent, DocumentQuery, FileError,
    FoundDocuments, Generate, Generated, GraphHealth, GraphStats, GraphWatch, Incoming, Outgoing,
    Status, TagCount, Tagged, WatchOptions, snippet,
};
pub use items::{
    AskedWords, Catalogue, DeletedItem, DirectiveRun, DirectiveStep, ExportedSkills, FoundItem,
    FoundItems, ItemFault, ItemOptions, ItemQuery, ItemResult, ItemScope, ItemSort, ItemSource,
    ItemTarget, ItemType, KnowledgeRun, LinkedItem, LoadFrom, LoadItem, LoadedItem, NewItem,
    PublishedItem, RegistryPackage, RegistryVersion, SignAs, SignCandidate, SignItem, SignState,
    SignedItem, Skill, ToolItemRun,
};
pub use kenning_memory::types::MemoryType;
pub use kenning_search::{IndexState, Mode, Partial, asks_for_something};
pub use kenning_store::check_json_depth;
pub use local_token::{LOCAL_TOKEN_PREFIX, local_token};
pub use mail::MailRead;
pub use memories::{
    BeliefUpdate, Central, Contradiction, Evidence, EvidenceUpdate, GraphEdge, Integrity,
    IntegrityScope, MEMORY_BYTES_MAX, Memory, MemoryAccess, MemoryDetails, MemoryGraph,
    MemoryRelation, Neighbor, NewMemory, Recall, RecallSort, Recalled, RecalledMemory,
    StoredMemory, Topology,
};
pub use moments::{parse_moment, timestamp};
pub use notes::NOTE_BYTES_MAX;
pub use paging::Page;
pub use principal::{Principal, Scope};
pub use process::ProcessMemory;
pub use repositories::{
    ForgottenRepository, NewRepository, Registered, RepositoryFile, RepositoryOptions,
    RepositoryStatus, RepositoryView, ScanProgress, ScanResult, Scanned,
};
pub use sensors::{SENSORS_LOOK, Sensors};
pub use sessions::{SessionEnded, SessionStarted};
pub use tokens::{NewToken, TokenView};
pub use transfer::{Restored, Transferred, read_back};
pub use vectors::{
    FoundVectors, Keywords, NAMESPACE_DEFAULT, NewVector, UpsertedVector, VECTOR_DIMENSIONS_MAX,
    VECTOR_RESULTS_MAX, VectorHit, VectorNamespace, VectorQuery,
};
pub use wasm_tools::{
    ArgumentView, CheckedPackage, FileRun, FoundPackage, FoundTool, Granted, InstallOptions,
    Installation, InstalledTool, ToolFunction, ToolRun, ToolUsage, TrustedKey, WasmOptions,
    tool_manifest_wasm,
};
pub use web::{
    EvaluatedPage, ExtractedEntity, ExtractedRelation, IngestRequest, IngestedPage, Ingestion,
    MatchedEntity, MonitorAdded, MonitorStatus, MonitoredPage, PageEvaluation, PageMetadata,
    PagePreview, PageSafety, PageWatch, PreviewRequest, Previewed, ProcessRequest, ProcessedPage,
    ScannedPages, WatchPace, WebAbilities, WebEntity, WebFault, WebFaultKind, WebOptions,
    WebRelation, WebResult, note_of_entity,
};
pub use webhooks::{Pace, Webhooks};

use embedding::Chosen;
use index_files::IndexFiles;
use jiff::tz::TimeZone;
use kenning_audit::{Continuity, Log, Signer, Verify};
use kenning_core::{Clock, Did, Error, Hash, Random, Result, Space};
use kenning_search::{Collections, Searcher};
use kenning_store::{Store, patience};
use kenning_vault::Dir;
use later::Later;
use roots::Root;
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

/// What a process needs to open the hall.
pub struct Options {
    /// The cellar.
    pub store: Store,
    /// The data directory: key, locks.
    pub data: Dir,
    /// Where the vault is (`VAULT_PATH`). Only the vault tools need it.
    pub vault: Option<PathBuf>,
    /// Where NOW.md and the daily logs are (`OMI_BASE_PATH`). It is made by the first write.
    pub omi: Option<PathBuf>,
    /// Where the project is, whose documents make the graph.
    pub project: Option<PathBuf>,
    /// How WASM tools are kept and run.
    pub wasm: WasmOptions,
    /// Where directives, tools and knowledge are.
    pub items: ItemOptions,
    /// Which repositories may be read.
    pub repositories: RepositoryOptions,
    /// An mbox file, a Maildir, or a folder of those (`KENNING_MAIL`). It is only read.
    pub mail: Option<PathBuf>,
    /// How pages of the web are reached.
    pub web: WebOptions,
    /// The space that these directories belong to: their files are nobody else's to see.
    pub space: Space,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Where that clock hangs: files for people have local time.
    pub zone: TimeZone,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Variables that `config.yaml` may name as `${NAME}`, and the passphrase of backups
    /// (`MOLTVAULT_KEY`), and the KOI server in place of this one (`KOI_API_ENDPOINT`).
    pub environment: Environment,
    /// Whether other machines may stand on the same store: then a file is locked beside itself, not
    /// in the data directory, which is each one's own.
    pub shared: bool,
    /// Whether nothing may be written, not even what was left unfinished.
    pub read_only: bool,
}

/// What all doors open onto.
pub struct Engine {
    log: Log,
    data: Dir,
    vault: Root,
    omi: Root,
    project: Root,
    libraries: graph::Libraries,
    continuity: Arc<Continuity>,
    wasm: wasm_tools::WasmTools,
    items: items::Items,
    entities: entities::Entities,
    far: far::Far,
    repositories: repositories::Repositories,
    mail: mail::Mail,
    web: web::Web,
    opened: Instant,
    zone: TimeZone,
    environment: Environment,
    chosen: Chosen,
    linked: memories::Linked,
    checked_logs: memories::CheckedLogs,
    shared: bool,
    searcher: Arc<Searcher>,
    collections: Collections,
    later: Later,
    read_only: bool,
}

impl Engine {
    /// Opens the hall: finds or makes the node's key, then finishes the file writes that a killed
    /// process left behind.
    pub fn open(options: Options) -> Result<Self> {
        let Options {
            store,
            data,
            vault,
            omi,
            project,
            wasm,
            items,
            repositories,
            mail,
            web,
            space,
            clock,
            zone,
            random,
            environment,
            shared,
            read_only,
        } = options;
        let signer = find_or_make_key(&data, &*random)?;
        let log = Log::new(store, signer, clock, random);
        let later = Later::new(log.clone(), read_only);
        let engine = Self {
            log,
            searcher: Arc::new(Searcher::kept_by(IndexFiles::new(data.clone(), read_only))),
            collections: Collections::default(),
            later,
            data,
            vault: Root::new(&roots::VAULT, vault, space.clone()),
            omi: Root::new(&roots::OMI, omi, space.clone()),
            project: Root::new(&roots::PROJECT, project, space.clone()),
            libraries: graph::Libraries::default(),
            continuity: Arc::default(),
            wasm: wasm_tools::WasmTools::new(wasm),
            items: items::Items::new(items),
            entities: entities::Entities::default(),
            far: far::Far::default(),
            repositories: repositories::Repositories::new(repositories, space.clone()),
            mail: mail::Mail::new(mail, space.clone()),
            web: web::Web::new(web),
            opened: Instant::now(),
            zone,
            environment,
            chosen: Chosen::default(),
            linked: memories::Linked::default(),
            checked_logs: memories::CheckedLogs::default(),
            shared,
            read_only,
        };
        let clock_fault = match read_only {
            true => None,
            false => engine.log.clock_fault(&space)?,
        };
        if let Some(fault) = &clock_fault {
            // What was left unfinished waits: `audit reset-clock` must be able to open the store.
            tracing::warn!("space {space}: {fault}");
        }
        if !read_only && clock_fault.is_none() {
            engine.finish_file_writes()?;
            engine.finish_item_writes(&space)?;
            engine.sweep_killed_runs();
        }
        Ok(engine)
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

    pub(crate) fn writable(&self) -> Result<()> {
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

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Calls `wake` after appends that the store hears of, and gives how often to look for others.
    pub fn on_append(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Duration {
        self.log.store().subscribe(wake)
    }

    /// What is wrong with this installation, one sentence each, and what was looked at.
    pub fn doctor(&self) -> Result<Doctor> {
        let mut found = Doctor::default();
        found
            .seen
            .push(("store".to_owned(), self.log.store().describe()));
        found
            .seen
            .push(("author".to_owned(), self.log.signer().did().to_string()));
        for fault in self.log.store().check()? {
            found.faults.push(format!("store: {fault}"));
        }
        for space in self.log.store().spaces()? {
            let roots = self.log.roots(&space)?;
            found
                .seen
                .push((format!("space {space}"), format!("{} events", roots.seq)));
            self.examine_authors(&space, &mut found)?;
            let pending = self.log.read(&space, |tx| tx.list(files::INTENTS))?.len();
            if let Some(fault) = self.log.clock_fault(&space)? {
                found.faults.push(format!("space {space}: {fault}"));
            }
            if pending > 0 {
                found.faults.push(format!(
                    "space {space}: {pending} file writes are unfinished"
                ));
            }
        }
        for root in [&self.vault, &self.omi, &self.project] {
            root.examine(&mut found);
        }
        if let Err(error) = self.memory_config() {
            found.faults.push(format!("omi: {error}"));
        }
        if let Err(error) = self.web_settings() {
            found.faults.push(format!("web: {error}"));
        }
        self.examine_notes(&mut found)?;
        self.examine_growth(&mut found)?;
        Ok(found)
    }

    /// Re-derives the whole log and state of a space from raw rows.
    pub fn verify(&self, space: &Space, progress: &dyn Fn(u64)) -> Result<kenning_audit::Report> {
        self.verify_with(space, &[], None, progress)
    }

    /// The same with what the verifier knows besides: keys to trust, and checkpoints that were kept
    /// elsewhere.
    pub fn verify_with(
        &self,
        space: &Space,
        authors: &[Did],
        since: Option<&KeptCheckpoints>,
        progress: &dyn Fn(u64),
    ) -> Result<kenning_audit::Report> {
        let asked = Verify {
            authors,
            since: since.and_then(|it| it.of(space)),
            ..Verify::of(space).by(self.log.signer().did())
        };
        self.log.read(space, |tx| {
            let mut report = kenning_audit::verify(tx, &asked, progress)?;
            report.faults.extend(entities::faults_of_statements(tx)?);
            report.faults.extend(files::faults_of_intents(tx)?);
            Ok(report)
        })
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
