//! Everything about one memory, by its id.

use super::recall::{Access, access};
use super::{Memory, find_any, memory_id};
use crate::Omi;
use kenning_core::{Kind, NodeId, Result};
use kenning_kernel::{Caller, Scope};
use kenning_store::{Edge, EdgeFilter, NodeFilter, ReadTx, When};

/// At most this many relations are returned for one memory.
const RELATIONS_MAX: usize = 50;

/// A memory, or another node that its id can name: a daily log, a note, an item.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryDetails {
    /// The memory.
    pub memory: Memory,
    /// How often it was recalled, and when last.
    pub access: Access,
    /// Its edges; the strongest first.
    pub relations: Vec<MemoryRelation>,
    /// How many there are in all.
    pub n_relations: usize,
}

/// An edge, seen from one of its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRelation {
    /// The id at the other end.
    pub id: String,
    /// The relation: `SUPPORTS`, `RELATED_TO`, `similar` and the like.
    pub relation: String,
    /// How strongly.
    pub strength: f64,
    /// Whether it begins at the memory.
    pub is_outgoing: bool,
}

impl Omi {
    /// How many memories there are.
    pub fn memory_count(&self, caller: &Caller) -> Result<u64> {
        caller.principal.require(Scope::Read)?;
        let filter = NodeFilter {
            kinds: vec![Kind::Memory],
            ..NodeFilter::default()
        };
        let space = &caller.principal.space;
        let read = || self.kernel.log().read(space, |tx| tx.count_nodes(&filter));
        self.kernel.with_wait_limit(caller.waited, read)
    }

    /// Memories by their ids, in the same order; `None` where an id does not exist.
    pub fn memories_by_id(
        &self,
        caller: &Caller,
        ids: &[String],
    ) -> Result<Vec<Option<MemoryDetails>>> {
        caller.principal.require(Scope::Read)?;
        let projects = self.kernel.projects_seen_by(caller)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let each = ids.iter().map(|id| details(tx, &projects, id.trim()));
            each.collect()
        })
    }
}

fn details(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<Option<MemoryDetails>> {
    let Some(node) = find_any(tx, projects, id)? else {
        return Ok(None);
    };
    let memory = Memory::of(&node);
    let mut edges = edges_of(tx, node.id)?;
    let n_relations = edges.len();
    edges.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut relations = Vec::new();
    for edge in edges.into_iter().take(RELATIONS_MAX) {
        let is_outgoing = edge.src == node.id;
        let other = if is_outgoing { edge.dst } else { edge.src };
        let name = tx.node(other, When::Now)?;
        relations.push(MemoryRelation {
            id: name.map_or_else(|| other.to_string(), |it| memory_id(&it)),
            relation: edge.rel,
            strength: edge.weight,
            is_outgoing,
        });
    }
    Ok(Some(MemoryDetails {
        access: access(tx, &memory.id)?,
        memory,
        relations,
        n_relations,
    }))
}

fn edges_of(tx: &dyn ReadTx, node: NodeId) -> Result<Vec<Edge>> {
    let out = EdgeFilter {
        src: Some(node),
        ..EdgeFilter::default()
    };
    let into = EdgeFilter {
        dst: Some(node),
        ..EdgeFilter::default()
    };
    let mut edges = tx.edges(&out, When::Now, usize::MAX)?;
    edges.extend(tx.edges(&into, When::Now, usize::MAX)?);
    Ok(edges)
}
