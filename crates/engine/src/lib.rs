//! Puts everything together.
//!
//! [`Engine`] composes the kernel and the domain crates (`koi`, `kg`, `omi`, `kiwi`, `kami`) and has
//! what needs several of them: opening, `doctor`, `verify`, backups and cleaning up. A transport
//! calls a domain (`engine.koi()`, `engine.kg()`, …); what it needs of the kernel is in `calls`, and
//! it cannot reach the log or the store.

mod backups;
mod calls;
mod cleanup;
mod sensors;

pub use backups::{
    BackupKind, BackupList, BackupView, RestoreOptions, RestoreTo, RestoredBackup, VerifiedBackup,
};
pub use cleanup::Cleaned;
pub use kenning_audit::{CheckpointLabel, on_behalf_of};
pub use kenning_kernel::forget::TEXT_CHARS_MIN as FORGET_TEXT_CHARS_MIN;
pub use kenning_kernel::worker;
pub use kenning_kernel::{
    ANSWER_CHARS_MAX, AgentView, AuthorView, CONTRACT_KINDS, Caller, CheckpointView, Choice,
    DEADLINE_DEFAULT, Doctor, Done, EmbeddingStatus, Environment, EventView, ExchangeView,
    Imported, KeptCheckpoints, LOCAL_TOKEN_PREFIX, LogPage, LogQuery, LogStats, LoggedEvent,
    NOTE_BYTES_MAX, NewPeer, NewToken, OpenConflict, PEER_MESSAGE_BYTES_MAX, Page, Peer,
    PeerAnswer, PeerMessage, PeerPolicy, PeerSync, PeerView, Principal, ProcessMemory, Progress,
    Project, Proof, Reindexed, Restored, Scope, SyncStatus, TokenView, Transferred, Verified,
    Waited, check_export, check_proof, local_token, parse_end, parse_moment, parse_public_key,
    read_back, timestamp,
};
pub use kenning_search::{IndexState, Mode, Partial, asks_for_something};
pub use kenning_store::check_json_depth;
pub use sensors::{SENSORS_LOOK, Sensors};
pub use {
    kenning_agents as agents, kenning_kami as kami, kenning_kg as kg, kenning_kiwi as kiwi,
    kenning_koi as koi, kenning_llm as llm, kenning_omi as omi, kenning_query as query,
    kenning_runs as runs, kenning_workflow as workflow, kenning_workflow_steps as workflow_steps,
};

use agents::Agents;
use jiff::tz::TimeZone;
use kami::Kami;
use kenning_audit::foreign::Merged;
use kenning_audit::{Tx, Verify};
use kenning_core::{Clock, Did, Kind, Random, Result, Space};
use kenning_kernel::{Forms, Hooks, Kernel, files};
use kenning_store::{Node, Passage, ReadTx, Store};
use kenning_vault::Dir;
use kg::Kg;
use kiwi::Kiwi;
use koi::Koi;
use omi::Omi;
use query::Queries;
use runs::Runs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use workflow_steps::Workflows;

/// What a process needs to open the engine.
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
    /// How WASM tools are kept and run.
    pub wasm: kami::WasmOptions,
    /// Where directives, tools and knowledge are.
    pub items: kiwi::ItemOptions,
    /// Which repositories may be read.
    pub repositories: koi::RepositoryOptions,
    /// An mbox file, a Maildir, or a folder of those (`KENNING_MAIL`). It is only read.
    pub mail: Option<PathBuf>,
    /// How pages of the web are reached.
    pub web: koi::WebOptions,
    /// The space that these directories belong to: only it sees their files.
    pub space: Space,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// The local time zone: files for people have local time.
    pub zone: TimeZone,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Variables that `config.yaml` may name as `${NAME}`, and the passphrase of backups
    /// (`MOLTVAULT_KEY`), and the KOI server in place of this one (`KOI_API_ENDPOINT`).
    pub environment: Environment,
    /// Whether other machines may use the same store: then a file is locked beside itself, not in the
    /// data directory, which each machine has for itself.
    pub shared: bool,
    /// Whether nothing may be written, not even to finish an interrupted write.
    pub read_only: bool,
}

/// Options of the domain crates, without the kernel's.
pub struct WingOptions {
    /// How WASM tools are kept and run.
    pub wasm: kami::WasmOptions,
    /// Where directives, tools and knowledge are.
    pub items: kiwi::ItemOptions,
    /// Where pages, repositories and mail come from.
    pub koi: koi::Options,
}

impl Options {
    /// Splits the options into those of the kernel and the rest.
    pub fn split(self) -> (kenning_kernel::Options, WingOptions) {
        let Self {
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
        } = self;
        let kernel = kenning_kernel::Options {
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
            hooks: Hooks {
                forms: Forms {
                    vault: &kg::VaultForm,
                    omi: &omi::ContextForm,
                },
                passages_of,
                hold: omi::hold,
                merged,
            },
        };
        let koi = koi::Options {
            repositories,
            mail,
            web,
        };
        (kernel, WingOptions { wasm, items, koi })
    }
}

/// Everything that a transport calls.
pub struct Engine {
    kernel: Arc<Kernel>,
    kami: Arc<Kami>,
    kiwi: Arc<Kiwi>,
    kg: Arc<Kg>,
    omi: Arc<Omi>,
    koi: Arc<Koi>,
    queries: Queries,
    runs: Arc<Runs>,
    workflows: Workflows,
    agents: Arc<Agents>,
}

impl Engine {
    /// Opens the kernel and the domain crates, then finishes the file writes that a killed process
    /// left.
    pub fn open(options: Options) -> Result<Self> {
        let (kernel, wings) = options.split();
        Self::over(Arc::new(Kernel::open(kernel)?), wings)
    }

    /// The same with an open kernel.
    pub fn over(kernel: Arc<Kernel>, wings: WingOptions) -> Result<Self> {
        let WingOptions { wasm, items, koi } = wings;
        let kami = Arc::new(Kami::new(Arc::clone(&kernel), wasm));
        let kiwi = Arc::new(Kiwi::new(Arc::clone(&kernel), Arc::clone(&kami), items));
        let kg = Arc::new(Kg::new(Arc::clone(&kernel)));
        let omi = Arc::new(Omi::new(Arc::clone(&kernel)));
        let (documents, found) = (Arc::clone(&kg), Arc::clone(&kiwi));
        let koi = Arc::new(Koi::new(Arc::clone(&kernel), documents, found, koi));
        let who: Weak<Koi> = Arc::downgrade(&koi);
        kg.ask_for_entities(who);
        let queries = Queries::new(Arc::clone(&kernel));
        let runs = Arc::new(Runs::new(Arc::clone(&kernel)));
        let (documents, steps) = (Arc::clone(&kg), Arc::clone(&runs));
        let workflows = Workflows::new(Arc::clone(&kernel), documents, steps);
        let (documents, sources) = (Arc::clone(&kg), Arc::clone(&koi));
        let agents = Agents::new(Arc::clone(&kernel), documents, sources, Arc::clone(&runs));
        let agents = Arc::new(agents);
        let engine = Self {
            kernel,
            kami,
            kiwi,
            kg,
            omi,
            koi,
            queries,
            runs,
            workflows,
            agents,
        };
        engine.finish_writes()?;
        Ok(engine)
    }

    fn finish_writes(&self) -> Result<()> {
        if self.kernel.is_read_only() {
            return Ok(());
        }
        let space = self.kernel.vault().space();
        if let Some(fault) = self.kernel.log().clock_fault(space)? {
            // Unfinished writes wait: `audit reset-clock` must be able to open the store.
            tracing::warn!("space {space}: {fault}");
            return Ok(());
        }
        self.kernel.finish_file_writes()?;
        self.kiwi.finish_item_writes(space)?;
        // Whoever looks next finds nothing unfinished.
        self.kernel.journal().clear_done(self.kernel.log())?;
        self.kiwi.sweep_killed_runs();
        self.omi.finish_forgetting(space);
        Ok(())
    }

    /// WASM tools.
    pub fn kami(&self) -> &Arc<Kami> {
        &self.kami
    }

    /// Directives, tools and knowledge.
    pub fn kiwi(&self) -> &Arc<Kiwi> {
        &self.kiwi
    }

    /// Documents and vectors.
    pub fn kg(&self) -> &Arc<Kg> {
        &self.kg
    }

    /// Memories, the current context and sessions.
    pub fn omi(&self) -> &Arc<Omi> {
        &self.omi
    }

    /// Entities, notes, pages, repositories and mail.
    pub fn koi(&self) -> &Arc<Koi> {
        &self.koi
    }

    /// Whether this process may not write.
    pub fn is_read_only(&self) -> bool {
        self.kernel.is_read_only()
    }

    /// Runs of workflows and agents, and the trajectories they leave.
    pub fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Workflows: starting one and doing its steps.
    pub fn workflows(&self) -> &Workflows {
        &self.workflows
    }

    /// Agents, and what they reported.
    pub fn agent_tasks(&self) -> &Arc<Agents> {
        &self.agents
    }

    /// Answers a query in Cypher over everything in the caller's space. Files that changed since are read
    /// first, as by every tool that looks.
    ///
    /// # Errors
    /// The caller may not read, the query is malformed or writes, or it needs more than it may use.
    pub fn query(&self, caller: &Caller, question: &query::Question) -> Result<query::Found> {
        let mut note = None;
        if question.as_of_ms.is_none() {
            if query::names_code(&question.text) {
                note = self.koi.wait_for_project(caller)?;
            }
            kg::Entities::follow(&*self.koi, caller)?;
        }
        let mut found = self.queries.answer(caller, question)?;
        found.notes.extend(note);
        Ok(found)
    }

    /// What is wrong with this installation, one sentence each, and what was checked.
    pub fn doctor(&self) -> Result<Doctor> {
        let mut found = Doctor::default();
        found
            .seen
            .push(("store".to_owned(), self.kernel.log().store().describe()));
        found.seen.push((
            "author".to_owned(),
            self.kernel
                .show_did(self.kernel.log().signer().did())?
                .to_string(),
        ));
        for fault in self.kernel.log().store().check()? {
            found.faults.push(format!("store: {fault}"));
        }
        for space in self.kernel.log().store().spaces()? {
            let roots = self.kernel.log().roots(&space)?;
            found
                .seen
                .push((format!("space {space}"), format!("{} events", roots.seq)));
            self.kernel.examine_authors(&space, &mut found)?;
            let open = |tx: &dyn ReadTx| self.kernel.journal().open_intents(tx, &space);
            let pending = self.kernel.log().read(&space, open)?.len();
            if let Some(fault) = self.kernel.log().clock_fault(&space)? {
                found.faults.push(format!("space {space}: {fault}"));
            }
            if pending > 0 {
                found.faults.push(format!(
                    "space {space}: {pending} file writes are unfinished"
                ));
            }
        }
        for root in [
            self.kernel.vault(),
            self.kernel.omi(),
            self.kernel.project(),
        ] {
            root.examine(&mut found);
        }
        if let Err(error) = self.kernel.memory_config() {
            found.faults.push(format!("omi: {error}"));
        }
        if let Err(error) = self.koi.web_abilities() {
            found.faults.push(format!("web: {error}"));
        }
        self.koi.examine_notes(&mut found)?;
        self.examine_growth(&mut found)?;
        Ok(found)
    }

    /// Re-derives the whole log and state of a space from raw rows.
    pub fn verify(&self, space: &Space, progress: &dyn Fn(u64)) -> Result<kenning_audit::Report> {
        self.verify_with(space, &[], None, progress)
    }

    /// The same with more information for the verifier: keys to trust, and checkpoints that were kept
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
            ..Verify::of(space).by(self.kernel.log().signer().did())
        };
        let report = self.kernel.log().read_long(space, |tx| {
            let mut report = kenning_audit::verify(tx, &asked, progress)?;
            report.faults.extend(koi::faults_of_statements(tx)?);
            report.faults.extend(files::faults_of_intents(tx)?);
            Ok(report)
        })?;
        self.kernel
            .note_verified(space, report.n_events, report.is_clean());
        Ok(report)
    }
}

/// What follows from rows that came from a peer, as each domain keeps it.
fn merged(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    kg::merged(tx, merged)?;
    kiwi::merged(tx, merged)?;
    koi::merged(tx, merged)
}

/// The passages of any node, as its domain cuts them.
fn passages_of(node: &Node) -> Vec<Passage> {
    match node.kind {
        Kind::Item => kiwi::passages_of(node),
        Kind::Entity => koi::passages_of(node),
        Kind::Document if omi::is_daily_log(&node.key) => omi::passages_of_log(&node.body),
        Kind::Document => kg::passages_of(node),
        _ => kenning_search::passages(&node.title, &node.body),
    }
}
