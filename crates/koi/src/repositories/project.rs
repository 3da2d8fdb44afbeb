//! The project that Kenning was started in: its code is read without being asked, so that questions about it have
//! an answer on the first day.
//!
//! Only a git work tree with its own repository is read, or one that the repository knows as linked; never a home
//! directory or what is above one, and not more than a bounded number of files. `code.project: off` in config.yaml turns it off.

use super::source::Source;
use super::{NewRepository, Places, Registered, ScanResult, record, wait_for};
use crate::Koi;
use kenning_core::{Code, Result};
use kenning_kernel::{Caller, Principal};
use kenning_vault::{Dir, resolved};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// So many files are read without being asked …
pub(super) const FILES_MAX: usize = 20_000;
/// … and so much of them.
pub(super) const BYTES_MAX: u64 = 200 << 20;

/// The largest file that says where the repository of a work tree is.
const POINTER_BYTES_MAX: u64 = 4_096;

/// The largest list of packed references that is read.
const PACKED_BYTES_MAX: u64 = 4 << 20;

impl Places {
    /// The project's real directory, if it is a git work tree and neither a home directory nor above one.
    pub(super) fn project_root(&self) -> Option<PathBuf> {
        let root = resolved(self.project.as_ref()?)?;
        let home = self.home.as_ref().and_then(|it| resolved(it));
        let is_home = |dir: &Path| home.as_ref().is_some_and(|home| home.starts_with(dir));
        let repository = own_repository(&root)?;
        let is_free = root.parent().is_some() && !is_home(&root) && !is_home(repository.parent()?);
        is_free.then_some(root)
    }
}

/// The repository of a work tree: its own, or the one that made this work tree and knows it. A file `.git` that
/// somebody put there, or objects that are borrowed, would lead to what belongs to another project.
fn own_repository(root: &Path) -> Option<PathBuf> {
    let dir = Dir::open(root).ok()?;
    let repository = match dir.metadata(".git").ok()?.is_dir {
        true => root.join(".git"),
        false => {
            let git = linked_directory(root, &dir)?;
            let back = Dir::open(&git)
                .ok()?
                .read("gitdir", POINTER_BYTES_MAX)
                .ok()?;
            let back = PathBuf::from(String::from_utf8(back).ok()?.trim());
            let is_known = resolved(git.join(back).parent()?)? == root;
            let all = git
                .parent()
                .filter(|it| is_known && it.ends_with("worktrees"))?;
            all.parent()?.to_owned()
        }
    };
    let borrows = Dir::open(&repository)
        .ok()?
        .exists("objects/info/alternates");
    (!borrows.ok()?).then_some(repository)
}

/// Where the file `.git` of a linked work tree leads.
fn linked_directory(root: &Path, dir: &Dir) -> Option<PathBuf> {
    let pointer = dir.read(".git", POINTER_BYTES_MAX).ok()?;
    let pointer = String::from_utf8(pointer).ok()?;
    resolved(&root.join(pointer.trim().strip_prefix("gitdir: ")?))
}

/// The commit that is checked out, as far as files of the repository say it plainly.
fn head_commit(root: &Path) -> Option<String> {
    let repository = own_repository(root)?;
    let dir = Dir::open(root).ok()?;
    let git = match dir.metadata(".git").ok()?.is_dir {
        true => repository.clone(),
        false => linked_directory(root, &dir)?,
    };
    let read = |dir: &Path, name: &str| {
        let text = Dir::open(dir).ok()?.read(name, PACKED_BYTES_MAX).ok()?;
        String::from_utf8(text).ok()
    };
    let head = read(&git, "HEAD")?;
    let Some(name) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned());
    };
    if let Some(commit) = read(&repository, name) {
        return Some(commit.trim().to_owned());
    }
    let packed = read(&repository, "packed-refs")?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(commit, of)| (of == name).then(|| commit.to_owned()))
}

/// Changes when a commit is made or another is checked out.
fn head_stamp(root: &Path) -> Option<String> {
    let dir = Dir::open(root).ok()?;
    let git = match dir.metadata(".git").ok()?.is_dir {
        true => dir.subdir(".git").ok()?,
        false => Dir::open(&linked_directory(root, &dir)?).ok()?,
    };
    let stamps = ["HEAD", "logs/HEAD"].map(|it| git.stamp(it).ok());
    Some(format!("{stamps:?}"))
}

impl Koi {
    /// The project's directory, if its code is to be read without being asked.
    fn project_root(&self) -> Option<PathBuf> {
        let config = self.kernel.memory_config();
        let is_wanted = config.is_ok_and(|it| it.reads_project);
        // Where another server answers, nobody asks this store.
        let is_asked = matches!(self.far_server(self.kernel.project().space()), Ok(None));
        if !is_wanted || !is_asked || self.kernel.is_read_only() {
            return None;
        }
        self.repositories.places.project_root()
    }

    /// Whether the project's code is read without being asked, and what is in the store is not that of the commit
    /// that is checked out.
    pub fn awaits_project(&self, caller: &Caller) -> Result<bool> {
        let Some(root) = self.project_root() else {
            return Ok(false);
        };
        let head = head_commit(&root);
        let url = Source::Local(root).shown();
        let space = &caller.principal.space;
        if *space != *self.kernel.project().space() || !self.can_scan_repositories() {
            return Ok(false);
        }
        let all = self.kernel.log().read(space, record::all)?;
        let is_read = |it: &record::Repository| {
            it.scanned_ms.is_some()
                && (it.branch.is_some() || head.as_ref().is_none_or(|head| it.is_scanned(head)))
        };
        Ok(!all.iter().any(|it| it.url == url && is_read(it)))
    }

    /// Reads the project's code and waits for it, if it is read without being asked.
    pub fn scan_project(&self, caller: &Caller) -> Result<Vec<ScanResult>> {
        match self.project_root() {
            Some(root) => {
                let registered = self.register_project(caller, &root)?;
                self.scan_repositories(caller, Some(&registered.repo_name))
            }
            None => Ok(Vec::new()),
        }
    }

    /// Waits for the project's code before a question about it is answered, as long as calls wait for scans and no
    /// longer than half of what the caller has left. `None` if it is as it is in the last commit; else what is to be
    /// said about the answer. Whoever may not scan waits too: a server reads its project without being asked.
    ///
    /// # Errors
    /// The call was cancelled, and those of the store.
    pub fn wait_for_project(&self, caller: &Caller) -> Result<Option<String>> {
        if !self.awaits_project(caller)? {
            return Ok(None);
        }
        let Some(root) = self.project_root() else {
            return Ok(None);
        };
        let space = self.kernel.project().space().clone();
        let owner = Caller::new(Principal::owner(space.clone()));
        let registered = self.register_project(&owner, &root)?;
        let name = &registered.repo_name;
        let failed = |why: &str| {
            let said = format!("the code of `{name}`, this project, could not be read: {why}");
            Ok(Some(said))
        };
        // What was tried of this commit is not tried again by every question.
        let seen = &self.repositories.project_seen;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if seen.is_some() && seen == head_stamp(&root) {
            let all = self.kernel.log().read(&space, record::all)?;
            let known = all.into_iter().find(|it| it.id == registered.repo_id);
            if let Some(why) = known.and_then(|it| it.error) {
                return failed(&why);
            }
        }
        let job = self.start_scan(&space, registered.repo_id, false);
        let left = caller.deadline.saturating_duration_since(Instant::now());
        let patience = self.repositories.places.options.wait.min(left / 2);
        kenning_core::idle::waiting(|| {
            wait_for(
                caller,
                std::slice::from_ref(&job),
                Instant::now() + patience,
            )
        })?;
        match job.0.outcome() {
            Some(Ok(_)) => Ok(None),
            Some(Err(failure)) => failed(&failure.message),
            None => {
                let progress = job.0.progress();
                let done = match progress.files_total {
                    Some(total) => format!("{} of {total} files so far", progress.files_done),
                    None => format!("so far {}", progress.phase),
                };
                Ok(Some(format!(
                    "the code of `{name}`, this project, is still being read ({done}), and the answer is of what was \
                     read before: ask again in a while"
                )))
            }
        }
    }

    /// The same in the background, if a commit has come since it was last done. A process that serves asks
    /// now and then.
    pub fn scan_changed_project(&self) -> Result<()> {
        let Some(root) = self.project_root().filter(|_| self.can_scan_repositories()) else {
            return Ok(());
        };
        let stamp = head_stamp(&root);
        let seen = &self.repositories.project_seen;
        let is_seen = |seen: &Option<String>| seen.is_some() && *seen == stamp;
        if stamp.is_none() || is_seen(&seen.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let space = self.kernel.project().space().clone();
        let caller = Caller::new(Principal::owner(space.clone()));
        let registered = self.register_project(&caller, &root)?;
        let (job, _) = self.start_scan(&space, registered.repo_id, false);
        while !job.wait(Duration::from_millis(200)) {}
        match job.outcome() {
            Some(Err(failure)) => {
                let why = failure.message;
                tracing::warn!("the code of the project was not read: {why}");
            }
            _ => self.kernel.embed_later(&space),
        }
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
        Ok(())
    }

    /// The project under the name of its directory; with the directory above it where that is another's name.
    fn register_project(&self, caller: &Caller, root: &Path) -> Result<Registered> {
        let url = Source::Local(root.to_owned()).shown();
        let all = self
            .kernel
            .log()
            .read(&caller.principal.space, record::all)?;
        // Whatever it was called by whoever registered it.
        if let Some(known) = all.into_iter().find(|it| it.url == url) {
            return Ok(Registered {
                status: "already_registered",
                repo_id: known.id,
                repo_name: known.name,
            });
        }
        let mut new = NewRepository {
            repo_url: url,
            ..NewRepository::default()
        };
        match self.register_repository(caller, &new) {
            Err(error) if error.code == Code::Conflict => {
                let parts: Vec<_> = root.iter().rev().take(2).collect();
                let parts: Vec<_> = parts.iter().rev().map(|it| it.to_string_lossy()).collect();
                new.repo_name = Some(parts.join("/"));
                self.register_repository(caller, &new)
            }
            registered => registered,
        }
    }
}
