//! The graph of memories as a whole.

use super::{ACCESS, Memory, memory_id};
use crate::Omi;
use kenning_core::{Hlc, Kind, NodeId, Result};
use kenning_kernel::{Caller, Scope};
use kenning_memory::score;
use kenning_memory::types::relation;
use kenning_store::{Edge, Node, ReadTx, Row, Table};
use std::collections::HashMap;

/// Memories and their edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryGraph {
    /// In the order of their creation.
    pub memories: Vec<Memory>,
    /// With the ids of their ends.
    pub edges: Vec<GraphEdge>,
    /// How often memories were read, by id; those that never were are left out.
    pub access: HashMap<String, super::recall::Access>,
}

/// An edge between two memories, or a memory and its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphEdge {
    /// The id of its start.
    pub source: String,
    /// The id of its end.
    pub target: String,
    /// The relation.
    pub relation: String,
    /// How strongly.
    pub strength: f64,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A memory and how central it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Central {
    /// The memory.
    pub memory: Memory,
    /// From 0 to 1.
    pub centrality: f64,
}

/// What questions about the whole graph need: every memory, every current edge, how often each was
/// read.
pub(super) struct Everything {
    pub(super) memories: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) access: HashMap<String, super::recall::Access>,
}

impl Everything {
    pub(super) fn read(tx: &dyn ReadTx) -> Result<Self> {
        let mut memories = Vec::new();
        tx.scan(Table::Nodes, &mut |row| {
            if let Row::Node(node) = row
                && node.kind == Kind::Memory
            {
                memories.push(node);
            }
            Ok(())
        })?;
        let known: std::collections::HashSet<NodeId> = memories.iter().map(|it| it.id).collect();
        let mut edges = Vec::new();
        tx.scan(Table::Edges, &mut |row| {
            if let Row::Edge(edge) = row
                && edge.to == Hlc::MAX
                && (known.contains(&edge.src) || known.contains(&edge.dst))
            {
                edges.push(edge);
            }
            Ok(())
        })?;
        let access = ACCESS.list_readable(tx)?.into_iter().collect();
        Ok(Self {
            memories,
            edges,
            access,
        })
    }
}

impl Omi {
    /// Every memory and every edge between them.
    pub fn memory_graph(&self, caller: &Caller) -> Result<MemoryGraph> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let all = Everything::read(tx)?;
            let names: HashMap<NodeId, String> = all
                .memories
                .iter()
                .map(|memory| (memory.id, memory_id(memory)))
                .collect();
            let name = |id: NodeId| names.get(&id).cloned().unwrap_or_else(|| id.to_string());
            let edges = all.edges.iter().map(|edge| GraphEdge {
                source: name(edge.src),
                target: name(edge.dst),
                relation: edge.rel.clone(),
                strength: edge.weight,
                created_ms: edge.from.ms(),
            });
            Ok(MemoryGraph {
                edges: edges.collect(),
                memories: all.memories.iter().map(Memory::of).collect(),
                access: all.access,
            })
        })
    }

    /// The most central memories first.
    pub fn central_memories(&self, caller: &Caller, limit: usize) -> Result<Vec<Central>> {
        caller.principal.require(Scope::Read)?;
        let now_ms = self.kernel.log().clock().now_ms();
        self.kernel.log().read(&caller.principal.space, |tx| {
            let all = Everything::read(tx)?;
            let mut degree: HashMap<NodeId, usize> = HashMap::new();
            for edge in all.edges.iter().filter(|it| relation::counts(&it.rel)) {
                *degree.entry(edge.src).or_default() += 1;
                *degree.entry(edge.dst).or_default() += 1;
            }
            let mut central: Vec<Central> = all
                .memories
                .iter()
                .map(|node| {
                    let memory = Memory::of(node);
                    let access = all.access.get(&memory.id).copied().unwrap_or_default();
                    let since = access.last_ms.unwrap_or(memory.created_ms);
                    let days = score::days_between(since, now_ms);
                    let degree = degree.get(&node.id).copied().unwrap_or(0);
                    Central {
                        centrality: score::centrality(degree, access.count, days),
                        memory,
                    }
                })
                .collect();
            central.sort_by(|a, b| {
                b.centrality
                    .total_cmp(&a.centrality)
                    .then_with(|| a.memory.id.cmp(&b.memory.id))
            });
            central.truncate(limit);
            Ok(central)
        })
    }

    /// How many memories there are, by type, and how many edges.
    pub fn memory_counts(&self, caller: &Caller) -> Result<(HashMap<&'static str, u64>, u64)> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let all = Everything::read(tx)?;
            let mut counts = HashMap::new();
            for node in &all.memories {
                *counts
                    .entry(Memory::of(node).memory_type.as_str())
                    .or_default() += 1;
            }
            Ok((counts, all.edges.len() as u64))
        })
    }
}
