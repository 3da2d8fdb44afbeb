//! Writes of peers that wait for a second key.
//!
//! With `security.enable_consensus`, an event of a peer that would change a foundational memory is not applied: it is
//! kept aside with its rows, and a second key that this store knows confirms it like every other write that waits.
//! Confirming writes what the event says as an event of this node, which goes to the peers.
//!
//! An event that stores what another node proposed, and that waits here, has its two keys: those of the two nodes.

use super::proposed::{self, PENDING_MAX, PendingWrite, has_foundational, tags_of};
use super::store::NewMemory;
use super::{Memory, find_memory, memory_id};
use kenning_audit::Tx;
use kenning_audit::event::Change;
use kenning_audit::foreign::{Batch, Entry, Foreign};
use kenning_core::{Error, Kind, NodeId, Result};
use kenning_kernel::{Bucket, PageEntry, Raw};
use kenning_memory::types::relation;
use kenning_store::{CREATED_ELSEWHERE_MS, EdgeFilter, Node, ReadTx, Row, When};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Events of peers that wait, and those that were rejected, by their ids. Signed: whoever changes a row changes what will
/// be stored.
const HELD: Bucket<Raw> = Bucket::new("omi/held");

/// Keeps aside what needs a second key, and reduces it to its id.
///
/// # Errors
/// Conflict when too many writes wait already, and those of the store.
pub fn hold(tx: &mut Tx<'_>, batch: &mut Batch) -> Result<()> {
    let mut earlier = Earlier::default();
    for entry in &mut batch.entries {
        let Entry::Event(foreign) = &*entry else {
            continue;
        };
        let author = &foreign.event().author;
        // What is here already, or will be refused.
        if tx.event_by_id(&foreign.id())?.is_some()
            || !(batch.accepts_authors || tx.authors().contains(author))
            || tx.revoked_authors().contains(author)
        {
            continue;
        }
        if !earlier.inspect(&**tx, foreign)? || is_confirmed(tx, foreign)? {
            continue;
        }
        keep(tx, foreign)?;
        *entry = Entry::Id(foreign.id());
    }
    Ok(())
}

/// Foundational memories that earlier events of the same batch wrote.
#[derive(Default)]
struct Earlier {
    nodes: BTreeSet<NodeId>,
    keys: BTreeSet<String>,
}

fn is_foundational(node: &Node) -> bool {
    node.kind == Kind::Memory && has_foundational(&Memory::of(node).tags)
}

impl Earlier {
    fn is_one(&self, tx: &dyn ReadTx, id: NodeId) -> Result<bool> {
        let node = tx.node(id, When::Now)?;
        Ok(self.nodes.contains(&id) || node.as_ref().is_some_and(is_foundational))
    }

    /// Says whether an event changes a foundational memory, and remembers those that it writes.
    fn inspect(&mut self, tx: &dyn ReadTx, foreign: &Foreign) -> Result<bool> {
        let mut is_changed = false;
        // Of every kind: a node that is put as something else is no memory any more.
        for node in foreign.nodes() {
            let is_new = self.nodes.contains(&node.id)
                || tx.node(node.id, When::Now)?.map(|it| it.hash) != Some(node.hash);
            // A node takes the place of another one with its key.
            let other = tx.node_by_key(&node.project, node.kind, &node.key, When::Now)?;
            let was = self.is_one(tx, node.id)?
                || self.keys.contains(&node.key)
                || other.as_ref().is_some_and(is_foundational);
            let is = is_foundational(node);
            is_changed |= is_new && (was || is);
            if is {
                self.nodes.insert(node.id);
                self.keys.insert(node.key.clone());
            }
        }
        for change in &foreign.event().changes {
            is_changed |= match change {
                Change::RemoveNode { id } | Change::EraseNode { id } => self.is_one(tx, *id)?,
                Change::PutEdge { src, rel, dst, .. } | Change::EndEdge { src, rel, dst }
                    if rel == relation::SUPERSEDES =>
                {
                    let filter = EdgeFilter {
                        src: Some(*src),
                        dst: Some(*dst),
                        ..EdgeFilter::default()
                    };
                    let known = tx.edges(&filter, When::Now, usize::MAX)?;
                    let is_there = known.iter().any(|it| it.rel == *rel);
                    let is_put = matches!(change, Change::PutEdge { .. });
                    is_there != is_put && (self.is_one(tx, *src)? || self.is_one(tx, *dst)?)
                }
                _ => false,
            };
        }
        Ok(is_changed)
    }
}

/// Whether an event stores what another node than its author proposed, and nothing else.
fn is_confirmed(tx: &Tx<'_>, foreign: &Foreign) -> Result<bool> {
    let author = foreign.event().author.as_str();
    for (id, row) in proposed::BUCKET.list(&**tx)? {
        let proposer = tx.author_of_pair(proposed::BUCKET.name(), &id)?;
        let is_other = |it: &String| {
            it != author
                && tx
                    .authors()
                    .iter()
                    .any(|known| known.as_str() == it.as_str())
        };
        if !proposer.as_ref().is_some_and(is_other) {
            continue;
        }
        // A peer wrote it: one that cannot be read confirms nothing.
        let Ok(write) = proposed::parse(tx.space(), &id, &row.0) else {
            continue;
        };
        if is_as_proposed(&**tx, foreign, &write)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_as_proposed(tx: &dyn ReadTx, foreign: &Foreign, write: &PendingWrite) -> Result<bool> {
    for node in foreign.nodes() {
        if node.kind != Kind::Memory || !is_node_proposed(tx, foreign, node, write)? {
            return Ok(false);
        }
    }
    let replaces = |id: NodeId| -> Result<bool> {
        let old = tx.node(id, When::Now)?.map(|it| memory_id(&it));
        let mut named = write.memories.iter().map(|it| &it.supersedes);
        Ok(old.is_some() && named.any(|it| *it == old))
    };
    for change in &foreign.event().changes {
        let is_meant = match change {
            Change::PutEdge { rel, dst, .. } if rel == relation::SUPERSEDES => replaces(*dst)?,
            Change::PutNode { .. } | Change::PutEdge { .. } | Change::PutRow { .. } => true,
            // The row of the proposal itself.
            Change::RemoveRow { .. } => true,
            _ => false,
        };
        if !is_meant {
            return Ok(false);
        }
    }
    Ok(foreign.nodes().next().is_some())
}

fn is_node_proposed(
    tx: &dyn ReadTx,
    foreign: &Foreign,
    node: &Node,
    write: &PendingWrite,
) -> Result<bool> {
    let current = tx.node(node.id, When::Now)?;
    let same_key = tx.node_by_key(&node.project, node.kind, &node.key, When::Now)?;
    // Under its own id and key, it takes the place of no other memory.
    if current.as_ref().is_some_and(|it| it.key != node.key)
        || same_key.is_some_and(|it| it.id != node.id)
    {
        return Ok(false);
    }
    let memory = Memory::of(node);
    let old_tags = current.as_ref().map(|it| Memory::of(it).tags);
    let old_tags = old_tags.unwrap_or_default();
    for new in &write.memories {
        let has_tag = |it: &String| new.tags.contains(it) || old_tags.contains(it);
        if write.lines.is_empty()
            && new.content == node.body
            && new.project.as_deref().unwrap_or_default() == node.project
            && new.memory_type == memory.memory_type
            && new.confidence == memory.confidence
            && new.memory_id.as_deref() == node.props.get("memory_id").and_then(Value::as_str)
            && new.session_id == memory.session_id
            && memory.superseded_by.is_none()
            && current.as_ref().is_none_or(|it| it.body == node.body)
            && memory.tags.iter().all(has_tag)
        {
            return Ok(true);
        }
        // The memory that it takes the place of says so, and nothing else about it changes.
        if let Some(old) = &current
            && new.supersedes == Some(memory_id(old))
            && (&old.key, &old.title, &old.body) == (&node.key, &node.title, &node.body)
            && without(&old.props, &SUPERSEDED) == without(&node.props, &SUPERSEDED)
            && is_successor(tx, foreign, memory.superseded_by.as_deref(), new)?
        {
            return Ok(true);
        }
    }
    let is_line = |line: &Value| {
        let line = &line["node"];
        let props = line["props"].as_object().cloned().unwrap_or_default();
        line["key"] == node.key
            && line["body"].as_str().unwrap_or_default() == node.body
            && line["title"].as_str().unwrap_or_default() == node.title
            && without(&props, &ELSEWHERE) == without(&node.props, &ELSEWHERE)
    };
    Ok(write.lines.iter().any(is_line))
}

/// Whether this is the id of the memory that was proposed, in the event or here already.
fn is_successor(
    tx: &dyn ReadTx,
    foreign: &Foreign,
    id: Option<&str>,
    new: &NewMemory,
) -> Result<bool> {
    let Some(id) = id else {
        return Ok(false);
    };
    let known = find_memory(tx, &new.projects(), id)?;
    let mut all = foreign.nodes().chain(&known);
    Ok(all.any(|it| memory_id(it) == id && it.body == new.content))
}

const SUPERSEDED: [&str; 2] = ["superseded_by", "superseded_at_ms"];

const ELSEWHERE: [&str; 1] = [CREATED_ELSEWHERE_MS];

fn without(props: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let mut props = props.clone();
    props.retain(|name, _| !names.contains(&name.as_str()));
    props
}

fn keep(tx: &mut Tx<'_>, foreign: &Foreign) -> Result<()> {
    let event = foreign.id().to_string();
    let id = format!("pending_{}", event.get(..16).unwrap_or(&event));
    // One that waits, or was rejected, comes again by every way that leads here.
    if HELD.get(&**tx, &id)?.is_some() {
        return Ok(());
    }
    if list(&**tx)?.len() >= PENDING_MAX {
        return Err(Error::conflict(format!(
            "{PENDING_MAX} writes of peers wait for a second key"
        ))
        .hint("confirm or reject some: `kenning omi pending list`"));
    }
    let entry = PageEntry {
        id: foreign.id(),
        event: Some((foreign.row().clone(), foreign.rows().to_vec())),
        is_offered: false,
    };
    let author = foreign.event().author.to_string();
    let by = foreign.event().agent.as_ref();
    let by = by.map_or_else(|| author.clone(), ToString::to_string);
    let memories: Vec<Value> = foreign.nodes().filter_map(shown).collect();
    let n = memories.len();
    let row = json!({
        "memories": memories, "by": by, "at_ms": tx.now().ms(), "entry": entry.to_json(),
    });
    HELD.set(tx, &id, &Raw(row.to_string().into_bytes()))?;
    let data = json!({ "id": id, "memories": n, "event": event, "author": author });
    tx.record("WriteProposed", data).map(drop)
}

/// A memory of an event, for those who look at what waits.
fn shown(node: &Node) -> Option<Value> {
    if node.kind != Kind::Memory {
        return None;
    }
    let memory = Memory::of(node);
    Some(json!({
        "content": memory.content, "memory_type": memory.memory_type.as_str(),
        "confidence": memory.confidence, "related_to": [], "supersedes": null,
        "memory_id": node.props.get("memory_id"), "tags": tags_of(&node.props),
        "session_id": memory.session_id,
    }))
}

/// Those that wait.
pub(super) fn list(tx: &dyn ReadTx) -> Result<Vec<(String, Raw)>> {
    let mut rows = HELD.list(tx)?;
    rows.retain(|it| !is_rejected(&it.1));
    Ok(rows)
}

pub(super) fn get(tx: &dyn ReadTx, id: &str) -> Result<Option<Raw>> {
    Ok(HELD.get(tx, id)?.filter(|it| !is_rejected(it)))
}

const REJECTED: &[u8] = b"rejected";

fn is_rejected(row: &Raw) -> bool {
    row.0 == REJECTED
}

/// It waits no longer.
pub(super) fn remove(tx: &mut Tx<'_>, id: &str) -> Result<()> {
    HELD.unset(tx, id)
}

/// It does not come again.
pub(super) fn reject(tx: &mut Tx<'_>, id: &str) -> Result<()> {
    HELD.set(tx, id, &Raw(REJECTED.to_vec()))
}

/// The event of a row.
pub(super) fn event_of(id: &str, entry: &Value) -> Result<Foreign> {
    let bad = || Error::corrupt(format!("the pending write `{id}` is malformed"));
    let entry = PageEntry::from_json(entry).ok_or_else(bad)?;
    let (row, rows): (_, Vec<Row>) = entry.event.ok_or_else(bad)?;
    Foreign::check(row, rows)
}
