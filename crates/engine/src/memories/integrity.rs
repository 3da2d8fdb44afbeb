//! Whether memories are what they were, and whether the shape of their graph is suspicious.

use super::graph::Everything;
use super::memory_id;
use crate::{Caller, Engine, Scope};
use kenning_audit::Verify;
use kenning_core::{Error, NodeId, Result};
use kenning_memory::topology::{self, Thresholds, Vertex};
use kenning_memory::types::relation;
use kenning_store::ReadTx;
use std::collections::HashMap;
use std::str::FromStr;

/// What to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntegrityScope {
    /// NOW.md and the daily logs.
    Now,
    /// The daily logs.
    Daily,
    /// Memories, their edges and the log.
    Graph,
    /// Everything.
    #[default]
    All,
}

impl IntegrityScope {
    fn looks_at_files(self) -> bool {
        self != Self::Graph
    }

    fn looks_at_graph(self) -> bool {
        matches!(self, Self::Graph | Self::All)
    }
}

impl FromStr for IntegrityScope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "now" => Ok(Self::Now),
            "daily" => Ok(Self::Daily),
            "graph" => Ok(Self::Graph),
            "all" => Ok(Self::All),
            _ => Err(Error::invalid(format!("`scope`: `{text}` is not known"))
                .hint("one of: now, daily, graph, all")),
        }
    }
}

/// The shape of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Memories without an edge.
    pub orphan_nodes: usize,
    /// Memories that gained edges too quickly.
    pub sudden_cores: usize,
    /// The first of both.
    pub warnings: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// NOW.md is as it was written.
    pub now_md: bool,
    /// MEMORY.md and the daily logs are as they were written.
    pub memory_md: bool,
    /// The graph, where it was looked at.
    pub topology: Option<Topology>,
    /// What was tampered with or damaged, one sentence each.
    pub faults: Vec<String>,
    /// Whether all is well.
    pub overall_safe: bool,
}

impl Engine {
    /// Looks whether files, memories and log are what they were. Repairs nothing.
    pub fn check_integrity(&self, caller: &Caller, scope: IntegrityScope) -> Result<Integrity> {
        caller.principal.require(Scope::Read)?;
        let mut found = Integrity {
            now_md: true,
            memory_md: true,
            topology: None,
            faults: Vec::new(),
            overall_safe: true,
        };
        if scope.looks_at_files() {
            let files = self.context_integrity(caller)?;
            found.now_md = files.now_md || scope == IntegrityScope::Daily;
            found.memory_md = files.memory_md;
            let asked =
                |fault: &String| scope != IntegrityScope::Daily || !fault.contains("NOW.md");
            found.faults.extend(files.faults.into_iter().filter(asked));
            found.overall_safe &= found.now_md && found.memory_md;
        }
        if scope.looks_at_graph() {
            // A mistake in the file must not hide what is wrong elsewhere.
            let thresholds = self.memory_config().unwrap_or_default().thresholds;
            let (topology, safe, faults) = self.log.read(&caller.principal.space, |tx| {
                let (topology, safe) = shape(tx, &thresholds)?;
                let asked = Verify::of(&caller.principal.space).by(self.log.signer().did());
                let report = kenning_audit::verify(tx, &asked, &|_| ())?;
                Ok((topology, safe, report.faults))
            })?;
            found.overall_safe &= safe && faults.is_empty();
            found.faults.extend(faults);
            found.topology = Some(topology);
        }
        Ok(found)
    }
}

fn shape(tx: &dyn ReadTx, thresholds: &Thresholds) -> Result<(Topology, bool)> {
    let all = Everything::read(tx)?;
    let mut out_edges: HashMap<NodeId, usize> = HashMap::new();
    let mut in_edges: HashMap<NodeId, Vec<u64>> = HashMap::new();
    for edge in all.edges.iter().filter(|it| relation::counts(&it.rel)) {
        *out_edges.entry(edge.src).or_default() += 1;
        in_edges.entry(edge.dst).or_default().push(edge.from.ms());
    }
    let vertices: Vec<Vertex<String>> = all
        .memories
        .iter()
        .map(|node| {
            let id = memory_id(node);
            Vertex {
                out_edges: out_edges.get(&node.id).copied().unwrap_or(0),
                in_edges_ms: in_edges.remove(&node.id).unwrap_or_default(),
                access_count: all.access.get(&id).map_or(0, |it| it.count),
                id,
            }
        })
        .collect();
    let found = topology::inspect(&vertices, thresholds);
    let shape = Topology {
        orphan_nodes: found.orphans.len(),
        sudden_cores: found.sudden_cores.len(),
        warnings: found.warnings(),
    };
    Ok((shape, found.is_safe()))
}
