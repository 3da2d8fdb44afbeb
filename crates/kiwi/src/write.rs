//! A write that is also files.
//!
//! It goes through the journal of the kernel ([`kenning_kernel::journal`]), as the write of a note does. An
//! item may be several files, whose texts are in no node: their staged contents are made to last before the
//! commit. Until all files have their names, an item of several files does not fit its signature, so nobody
//! runs half of it.

use super::index::{Page, bucket_of, node_of, remove};
use super::item_dirs::ItemDir;
use super::package::{FILE_BYTES_MAX, ItemFile, Package};
use super::{ItemFault, ItemResult, ItemTarget, not_found};
use crate::Kiwi;
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{Code, Error, Hash, Result, Space};
use kenning_items::link;
use kenning_kernel::files::completed_later;
use kenning_kernel::journal::{self, ITEM, Intent, IntentOutcome, Plan};
use kenning_kernel::{Caller, Scope};
use kenning_store::{ReadTx, StoreLock};
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

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
    /// The item that the link leads from.
    pub from: String,
    /// The item that it leads to.
    pub to: String,
    /// The kind of relationship.
    pub relationship: String,
    /// Whether there was a link of these two before.
    pub is_update: bool,
}

/// The files of an item as they were and as they are to be, by their names beneath the item directory.
struct Changes {
    before: Vec<ItemFile>,
    after: Vec<ItemFile>,
}

impl Changes {
    fn of(writing: &Writing<'_>) -> Self {
        let files = |it: &Package| -> Vec<ItemFile> {
            let files = it.names_in_dir();
            files.map(|(name, bytes)| (name, bytes.to_vec())).collect()
        };
        let after = writing.after.as_ref();
        Self {
            before: writing.before.map(files).unwrap_or_default(),
            after: after.map(|it| files(it.0)).unwrap_or_default(),
        }
    }

    fn hash_before(&self, name: &str) -> Option<Hash> {
        let found = self.before.iter().find(|it| it.0 == name);
        found.map(|it| Hash::of(&it.1))
    }

    /// Refuses what cannot be written before anything is kept: what is no file is in the way, or a
    /// link leads outside.
    fn check(&self, dir: &Dir) -> Result<()> {
        for (name, _) in &self.after {
            match dir.metadata(name) {
                Ok(it) if it.is_file => {}
                Ok(_) => {
                    return Err(Error::invalid(format!(
                        "`{name}` exists but is not a regular file"
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

    /// Stages every file that is to change.
    fn stage(&self, dir: &Dir, plan: &mut Plan) -> Result<()> {
        for (name, bytes) in &self.after {
            let (before, after) = (self.hash_before(name), Hash::of(bytes));
            if before == Some(after) {
                plan.change(name, before, before);
            } else {
                plan.write(dir, name, bytes, before)?;
            }
        }
        for (name, bytes) in &self.before {
            if !self.after.iter().any(|it| it.0 == *name) {
                plan.change(name, Some(Hash::of(bytes)), None);
            }
        }
        // The text of an item is in its node only in part, so after a power cut there is no other copy.
        plan.sync_staged()
    }
}

impl Kiwi {
    /// Writes an item, or takes it away.
    pub(super) fn write_item(
        &self,
        caller: &Caller,
        item_dir: &ItemDir,
        writing: Writing<'_>,
    ) -> Result<()> {
        let space = &caller.principal.space;
        let package = writing.after.as_ref().map(|it| it.0).or(writing.before);
        let Some(package) = package else {
            return Ok(());
        };
        let key = format!("{ITEM}{}", package.path_on(item_dir).to_string_lossy());
        // Whatever its category, an id is one item.
        let lock = format!("{}#{}", item_dir.dir.path().display(), package.id());
        let _lock = self.lock_item(&lock)?;
        self.finish_item_write(space, &key)?;
        // A file that somebody changed while we validated is not ours to replace unseen.
        if let Some(before) = writing.before {
            let now = Package::read(item_dir, &before.place)?;
            if now.files != before.files {
                return Err(
                    Error::conflict(format!("`{}` was changed meanwhile", before.id()))
                        .hint("look at it and try again"),
                );
            }
        } else if self
            .locate(std::slice::from_ref(item_dir), package.id().as_str())?
            .is_some()
        {
            return Err(
                Error::conflict(format!("`{}` was made meanwhile", package.id()))
                    .hint("look at it and try again"),
            );
        }
        let changes = Changes::of(&writing);
        changes.check(&item_dir.dir)?;
        let gone = match (&writing.before, &writing.after) {
            (Some(before), Some((after, _))) if before.place != after.place => Some(*before),
            (Some(before), None) => Some(*before),
            _ => None,
        };
        let gone_node = match gone {
            Some(gone) => self
                .kernel
                .log()
                .read(space, |tx| node_of(tx, item_dir, gone))?,
            None => None,
        };
        let page = writing.after.map(|it| it.1);
        let (kind, data) = writing.event;
        let dir = item_dir.dir.path().to_string_lossy().into_owned();
        let mut plan = Plan::new(self.kernel.log().random(), dir, lock, FILE_BYTES_MAX);
        if let Err(error) = changes.stage(&item_dir.dir, &mut plan) {
            plan.give_up(&item_dir.dir);
            return Err(error);
        }
        let work = move |tx: &mut Tx<'_>, _: Option<Intent>| {
            if let Some(node) = gone_node {
                remove(tx, node.id)?;
            }
            if let Some(page) = page {
                page.write(tx)?;
            }
            tx.record(kind, data).map(drop)
        };
        let (journal, log) = (self.kernel.journal(), self.kernel.log());
        if let Err(error) = journal.commit(log, space, &key, plan.intent(), work) {
            plan.give_up(&item_dir.dir);
            return Err(error);
        }
        let done = plan.take_names(&item_dir.dir);
        self.forget_dir(item_dir);
        // An item that could not be written stays an intent: whoever opens the store next tries again.
        let intent = plan.leave();
        done.map_err(completed_later)?;
        journal.mark_done(self.kernel.later(), space, &key, &intent);
        Ok(())
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

    /// Carries out a write that a dead process left. The caller holds the lock.
    fn finish_item_write(&self, space: &Space, key: &str) -> Result<()> {
        let journal = self.kernel.journal();
        let open = |tx: &dyn ReadTx| journal.open_intent(tx, space, key);
        let intent = match self.kernel.log().read(space, open) {
            Ok(Some(intent)) => intent,
            Ok(None) => return Ok(()),
            Err(error) if error.code == Code::Corrupt => {
                tracing::warn!("`{key}`: {error}; it is dropped");
                let key = key.to_owned();
                let log = self.kernel.log();
                return log.write(space, move |tx| journal::give_up(tx, &key));
            }
            Err(error) => return Err(error),
        };
        let path = Path::new(&intent.dir);
        let dir = Dir::create(path)?;
        let what = match intent.carry_out(&dir, None)? {
            IntentOutcome::Applied => {
                journal.mark_done(self.kernel.later(), space, key, &intent);
                return Ok(());
            }
            IntentOutcome::FileChanged => "was changed by somebody else",
            IntentOutcome::ContentMissing => "has no new content any more",
        };
        // What is on disk wins: the next look reads it again.
        tracing::warn!("`{key}` {what}; an unfinished write is dropped");
        intent.discard(&dir);
        let (key, stamps) = (key.to_owned(), bucket_of(dir.path()));
        self.kernel.log().write(space, move |tx| {
            for root in stamps.keys(&**tx)? {
                stamps.unset(tx, &root)?;
            }
            journal::give_up(tx, &key)
        })?;
        self.forget_known(path);
        Ok(())
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
        journal::take_over_old(self.kernel.log(), space)?;
        let journal = self.kernel.journal();
        let open = |tx: &dyn ReadTx| journal.open_intents(tx, space);
        for (key, intent) in self.kernel.log().read(space, open)? {
            let is_item = key.starts_with(ITEM) && is_meant(&intent.lock);
            if !is_item || !self.is_ours(Path::new(&intent.dir)) {
                continue;
            }
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
        let item_dirs = self.item_dirs(caller, target.item_type, project.as_ref())?;
        self.finish_item_writes_of(&caller.principal.space, &target.id)?;
        let found = self.locate(&item_dirs, &target.id)?;
        let (item_dir, package) = found.ok_or_else(|| not_found(target.item_type, &target.id))?;
        let path = package.path_on(&item_dir).to_string_lossy().into_owned();
        let deleted = DeletedItem {
            from: vec![item_dir.scope.word().to_owned()],
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
            &item_dir,
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
        let item_dirs = self.item_dirs(caller, target.item_type, project.as_ref())?;
        for item_dir in &item_dirs {
            self.index_dir(caller, item_dir)?;
        }
        let mut nodes = Vec::new();
        for id in [target.id.as_str(), to] {
            let (item_dir, package) = self.locate(&item_dirs, id)?.ok_or_else(|| {
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
            let node = self.kernel.log().read(&caller.principal.space, |tx| {
                node_of(tx, &item_dir, &package)
            })?;
            let node = node.ok_or_else(|| {
                Error::unavailable(format!("`{id}` is not indexed")).hint("try again")
            })?;
            nodes.push(node.id);
        }
        let [from_node, to_node] = nodes[..] else {
            return Err(Error::internal("expected the nodes of two items").into());
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
