//! A write that is also files.
//!
//! The files are written beside their names first, so that a full disk is found before anything is kept;
//! then the event, the node and an intent with all bytes are committed; then the files take their names;
//! then the intent is cleared. A process that dies in between leaves the intent, and whoever opens the
//! store next, or writes the same item, carries it out. Until then an item of several files does not fit
//! its signature, so nobody runs half of it.

use super::index::{Page, node_of, remove};
use super::item_dirs::ItemDir as Shelf;
use super::package::{ItemFile, Package};
use super::{ItemFault, ItemResult, ItemTarget, in_json, not_found};
use crate::Kiwi;
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{Code, Error, Hash, Result, Space};
use kenning_items::link;
use kenning_kernel::files::completed_later;
use kenning_kernel::{Caller, Scope};
use kenning_store::StoreLock;
use kenning_vault::{Dir, Lock, Staged};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

/// Writes that are not carried out yet.
const INTENTS: &str = "items/intents";

/// How long a call waits for another one's write of the same item.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What becomes of an item.
pub(super) struct Writing<'a> {
    /// As it was, if it was there.
    pub(super) before: Option<&'a Package>,
    /// As it is to be, unless it goes.
    pub(super) after: Option<(&'a Package, Page)>,
    /// What the log says of it.
    pub(super) event: (&'static str, Value),
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedItem {
    /// From where: `project`, `user`, `registry`.
    pub from: Vec<String>,
    /// What is gone.
    pub paths: Vec<String>,
}

/// What was linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedItem {
    /// From.
    pub from: String,
    /// To.
    pub to: String,
    /// How.
    pub relationship: String,
    /// Whether there was a link of these two before.
    pub is_update: bool,
}

/// Files to write and files to remove, beneath one directory.
struct Intent {
    dir: String,
    /// What is locked meanwhile.
    lock: String,
    write: Vec<Change>,
    remove: Vec<Change>,
}

/// What becomes of a file: its name, its bytes if it stays, and the hash of what it was.
struct Change {
    name: String,
    bytes: Vec<u8>,
    before: Option<Hash>,
}

impl Intent {
    fn of(shelf: &Shelf, writing: &Writing<'_>, lock: String) -> Self {
        let names = |it: &Package| -> Vec<ItemFile> {
            let files = it.names_in_dir();
            files.map(|(name, bytes)| (name, bytes.to_vec())).collect()
        };
        let before = writing.before.map(names).unwrap_or_default();
        let after = writing
            .after
            .as_ref()
            .map(|it| names(it.0))
            .unwrap_or_default();
        let hash_before = |name: &str| {
            let found = before.iter().find(|it| it.0 == name);
            found.map(|it| Hash::of(&it.1))
        };
        let remove = before
            .iter()
            .filter(|it| !after.iter().any(|kept| kept.0 == it.0));
        let remove = remove.map(|(name, _)| Change {
            name: name.clone(),
            bytes: Vec::new(),
            before: hash_before(name),
        });
        let remove = remove.collect();
        let write = after.into_iter().map(|(name, bytes)| Change {
            before: hash_before(&name),
            name,
            bytes,
        });
        Self {
            dir: shelf.dir.path().to_string_lossy().into_owned(),
            lock,
            write: write.collect(),
            remove,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let rows = |changes: &[Change]| -> Vec<Value> {
            let row = |it: &Change| {
                let before = it.before.map(|it| it.to_string());
                json!([it.name, in_json::to_text(&it.bytes), before])
            };
            changes.iter().map(row).collect()
        };
        let value = json!({
            "dir": self.dir, "lock": self.lock,
            "write": rows(&self.write), "remove": rows(&self.remove),
        });
        value.to_string().into_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let rows = |name: &str| -> Option<Vec<Change>> {
            let row = |it: &Value| {
                Some(Change {
                    name: it.get(0)?.as_str()?.to_owned(),
                    bytes: in_json::to_bytes(it.get(1)?.as_str()?)?,
                    before: match it.get(2)? {
                        Value::Null => None,
                        hash => Some(Hash::from_hex(hash.as_str()?)?),
                    },
                })
            };
            value.get(name)?.as_array()?.iter().map(row).collect()
        };
        Some(Self {
            dir: value.get("dir")?.as_str()?.to_owned(),
            lock: value.get("lock")?.as_str()?.to_owned(),
            write: rows("write")?,
            remove: rows("remove")?,
        })
    }

    /// Refuses what cannot be written before anything is kept: what is no file is in the way, or a
    /// link leads outside.
    fn check(&self, dir: &Dir) -> Result<()> {
        for change in &self.write {
            let name = &change.name;
            match dir.metadata(name) {
                Ok(it) if it.is_file => {}
                Ok(_) => {
                    return Err(Error::invalid(format!(
                        "`{name}` is there and is no regular file"
                    ))
                    .hint("move it out of the way"));
                }
                Err(error) if error.code == Code::NotFound => {
                    // What is found by no name may still be there: a link that leads nowhere.
                    let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
                    let beside = dir.list(folder).unwrap_or_default();
                    if beside.iter().any(|it| it.name == last) {
                        return Err(Error::invalid(format!(
                            "`{name}` is a link that leads nowhere"
                        ))
                        .hint("move it out of the way"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether every file is as it was, or as it is to be: nobody changed one since.
    fn is_current(&self, dir: &Dir) -> bool {
        let hash_of = |name: &str| {
            let bytes = dir.read(name, super::package::FILE_BYTES_MAX).ok();
            bytes.map(|it| Hash::of(&it))
        };
        let written = self.write.iter().all(|it| {
            let now = hash_of(&it.name);
            now == it.before || now == Some(Hash::of(&it.bytes))
        });
        let removed = self.remove.iter().all(|it| {
            let now = hash_of(&it.name);
            now.is_none() || now == it.before
        });
        written && removed
    }

    /// Doing it twice does the same as doing it once.
    fn carry_out(&self, dir: &Dir) -> Result<()> {
        for Change { name, bytes, .. } in &self.write {
            let is_there = dir.read(name, bytes.len() as u64);
            if is_there.is_ok_and(|it| it == *bytes) {
                // Written before, perhaps by who was killed before the disk had answered.
                dir.confirm(name)?;
                continue;
            }
            dir.write(name, bytes)?;
        }
        self.remove_rest(dir)
    }

    /// Lays every file that is to change beside its name.
    fn stage(&self, dir: &Dir) -> Result<Vec<Staged>> {
        let is_new = |it: &&Change| it.before != Some(Hash::of(&it.bytes));
        let new = self.write.iter().filter(is_new);
        new.map(|it| dir.stage(&it.name, &it.bytes)).collect()
    }

    /// [`Intent::carry_out`] of files that lie beside their names.
    fn carry_out_staged(&self, dir: &Dir, staged: Vec<Staged>) -> Result<()> {
        staged.into_iter().try_for_each(Staged::take_name)?;
        self.remove_rest(dir)
    }

    /// Removes folders that were made for files that were not written after all.
    fn prune_new(&self, dir: &Dir) {
        let new = self.write.iter().filter(|it| it.before.is_none());
        new.for_each(|it| prune(dir, &it.name));
    }

    fn remove_rest(&self, dir: &Dir) -> Result<()> {
        for Change { name, .. } in &self.remove {
            match dir.remove(name) {
                Ok(()) => {}
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
            prune(dir, name);
        }
        Ok(())
    }
}

/// Removes the folders of a file as far as they are empty.
fn prune(dir: &Dir, name: &str) {
    let mut at = name;
    while let Some((folder, _)) = at.rsplit_once('/') {
        if dir.remove_dir(folder).is_err() {
            return;
        }
        at = folder;
    }
}

impl Kiwi {
    /// Writes an item, or takes it away.
    pub(super) fn write_item(
        &self,
        caller: &Caller,
        shelf: &Shelf,
        writing: Writing<'_>,
    ) -> Result<()> {
        let space = &caller.principal.space;
        let package = writing.after.as_ref().map(|it| it.0).or(writing.before);
        let Some(package) = package else {
            return Ok(());
        };
        let key = package.path_on(shelf).to_string_lossy().into_owned();
        // Whatever its category, an id is one item.
        let lock = format!("{}#{}", shelf.dir.path().display(), package.id());
        let _lock = self.lock_item(&lock)?;
        self.finish_item_write(space, &key)?;
        // A file that somebody changed while we validated is not ours to replace unseen.
        if let Some(before) = writing.before {
            let now = Package::read(shelf, &before.place)?;
            if now.files != before.files {
                return Err(
                    Error::conflict(format!("`{}` was changed meanwhile", before.id()))
                        .hint("look at it and try again"),
                );
            }
        } else if self
            .locate(std::slice::from_ref(shelf), package.id().as_str())?
            .is_some()
        {
            return Err(
                Error::conflict(format!("`{}` was made meanwhile", package.id()))
                    .hint("look at it and try again"),
            );
        }
        let intent = Intent::of(shelf, &writing, lock);
        intent.check(&shelf.dir)?;
        let gone = match (&writing.before, &writing.after) {
            (Some(before), Some((after, _))) if before.place != after.place => Some(*before),
            (Some(before), None) => Some(*before),
            _ => None,
        };
        let gone_node = match gone {
            Some(gone) => self
                .kernel
                .log()
                .read(space, |tx| node_of(tx, shelf, gone))?,
            None => None,
        };
        let page = writing.after.map(|it| it.1);
        let (kind, data) = writing.event;
        let bytes = intent.to_bytes();
        let staged = intent.stage(&shelf.dir);
        let staged = staged.inspect_err(|_| intent.prune_new(&shelf.dir))?;
        let kept = self.kernel.log().write(space, {
            let key = key.clone();
            move |tx| {
                if let Some(node) = gone_node {
                    remove(tx, node.id)?;
                }
                if let Some(page) = page {
                    page.write(tx)?;
                }
                tx.set(INTENTS, &key, &bytes)?;
                tx.record(kind, data).map(drop)
            }
        });
        if let Err(error) = kept {
            drop(staged);
            intent.prune_new(&shelf.dir);
            return Err(error);
        }
        let done = intent.carry_out_staged(&shelf.dir, staged);
        self.forget_dir(shelf);
        // An item that could not be written stays an intent: whoever opens the store next tries again.
        done.map_err(completed_later)?;
        match self.clear_item_intent(space, &key) {
            Err(error) if error.code == Code::Unavailable => {
                tracing::warn!("`{key}` is written, which is not noted yet: {error}");
                Ok(())
            }
            cleared => cleared,
        }
    }

    /// Keeps everybody else from writing this item: other processes of this machine by a file, and servers
    /// of other machines, where they share the store, by the store.
    fn lock_item(&self, key: &str) -> Result<(Lock, Option<StoreLock>)> {
        let locks = self.kernel.data().private_subdir("locks")?;
        let name = format!("item-{}", Hash::of(key.as_bytes()));
        let here = locks.lock_briefly(&name, LOCK_WAIT)?;
        let everywhere = self.kernel.log().store().lock(&name, LOCK_WAIT)?;
        Ok((here, everywhere))
    }

    fn clear_item_intent(&self, space: &Space, key: &str) -> Result<()> {
        let key = key.to_owned();
        self.kernel
            .log()
            .write(space, move |tx| tx.unset(INTENTS, &key))
    }

    /// Carries out a write that a dead process left. The caller holds the lock.
    fn finish_item_write(&self, space: &Space, key: &str) -> Result<()> {
        let Some(bytes) = self.kernel.log().read(space, |tx| tx.get(INTENTS, key))? else {
            return Ok(());
        };
        if let Some(intent) = Intent::of_bytes(&bytes) {
            let dir = Dir::create(Path::new(&intent.dir))?;
            // Who edited a file since then wins, and the next look adopts it.
            if intent.is_current(&dir) {
                intent.carry_out(&dir)?;
            } else {
                tracing::warn!(
                    "`{key}` was changed by somebody else; an unfinished write is dropped"
                );
            }
        }
        self.clear_item_intent(space, key)
    }

    /// Carries out what dead processes left, as far as this one may write there.
    pub fn finish_item_writes(&self, space: &Space) -> Result<()> {
        self.finish_item_writes_if(space, |_| true)
    }

    /// The same for one item, before it is looked at to be changed: a write that found no room is what it
    /// was before whoever tries again, and not what somebody else did meanwhile.
    pub(super) fn finish_item_writes_of(&self, space: &Space, id: &str) -> Result<()> {
        let end = format!("#{id}");
        self.finish_item_writes_if(space, |lock| lock.ends_with(&end))
    }

    /// The same for those with such locks.
    fn finish_item_writes_if(&self, space: &Space, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        let all = self.kernel.log().read(space, |tx| tx.list(INTENTS))?;
        for (key, bytes) in all {
            let intent = Intent::of_bytes(&bytes).filter(|it| is_meant(&it.lock));
            let Some(intent) = intent.filter(|it| self.is_ours(Path::new(&it.dir))) else {
                continue;
            };
            let _lock = self.lock_item(&intent.lock)?;
            if let Err(error) = self.finish_item_write(space, &key) {
                tracing::warn!("`{key}` is not written yet: {error}");
            }
        }
        Ok(())
    }

    fn is_ours(&self, path: &Path) -> bool {
        let options = &self.items.options;
        let own = self.kernel.project().place().into_iter();
        let named = options
            .allow_roots
            .iter()
            .chain(&options.user)
            .chain(&options.user_knowledge);
        let named = named.filter_map(|it| Some(Dir::open(it).ok()?.path().to_owned()));
        own.chain(named).any(|it| path.starts_with(it))
    }

    /// Takes a local item away, wherever it is found first or where the caller says.
    pub(crate) fn delete_local_item(
        &self,
        caller: &Caller,
        target: &ItemTarget,
    ) -> ItemResult<DeletedItem> {
        caller.principal.require(Scope::Destroy)?;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let shelves = self.item_dirs(caller, target.item_type, project.as_ref())?;
        self.finish_item_writes_of(&caller.principal.space, &target.id)?;
        let found = self.locate(&shelves, &target.id)?;
        let (shelf, package) = found.ok_or_else(|| not_found(target.item_type, &target.id))?;
        let path = package.path_on(&shelf).to_string_lossy().into_owned();
        let deleted = DeletedItem {
            from: vec![shelf.scope.word().to_owned()],
            paths: vec![path.clone()],
        };
        if target.dry_run {
            return Ok(deleted);
        }
        let event = json!({
            "type": target.item_type.word(), "id": target.id, "path": path,
        });
        self.write_item(
            caller,
            &shelf,
            Writing {
                before: Some(&package),
                after: None,
                event: ("ItemDeleted", event),
            },
        )?;
        Ok(deleted)
    }

    /// Links one item to another of the same type.
    pub fn link_items(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        parameters: &Map<String, Value>,
    ) -> ItemResult<LinkedItem> {
        caller.principal.require(Scope::Write)?;
        let link = link::read(target.item_type, &Value::Object(parameters.clone()))?;
        let (to, relationship) = (link.target_id.as_str(), link.relationship_type.as_str());
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let shelves = self.item_dirs(caller, target.item_type, project.as_ref())?;
        for shelf in &shelves {
            self.index_dir(caller, shelf)?;
        }
        let mut nodes = Vec::new();
        for id in [target.id.as_str(), to] {
            let (shelf, package) = self.locate(&shelves, id)?.ok_or_else(|| {
                let mut fault = not_found(target.item_type, id);
                if id == to {
                    fault.error = Error::new(
                        Code::NotFound,
                        format!("`target_id`: no {} `{id}`", target.item_type),
                    )
                    .hint("create it first, or load it");
                }
                fault
            })?;
            let node = self
                .kernel
                .log()
                .read(&caller.principal.space, |tx| node_of(tx, &shelf, &package))?;
            let node = node.ok_or_else(|| {
                Error::unavailable(format!("`{id}` is not indexed")).hint("try again")
            })?;
            nodes.push(node.id);
        }
        let [from_node, to_node] = nodes[..] else {
            return Err(Error::internal("two items have two nodes").into());
        };
        if from_node == to_node {
            return Err(
                Error::invalid(format!("`target_id`: `{to}` is the item itself"))
                    .hint("name another item")
                    .into(),
            );
        }
        let before = self.kernel.log().read(&caller.principal.space, |tx| {
            links_between(tx, from_node, to_node)
        })?;
        let linked = LinkedItem {
            from: target.id.clone(),
            to: to.to_owned(),
            relationship: relationship.to_owned(),
            is_update: !before.is_empty(),
        };
        if target.dry_run {
            return Ok(linked);
        }
        let data = json!({
            "type": target.item_type.word(), "from": target.id, "to": to,
            "relationship": relationship,
        });
        let relationship = relationship.to_owned();
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                // The same two are linked in one way: another one replaces it.
                for rel in before.iter().filter(|it| **it != relationship) {
                    tx.end_edge(from_node, rel, to_node)?;
                }
                put_link(tx, from_node, &relationship, to_node)?;
                tx.record("ItemLinked", data).map(drop)
            })?;
        Ok(linked)
    }
}

fn links_between(
    tx: &dyn kenning_store::ReadTx,
    from: kenning_core::NodeId,
    to: kenning_core::NodeId,
) -> Result<Vec<String>> {
    let filter = kenning_store::EdgeFilter {
        src: Some(from),
        dst: Some(to),
        ..Default::default()
    };
    let edges = tx.edges(&filter, kenning_store::When::Now, 100)?;
    let ours = edges
        .into_iter()
        .filter(|it| it.props.get("source") == Some(&"kiwi".into()));
    Ok(ours.map(|it| it.rel).collect())
}

fn put_link(
    tx: &mut Tx<'_>,
    src: kenning_core::NodeId,
    rel: &str,
    dst: kenning_core::NodeId,
) -> Result<()> {
    let mut props = Map::new();
    props.insert("source".to_owned(), "kiwi".into());
    tx.put_edge(EdgeDraft {
        src,
        rel: rel.to_owned(),
        dst,
        weight: 1.0,
        props,
    })
    .map(drop)
}

/// Faults of writing keep what the contract says beside them.
impl From<ItemFault> for Error {
    fn from(fault: ItemFault) -> Self {
        fault.error
    }
}
