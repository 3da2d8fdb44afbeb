//! One scan of one repository.
//!
//! The tree of the branch's last commit is compared with what is known, name by name and content by
//! content: what differs is read and written, what is gone is removed, what only has another name is
//! moved. History plays no part in it, so a branch that was rewritten is no special case.
//!
//! Files are written in batches, each in one transaction with its events. A scan that is killed leaves
//! whole batches behind; the next one finds them as it finds everything else, and goes on with the rest.
//! Only when nothing differs any more is the commit said to be scanned.

use super::changes::{BATCH_FILES, Commit, Plan, batches, plan, put, read, remove};
use super::clones::{clone_name, lock_name};
use super::code::{self, Linked};
use super::credentials;
use super::git::{self, Bounds, Git};
use super::jobs::Job;
use super::project;
use super::record::{self, Pending, Repository, ScanLease};
use super::select::{self, Blob};
use super::source::Source;
use super::{Places, ScanProgress, Scanned};
use kenning_audit::{Log, Tx};
use kenning_core::{Code, Error, Result, Space};
use kenning_kernel::{Environment, Lease};
use kenning_vault::{Dir, Lock};
use serde_json::json;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For looking at what was got.
pub(super) const LOOK_WALL: Duration = Duration::from_secs(120);
/// The list of a tree's files.
const LISTING_BYTES_MAX: u64 = 256 << 20;
/// How long a scan may be silent before another machine takes over.
const LEASE: Duration = Duration::from_secs(60);
/// How often it says that it is there.
const LEASE_RENEWAL: Duration = Duration::from_secs(15);
/// Between two looks whether another scan is over.
const LOOK: Duration = Duration::from_millis(100);

/// Why a file that is no text was not read.
pub(super) const NOT_TEXT: &str = "not a text in UTF-8";

/// The ref that the branch is fetched to.
pub(super) const HEAD: &str = "refs/kenning/head";

/// Everything that a scan needs, on a thread of its own.
pub(super) struct Scanner {
    pub(super) log: Log,
    pub(super) data: Dir,
    pub(super) places: Arc<Places>,
    pub(super) environment: Environment,
    /// Whether somebody asked for it; else a large repository is left.
    pub(super) is_asked: bool,
    pub(super) space: Space,
    pub(super) id: u64,
    /// Who scans, among all that do.
    pub(super) holder: String,
    pub(super) job: Arc<Job>,
    /// One scan of a process at a time.
    pub(super) turn: Arc<Mutex<()>>,
}

impl Scanner {
    pub(super) fn run(&self) -> Result<Scanned> {
        self.say("waiting", 0, None);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = self.data.private_subdir("repositories")?;
        let _lock = self.lock(&dir)?;
        self.take_lease()?;
        let scanned = self.scan(&dir);
        if let Err(error) = &scanned {
            let noted = self.note_failure(error);
            if let Err(also) = noted {
                tracing::warn!("a scan failed, and that could not be recorded: {also}");
            }
        }
        scanned
    }

    pub(super) fn name(&self) -> String {
        clone_name(&self.space, self.id)
    }

    fn say(&self, phase: &str, files_done: u64, files_total: Option<u64>) {
        self.job.say(ScanProgress {
            phase: phase.to_owned(),
            files_done,
            files_total,
        });
    }

    fn check(&self) -> Result<()> {
        if self.job.cancelled.load(Ordering::Relaxed) {
            return Err(Error::timeout("the scan was cancelled"));
        }
        Ok(())
    }

    /// One scan of a data directory's clone at a time. The kernel frees it when a process dies.
    fn lock(&self, dir: &Dir) -> Result<Lock> {
        let name = lock_name(&self.space, self.id);
        loop {
            self.check()?;
            match dir.lock(&name, LOOK) {
                Err(error) if error.code == Code::Unavailable => {}
                locked => return locked,
            }
        }
    }

    /// One scan of a repository at a time, on whichever machine. Whoever has the lock of the data
    /// directory knows that a lease taken from there is a dead one's.
    fn take_lease(&self) -> Result<()> {
        loop {
            self.check()?;
            let (id, lease) = (self.id, self.lease());
            let now_ms = self.log.clock().now_ms();
            let is_taken = self.log.write(&self.space, move |tx| {
                let held = record::lease(&**tx, id)?;
                if held.is_some_and(|it| it.node != lease.node && it.lease.is_running(now_ms)) {
                    return Ok(false);
                }
                record::put_lease(tx, id, &lease)?;
                Ok(true)
            })?;
            if is_taken {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn lease(&self) -> ScanLease {
        let now_ms = self.log.clock().now_ms();
        ScanLease {
            node: self.log.signer().did().to_string(),
            lease: Lease::of(&self.holder, now_ms, LEASE),
            progress: self.job.progress(),
        }
    }

    /// In a transaction of this scan: says that it is there, and ends it if another has taken over.
    fn held(&self) -> impl Fn(&mut Tx<'_>) -> Result<Repository> + Send + 'static {
        let (id, lease) = (self.id, self.lease());
        move |tx| {
            let held = record::lease(&**tx, id)?;
            if held.is_none_or(|it| !it.lease.is_of(&lease.lease.holder)) {
                return Err(Error::conflict("another process has taken over the scan")
                    .hint("look at its progress with `status`"));
            }
            record::put_lease(tx, id, &lease)?;
            record::one(&**tx, id)?.ok_or_else(|| Error::not_found("repository", id))
        }
    }

    fn scan(&self, dir: &Dir) -> Result<Scanned> {
        let held = self.held();
        let repository = self.log.write(&self.space, move |tx| held(tx))?;
        let source = Source::parse(&repository.url)?;
        let address = self.places.address(&self.space, &source)?;
        let tunnel = match &source {
            Source::Remote(_) => Some(self.tunnel()?),
            Source::Local(_) => None,
        };
        let renewed = Cell::new(Instant::now());
        let tick = || {
            if renewed.get().elapsed() < LEASE_RENEWAL {
                return Ok(());
            }
            renewed.set(Instant::now());
            let held = self.held();
            self.log.write(&self.space, move |tx| held(tx)).map(drop)
        };
        dir.write(git::CONFIG_FILE, git::CONFIG.as_bytes())?;
        let mut git = Git {
            dir: dir.path().to_owned(),
            path: (self.environment)("PATH"),
            authorities: (self.environment)("GIT_SSL_CAINFO").filter(|it| !it.is_empty()),
            credential: None,
            protocol: Some(source.protocol()),
            tunnel: tunnel.as_ref(),
            cancelled: &self.job.cancelled,
            tick: &tick,
        };
        self.say("fetching", 0, None);
        let mut fetched = self.fetch(dir, &mut git, &repository, &address);
        if let (Source::Remote(url), Err(error)) = (&source, &fetched)
            && credentials::is_wanted(&error.message)
        {
            git.credential = credentials::from_environment(&self.environment, url)
                .or_else(|| git.ask_helper(url, (self.environment)("HOME")));
            if git.credential.is_some() {
                fetched = self.fetch(dir, &mut git, &repository, &address);
            }
        }
        let choice = fetched.map_err(|error| git::because_of(tunnel.as_ref(), error))?;
        // From here on nothing of it is anybody's but ours.
        let git = Git {
            protocol: None,
            tunnel: None,
            credential: None,
            ..git
        };
        self.say("reading", 0, None);
        let commit = head(&git, choice.branch)?;
        let args = ["ls-tree", "-r", "-z", "-l", "--full-tree", &commit.sha];
        let listing = git.ask(&args, Vec::new(), bounds(LOOK_WALL, LISTING_BYTES_MAX))?;
        let (documents, too_large) = select::documents(&listing);
        drop(listing);
        if !self.is_asked {
            within_bounds(&documents)?;
        }
        let mut plan = self.log.read(&self.space, |tx| {
            let known = record::known(tx, &repository)?;
            Ok(plan(documents, known))
        })?;
        let most = select::FILE_BYTES_MAX;
        let reason = format!("larger than {most} bytes");
        too_large.into_iter().for_each(|it| plan.skip(it, &reason));
        self.carry_out(&git, &repository, commit, plan)
    }

    fn carry_out(
        &self,
        git: &Git<'_>,
        repository: &Repository,
        commit: Commit,
        plan: Plan,
    ) -> Result<Scanned> {
        let mut plan = plan;
        let total = (plan.put.len() + plan.removed.len()) as u64;
        let mut done = 0;
        self.say("writing", done, Some(total));
        let commit = Arc::new(commit);
        for batch in batches(std::mem::take(&mut plan.put)) {
            self.check()?;
            let known = self.log.read(&self.space, |tx| {
                let mut known = HashMap::new();
                for (blob, _) in &batch {
                    if let Some(facts) = code::known_facts(tx, &blob.path, &blob.object)? {
                        known.insert(blob.path.clone(), facts);
                    }
                }
                Ok(known)
            })?;
            let readings = read(git, repository, batch, known)?;
            done += readings.len() as u64;
            let code = readings.iter().filter_map(|it| it.code.as_ref());
            let n_symbols: u64 = code.map(|it| it.n_symbols() as u64).sum();
            for it in &readings {
                let gap = it.code.as_ref().and_then(|it| it.gap.as_deref());
                let reason = match it.text {
                    Some(_) => gap,
                    None => Some(NOT_TEXT),
                };
                if let Some(reason) = reason {
                    plan.skip(it.blob.path.clone(), reason);
                }
            }
            self.say("writing", done, Some(total));
            let (held, commit) = (self.held(), Arc::clone(&commit));
            self.log.write(&self.space, move |tx| {
                let mut repository = held(tx)?;
                repository.pending.n_files += readings.len() as u64;
                repository.pending.n_symbols += n_symbols;
                repository.put(tx)?;
                readings
                    .into_iter()
                    .try_for_each(|it| put(tx, &repository, &commit, it))
            })?;
        }
        for batch in plan.removed.chunks(BATCH_FILES) {
            self.check()?;
            done += batch.len() as u64;
            self.say("writing", done, Some(total));
            let (held, batch) = (self.held(), batch.to_vec());
            let commit = Arc::clone(&commit);
            self.log.write(&self.space, move |tx| {
                let mut repository = held(tx)?;
                repository.pending.n_removed += batch.len() as u64;
                repository.put(tx)?;
                batch
                    .iter()
                    .try_for_each(|it| remove(tx, &repository, &commit.sha, it))
            })?;
        }
        let linked = match total == 0 && repository.is_scanned(&commit.sha) {
            true => Linked {
                n_symbols: repository.n_symbols,
                n_edges: repository.n_edges,
                ..Linked::default()
            },
            false => self.link(repository, &commit)?,
        };
        if linked.n_left > 0 {
            let reason = format!(
                "{} files have symbols and no references: the repository has too many",
                linked.n_left
            );
            plan.skip("*".to_owned(), &reason);
        }
        let done = self.conclude(&commit, linked)?;
        Ok(Scanned {
            repo: repository.name.clone(),
            head_sha: commit.sha.clone(),
            files_processed: done.n_files,
            files_removed: done.n_removed,
            total_files: plan.n_files,
            n_symbols: done.n_symbols,
            n_edges: done.n_edges,
            n_resolved: linked.n_resolved,
            skipped: plan.skipped,
            n_skipped: plan.n_skipped,
        })
    }

    /// Resolves what the files refer to.
    fn link(&self, repository: &Repository, commit: &Commit) -> Result<Linked> {
        self.say("linking", 0, None);
        let say = |done, total| {
            self.check()?;
            self.say("linking", done, Some(total));
            Ok(())
        };
        let held = || self.held();
        code::link(&self.log, &self.space, repository, &commit.sha, held, say)
    }

    /// Every file is in: the commit is scanned. Gives what was done since the last one was.
    fn conclude(&self, of: &Commit, linked: Linked) -> Result<Pending> {
        let (held, id) = (self.held(), self.id);
        let now_ms = self.log.clock().now_ms();
        let (commit, branch) = (of.sha.clone(), of.branch.clone());
        self.log.write(&self.space, move |tx| {
            let mut repository = held(tx)?;
            let done = std::mem::take(&mut repository.pending);
            let data = json!({
                "repo": repository.name, "branch": branch, "commit": commit, "before": repository.commit,
                "read": done.n_files, "removed": done.n_removed, "symbols": linked.n_symbols, "edges": linked.n_edges,
            });
            if repository.branch.is_none() {
                repository.default_branch = branch;
            }
            repository.set_scanned(commit);
            repository.n_symbols = linked.n_symbols;
            repository.n_edges = linked.n_edges;
            repository.scanned_ms = Some(now_ms);
            repository.tried_ms = Some(now_ms);
            repository.error = None;
            repository.n_scans += 1;
            repository.put(tx)?;
            record::end_lease(tx, id)?;
            tx.record("RepositoryScanned", data)?;
            Ok(done)
        })
    }

    /// The next scan tries again, whatever went wrong.
    fn note_failure(&self, error: &Error) -> Result<()> {
        let (id, holder) = (self.id, self.holder.clone());
        let now_ms = self.log.clock().now_ms();
        let is_cancelled = self.job.cancelled.load(Ordering::Relaxed);
        let message = error.message.clone();
        self.log.write(&self.space, move |tx| {
            let held = record::lease(&**tx, id)?;
            if held.is_none_or(|it| it.lease.holder != holder) {
                return Ok(());
            }
            record::end_lease(tx, id)?;
            let repository = record::one(&**tx, id)?;
            let Some(mut repository) = repository.filter(|_| !is_cancelled) else {
                return Ok(());
            };
            repository.tried_ms = Some(now_ms);
            let is_new = repository.error.as_ref() != Some(&message);
            let data = json!({ "repo": repository.name, "error": message });
            repository.error = Some(message);
            repository.put(tx)?;
            if is_new {
                tx.record("RepositoryScanFailed", data)?;
            }
            Ok(())
        })
    }
}

/// What nobody asked for must not be large.
fn within_bounds(documents: &[Blob]) -> Result<()> {
    let bytes: u64 = documents.iter().map(|it| it.size_bytes).sum();
    if documents.len() <= project::FILES_MAX && bytes <= project::BYTES_MAX {
        return Ok(());
    }
    Err(Error::too_large(format!(
        "{} files of {bytes} bytes are too large for automatic scanning",
        documents.len()
    ))
    .hint("run `github_scan` with `action: scan`"))
}

pub(super) fn bounds(wall: Duration, output_bytes: u64) -> Bounds {
    Bounds { wall, output_bytes }
}

/// The commit that was fetched.
fn head(git: &Git<'_>, branch: Option<String>) -> Result<Commit> {
    let args = [
        "log",
        "-1",
        "--no-show-signature",
        "--format=%H%x00%an",
        HEAD,
    ];
    let printed = git.ask(&args, Vec::new(), bounds(LOOK_WALL, 1 << 20))?;
    let printed = String::from_utf8_lossy(&printed);
    let (sha, author) = printed
        .trim_end()
        .split_once('\0')
        .ok_or_else(|| Error::unavailable("`git log` returned no commits").hint("scan again"))?;
    Ok(Commit {
        branch,
        sha: sha.to_owned(),
        author: author
            .chars()
            .filter(|it| !it.is_control())
            .take(200)
            .collect(),
    })
}
