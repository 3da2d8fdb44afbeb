//! One scan of one repository.
//!
//! The tree of the branch's last commit is compared with what is known, name by name and content by
//! content: what differs is read and written, what is gone is removed, what only has another name is
//! moved. History plays no part in it, so a branch that was rewritten is no special case.
//!
//! Files are written in batches, each in one transaction with its events. A scan that is killed leaves
//! whole batches behind; the next one finds them as it finds everything else, and goes on with the rest.
//! Only when nothing differs any more is the commit said to be scanned.

use super::branches::{self, Branches, Choice};
use super::git::{self, Bounds, Git};
use super::jobs::Job;
use super::record::{self, Known, Lease, Repository};
use super::select::{self, Blob};
use super::source::Source;
use super::{Places, ScanProgress, Scanned};
use kenning_audit::{Draft, Log, Passages, Tx};
use kenning_core::{Code, Error, Hash, Kind, NodeId, Result, Space};
use kenning_egress::{Egress, Grant, Policy, Tunnel, TunnelLimits};
use kenning_search::passages;
use kenning_store::When;
use kenning_text::hex;
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many files are written together, at most …
const BATCH_FILES: usize = 200;
/// … and so much of them.
const BATCH_BYTES: u64 = 8 << 20;
/// For getting what is new.
const FETCH_WALL: Duration = Duration::from_secs(600);
/// For looking at what was got.
const LOOK_WALL: Duration = Duration::from_secs(120);
/// The list of a repository's branches.
const BRANCHES_BYTES_MAX: u64 = 64 << 20;
/// The list of a tree's files.
const LISTING_BYTES_MAX: u64 = 256 << 20;
/// A repository without its history, packed.
const REPOSITORY_BYTES_MAX: u64 = 2 << 30;
/// So many packs are made one.
const PACKS_MAX: usize = 16;
/// How long a scan may be silent before another machine takes over.
const LEASE: Duration = Duration::from_secs(60);
/// How often it says that it is there.
const LEASE_RENEWAL: Duration = Duration::from_secs(15);
/// Between two looks whether another scan is over.
const LOOK: Duration = Duration::from_millis(100);

/// The ref that the branch is fetched to.
const HEAD: &str = "refs/kenning/head";

/// Everything that a scan needs, on a thread of its own.
pub(super) struct Scanner {
    pub(super) log: Log,
    pub(super) data: Dir,
    pub(super) places: Arc<Places>,
    /// Of the environment.
    pub(super) path: Option<String>,
    pub(super) authorities: Option<String>,
    pub(super) space: Space,
    pub(super) id: u64,
    /// Who scans, among all that do.
    pub(super) holder: String,
    pub(super) job: Arc<Job>,
    /// One scan of a process at a time.
    pub(super) turn: Arc<Mutex<()>>,
}

/// The commit whose files are read.
struct Commit {
    sha: String,
    author: String,
    /// The branch that it is the last one of.
    branch: Option<String>,
}

/// What a file becomes.
struct Reading {
    blob: Blob,
    /// None if it is no text.
    text: Option<String>,
    passages: Passages,
    /// The document that was called otherwise before.
    from: Option<(String, NodeId)>,
}

/// What differs between the tree and what is known.
#[derive(Default)]
struct Plan {
    put: Vec<(Blob, Option<(String, NodeId)>)>,
    removed: Vec<String>,
    /// Files of the tree that are documents, or would be if they were text.
    n_files: u64,
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
                tracing::warn!("a scan failed, and that could not be noted: {also}");
            }
        }
        scanned
    }

    fn name(&self) -> String {
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
                if held.is_some_and(|it| it.node != lease.node && it.until_ms > now_ms) {
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

    fn lease(&self) -> Lease {
        let lasts_ms = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        Lease {
            node: self.log.signer().did().to_string(),
            holder: self.holder.clone(),
            until_ms: self.log.clock().now_ms().saturating_add(lasts_ms),
            progress: self.job.progress(),
        }
    }

    /// In a transaction of this scan: says that it is there, and ends it if another has taken over.
    fn held(&self) -> impl Fn(&mut Tx<'_>) -> Result<Repository> + Send + 'static {
        let (id, lease) = (self.id, self.lease());
        move |tx| {
            let held = record::lease(&**tx, id)?;
            if held.is_none_or(|it| it.holder != lease.holder) {
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
            path: self.path.clone(),
            authorities: self.authorities.clone(),
            protocol: Some(source.protocol()),
            tunnel: tunnel.as_ref(),
            cancelled: &self.job.cancelled,
            tick: &tick,
        };
        self.say("fetching", 0, None);
        let fetched = self.fetch(dir, &mut git, &repository, &address);
        let choice = fetched.map_err(|error| git::because_of(tunnel.as_ref(), error))?;
        // From here on nothing of it is anybody's but ours.
        let git = Git {
            protocol: None,
            tunnel: None,
            ..git
        };
        self.say("reading", 0, None);
        let commit = head(&git, choice.branch)?;
        let args = ["ls-tree", "-r", "-z", "-l", "--full-tree", &commit.sha];
        let listing = git.ask(&args, Vec::new(), bounds(LOOK_WALL, LISTING_BYTES_MAX))?;
        let plan = self.log.read(&self.space, |tx| {
            let known = record::known(tx, &repository)?;
            Ok(plan(select::documents(&listing), known))
        })?;
        drop(listing);
        self.carry_out(&git, &repository, commit, plan)
    }

    fn tunnel(&self) -> Result<Tunnel> {
        let hosts = &self.places.options.hosts;
        let grants = hosts.iter().map(|it| Grant::parse(it));
        let policy = Policy {
            grants: grants.collect::<Result<_>>()?,
            ..Policy::default()
        };
        let mut secret = [0; 32];
        self.log.random().fill(&mut secret);
        let limits = TunnelLimits {
            total_timeout: FETCH_WALL,
            bytes_max: REPOSITORY_BYTES_MAX,
        };
        Egress::new(policy).tunnel(&Hash(secret).to_string(), limits)
    }

    /// Gets the branch's last commit. A clone in disorder is left for a new one: the `git` of a process that
    /// was killed may still be writing to it.
    fn fetch(
        &self,
        dir: &Dir,
        git: &mut Git<'_>,
        repository: &Repository,
        address: &str,
    ) -> Result<Choice> {
        let pointer = format!("{}.clone", self.name());
        let known = dir.read(&pointer, 64).ok();
        let known = known.and_then(|it| String::from_utf8(it).ok());
        if let Some(clone) = known.filter(|it| self.is_clone(it)) {
            git.dir = dir.path().join(&clone);
            if dir.exists(&format!("{clone}/HEAD"))? {
                match self.fetch_into(git, repository, address) {
                    Ok(choice) => {
                        self.tidy(dir, git, repository, &clone)?;
                        return Ok(choice);
                    }
                    Err(error) if error.code != Code::Unavailable => return Err(error),
                    Err(_) => {}
                }
            }
        }
        let mut bytes = [0; 8];
        self.log.random().fill(&mut bytes);
        let clone = format!(
            "{}-{}.git",
            self.name(),
            &Hash::of(&bytes).to_string()[..16]
        );
        git.dir = dir.path().join(&clone);
        let args = ["init", "--bare", "--quiet", "--template="];
        git.ask(&args, Vec::new(), bounds(LOOK_WALL, 1 << 20))?;
        let choice = match self.fetch_into(git, repository, address) {
            Ok(choice) => choice,
            Err(error) => {
                // What cannot be removed now is swept by the next scan.
                dir.remove_tree(&clone).ok();
                return Err(error);
            }
        };
        dir.write(&pointer, clone.as_bytes())?;
        self.tidy(dir, git, repository, &clone)?;
        Ok(choice)
    }

    fn is_clone(&self, name: &str) -> bool {
        name.starts_with(&format!("{}-", self.name())) && name.ends_with(".git")
    }

    /// Clones that nobody uses go; the one that is used stays small.
    fn tidy(&self, dir: &Dir, git: &Git<'_>, repository: &Repository, clone: &str) -> Result<()> {
        for entry in dir.list(".")? {
            if entry.name != clone && self.is_clone(&entry.name) {
                // One that is still written to goes next time.
                dir.remove_tree(&entry.name).ok();
            }
        }
        let all = self.log.read(&self.space, record::all)?;
        remove_clones(dir, &self.space, |id| all.iter().all(|it| it.id != id));
        let (_, bytes) = dir.subdir(clone)?.usage(u64::MAX)?;
        if bytes > REPOSITORY_BYTES_MAX {
            dir.remove_tree(clone)?;
            return Err(Error::too_large(format!(
                "`{}` has more than {REPOSITORY_BYTES_MAX} bytes",
                repository.name
            ))
            .hint("register a smaller repository"));
        }
        let packs = dir.list(&format!("{clone}/objects/pack"));
        let is_pack = |it: &&kenning_vault::Entry| it.name.ends_with(".pack");
        if packs.is_ok_and(|it| it.iter().filter(is_pack).count() >= PACKS_MAX) {
            let args = ["gc", "--quiet", "--prune=now"];
            git.ask(&args, Vec::new(), bounds(FETCH_WALL, 1 << 20))?;
        }
        Ok(())
    }

    /// Fetches the branch that somebody named, else the repository's default; gives which that is.
    fn fetch_into(&self, git: &Git<'_>, repository: &Repository, address: &str) -> Result<Choice> {
        let unreachable = |why: String| {
            Error::unavailable(format!("`{}` cannot be fetched: {why}", repository.name))
                .hint("look whether the repository is there and can be read by everybody")
        };
        let ask = || {
            let asked = Branches::ask(git, address, bounds(FETCH_WALL, BRANCHES_BYTES_MAX));
            asked.map_err(|error| match error.code {
                Code::Unavailable => unreachable(error.message),
                _ => error,
            })
        };
        let choice = match &repository.branch {
            Some(branch) => branches::named(branch),
            None => ask()?.default_choice()?,
        };
        let refs = format!("+{}:{HEAD}", choice.reference);
        let args = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--depth=1",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--force",
            "--",
            address,
            &refs,
        ];
        let ended = git.run(&args, Vec::new(), bounds(FETCH_WALL, 1 << 20))?;
        if ended.is_success {
            return Ok(choice);
        }
        if ended.said.contains("couldn't find remote ref") {
            let branch = choice.branch.unwrap_or(choice.reference);
            return Err(Error::not_found("branch", branch).hint(ask()?.remedy()));
        }
        Err(unreachable(git::last_line(&ended.said)))
    }

    fn carry_out(
        &self,
        git: &Git<'_>,
        repository: &Repository,
        commit: Commit,
        plan: Plan,
    ) -> Result<Scanned> {
        let total = (plan.put.len() + plan.removed.len()) as u64;
        let mut done = 0;
        self.say("writing", done, Some(total));
        let commit = Arc::new(commit);
        let n_put = plan.put.len() as u64;
        for batch in batches(plan.put) {
            self.check()?;
            let readings = read(git, batch)?;
            done += readings.len() as u64;
            self.say("writing", done, Some(total));
            let (held, commit) = (self.held(), Arc::clone(&commit));
            self.log.write(&self.space, move |tx| {
                let repository = held(tx)?;
                readings
                    .into_iter()
                    .try_for_each(|it| put(tx, &repository, &commit, it))
            })?;
        }
        let n_removed = plan.removed.len() as u64;
        for batch in plan.removed.chunks(BATCH_FILES) {
            self.check()?;
            done += batch.len() as u64;
            self.say("writing", done, Some(total));
            let (held, batch) = (self.held(), batch.to_vec());
            let commit = Arc::clone(&commit);
            self.log.write(&self.space, move |tx| {
                let repository = held(tx)?;
                batch
                    .iter()
                    .try_for_each(|it| remove(tx, &repository, &commit.sha, it))
            })?;
        }
        self.conclude(repository, &commit, (n_put, n_removed), plan.n_files)
    }

    /// Every file is in: the commit is scanned.
    fn conclude(
        &self,
        repository: &Repository,
        of: &Commit,
        (n_put, n_removed): (u64, u64),
        total_files: u64,
    ) -> Result<Scanned> {
        let (held, id) = (self.held(), self.id);
        let now_ms = self.log.clock().now_ms();
        let (commit, branch) = (of.sha.clone(), of.branch.clone());
        self.log.write(&self.space, move |tx| {
            let mut repository = held(tx)?;
            let data = json!({
                "repo": repository.name, "branch": branch, "commit": commit, "before": repository.commit,
                "read": n_put, "removed": n_removed,
            });
            if repository.branch.is_none() {
                repository.default_branch = branch;
            }
            repository.commit = Some(commit);
            repository.scanned_ms = Some(now_ms);
            repository.tried_ms = Some(now_ms);
            repository.error = None;
            repository.n_scans += 1;
            repository.put(tx)?;
            record::end_lease(tx, id)?;
            tx.record("RepositoryScanned", data).map(drop)
        })?;
        Ok(Scanned {
            repo: repository.name.clone(),
            head_sha: of.sha.clone(),
            files_processed: n_put,
            files_removed: n_removed,
            total_files,
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
            if held.is_none_or(|it| it.holder != holder) {
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

/// What the clone of a repository is called.
fn clone_name(space: &Space, id: u64) -> String {
    format!("{}{id}", clones_of(space))
}

/// What the names of a space's clones begin with.
fn clones_of(space: &Space) -> String {
    let space = Hash::of(space.to_string().as_bytes()).to_string();
    format!("{}-", &space[..16])
}

/// Removes the clones of the repositories of a space whose numbers are meant. What cannot be removed now is
/// removed another time.
pub(super) fn remove_clones(dir: &Dir, space: &Space, is_meant: impl Fn(u64) -> bool) {
    let prefix = clones_of(space);
    for entry in dir.list(".").unwrap_or_default() {
        let id = entry.name.strip_prefix(&prefix);
        let id = id.and_then(|it| it.split(['-', '.']).next()?.parse().ok());
        if !id.is_some_and(&is_meant) {
            continue;
        }
        if entry.name.ends_with(".git") {
            dir.remove_tree(&entry.name).ok();
        } else if entry.name.ends_with(".clone") {
            dir.remove(&entry.name).ok();
        }
    }
}

/// What is locked while a clone is used.
pub(super) fn lock_name(space: &Space, id: u64) -> String {
    format!("{}.lock", clone_name(space, id))
}

fn bounds(wall: Duration, output_bytes: u64) -> Bounds {
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

/// What is new, other or gone. A content that went from one name to another is the same document.
fn plan(wanted: Vec<Blob>, mut known: BTreeMap<String, Known>) -> Plan {
    let mut plan = Plan {
        n_files: wanted.len() as u64,
        ..Plan::default()
    };
    let mut differing = Vec::new();
    for blob in wanted {
        match known.remove(&blob.path) {
            Some(it) if it.object == blob.object => {}
            Some(_) => differing.push((blob, false)),
            None => differing.push((blob, true)),
        }
    }
    // What is left of the known ones is gone, or has another name.
    let mut gone: HashMap<&str, Vec<(&String, NodeId)>> = HashMap::new();
    for (path, it) in known.iter().rev() {
        if let Some((node, _)) = it.document {
            gone.entry(&it.object).or_default().push((path, node));
        }
    }
    let mut moved = Vec::new();
    for (blob, is_new) in differing {
        let from = is_new
            .then(|| gone.get_mut(blob.object.as_str())?.pop())
            .flatten()
            .map(|(path, node)| (path.clone(), node));
        moved.extend(from.iter().map(|it| it.0.clone()));
        plan.put.push((blob, from));
    }
    for path in moved {
        known.remove(&path);
    }
    plan.removed = known.into_keys().collect();
    plan
}

fn batches<T>(all: Vec<(Blob, T)>) -> impl Iterator<Item = Vec<(Blob, T)>> {
    let mut rest = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some((blob, _)) = rest.peek() {
            bytes += blob.size_bytes;
            if batch.len() == BATCH_FILES || (bytes > BATCH_BYTES && !batch.is_empty()) {
                break;
            }
            batch.extend(rest.next());
        }
        (!batch.is_empty()).then_some(batch)
    })
}

/// The contents of a batch, out of the objects and not out of files.
fn read(git: &Git<'_>, batch: Vec<(Blob, Option<(String, NodeId)>)>) -> Result<Vec<Reading>> {
    let mut wanted = String::new();
    for (blob, _) in &batch {
        wanted.push_str(&blob.object);
        wanted.push('\n');
    }
    let most = batch.iter().map(|it| it.0.size_bytes + 200).sum();
    let printed = git.ask(
        &["cat-file", "--batch"],
        wanted.into_bytes(),
        bounds(LOOK_WALL, most),
    )?;
    let contents = select::contents(&printed);
    if contents.len() != batch.len() || contents.iter().any(Option::is_none) {
        return Err(
            Error::unavailable("`git cat-file` lacks objects of the commit")
                .hint("scan again; if that does not help, look at the repository with `git fsck`"),
        );
    }
    let readings = batch
        .into_iter()
        .zip(contents)
        .map(|((blob, from), content)| {
            let text = content.and_then(select::text);
            let cut = text.as_deref().map(|it| passages(&blob.path, it).into());
            Reading {
                passages: cut.unwrap_or_default(),
                text,
                blob,
                from,
            }
        });
    Ok(readings.collect())
}

/// Makes a file's document what the file is.
fn put(tx: &mut Tx<'_>, repository: &Repository, commit: &Commit, reading: Reading) -> Result<()> {
    let Reading {
        blob,
        text,
        from,
        passages: cut,
    } = reading;
    let bucket = repository.files();
    let key = repository.rid(&blob.path);
    let before = tx.node_by_key("", Kind::Document, &key, When::Now)?;
    let Some(text) = text else {
        if let Some(before) = before {
            tx.remove_node(before.id)?;
            record_event(
                tx,
                "DocumentRemoved",
                repository,
                &commit.sha,
                &blob.path,
                json!({}),
            )?;
        }
        let known = Known {
            object: blob.object,
            document: None,
        };
        return tx.set(&bucket, &blob.path, &known.to_bytes());
    };
    let content_hash = hex::sha256(text.as_bytes())[..32].to_owned();
    let mut props = Map::new();
    for (name, value) in [
        ("source", Value::from("github")),
        ("repo", repository.name.as_str().into()),
        ("path", blob.path.as_str().into()),
        ("commit_sha", commit.sha.as_str().into()),
        ("author", commit.author.as_str().into()),
        ("content_hash", content_hash.as_str().into()),
        ("file_type", blob.file_type.as_str().into()),
        ("line_count", text.lines().count().into()),
        ("byte_size", text.len().into()),
    ] {
        props.insert(name.to_owned(), value);
    }
    let draft = Draft {
        kind: Kind::Document,
        project: String::new(),
        key,
        title: blob.path.clone(),
        body: text,
        props,
    };
    let mut kind = match &before {
        Some(_) => "DocumentChanged",
        None => "DocumentAdded",
    };
    let mut details = json!({ "content": content_hash });
    let moved = match from {
        Some((path, node)) if before.is_none() && tx.node(node, When::Now)?.is_some() => {
            tx.unset(&bucket, &path)?;
            kind = "DocumentMoved";
            details["from"] = repository.rid(&path).into();
            Some(node)
        }
        Some((path, _)) => {
            remove(tx, repository, &commit.sha, &path)?;
            None
        }
        None => None,
    };
    let node = match moved {
        Some(node) => tx.move_node(node, draft)?,
        None => tx.put_node(draft)?,
    };
    tx.put_hashed_passages(node.id, &cut)?;
    let known = Known {
        object: blob.object,
        document: Some((node.id, cut.len() as u64)),
    };
    tx.set(&bucket, &blob.path, &known.to_bytes())?;
    details["nodeId"] = node.id.to_string().into();
    record_event(tx, kind, repository, &commit.sha, &blob.path, details)
}

/// Forgets a file that is no longer in the repository.
pub(super) fn remove(
    tx: &mut Tx<'_>,
    repository: &Repository,
    commit: &str,
    path: &str,
) -> Result<()> {
    tx.unset(&repository.files(), path)?;
    let key = repository.rid(path);
    let Some(node) = tx.node_by_key("", Kind::Document, &key, When::Now)? else {
        return Ok(());
    };
    tx.remove_node(node.id)?;
    let details = json!({ "nodeId": node.id.to_string() });
    record_event(tx, "DocumentRemoved", repository, commit, path, details)
}

fn record_event(
    tx: &mut Tx<'_>,
    kind: &str,
    repository: &Repository,
    commit: &str,
    path: &str,
    details: Value,
) -> Result<()> {
    let mut data = json!({
        "rid": repository.rid(path), "source": "github", "repo": repository.name, "path": path,
        "commit": commit,
    });
    if let (Some(data), Value::Object(details)) = (data.as_object_mut(), details) {
        data.extend(details);
    }
    tx.record(kind, data).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(path: &str, object: &str) -> Blob {
        Blob {
            path: path.to_owned(),
            object: object.to_owned(),
            size_bytes: 3 << 20,
            file_type: "md".to_owned(),
        }
    }

    fn known(rows: &[(&str, &str, u8)]) -> BTreeMap<String, Known> {
        let row = |&(path, object, n): &(&str, &str, u8)| {
            let known = Known {
                object: object.to_owned(),
                document: (n > 0).then_some((NodeId([n; 16]), 1)),
            };
            (path.to_owned(), known)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_plan_reads_what_differs_moves_what_was_renamed_and_removes_what_is_gone() {
        let wanted = vec![
            blob("same.md", "1"),
            blob("changed.md", "2b"),
            blob("new.md", "3"),
            blob("renamed.md", "4"),
            blob("copy.md", "4"),
        ];
        let known = known(&[
            ("same.md", "1", 1),
            ("changed.md", "2a", 2),
            ("old.md", "4", 4),
            ("gone.md", "5", 5),
            ("binary.md", "6", 0),
        ]);
        let plan = plan(wanted, known);
        let put: Vec<(&str, Option<&str>)> = plan
            .put
            .iter()
            .map(|(blob, from)| (blob.path.as_str(), from.as_ref().map(|it| it.0.as_str())))
            .collect();
        let expected = [
            ("changed.md", None),
            ("new.md", None),
            ("renamed.md", Some("old.md")),
            ("copy.md", None),
        ];
        assert_eq!(put, expected);
        assert_eq!(plan.removed, ["binary.md", "gone.md"]);
        assert_eq!(plan.n_files, 5);
    }

    #[test]
    fn batches_are_bounded_by_files_and_by_bytes_and_lose_nothing() {
        let all: Vec<(Blob, ())> = (0..7).map(|n| (blob(&n.to_string(), "x"), ())).collect();
        let sizes: Vec<usize> = batches(all).map(|it| it.len()).collect();
        assert_eq!(sizes, [2, 2, 2, 1], "3 MiB each, 8 MiB together");
        let mut small: Vec<(Blob, ())> = Vec::new();
        for n in 0..450 {
            let blob = Blob {
                size_bytes: 1,
                ..blob(&n.to_string(), "x")
            };
            small.push((blob, ()));
        }
        let sizes: Vec<usize> = batches(small).map(|it| it.len()).collect();
        assert_eq!(sizes, [200, 200, 50]);
    }
}
