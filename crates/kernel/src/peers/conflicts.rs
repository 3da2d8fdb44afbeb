//! Conflicts that nobody has settled yet.
//!
//! `ConflictDetected` says that two nodes wrote the same thing without having seen each other's write. The
//! later one holds, and the other is in the history. The conflict stays open until somebody says which
//! one it is to be ([`Kernel::settle_conflict`]), or writes the thing again: then `ConflictResolved` says
//! so, and goes to the peers.

use super::files::revision;
use crate::files::{self, read_text};
use crate::log_query::shown_did;
use crate::open_conflicts::{OPEN, id_of};
use crate::{Caller, Kernel, NOTE_BYTES_MAX, Raw, Scope, roots, timestamp};
use kenning_audit::{Draft, Tx};
use kenning_core::{Error, Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{Node, ReadTx, When};
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::time::Duration;

/// The event that says that a conflict is settled.
pub(super) use kenning_audit::foreign::CONFLICT_RESOLVED as RESOLVED;

/// Where a conflict names its authors.
const AUTHORS: [&str; 2] = ["winnerAuthor", "loserAuthor"];

/// How long to wait for somebody who is writing the file.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A conflict that nobody has settled.
#[derive(Clone, Debug)]
pub struct OpenConflict {
    /// Its name.
    pub id: String,
    /// The node that is current.
    pub node: NodeId,
    /// Its kind.
    pub kind: String,
    /// Its key.
    pub key: String,
    /// When it was found.
    pub at: Hlc,
    /// What `ConflictDetected` says.
    pub data: Value,
    /// What holds now.
    pub current: Option<String>,
    /// What lost.
    pub lost: Option<String>,
    /// The method by which authors are shown.
    did_method: String,
}

/// Which version it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one that holds.
    Winner,
    /// The one that lost.
    Loser,
}

/// A peer settled conflicts, which are named by the events that lost.
pub(super) fn settled_elsewhere(tx: &mut Tx<'_>, losers: &[String]) -> Result<()> {
    losers.iter().try_for_each(|it| OPEN.unset(tx, &id_of(it)))
}

fn open(tx: &dyn ReadTx) -> Result<Vec<OpenConflict>> {
    let rows = OPEN.list(tx)?.into_iter();
    let read = |(id, row): (String, Raw)| {
        let data: Value = serde_json::from_slice(&row.0).ok()?;
        let text = |name: &str| Some(data[name].as_str()?.to_owned());
        Some(OpenConflict {
            node: text("nodeId")?.parse().ok()?,
            kind: text("nodeType")?,
            key: text("key")?,
            at: Hlc(data["at"].as_u64()?),
            current: None,
            lost: None,
            did_method: "key".to_owned(),
            id,
            data,
        })
    };
    Ok(rows.filter_map(read).collect())
}

impl OpenConflict {
    /// As JSON, for people and other programs.
    pub fn to_json(&self) -> Value {
        let mut value = self.data.clone();
        value["id"] = json!(self.id);
        value["at"] = json!(timestamp(self.at.ms()));
        value["current"] = json!(self.current);
        value["lost"] = json!(self.lost);
        for name in AUTHORS {
            value[name] = json!(self.author(name));
        }
        value
    }

    /// Who wrote the version that holds.
    pub fn winner_author(&self) -> String {
        self.author("winnerAuthor")
    }

    /// Who wrote the version that lost.
    pub fn loser_author(&self) -> String {
        self.author("loserAuthor")
    }

    fn author(&self, name: &str) -> String {
        shown_did(
            self.data[name].as_str().unwrap_or_default(),
            &self.did_method,
        )
    }

    fn loser(&self) -> Option<(NodeId, Hash)> {
        let node = self.data["loserNodeId"].as_str()?.parse().ok()?;
        let hash = Hash::from_hex(self.data["loserRevision"].as_str()?)?;
        Some((node, hash))
    }

    fn current(&self, tx: &dyn ReadTx) -> Result<Option<Node>> {
        let Ok(kind) = self.kind.parse::<Kind>() else {
            return Ok(None);
        };
        match tx.node(self.node, When::Now)? {
            Some(node) => Ok(Some(node)),
            None => tx.node_by_key("", kind, &self.key, When::Now),
        }
    }

    /// How it was settled without anybody saying so.
    fn resolution(&self, tx: &dyn ReadTx) -> Result<Option<&'static str>> {
        Ok(match self.current(tx)? {
            None => Some("removed"),
            Some(node) if node.updated > self.at => Some("rewritten"),
            Some(_) => None,
        })
    }

    fn resolved(&self, resolution: &str) -> Value {
        let mut data = self.data.clone();
        if let Some(data) = data.as_object_mut() {
            data.remove("at");
            data.insert("resolution".to_owned(), resolution.into());
        }
        data
    }
}

impl Kernel {
    /// Conflicts whose nodes were written again since, or removed, are settled: an event says so.
    pub(super) fn settle_rewritten(&self, space: &Space) -> Result<()> {
        let find = |tx: &dyn ReadTx| {
            let mut found = Vec::new();
            for it in open(tx)? {
                if let Some(how) = it.resolution(tx)? {
                    found.push((it, how));
                }
            }
            Ok(found)
        };
        if self.log.read(space, find)?.is_empty() {
            return Ok(());
        }
        self.log.write(space, move |tx| {
            for (it, how) in find(&**tx)? {
                OPEN.unset(tx, &it.id)?;
                tx.record(RESOLVED, it.resolved(how))?;
            }
            Ok(())
        })
    }

    /// The conflicts of the caller's space that nobody has settled, oldest first, with both texts.
    ///
    /// # Errors
    /// Denied without the scope `read`; those of the store.
    pub fn conflicts(&self, caller: &Caller) -> Result<Vec<OpenConflict>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        if !self.is_read_only() {
            self.settle_rewritten(space)?;
        }
        let did_method = self.did_method()?;
        self.log.read(space, |tx| {
            let mut all = open(tx)?;
            for it in &mut all {
                it.did_method.clone_from(&did_method);
                it.current = it.current(tx)?.map(|it| it.body);
                it.lost = match it.loser() {
                    Some((node, hash)) => revision(tx, node, hash)?.map(|it| it.body),
                    None => None,
                };
            }
            all.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
            Ok(all)
        })
    }

    /// Settles a conflict, named by its id, its node or its key: the version that holds is confirmed, or
    /// the one that lost becomes the newest revision.
    ///
    /// # Errors
    /// Denied without the scope `write`; not found; those of the store and of the file.
    pub fn settle_conflict(
        &self,
        caller: &Caller,
        name: &str,
        choice: Choice,
    ) -> Result<OpenConflict> {
        self.may_write(caller)?;
        let space = &caller.principal.space;
        let is_it = |it: &OpenConflict| {
            let without_root = it.key.split_once(':').map(|it| it.1);
            it.id == name
                || it.node.to_string() == name
                || it.key == name
                || without_root == Some(name)
        };
        let found = self.conflicts(caller)?.into_iter().find(is_it);
        let found = found.ok_or_else(|| {
            Error::not_found("conflict", name)
                .hint("`kenning peer conflicts` lists those that are open")
        })?;
        match choice {
            Choice::Winner => {
                let it = found.clone();
                self.log.write(space, move |tx| {
                    OPEN.unset(tx, &it.id)?;
                    tx.record(RESOLVED, it.resolved("kept")).map(drop)
                })?;
            }
            Choice::Loser => self.take_loser(space, &found)?,
        }
        Ok(found)
    }

    fn take_loser(&self, space: &Space, conflict: &OpenConflict) -> Result<()> {
        let gone = || {
            Error::not_found("the version that lost", &conflict.id)
                .hint("write what you want; that settles it too")
        };
        let (node, hash) = conflict.loser().ok_or_else(gone)?;
        let lost = self.log.read(space, |tx| revision(tx, node, hash))?;
        let lost = lost.ok_or_else(gone)?;
        let passages = (self.hooks.passages_of)(&lost);
        let file = roots::name_in_key(&lost.key)
            .filter(|_| lost.kind == Kind::Document)
            .map(|name| (self.root(name), lost.key.trim_start_matches(name)))
            .map(|(root, name)| {
                (
                    root,
                    root.file(name.trim_start_matches(':'), NOTE_BYTES_MAX),
                )
            });
        let mut dir: Option<Dir> = None;
        let mut text = None;
        let mut lock = None;
        if let Some((root, file)) = &file
            && root.is_named()
            && root.space() == space
        {
            let opened = root.create(space)?;
            lock = Some(self.lock_file(file, LOCK_WAIT)?);
            self.finish_file_write(space, &opened, &file.key)?;
            text = Some(read_text(&opened, file)?);
            dir = Some(opened);
        }
        let (it, log, followed) = (conflict.clone(), self.log.clone(), file.map(|it| it.1));
        let key = followed.as_ref().map(|it| it.key.clone());
        self.log.write(space, move |tx| {
            let hash_of = |text: &str| Hash::of(text.as_bytes());
            if let (Some(file), Some(Some(text))) = (&followed, &text) {
                files::adopt(tx, file, text)?;
            }
            let before = tx.node_by_key(&lost.project, lost.kind, &lost.key, When::Now)?;
            let node = tx.put_node(Draft {
                kind: lost.kind,
                project: lost.project,
                key: lost.key,
                title: lost.title,
                body: lost.body,
                props: lost.props,
            })?;
            tx.put_passages(node.id, &passages)?;
            OPEN.unset(tx, &it.id)?;
            tx.record(RESOLVED, it.resolved("restored"))?;
            let Some(file) = &followed else {
                return Ok(());
            };
            file.form.merged(tx, file, &node)?;
            let (random, after) = (log.random(), Some(hash_of(&node.body)));
            match &text {
                Some(text) => files::intend(tx, random, file, text.as_deref(), Some(&node.body)),
                None => {
                    let before = before.map(|it| hash_of(&it.body));
                    files::defer(tx, random, file, before, after)
                }
            }
        })?;
        if let (Some(dir), Some(key)) = (&dir, &key) {
            files::unless_unavailable(self.finish_file_write(space, dir, key))?;
        }
        drop(lock);
        Ok(())
    }
}
