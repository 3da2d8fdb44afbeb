//! Repositories whose files are documents.
//!
//! Somebody registers one, by an address that `source` lets pass; `scan` reads its files through `git`,
//! which `git` holds short, `branches` says which branch, and `select` which files are documents. A scan is a
//! job (`jobs`): whoever asks for one waits a while, then is told how far it is. `record` is what the store
//! knows of it all, `code` makes a graph of their symbols, and `forget` takes it all out again.
//!
//! What a repository says is data: every document names the repository, the path and the commit it is of.

mod admission;
mod branches;
mod changes;
mod clones;
mod code;
mod credentials;
mod fetch;
mod forget;
mod git;
mod jobs;
mod project;
mod record;
mod scan;
mod select;
mod source;
mod view;

pub use code::{CodeLink, CodeQuestion, CodeSymbol};
pub use forget::ForgottenRepository;
pub use record::ScanProgress;
pub use view::{RepositoryFile, RepositoryStatus, RepositoryView, ScanResult, Scanned, Skipped};

use crate::Koi;
use jobs::{Failure, Job, Jobs};
use kenning_core::{Code, Error, Hash, Kind, NodeId, Result, Space};
use kenning_kernel::{Caller, Kernel, Scope};
use kenning_store::{NodeFilter, When};
use record::Repository;
use scan::Scanner;
use serde_json::json;
use source::Source;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How the operator names directories of repositories.
const VARIABLE: &str = "KENNING_REPO_PATHS";

/// A failed scan is tried again after this time.
const RETRY_MS: u64 = 15 * 60 * 1_000;

/// Which repositories may be read, and how often.
#[derive(Clone, Debug)]
pub struct RepositoryOptions {
    /// Directories whose repositories may be registered by their paths (`KENNING_REPO_PATHS`).
    pub paths: Vec<PathBuf>,
    /// Hosts that may be asked although they are not of the public internet (`KENNING_REPO_HOSTS`).
    pub hosts: Vec<String>,
    /// Repositories behind `https://` that an agent may register by scanning them (`KENNING_REPO_ALLOW`):
    /// `owner/name`, `owner/*` or `https://host/owner/*`. Those in `paths` may be always.
    pub allow: Vec<String>,
    /// How often a serving process scans each (`KENNING_REPO_INTERVAL`); zero for never.
    pub interval: Duration,
    /// How long a call waits for its scan.
    pub wait: Duration,
}

impl Default for RepositoryOptions {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            hosts: Vec::new(),
            allow: Vec::new(),
            interval: Duration::from_secs(21_600),
            wait: Duration::from_secs(20),
        }
    }
}

/// Where repositories may be, and whose such directories are.
pub(crate) struct Places {
    options: RepositoryOptions,
    space: Space,
    /// The project that this process was started in, and the home directory of whoever started it.
    project: Option<PathBuf>,
    home: Option<PathBuf>,
}

/// What this process does about repositories.
pub(crate) struct Repositories {
    places: Arc<Places>,
    jobs: Jobs,
    /// How many threads of this process scan what is due.
    n_watching: AtomicUsize,
    /// Whether there is a `git` to scan with.
    has_git: OnceLock<bool>,
    /// How the project's repository stood when it was last scanned without being asked.
    project_seen: Mutex<Option<String>>,
}

impl Repositories {
    pub(crate) fn new(options: RepositoryOptions, kernel: &Kernel) -> Self {
        let home = (kernel.environment())("HOME");
        let places = Places {
            options,
            space: kernel.project().space().clone(),
            project: kernel.project().place(),
            home: home.map(PathBuf::from),
        };
        Self {
            places: Arc::new(places),
            jobs: Jobs::default(),
            n_watching: AtomicUsize::new(0),
            has_git: OnceLock::new(),
            project_seen: Mutex::default(),
        }
    }
}

impl Koi {
    /// Counts a thread that scans what is due, until the count is dropped.
    pub fn count_scanner(self: &Arc<Self>) -> Watching {
        let watching = &self.repositories.n_watching;
        watching.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(self))
    }

    /// Asks the scans of this process to end.
    pub fn cancel_scans(&self) {
        self.repositories.jobs.cancel();
    }
}

/// A thread that scans what is due.
pub struct Watching(Arc<Koi>);

impl Drop for Watching {
    fn drop(&mut self) {
        let watching = &self.0.repositories.n_watching;
        watching.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A repository to register.
#[derive(Clone, Debug, Default)]
pub struct NewRepository {
    /// `https://…`, or the path of one in a configured directory.
    pub repo_url: String,
    /// `owner/name`; else taken from the address.
    pub repo_name: Option<String>,
    /// Else the one that the repository itself has for its default.
    pub branch: Option<String>,
}

/// The result of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// `added`, `already_registered`, or `updated` when it has another branch now.
    pub status: &'static str,
    /// Its number.
    pub repo_id: u64,
    /// Its name.
    pub repo_name: String,
}

impl Koi {
    /// Registers a repository, or says that it is there.
    pub fn register_repository(&self, caller: &Caller, new: &NewRepository) -> Result<Registered> {
        self.kernel.may_write(caller)?;
        let source = Source::parse(&new.repo_url)?;
        if let Source::Remote(_) = source {
            caller.principal.require(Scope::Fetch)?;
        }
        let space = &caller.principal.space;
        self.repositories.places.address(space, &source)?;
        let name = new.repo_name.as_deref().filter(|it| !it.trim().is_empty());
        let name = source::name(&name.map_or_else(|| source.name(), ToOwned::to_owned))?;
        let branch = new.branch.as_deref().filter(|it| !it.trim().is_empty());
        let branch = branch.map(source::branch).transpose()?;
        let url = source.shown();
        self.kernel.log().write(space, move |tx| {
            let known = record::all(&**tx)?;
            let known = known.into_iter().find(|it| it.name == name);
            let (mut repository, mut status) = match known {
                Some(it) if it.url != url => {
                    return Err(Error::conflict(format!(
                        "`repo_name`: there is another repository called `{name}`"
                    ))
                    .hint("give this one another name"));
                }
                Some(it) => (it, "already_registered"),
                None => {
                    let repository = Repository {
                        id: record::next_id(tx)?,
                        url,
                        name,
                        branch: branch.clone(),
                        default_branch: None,
                        commit: None,
                        scanned_ms: None,
                        tried_ms: None,
                        error: None,
                        n_scans: 0,
                        n_symbols: 0,
                        n_edges: 0,
                        format: 0,
                        pending: record::Pending::default(),
                    };
                    (repository, "added")
                }
            };
            if repository.branch != branch {
                status = "updated";
                repository.branch = branch;
                repository.tried_ms = None;
            }
            if status == "added" {
                forget::adopt_kept(tx, &repository)?;
            }
            if status != "already_registered" {
                repository.put(tx)?;
                let data = json!({
                    "repoId": repository.id, "repo": repository.name, "url": repository.url,
                    "branch": repository.branch,
                });
                tx.record("RepositoryRegistered", data)?;
            }
            Ok(Registered {
                status,
                repo_id: repository.id,
                repo_name: repository.name,
            })
        })
    }

    /// What the repositories are called, in the order of their numbers.
    pub fn repository_names(&self, caller: &Caller) -> Result<Vec<String>> {
        caller.principal.require(Scope::Read)?;
        let all = self
            .kernel
            .log()
            .read(&caller.principal.space, record::all)?;
        Ok(all.into_iter().map(|it| it.name).collect())
    }

    /// Whether repositories can be scanned here: this process may write, and there is a `git`.
    pub fn can_scan_repositories(&self) -> bool {
        let has_git = || {
            git::is_there(
                (self.kernel.environment())("PATH"),
                self.kernel.data().path(),
            )
        };
        !self.kernel.is_read_only() && *self.repositories.has_git.get_or_init(has_git)
    }

    /// Scans all repositories, or the one of this name, and waits for them as long as it is set. None are
    /// scanned where there are none.
    pub fn scan_repositories(
        &self,
        caller: &Caller,
        name: Option<&str>,
    ) -> Result<Vec<ScanResult>> {
        let wait = self.repositories.places.options.wait;
        self.scan_repositories_within(caller, name, wait)
    }

    /// The same, waiting so long.
    pub fn scan_repositories_within(
        &self,
        caller: &Caller,
        name: Option<&str>,
        wait: Duration,
    ) -> Result<Vec<ScanResult>> {
        self.kernel.may_write(caller)?;
        let space = &caller.principal.space;
        let all = self.kernel.log().read(space, |tx| match name {
            None => record::all(tx),
            Some(name) => Ok(Vec::from_iter(record::named(tx, name)?)),
        })?;
        if all.iter().any(|it| it.url.starts_with("https://")) {
            caller.principal.require(Scope::Fetch)?;
        }
        let mut jobs = Vec::new();
        for repository in &all {
            jobs.push(self.start_scan(space, repository.id, true));
        }
        // An answer takes a moment too.
        let latest = caller.deadline.checked_sub(Duration::from_secs(1));
        let until = Instant::now() + wait;
        let until = latest.map_or(until, |it| it.min(until));
        if let Err(error) = wait_for(caller, &jobs, until) {
            // What others wait for goes on.
            let own = jobs.iter().filter(|it| it.1);
            own.for_each(|(job, _)| job.cancel());
            return Err(error);
        }
        self.kernel.embed_later(space);
        let results = all.into_iter().zip(&jobs);
        Ok(results.map(|(it, (job, _))| result(it.name, job)).collect())
    }

    /// Starts a scan, or joins the one that is running. What nobody asked for is bounded.
    fn start_scan(&self, space: &Space, id: u64, is_asked: bool) -> (Arc<Job>, bool) {
        let jobs = &self.repositories.jobs;
        jobs.start(space, id, |job| {
            let mut holder = [0; 16];
            self.kernel.log().random().fill(&mut holder);
            Scanner {
                log: self.kernel.log().clone(),
                data: self.kernel.data().clone(),
                places: Arc::clone(&self.repositories.places),
                environment: self.kernel.shared_environment(),
                is_asked,
                space: space.clone(),
                id,
                holder: Hash::of(&holder).to_string(),
                job,
                turn: Arc::clone(&jobs.turn),
            }
        })
    }

    /// Starts the scans whose time has come, in every space. A process that serves asks now and then.
    pub fn scan_due_repositories(&self) -> Result<()> {
        let interval = self.repositories.places.options.interval;
        if interval.is_zero() || self.kernel.is_read_only() {
            return Ok(());
        }
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.kernel.log().clock().now_ms();
        for space in self.kernel.log().store().spaces()? {
            for repository in self.kernel.log().read(&space, record::all)? {
                let pause_ms = match repository.error {
                    Some(_) => interval_ms.min(RETRY_MS),
                    None => interval_ms,
                };
                let due_ms = repository.tried_ms.map(|it| it.saturating_add(pause_ms));
                if due_ms.is_none_or(|it| it <= now_ms) {
                    let (job, _) = self.start_scan(&space, repository.id, false);
                    // One after the other: nobody waits for them.
                    while !job.wait(Duration::from_millis(200)) {}
                    if let Some(Err(failure)) = job.outcome() {
                        let (name, why) = (&repository.name, failure.message);
                        tracing::warn!("repository `{name}` was not scanned: {why}");
                    }
                    self.kernel.embed_later(&space);
                }
            }
        }
        Ok(())
    }

    /// All repositories, as they stand.
    pub fn repository_status(&self, caller: &Caller) -> Result<RepositoryStatus> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let now_ms = self.kernel.log().clock().now_ms();
        let model = self.kernel.chosen_model();
        let own = self.kernel.log().signer().did().to_string();
        let interval = self.repositories.places.options.interval;
        let n_watching = self.repositories.n_watching.load(Ordering::Relaxed);
        let is_watched = n_watching > 0 && !interval.is_zero();
        self.kernel.log().read(space, |tx| {
            let documents = NodeFilter {
                kinds: vec![Kind::Document],
                project: Some(String::new()),
                key_prefix: Some("github:".to_owned()),
            };
            let mut status = RepositoryStatus {
                is_running: is_watched,
                interval,
                last_scan_ms: None,
                n_scans: 0,
                n_documents: tx.count_nodes(&documents)?,
                n_passages: 0,
                n_embedded: 0,
                repositories: Vec::new(),
            };
            let mut nodes: HashSet<NodeId> = HashSet::new();
            for repository in record::all(tx)? {
                let known = record::known(tx, &repository)?;
                for (node, n_passages) in known.values().filter_map(|it| it.document) {
                    nodes.insert(node);
                    status.n_passages += n_passages;
                }
                status.n_scans += repository.n_scans;
                status.last_scan_ms = status.last_scan_ms.max(repository.scanned_ms);
                let here = self.repositories.jobs.progress(space, repository.id);
                let elsewhere = record::lease(tx, repository.id)?;
                let elsewhere = elsewhere.filter(|it| {
                    let is_dead = || it.node == own && self.is_unlocked(space, repository.id);
                    it.lease.is_running(now_ms) && !is_dead()
                });
                let progress = here.or(elsewhere.map(|it| it.progress));
                status.is_running |= progress.is_some();
                status.repositories.push(RepositoryView {
                    id: repository.id,
                    n_files: known.len() as u64,
                    n_symbols: repository.n_symbols,
                    n_edges: repository.n_edges,
                    progress,
                    branch: repository.read_branch().cloned(),
                    name: repository.name,
                    url: repository.url,
                    scanned_ms: repository.scanned_ms,
                    commit: repository.commit,
                    error: repository.error,
                });
            }
            let lacking = match model.as_ref() {
                // The built-in table has a vector for every passage.
                None => 0,
                Some(model) => {
                    let is_counted = |node| nodes.contains(&node);
                    self.kernel.n_lacking(space, tx, model, is_counted)?
                }
            };
            status.n_embedded = status.n_passages.saturating_sub(lacking);
            Ok(status)
        })
    }

    /// The documents of all repositories, or of the one of this name, in the order of their paths; and
    /// how many there are.
    pub fn repository_files(
        &self,
        caller: &Caller,
        name: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<RepositoryFile>, u64)> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let (mut files, mut n) = (Vec::new(), 0);
            let all = match name {
                None => record::all(tx)?,
                Some(name) => Vec::from_iter(record::named(tx, name)?),
            };
            for repository in all {
                for (node, _) in record::known(tx, &repository)?
                    .values()
                    .filter_map(|it| it.document)
                {
                    n += 1;
                    if files.len() < limit
                        && let Some(node) = tx.node(node, When::Now)?
                    {
                        files.push(RepositoryFile {
                            rid: node.key,
                            props: node.props,
                            updated_ms: node.updated.ms(),
                        });
                    }
                }
            }
            Ok((files, n))
        })
    }

    /// Whether no process of this data directory scans a repository: one that was killed has left its lease.
    fn is_unlocked(&self, space: &Space, id: u64) -> bool {
        let dir = self.kernel.data().subdir("repositories");
        let name = clones::lock_name(space, id);
        !self.kernel.is_read_only() && dir.is_ok_and(|it| it.lock(&name, Duration::ZERO).is_ok())
    }
}

/// Until all are over, or it is time to answer. An error when whoever asked is gone.
fn wait_for(caller: &Caller, jobs: &[(Arc<Job>, bool)], until: Instant) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(50);
    for (job, _) in jobs {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if job.wait(LOOK.min(left)) || left.is_zero() {
                break;
            }
            if caller.cancelled.load(Ordering::Relaxed) {
                return Err(Error::timeout("the call was cancelled"));
            }
            let progress = job.progress();
            let total = progress.files_total.map(|it| it as f64);
            caller.progress(progress.files_done as f64, total, &progress.phase);
        }
    }
    Ok(())
}

fn result(repo: String, job: &Job) -> ScanResult {
    match job.outcome() {
        None => ScanResult::Running {
            repo,
            progress: job.progress(),
        },
        Some(Ok(scanned)) => ScanResult::Done(scanned),
        Some(Err(Failure {
            code,
            message,
            hint,
        })) => {
            let hint = hint.filter(|_| code != Code::Internal);
            let error = match hint {
                Some(hint) => format!("{message} ({hint})"),
                None => message,
            };
            ScanResult::Failed { repo, error }
        }
    }
}
