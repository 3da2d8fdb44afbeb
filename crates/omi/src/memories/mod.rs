//! Memories and beliefs: nodes of the graph that are found by meaning.
//!
//! The text of a memory never changes. Its confidence may, if it is a belief, and another memory may
//! supersede it: then it is found only in queries about the past.

mod answers;
mod beliefs;
mod details;
mod forget;
mod graph;
mod held;
mod integrity;
mod links;
mod list;
mod opinion;
mod pending;
mod proposed;
mod recall;
mod store;

pub use beliefs::{BeliefUpdate, Contradiction, Contradictions, Evidence, EvidenceUpdate};
pub use details::{MemoryDetails, MemoryRelation};
pub use forget::{FORGET_MAX, Forget, ForgetMany, ForgetReport, ForgottenMemory};
pub use graph::{Central, GraphEdge, MemoryGraph};
pub use held::hold;
pub(crate) use integrity::CheckedLogs;
pub use integrity::{Integrity, IntegrityScope, Topology};
pub(crate) use links::Linked;
pub use list::ListMemories;
pub use proposed::{FOUNDATIONAL, PendingWrite};
pub use recall::Access as MemoryAccess;
pub use recall::{Neighbor, Recall, RecallScope, RecallSort, Recalled, RecalledMemory};
pub use store::{NewMemory, StoredMemory};

use kenning_core::{Code, Error, Kind, NodeId, Result};
use kenning_kernel::{Bucket, memory_id};
use kenning_memory::types::MemoryType;
use kenning_store::{Node, ReadTx, When};
use serde_json::Value;

/// The key-value bucket that counts how often each memory was read.
const ACCESS: Bucket<recall::Access> = Bucket::new("access");

/// The longest memory, in bytes.
pub const MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A memory, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Its id.
    pub id: String,
    /// Its text.
    pub content: String,
    /// What kind of memory it is.
    pub memory_type: MemoryType,
    /// Its confidence, if one was given.
    pub confidence: Option<f64>,
    /// Tags to filter by.
    pub tags: Vec<String>,
    /// When it was stored, in milliseconds since 1970.
    pub created_ms: u64,
    /// The memory that superseded it.
    pub superseded_by: Option<String>,
    /// The session it was stored in, where there was one.
    pub session_id: Option<String>,
    /// The id of the project that it belongs to; empty for what is global.
    pub project: String,
}

impl Memory {
    pub(crate) fn of(node: &Node) -> Self {
        let text = |name: &str| node.props.get(name).and_then(Value::as_str);
        let tags = node.props.get("tags").and_then(Value::as_array);
        let tags = tags.into_iter().flatten().filter_map(Value::as_str);
        Self {
            id: memory_id(node),
            content: node.body.clone(),
            memory_type: text("memory_type")
                .and_then(|it| it.parse().ok())
                .unwrap_or(MemoryType::Experience),
            confidence: node.props.get("confidence").and_then(Value::as_f64),
            tags: tags.map(str::to_owned).collect(),
            created_ms: node.created_ms(),
            superseded_by: text("superseded_by").map(str::to_owned),
            session_id: text("session_id").map(str::to_owned),
            project: match node.kind {
                Kind::Memory => node.project.clone(),
                // A daily log says in its properties whose it is.
                _ => text("project").unwrap_or_default().to_owned(),
            },
        }
    }
}

/// The key of a memory whose id the caller chose.
fn given_key(id: &str) -> String {
    format!("id:{id}")
}

/// A memory by its id. Ids that callers chose are looked for in these projects, in this order; a generated id
/// names one memory, whichever project it belongs to.
pub(crate) fn find_memory(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<Option<Node>> {
    if let Some(node) = node_id(id) {
        let found = tx
            .node(node, When::Now)?
            .filter(|it| it.kind == Kind::Memory);
        if found.is_some() {
            return Ok(found);
        }
    }
    for project in projects {
        let found = tx.node_by_key(project, Kind::Memory, &given_key(id), When::Now)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn memory(tx: &dyn ReadTx, projects: &[String], field: &str, id: &str) -> Result<Node> {
    find_memory(tx, projects, id)?.ok_or_else(|| {
        no_memory(field, id).hint("ids come from `memory_store` and `memory_recall`")
    })
}

fn no_memory(field: &str, id: &str) -> Error {
    Error::new(Code::NotFound, format!("`{field}`: no memory `{id}`"))
}

/// Anything that can be evidence: a memory, or any other node by its id or key.
fn find_any(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<Option<Node>> {
    if let Some(memory) = find_memory(tx, projects, id)? {
        return Ok(Some(memory));
    }
    if let Ok(node) = id.parse::<NodeId>() {
        return tx.node(node, When::Now);
    }
    for kind in Kind::ALL {
        for key in [
            id.to_owned(),
            format!("vault:{id}"),
            format!("vault:{id}.md"),
        ] {
            let found = tx.node_by_key("", kind, &key, When::Now)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// `mem_` and the 32 digits of a node's id, with or without dashes.
pub(crate) fn node_id(id: &str) -> Option<NodeId> {
    let digits = id.strip_prefix("mem_")?;
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    parts.join("-").parse().ok()
}
