//! Getting the commit that a scan reads: the clone of a repository, and what goes over the network for it.

use super::branches::{self, Branches, Choice};
use super::clones::remove_clones;
use super::git::{self, Git};
use super::record::{self, Repository};
use super::scan::{HEAD, LOOK_WALL, Scanner, bounds};
use kenning_core::{Code, Error, Hash, Result};
use kenning_egress::{Egress, Grant, Policy, Tunnel, TunnelLimits};
use kenning_vault::Dir;
use std::time::Duration;

/// For getting what is new.
const FETCH_WALL: Duration = Duration::from_secs(600);
/// The list of a repository's branches.
const BRANCHES_BYTES_MAX: u64 = 64 << 20;
/// A repository without its history, packed.
const REPOSITORY_BYTES_MAX: u64 = 2 << 30;
/// So many packs are made one.
const PACKS_MAX: usize = 16;

impl Scanner {
    pub(super) fn tunnel(&self) -> Result<Tunnel> {
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
    pub(super) fn fetch(
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
                .hint("check that it exists and is public, or give a token: GITHUB_TOKEN for github.com, KENNING_REPO_TOKENS for other hosts")
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
}
