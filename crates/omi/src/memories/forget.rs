//! Forgetting memories, and getting them back while that is possible.
//!
//! A memory is forgotten in two steps. First it is taken away: nobody finds it any more, and its text is only in the
//! history. When its grace time is over (`forget.grace_hours`), it is erased: rows, history, vectors, what events say of
//! it, entries of the daily logs that repeat it, and what is left in files. A row says which memories wait for that, so
//! any process completes what another began.

use super::{ACCESS, Memory, find_memory, memory_id, node_id};
use crate::Omi;
use kenning_audit::Tx;
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_kernel::forget::{Erasure, Forgotten};
use kenning_kernel::{Bucket, Caller, Kernel, Lease, Principal, lease};
use kenning_memory::types::relation;
use kenning_search::passages;
use kenning_store::{EdgeFilter, Node, NodeFilter, ReadTx, When};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// The key-value bucket of memories that are taken away and not erased yet.
const MARKED: Bucket<Marked> = Bucket::new("omi/forgotten");

/// Who erases what is due.
const LEASES: Bucket<Lease> = Bucket::new("omi/forgetting");
const LEASE: &str = "erase";
const LEASE_LASTS: Duration = Duration::from_secs(10 * 60);

/// More memories in one call would keep other writers waiting.
pub const FORGET_MAX: usize = 1_000;

/// Memories that are looked at in one step.
const PAGE: usize = 500;

/// The texts of so many memories are looked for elsewhere; of more, only their ids are.
const TEXTS_MAX: usize = 200;

/// A memory that was taken away.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Marked {
    node: String,
    at_ms: u64,
    /// From when on it is erased.
    due_ms: u64,
}

/// What to forget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forget {
    /// Memories, by their ids.
    pub ids: Vec<String>,
    /// Whether they are erased at once, without a grace time.
    pub at_once: bool,
}

/// Which memories to forget without naming each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgetMany {
    /// Of this project.
    pub project: Option<String>,
    /// Stored before this moment, in milliseconds since 1970.
    pub before_ms: Option<u64>,
    /// That hold this text.
    pub text: Option<String>,
    /// Every memory, where nothing else limits them.
    pub everything: bool,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForgetReport {
    /// The memories that were taken away, with the earlier versions that they superseded.
    pub ids: Vec<String>,
    /// Ids that no memory has.
    pub missing: Vec<String>,
    /// When they are erased; `None` if they are.
    pub due_ms: Option<u64>,
    /// What was erased.
    pub erased: Option<Forgotten>,
    /// Files from which entries or lines were removed.
    pub files: Vec<String>,
    /// Where the text is still: notes and other things that a person must decide about.
    pub also_in: Vec<String>,
}

/// A memory that can still be brought back.
#[derive(Clone, Debug, PartialEq)]
pub struct ForgottenMemory {
    /// The memory as it was.
    pub memory: Memory,
    /// When it was taken away, in milliseconds since 1970.
    pub forgotten_ms: u64,
    /// When it is erased.
    pub due_ms: u64,
}

impl Omi {
    /// Forgets memories. Those that they superseded go with them: they are earlier versions of the same.
    pub fn forget_memories(&self, caller: &Caller, forget: &Forget) -> Result<ForgetReport> {
        self.kernel.may_erase(caller)?;
        if forget.ids.is_empty() {
            return Err(Error::invalid("`memory_ids` is empty")
                .hint("ids come from `memory_recall`, or from `omi list`"));
        }
        if forget.ids.len() > FORGET_MAX {
            let n = forget.ids.len();
            return Err(Error::too_large(format!(
                "`memory_ids`: {n} are more than {FORGET_MAX} at once"
            ))
            .hint("forget the others in another call"));
        }
        let grace_ms = match forget.at_once {
            true => 0,
            false => self.kernel.memory_config()?.grace_ms,
        };
        let ids = forget.ids.clone();
        let projects = self.kernel.projects_seen_by(caller)?;
        let taken = self
            .kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                take_away(tx, &projects, &ids, grace_ms)
            })?;
        let mut report = match taken.ids.is_empty() {
            true => ForgetReport::default(),
            false if grace_ms > 0 => ForgetReport {
                due_ms: Some(taken.due_ms),
                ..ForgetReport::default()
            },
            false => self.erase_marked(caller, &taken.keys)?,
        };
        (report.ids, report.missing) = (taken.ids, taken.missing);
        Ok(report)
    }

    /// Brings memories back that were taken away and are not erased yet.
    pub fn restore_memories(&self, caller: &Caller, ids: &[String]) -> Result<Vec<String>> {
        self.kernel.may_write(caller)?;
        let ids = ids.to_vec();
        let projects = self.kernel.projects_seen_by(caller)?;
        let restored = self
            .kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                let mut restored = Vec::new();
                for id in &ids {
                    let (key, marked) = find_marked(&**tx, &projects, id)?.ok_or_else(|| {
                        Error::not_found("forgotten memory", id).hint(
                            "`omi list --forgotten` names those that can be restored; \
                         what was erased cannot",
                        )
                    })?;
                    let taken = || {
                        Error::conflict(format!("the memory `{id}` was stored again meanwhile"))
                            .hint("forget that one first")
                    };
                    let node = tx.bring_back_node(node_of(&marked)?)?.ok_or_else(taken)?;
                    let own = std::slice::from_ref(&node.project);
                    let found = find_memory(&**tx, own, &memory_id(&node))?;
                    if found.is_none_or(|it| it.id != node.id) {
                        return Err(taken());
                    }
                    tx.put_passages(node.id, &passages("", &node.body))?;
                    MARKED.unset(tx, &key)?;
                    restored.push(memory_id(&node));
                }
                tx.record("MemoryRestored", json!({ "memory_ids": restored }))?;
                Ok(restored)
            })?;
        self.kernel.embed_later(&caller.principal.space);
        Ok(restored)
    }

    /// The memories that can still be brought back, the latest first.
    pub fn forgotten_memories(&self, caller: &Caller) -> Result<Vec<ForgottenMemory>> {
        caller.principal.require(kenning_kernel::Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut found = Vec::new();
            for (_, marked) in MARKED.list_readable(tx)? {
                let last = Kernel::revisions_of(tx, node_of(&marked)?)?.into_iter();
                if let Some(node) = last.max_by_key(|it| it.rev) {
                    found.push(ForgottenMemory {
                        memory: Memory::of(&node),
                        forgotten_ms: marked.at_ms,
                        due_ms: marked.due_ms,
                    });
                }
            }
            found.sort_by_key(|it| std::cmp::Reverse(it.forgotten_ms));
            Ok(found)
        })
    }

    /// The ids of the memories that would be forgotten.
    pub fn memories_to_forget(&self, caller: &Caller, which: &ForgetMany) -> Result<Vec<String>> {
        caller.principal.require(kenning_kernel::Scope::Read)?;
        self.kernel.log().read_long(&caller.principal.space, |tx| {
            let mut ids = Vec::new();
            each_memory(tx, &mut |node| {
                if which.admits(node) {
                    ids.push(generated_id(node));
                }
            })?;
            Ok(ids)
        })
    }

    /// Erases what is due, and what a setting says is too old. For a background thread: one process at a time.
    pub fn forget_due(&self, space: &Space) -> Result<()> {
        if self.kernel.is_read_only() {
            return Ok(());
        }
        let config = self.kernel.memory_config()?;
        let now_ms = self.kernel.log().clock().now_ms();
        let has_rules = !config.retention.is_empty();
        let is_due = self.kernel.log().read(space, |tx| is_any_due(tx, now_ms))?;
        if is_due || has_rules {
            let holder = lease::holder(self.kernel.log().random());
            let lease = Lease::of(&holder, now_ms, LEASE_LASTS);
            let log = self.kernel.log();
            let is_ours = log.write(space, move |tx| LEASES.take(tx, LEASE, &lease, now_ms))?;
            if is_ours {
                let done = self.forget_due_now(space, now_ms, has_rules);
                log.write(space, |tx| LEASES.unset(tx, LEASE))?;
                done?;
            }
        }
        self.kernel.clean_after_erasure(space).map(drop)
    }

    fn forget_due_now(&self, space: &Space, now_ms: u64, has_rules: bool) -> Result<()> {
        let caller = Caller::new(Principal::owner(space.clone()));
        if has_rules {
            let config = self.kernel.memory_config()?;
            let old = self.kernel.log().read_long(space, |tx| {
                let mut ids = Vec::new();
                each_memory(tx, &mut |node| {
                    let kind = Memory::of(node).memory_type;
                    let age_ms = now_ms.saturating_sub(node.created_ms());
                    if config
                        .retention
                        .age_max_ms(kind)
                        .is_some_and(|max| age_ms > max)
                    {
                        ids.push(generated_id(node));
                    }
                })?;
                Ok(ids)
            })?;
            for ids in old.chunks(FORGET_MAX) {
                let ids = ids.to_vec();
                let take = move |tx: &mut Tx<'_>| take_away(tx, &[], &ids, 0).map(drop);
                self.kernel.log().write_long(space, take)?;
            }
        }
        let due = self.kernel.log().read(space, |tx| {
            let marked = MARKED.list_readable(tx)?.into_iter();
            let due = marked.filter(|it| it.1.due_ms <= now_ms).map(|it| it.0);
            Ok(due.collect::<Vec<String>>())
        })?;
        for ids in due.chunks(FORGET_MAX) {
            self.erase_marked(&caller, ids)?;
        }
        Ok(())
    }

    /// Completes what a killed process began: what is due is erased, and files are cleaned. Cheap if there is nothing.
    pub fn finish_forgetting(&self, space: &Space) {
        let now_ms = self.kernel.log().clock().now_ms();
        let is_due = self.kernel.log().read(space, |tx| is_any_due(tx, now_ms));
        let finished = match is_due {
            Ok(true) => self.forget_due(space),
            Ok(false) => self.kernel.clean_after_erasure(space).map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            tracing::warn!("what is to be forgotten is not erased yet: {error}");
        }
    }

    /// Erases what else holds a text: earlier revisions, the data of events, entries of files.
    pub fn forget_text(&self, caller: &Caller, text: &str) -> Result<ForgetReport> {
        self.kernel.may_erase(caller)?;
        let erasure = Erasure {
            texts: vec![text.to_owned()],
            ..Erasure::default()
        };
        self.erase_further(caller, erasure, "TextErased", Vec::new())
    }

    /// Erases everything in a space: nodes with their history, vectors, working state, the data of events. What
    /// decides about permissions and peers stays, and so does the log without its data.
    pub fn forget_space(&self, caller: &Caller) -> Result<ForgetReport> {
        self.kernel.may_erase(caller)?;
        let files = self.remove_context_files(caller)?;
        let erased = self.kernel.erase_space(caller)?;
        Ok(ForgetReport {
            erased: Some(erased),
            files,
            ..ForgetReport::default()
        })
    }

    /// Erases memories that were taken away.
    fn erase_marked(&self, caller: &Caller, ids: &[String]) -> Result<ForgetReport> {
        let space = &caller.principal.space;
        let found = self.kernel.log().read(space, |tx| {
            let mut found = Found::default();
            for id in ids {
                let Some(marked) = MARKED.get_readable(tx, id)? else {
                    continue;
                };
                let node = node_of(&marked)?;
                found.erasure.nodes.push(node);
                found.erasure.names.insert(node.to_string());
                for revision in Kernel::revisions_of(tx, node)? {
                    found.erasure.names.insert(memory_id(&revision));
                    found.texts.insert(revision.body.trim().to_owned());
                }
            }
            Ok(found)
        })?;
        let Found { mut erasure, texts } = found;
        if texts.len() <= TEXTS_MAX {
            erasure.texts = texts.into_iter().collect();
        }
        self.erase_further(caller, erasure, "MemoryErased", ids.to_vec())
    }

    /// Removes it from files, and erases it with every earlier revision of something else that repeats it.
    fn erase_further(
        &self,
        caller: &Caller,
        mut erasure: Erasure,
        kind: &'static str,
        rows: Vec<String>,
    ) -> Result<ForgetReport> {
        let space = &caller.principal.space;
        let files = self.remove_from_files(caller, &erasure)?;
        let (revisions, also_in) = self
            .kernel
            .log()
            .read_long(space, |tx| elsewhere(tx, &erasure))?;
        erasure.revisions = revisions;
        let erased = self.kernel.erase(caller, erasure, kind, move |tx| {
            for id in &rows {
                MARKED.unset(tx, id)?;
                ACCESS.unset(tx, id)?;
            }
            Ok(())
        })?;
        Ok(ForgetReport {
            erased: Some(erased),
            files,
            also_in,
            ..ForgetReport::default()
        })
    }
}

impl ForgetReport {
    /// Adds what became of others.
    pub fn add(&mut self, other: Self) {
        self.ids.extend(other.ids);
        self.missing.extend(other.missing);
        self.due_ms = self.due_ms.max(other.due_ms);
        self.files.extend(other.files);
        self.also_in.extend(other.also_in);
        for list in [&mut self.files, &mut self.also_in] {
            list.sort();
            list.dedup();
        }
        self.erased = match (self.erased, other.erased) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        };
    }
}

impl ForgetMany {
    fn admits(&self, node: &Node) -> bool {
        let named = |name: &String| {
            let of_props = node.props.get("project").and_then(|it| it.as_str());
            node.project == *name || of_props == Some(name.as_str())
        };
        let is_limited = self.project.is_some() || self.before_ms.is_some() || self.text.is_some();
        (is_limited || self.everything)
            && self.project.as_ref().is_none_or(named)
            && self.before_ms.is_none_or(|it| node.created_ms() < it)
            && self.text.as_ref().is_none_or(|it| node.body.contains(it))
    }
}

#[derive(Default)]
struct Found {
    erasure: Erasure,
    texts: BTreeSet<String>,
}

fn node_of(marked: &Marked) -> Result<NodeId> {
    let bad = |_| Error::corrupt("a row of a forgotten memory is malformed");
    marked.node.parse().map_err(bad)
}

fn is_any_due(tx: &dyn ReadTx, now_ms: u64) -> Result<bool> {
    let marked = MARKED.list_readable(tx)?;
    Ok(marked.iter().any(|it| it.1.due_ms <= now_ms))
}

pub(super) fn each_memory(tx: &dyn ReadTx, visit: &mut dyn FnMut(&Node)) -> Result<()> {
    let filter = NodeFilter {
        kinds: vec![Kind::Memory],
        ..NodeFilter::default()
    };
    let mut after = None;
    loop {
        let page = tx.nodes(&filter, When::Now, after, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        page.iter().for_each(&mut *visit);
    }
}

struct Taken {
    ids: Vec<String>,
    keys: Vec<String>,
    missing: Vec<String>,
    due_ms: u64,
}

/// Takes memories away, with the earlier versions of each.
fn take_away(tx: &mut Tx<'_>, projects: &[String], ids: &[String], grace_ms: u64) -> Result<Taken> {
    let at_ms = tx.now().ms();
    let due_ms = at_ms.saturating_add(grace_ms);
    let (mut taken, mut keys, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        let Some(node) = find_memory(&**tx, projects, id)? else {
            // What was taken away before can still be erased sooner.
            match find_marked(&**tx, projects, id)? {
                Some((key, _)) if keys.contains(&key) => {}
                Some((key, marked)) => {
                    MARKED.set(tx, &key, &Marked { due_ms, ..marked })?;
                    taken.push(id.clone());
                    keys.push(key);
                }
                None => missing.push(id.clone()),
            }
            continue;
        };
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let (name, key) = (memory_id(&node), mark_key(&node.project, &memory_id(&node)));
            if keys.contains(&key) {
                continue;
            }
            waiting.extend(earlier_versions(&**tx, node.id)?);
            tx.remove_node(node.id)?;
            ACCESS.unset(tx, &name)?;
            let marked = Marked {
                node: node.id.to_string(),
                at_ms,
                due_ms,
            };
            MARKED.set(tx, &key, &marked)?;
            taken.push(name);
            keys.push(key);
        }
    }
    if !taken.is_empty() {
        tx.record("MemoryForgotten", json!({ "memory_ids": taken }))?;
    }
    Ok(Taken {
        ids: taken,
        keys,
        missing,
        due_ms,
    })
}

/// An id that names this memory and no other, whichever project it belongs to.
fn generated_id(node: &Node) -> String {
    format!("mem_{}", node.id.to_string().replace('-', ""))
}

/// Ids that callers chose are another memory's in another project; generated ones are nobody else's.
fn mark_key(project: &str, id: &str) -> String {
    match project.is_empty() || node_id(id).is_some() {
        true => id.to_owned(),
        false => format!("{project}/{id}"),
    }
}

/// A memory that was taken away, with the key of its row.
fn find_marked(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<Option<(String, Marked)>> {
    for project in projects.iter().map(String::as_str).chain([""]) {
        let key = mark_key(project, id);
        if let Some(marked) = MARKED.get_readable(tx, &key)? {
            return Ok(Some((key, marked)));
        }
    }
    Ok(None)
}

fn earlier_versions(tx: &dyn ReadTx, id: NodeId) -> Result<Vec<Node>> {
    let filter = EdgeFilter {
        src: Some(id),
        rel: Some(relation::SUPERSEDES.to_owned()),
        ..EdgeFilter::default()
    };
    let mut found = Vec::new();
    for edge in tx.edges(&filter, When::Now, usize::MAX)? {
        let node = tx.node(edge.dst, When::Now)?;
        found.extend(node.filter(|it| it.kind == Kind::Memory));
    }
    Ok(found)
}

type Revisions = Vec<(NodeId, kenning_core::Hash)>;

/// Superseded revisions of other things that hold the texts, and current ones that do.
fn elsewhere(tx: &dyn ReadTx, erasure: &Erasure) -> Result<(Revisions, Vec<String>)> {
    use kenning_kernel::forget::TEXT_CHARS_MIN;
    use kenning_store::{Row, Table};
    let texts = erasure.texts.iter().map(String::as_str);
    let texts: Vec<&str> = texts
        .filter(|it| it.chars().count() >= TEXT_CHARS_MIN)
        .collect();
    let (mut revisions, mut also_in) = (Revisions::new(), BTreeSet::new());
    if texts.is_empty() {
        return Ok((revisions, Vec::new()));
    }
    let holds = |node: &Node| {
        !erasure.nodes.contains(&node.id) && texts.iter().any(|it| node.body.contains(it))
    };
    tx.scan(Table::History, &mut |row| {
        if let Row::History(node, _) = row
            && holds(&node)
            && !revisions.contains(&(node.id, node.hash))
        {
            revisions.push((node.id, node.hash));
        }
        Ok(())
    })?;
    tx.scan(Table::Nodes, &mut |row| {
        if let Row::Node(node) = row
            && holds(&node)
        {
            also_in.insert(memory_id(&node));
        }
        Ok(())
    })?;
    Ok((revisions, also_in.into_iter().collect()))
}

/// Whether a memory may be stored under an id: one that waits to be erased keeps it until then.
pub(super) fn refuse_forgotten(tx: &dyn ReadTx, project: &str, id: &str) -> Result<()> {
    if MARKED.get_readable(tx, &mark_key(project, id))?.is_some() {
        return Err(Error::conflict(format!(
            "`memory_id`: `{id}` is the id of a forgotten memory"
        ))
        .hint("restore it with `omi restore`, or choose another id"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_memory::types::MemoryType;

    #[test]
    fn nothing_is_forgotten_without_a_limit_unless_everything_is_named() {
        let node = Node {
            id: NodeId([1; 16]),
            kind: Kind::Memory,
            project: "one".to_owned(),
            key: "k".to_owned(),
            title: String::new(),
            body: "the quick fox".to_owned(),
            props: serde_json::Map::new(),
            created: kenning_core::Hlc::from_ms(1_000),
            updated: kenning_core::Hlc::from_ms(1_000),
            hash: kenning_core::Hash::default(),
            rev: 1,
        };
        let many = ForgetMany::default();
        assert!(!many.admits(&node));
        let project = |name: &str| ForgetMany {
            project: Some(name.to_owned()),
            ..ForgetMany::default()
        };
        assert!(project("one").admits(&node) && !project("two").admits(&node));
        let everything = ForgetMany {
            everything: true,
            ..ForgetMany::default()
        };
        assert!(everything.admits(&node));
        let before = |ms| ForgetMany {
            before_ms: Some(ms),
            ..project("one")
        };
        assert!(before(1_001).admits(&node) && !before(1_000).admits(&node));
        assert_eq!(Memory::of(&node).memory_type, MemoryType::Experience);
    }
}
