//! What waits for a second key, as it is kept.

use super::store::NewMemory;
use kenning_core::{Error, Hash, Result, Space};
use kenning_kernel::{Bucket, Raw, timestamp};
use kenning_memory::types::MemoryType;
use serde_json::{Map, Value, json};

/// Writes that wait, by their ids. Signed: whoever changes a row changes what will be stored.
pub(super) const BUCKET: Bucket<Raw> = Bucket::new("omi/pending");

/// The tag that makes a memory foundational.
pub const FOUNDATIONAL: &str = "foundational";

/// So many writes wait at most in a space.
pub(super) const PENDING_MAX: usize = 1_000;

/// A write that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// Its name.
    pub id: String,
    /// Who proposed it: the agent's key, else the node's.
    pub proposed_by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What is to be stored.
    pub memories: Vec<NewMemory>,
    /// Lines of an import, if it came by one: they are read in place of the memories.
    pub lines: Vec<Value>,
    /// The event of a peer, if it came by one: it is applied in place of the memories.
    pub entry: Option<Value>,
    /// What the second key signs.
    pub text_to_sign: String,
}

/// `#Foundational` and ` foundational ` are the same tag, as in the graph.
pub(super) fn has_foundational(tags: &[String]) -> bool {
    tags.iter().any(|it| {
        let plain = it.trim().trim_start_matches('#').trim().to_lowercase();
        plain == FOUNDATIONAL
    })
}

pub(super) fn tags_of(props: &Map<String, Value>) -> Vec<String> {
    let tags = props.get("tags").and_then(Value::as_array);
    let tags = tags.into_iter().flatten().filter_map(Value::as_str);
    tags.map(str::to_owned).collect()
}

/// A row that a tool, an import or a peer wrote. What it shows is what it stores.
pub(super) fn parse(space: &Space, id: &str, bytes: &[u8]) -> Result<PendingWrite> {
    let mut write = read(space, id, bytes)?;
    write.entry = None;
    if !write.lines.is_empty() {
        let nodes = write.lines.iter().filter_map(|it| it.get("node"));
        let memories = nodes.map(|it| from_json(&imported_json(it)));
        write.memories = memories.collect::<Option<_>>().ok_or_else(|| bad(id))?;
    }
    Ok(write)
}

/// A row of this node alone, with the event of a peer.
pub(super) fn parse_held(space: &Space, id: &str, bytes: &[u8]) -> Result<PendingWrite> {
    let write = read(space, id, bytes)?;
    if write.entry.is_none() {
        return Err(bad(id));
    }
    Ok(write)
}

fn bad(id: &str) -> Error {
    Error::corrupt(format!("the pending write `{id}` is malformed"))
}

fn read(space: &Space, id: &str, bytes: &[u8]) -> Result<PendingWrite> {
    let read = || {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let memories = value.get("memories")?.as_array()?.iter();
        Some(PendingWrite {
            id: id.to_owned(),
            proposed_by: value.get("by")?.as_str()?.to_owned(),
            at_ms: value.get("at_ms")?.as_u64()?,
            memories: memories.map(from_json).collect::<Option<_>>()?,
            lines: match value.get("lines") {
                Some(lines) => lines.as_array()?.clone(),
                None => Vec::new(),
            },
            entry: value.get("entry").cloned(),
            text_to_sign: format!(
                "kenning confirms a write\n{space}\n{id}\n{}\n",
                Hash::of(bytes)
            ),
        })
    };
    read().ok_or_else(|| bad(id))
}

/// A memory of an import, for those who look at what waits.
pub(super) fn imported_json(node: &Value) -> Value {
    let props = node["props"].as_object().cloned().unwrap_or_default();
    let memory_type = props.get("memory_type").and_then(Value::as_str);
    json!({
        "content": node["body"].as_str().unwrap_or_default(),
        "memory_type": memory_type.unwrap_or(MemoryType::default().as_str()),
        "confidence": props.get("confidence"), "related_to": [], "supersedes": null,
        "memory_id": props.get("memory_id"), "tags": tags_of(&props),
        "session_id": props.get("session_id"),
    })
}

pub(super) fn to_json(memory: &NewMemory) -> Value {
    json!({
        "content": memory.content, "memory_type": memory.memory_type.as_str(),
        "confidence": memory.confidence, "related_to": memory.related_to,
        "supersedes": memory.supersedes, "memory_id": memory.memory_id, "tags": memory.tags,
        "session_id": memory.session_id, "project": memory.project, "source": memory.source,
        "said_ms": memory.said_ms,
    })
}

fn from_json(value: &Value) -> Option<NewMemory> {
    let text = |field: &str| value[field].as_str().map(str::to_owned);
    let texts = |field: &str| {
        let list = value[field].as_array()?.iter();
        list.map(|it| it.as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
    };
    Some(NewMemory {
        content: text("content")?,
        memory_type: value["memory_type"].as_str()?.parse().ok()?,
        confidence: value["confidence"].as_f64(),
        related_to: texts("related_to")?,
        supersedes: text("supersedes"),
        memory_id: text("memory_id"),
        tags: texts("tags")?,
        session_id: text("session_id"),
        project: text("project"),
        source: text("source"),
        said_ms: value["said_ms"].as_u64(),
    })
}

impl PendingWrite {
    /// As JSON, for people and other programs.
    pub fn to_json(&self) -> Value {
        let memories: Vec<Value> = self.memories.iter().map(to_json).collect();
        json!({
            "id": self.id, "proposed_by": self.proposed_by, "proposed_at": timestamp(self.at_ms),
            "memories": memories, "imported": !self.lines.is_empty(),
            "event": self.entry.as_ref().map(|it| &it["id"]),
            "text_to_sign": self.text_to_sign,
        })
    }
}
