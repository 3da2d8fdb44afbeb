//! Unregistering a repository, and its documents.

use super::record::{self, Known, Repository};
use super::{changes, clones, code};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_kernel::{Caller, Scope};
use kenning_store::{Node, NodeFilter, ReadTx, When};
use serde_json::json;
use std::time::Duration;

/// Documents that are removed, or read, together.
const BATCH_FILES: usize = 200;
/// How long to wait for a scan that was told to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The result of unregistering a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenRepository {
    /// Its number; none if only documents of it were left.
    pub repo_id: Option<u64>,
    /// Its name.
    pub repo_name: String,
    /// Documents that went with it.
    pub n_removed: u64,
    /// Documents that stayed.
    pub n_kept: u64,
}

impl Koi {
    /// Unregisters a repository, with its documents, or without if they are to stay. Documents that
    /// stayed can be removed by unregistering the name again.
    pub fn forget_repository(
        &self,
        caller: &Caller,
        name: &str,
        keeps_documents: bool,
    ) -> Result<ForgottenRepository> {
        caller.principal.require(match keeps_documents {
            true => Scope::Write,
            false => Scope::Destroy,
        })?;
        self.kernel.writable()?;
        let (space, name) = (&caller.principal.space, name.trim());
        let Some(repository) = self
            .kernel
            .log()
            .read(space, |tx| record::named(tx, name))?
        else {
            let n_removed = match keeps_documents {
                true => 0,
                false => self.remove_kept(space, name)?,
            };
            if n_removed == 0 {
                return Err(self.unknown_repository(caller, name)?);
            }
            return Ok(ForgottenRepository {
                repo_id: None,
                repo_name: name.to_owned(),
                n_removed,
                n_kept: 0,
            });
        };
        if let Some(job) = self.repositories.jobs.running(space, repository.id) {
            job.cancel();
            job.wait(PATIENCE);
        }
        let n_removed = match keeps_documents {
            true => 0,
            false => self.remove_files(space, &repository)?,
        };
        let id = repository.id;
        let forgotten = self.kernel.log().write(space, move |tx| {
            conclude(tx, &repository, keeps_documents, n_removed)
        })?;
        self.remove_clones(space, id);
        Ok(forgotten)
    }

    /// The error that no repository has this name, with those that exist.
    pub(super) fn unknown_repository(&self, caller: &Caller, name: &str) -> Result<Error> {
        let names = self.repository_names(caller)?;
        let hint = match names.is_empty() {
            true => "none is registered".to_owned(),
            false => format!("registered are: {}", names.join(", ")),
        };
        let shown: String = name.chars().take(200).collect();
        Ok(Error::not_found("repository", shown).hint(hint))
    }

    /// Removes what the scans of a repository brought, a batch at a time.
    fn remove_files(&self, space: &Space, repository: &Repository) -> Result<u64> {
        let files = self
            .kernel
            .log()
            .read(space, |tx| record::known(tx, repository))?;
        let n_removed = files.values().filter(|it| it.document.is_some()).count();
        let paths: Vec<String> = files.into_keys().collect();
        for batch in paths.chunks(BATCH_FILES) {
            let (batch, repository) = (batch.to_vec(), repository.clone());
            let commit = repository.commit.clone().unwrap_or_default();
            self.kernel.log().write(space, move |tx| {
                batch
                    .iter()
                    .try_for_each(|it| changes::remove(tx, &repository, &commit, it))
            })?;
        }
        Ok(n_removed as u64)
    }

    /// Removes documents that stayed when their repository was forgotten.
    fn remove_kept(&self, space: &Space, name: &str) -> Result<u64> {
        let mut n_removed = 0;
        loop {
            let kept = self.kernel.log().read(space, |tx| kept(tx, name, None))?;
            if kept.is_empty() {
                return Ok(n_removed);
            }
            n_removed += kept.len() as u64;
            let name = name.to_owned();
            self.kernel.log().write(space, move |tx| {
                for node in kept {
                    tx.remove_node(node.id)?;
                    let data = json!({
                        "rid": node.key, "source": "github", "repo": name,
                        "nodeId": node.id.to_string(),
                    });
                    tx.record("DocumentRemoved", data)?;
                }
                Ok(())
            })?;
        }
    }

    /// Removes the clones of a repository. One that another process uses is removed by the next scan of any.
    fn remove_clones(&self, space: &Space, id: u64) {
        let Ok(dir) = self.kernel.data().subdir("repositories") else {
            return;
        };
        let Ok(_lock) = dir.lock(&clones::lock_name(space, id), PATIENCE) else {
            return;
        };
        clones::remove_clones(&dir, space, |it| it == id);
    }
}

/// The row goes, and what a scan wrote while its documents were removed.
fn conclude(
    tx: &mut Tx<'_>,
    repository: &Repository,
    keeps_documents: bool,
    n_removed: u64,
) -> Result<ForgottenRepository> {
    let mut forgotten = ForgottenRepository {
        repo_id: Some(repository.id),
        repo_name: repository.name.clone(),
        n_removed,
        n_kept: 0,
    };
    for (path, known) in record::known(&**tx, repository)? {
        let is_document = u64::from(known.document.is_some());
        if keeps_documents {
            repository.files().unset(tx, &path)?;
            forgotten.n_kept += is_document;
        } else {
            changes::remove(tx, repository, "", &path)?;
            forgotten.n_removed += is_document;
        }
    }
    code::forget(tx, repository)?;
    repository.unset(tx)?;
    let data = json!({
        "repoId": repository.id, "repo": repository.name, "url": repository.url,
        "documentsRemoved": forgotten.n_removed, "documentsKept": forgotten.n_kept,
    });
    tx.record("RepositoryForgotten", data)?;
    Ok(forgotten)
}

/// Takes over documents that stayed when a repository of this name was forgotten: the next scan compares
/// them with the files, and removes those that have none.
pub(super) fn adopt_kept(tx: &mut Tx<'_>, repository: &Repository) -> Result<()> {
    let mut after = None;
    loop {
        let found = kept(&**tx, &repository.name, after)?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        after = Some(last.id);
        for node in found {
            let known = Known {
                object: String::new(),
                document: Some((node.id, tx.passages(node.id)?.len() as u64)),
            };
            let path = node.key.strip_prefix(&record::rid_prefix(&repository.name));
            if let Some(path) = path {
                repository.files().set(tx, path, &known)?;
            }
        }
    }
}

/// Documents that are named after a repository and that nobody stated.
fn kept(tx: &dyn ReadTx, name: &str, after: Option<NodeId>) -> Result<Vec<Node>> {
    let filter = NodeFilter {
        kinds: vec![Kind::Document],
        project: Some(String::new()),
        key_prefix: Some(record::rid_prefix(name)),
    };
    let mut after = after;
    loop {
        let mut found = tx.nodes(&filter, When::Now, after, BATCH_FILES)?;
        let Some(last) = found.last() else {
            return Ok(found);
        };
        after = Some(last.id);
        // Only a scan writes whose file it was.
        found.retain(|it| it.props.contains_key("commit_sha"));
        if !found.is_empty() {
            return Ok(found);
        }
    }
}
