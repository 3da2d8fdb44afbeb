//! Files that are also nodes follow what peers write, on machines that have the directory.
//!
//! While a page is applied, the locks of its files are held. What somebody changed in a file since we
//! last looked becomes a revision first, so that it takes part in the comparison of times. Where the
//! node is another afterwards, an intent is kept in the same transaction, and the file is written as
//! after every other write.
//!
//! A process that was not told where the directory is cannot look. It leaves the intent to whoever is
//! ([`journal::Intent::is_deferred`]): that process writes the file, unless somebody has changed it.

use super::conflicts;
use crate::files::{self, read_text};
use crate::journal::INTENTS;
use crate::roots::{self, Root};
use crate::{FileNode, Kernel, NOTE_BYTES_MAX, forget, open_conflicts};
use kenning_audit::foreign::{Batch, Conflict, Foreign, Merged};
use kenning_audit::{Passages, Tx};
use kenning_core::{Hash, Kind, NodeId, Result, Space};
use kenning_peers::{Around, Page};
use kenning_store::{Node, ReadTx, Row, When, patience};
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// How long to wait for somebody who is writing one of the files.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A file that a page may change.
#[derive(Clone, Debug)]
struct Followed {
    file: FileNode,
    /// What it is now; `None` where the directory is not known to this process.
    text: Option<Option<String>>,
    /// The hash of what its node said before the page.
    before: Option<Hash>,
}

/// The files of a page, with their locks.
pub(super) struct Held {
    dirs: Vec<(&'static str, Dir)>,
    files: Vec<Followed>,
    _locks: Vec<Lock>,
    started: Option<Value>,
    /// Whether some events wait for a second key.
    must_hold: bool,
}

/// What is done in the transaction that applies a page.
pub(super) struct Following {
    kernel: Hold,
    files: Vec<Followed>,
    started: Option<Value>,
    must_hold: bool,
}

/// What of the kernel a transaction needs.
struct Hold {
    log: kenning_audit::Log,
    hooks: crate::Hooks,
}

/// The names of the files of a root that a page may change, in one order, so that two processes do not
/// wait for each other.
fn names_in(kernel: &Kernel, space: &Space, page: &Page, root: &str) -> Result<BTreeSet<String>> {
    let prefix = format!("{root}:");
    let mut names = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for (event, rows) in page.entries.iter().filter_map(|it| it.event.as_ref()) {
        for row in rows {
            if let Row::Node(node) = row
                && node.kind == Kind::Document
                && let Some(name) = node.key.strip_prefix(&prefix)
            {
                names.insert(name.to_owned());
            }
        }
        let event = kenning_audit::event::parse(event);
        let changes = event.map(|it| it.changes).unwrap_or_default();
        changed.extend(changes.into_iter().filter_map(|it| match it {
            kenning_audit::Change::RemoveNode { id }
            | kenning_audit::Change::PutNode { id, .. } => Some(id),
            _ => None,
        }));
    }
    kernel.log().read(space, |tx| {
        for id in changed {
            // A node that is removed or renamed has a file under the name that it has now.
            if let Some(node) = tx.node(id, When::Now)?
                && node.kind == Kind::Document
                && let Some(name) = node.key.strip_prefix(&prefix)
            {
                names.insert(name.to_owned());
            }
        }
        Ok(())
    })?;
    Ok(names)
}

impl Held {
    pub(super) fn of_page(kernel: &Kernel, space: &Space, page: Option<&Page>) -> Result<Self> {
        let mut held = Self {
            dirs: Vec::new(),
            files: Vec::new(),
            _locks: Vec::new(),
            started: None,
            must_hold: false,
        };
        let Some(page) = page else {
            return Ok(held);
        };
        // A configuration that cannot be read may say so.
        held.must_hold = kernel
            .memory_config()
            .map_or(true, |it| it.needs_second_key);
        for kind in [&roots::VAULT, &roots::OMI] {
            let root = kernel.root(kind.name);
            if root.space() == space {
                held.add_root(kernel, space, page, root, kind.name)?;
            }
        }
        Ok(held)
    }

    fn add_root(
        &mut self,
        kernel: &Kernel,
        space: &Space,
        page: &Page,
        root: &Root,
        name: &'static str,
    ) -> Result<()> {
        let names = names_in(kernel, space, page, name)?;
        if names.is_empty() {
            return Ok(());
        }
        // A directory that is named and cannot be opened now is one that this process does not know.
        let dir = root.is_named().then(|| root.create(space).ok()).flatten();
        for name in names {
            let file = root.file(&name, NOTE_BYTES_MAX);
            let Some(dir) = &dir else {
                let (text, before) = (None, None);
                self.files.push(Followed { file, text, before });
                continue;
            };
            // Files of one directory may share a lock.
            if !file.form.shares_lock() || self.dirs.iter().all(|it| it.0 != file.source) {
                let wait = || kernel.lock_file(&file, patience::left(LOCK_WAIT));
                self._locks.push(patience::waiting(wait)?);
            }
            if self.dirs.iter().all(|it| it.0 != file.source) {
                self.dirs.push((file.source, dir.clone()));
            }
            kernel.finish_file_write(space, dir, &file.key)?;
            // A name that leads outside, or that is no file here, stays a node without a file.
            match read_text(dir, &file) {
                Ok(text) => self.files.push(Followed {
                    file,
                    text: Some(text),
                    before: None,
                }),
                Err(error) => tracing::warn!("`{name}` does not follow its node: {error}"),
            }
        }
        Ok(())
    }

    /// The event that says that an exchange began, if it brings anything.
    pub(super) fn announce(&mut self, data: Value) {
        self.started = Some(data);
    }

    pub(super) fn around(&self, kernel: &Kernel) -> Following {
        Following {
            kernel: Hold {
                log: kernel.log().clone(),
                hooks: kernel.hooks,
            },
            files: self.files.clone(),
            started: self.started.clone(),
            must_hold: self.must_hold,
        }
    }

    /// Writes the files whose nodes are others now.
    pub(super) fn finish(self, kernel: &Kernel, space: &Space) -> Result<()> {
        for Followed { file, .. } in &self.files {
            let dir = self.dirs.iter().find(|it| it.0 == file.source);
            if let Some((_, dir)) = dir {
                let written = kernel.finish_file_write(space, dir, &file.key);
                files::unless_unavailable(written)?;
            }
        }
        Ok(())
    }
}

fn node_of(tx: &Tx<'_>, file: &FileNode) -> Result<Option<Node>> {
    tx.node_by_key("", Kind::Document, &file.key, When::Now)
}

fn hash_of(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

impl Around for Following {
    fn before(&mut self, tx: &mut Tx<'_>, batch: &mut Batch) -> Result<()> {
        if let Some(data) = self.started.take() {
            tx.record("SyncStarted", data)?;
        }
        for it in &mut self.files {
            if let Some(Some(text)) = &it.text {
                files::adopt(tx, &it.file, text)?;
            }
            it.before = node_of(tx, &it.file)?.map(|it| hash_of(&it.body));
        }
        if self.must_hold {
            (self.kernel.hooks.hold)(tx, batch)?;
        }
        Ok(())
    }

    fn after(&mut self, tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
        let mut open = Vec::new();
        for conflict in &merged.conflicts {
            if !self.settle(tx, conflict)? {
                open.push(conflict.clone());
            }
        }
        open_conflicts::keep(tx, &open)?;
        conflicts::settled_elsewhere(tx, &merged.resolved)?;
        for it in &self.files {
            let node = node_of(tx, &it.file)?;
            let after = node.as_ref().map(|it| hash_of(&it.body));
            if it.before == after
                && !matches!(&it.text, Some(text) if text.as_deref().map(hash_of) != after)
            {
                continue;
            }
            match &node {
                Some(node) => it.file.form.merged(tx, &it.file, node)?,
                None => it.file.form.forget(tx, &it.file)?,
            }
            let random = self.kernel.log.random();
            match &it.text {
                Some(text) if text.as_deref().map(hash_of) == after => {}
                Some(text) => {
                    let body = node.as_ref().map(|it| it.body.as_str());
                    files::intend(tx, random, &it.file, text.as_deref(), body)?;
                }
                None => files::defer(tx, random, &it.file, it.before, after)?,
            }
        }
        forget::remove_vectors(tx, self.kernel.hooks.passages_of, &merged.erased)?;
        (self.kernel.hooks.merged)(tx, merged)
    }
}

impl Following {
    /// Where both versions can be kept in one text, as the entries of a day's log, they are.
    fn settle(&self, tx: &mut Tx<'_>, conflict: &Conflict) -> Result<bool> {
        let file = self.files.iter().find(|it| it.file.key == conflict.key);
        let Some(file) = file.map(|it| &it.file) else {
            return Ok(false);
        };
        let Some(current) = node_of(tx, file)? else {
            return Ok(false);
        };
        let Some(lost) = revision(&**tx, conflict.loser.node, conflict.loser.hash)? else {
            return Ok(false);
        };
        let Some(both) = file.form.join(file, &current.body, &lost.body) else {
            return Ok(false);
        };
        if both != current.body {
            file.read(&both, Map::new()).put(tx)?;
        }
        let mut data = conflict.to_json();
        data["resolution"] = json!("merged");
        tx.record(conflicts::RESOLVED, data)?;
        Ok(true)
    }
}

/// A revision by its hash, wherever it is.
pub(super) fn revision(tx: &dyn ReadTx, node: NodeId, hash: Hash) -> Result<Option<Node>> {
    let current = tx.node(node, When::Now)?.filter(|it| it.hash == hash);
    if current.is_some() {
        return Ok(current);
    }
    let mut history = tx.history(node)?.into_iter().map(|it| it.0);
    Ok(history.find(|it| it.hash == hash))
}

impl Kernel {
    /// Does here what a peer's event did there, as a write of this node, which the caller records. Gives the nodes
    /// that were put.
    pub fn restate(&self, tx: &mut Tx<'_>, foreign: &Foreign) -> Result<Vec<Node>> {
        let mut passages = HashMap::new();
        for node in foreign.nodes() {
            let list = (self.hooks.passages_of)(node);
            if !list.is_empty() {
                passages.insert(node.hash, Passages::from(list));
            }
        }
        let nodes = tx.restate(foreign, &passages)?;
        let merged = Merged {
            nodes: nodes.iter().map(|it| it.id).collect(),
            ..Merged::default()
        };
        (self.hooks.merged)(tx, &merged)?;
        Ok(nodes)
    }

    /// Writes the files that processes without their directory have left behind their nodes.
    pub(crate) fn finish_deferred(&self) -> Result<()> {
        if self.is_read_only() || !(self.vault.is_named() || self.omi.is_named()) {
            return Ok(());
        }
        let space = self.vault.space();
        let is_any = self.log.read(space, |tx| {
            let intents = INTENTS.list_readable(tx)?;
            Ok(intents.iter().any(|it| it.1.is_deferred()))
        })?;
        match is_any {
            true => self.finish_file_writes(),
            false => Ok(()),
        }
    }
}
