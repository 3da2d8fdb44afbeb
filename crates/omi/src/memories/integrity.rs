//! Checks that memories are unchanged, and that the shape of their graph is not suspicious.

use super::graph::Everything;
use super::memory_id;
use crate::Omi;
use kenning_audit::{Place, Verify};
use kenning_core::{Error, NodeId, Result, Space};
use kenning_kernel::{Caller, Scope};
use kenning_memory::topology::{self, Thresholds, Vertex};
use kenning_memory::types::relation;
use kenning_store::ReadTx;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// What to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntegrityScope {
    /// NOW.md and the daily logs.
    Now,
    /// The daily logs.
    Daily,
    /// Memories, their edges and the log.
    Graph,
    /// All of these.
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
            _ => Err(Error::invalid(format!("`scope`: `{text}` is unknown"))
                .hint("use one of now, daily, graph, all")),
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
    /// NOW.md is unchanged.
    pub now_md: bool,
    /// MEMORY.md and the daily logs are unchanged.
    pub memory_md: bool,
    /// The graph, if it was checked.
    pub topology: Option<Topology>,
    /// What was tampered with or damaged, one sentence each.
    pub faults: Vec<String>,
    /// How much of the log was checked, if not all of it.
    pub checked: Option<String>,
    /// Whether all is well.
    pub overall_safe: bool,
}

/// A log of up to this many events is checked completely by one call.
const WHOLE_EVENTS_MAX: u64 = 20_000;

/// Of a longer one, a call checks at most this many of the newest.
const NEWEST_EVENTS_MAX: usize = 20_000;

/// How far this process has checked the log of each space.
#[derive(Default)]
pub(crate) struct CheckedLogs(Mutex<HashMap<Space, Place>>);

impl CheckedLogs {
    fn get(&self, space: &Space) -> Option<Place> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(space).cloned()
    }

    fn set(&self, space: &Space, place: Option<Place>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match place {
            Some(place) => known.insert(space.clone(), place),
            None => known.remove(space),
        };
    }
}

impl Omi {
    /// Checks that files, memories and log are unchanged. Repairs nothing.
    pub fn check_integrity(&self, caller: &Caller, scope: IntegrityScope) -> Result<Integrity> {
        caller.principal.require(Scope::Read)?;
        let mut found = Integrity {
            now_md: true,
            memory_md: true,
            topology: None,
            faults: Vec::new(),
            checked: None,
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
            let thresholds = self.kernel.memory_config().unwrap_or_default().thresholds;
            let space = &caller.principal.space;
            let (topology, safe, faults, checked) = self.kernel.log().read(space, |tx| {
                let (topology, safe) = shape(tx, &thresholds)?;
                let (faults, checked) = self.check_log(space, tx, WHOLE_EVENTS_MAX)?;
                Ok((topology, safe, faults, checked))
            })?;
            found.checked = checked;
            found.overall_safe &= safe && faults.is_empty();
            found.faults.extend(faults);
            found.topology = Some(topology);
        }
        Ok(found)
    }
}

impl Omi {
    /// Checks a short log completely; of a longer one what is new since this process last checked it,
    /// or since the newest signed checkpoint. Returns what is wrong, and what was checked if that is
    /// not everything.
    fn check_log(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        whole_events_max: u64,
    ) -> Result<(Vec<String>, Option<String>)> {
        let total = tx.head()?.map_or(0, |it| it.seq);
        if total <= whole_events_max {
            let asked = Verify::of(space).by(self.kernel.log().signer().did());
            let report = kenning_audit::verify(tx, &asked, &|_| ())?;
            let is_clean = report.is_clean();
            self.kernel.note_verified(space, report.n_events, is_clean);
            let place = is_clean.then(|| Place::end(tx)).transpose()?;
            self.checked_logs.set(space, place);
            return Ok((report.faults, None));
        }
        let known = self.checked_logs.get(space);
        let since = match known {
            Some(_) => "this process checked the ones before",
            None => "the ones before are those of the newest signed checkpoint",
        };
        let found = kenning_audit::verify_newest(tx, known.as_ref(), NEWEST_EVENTS_MAX)?;
        let rest = match found.to == total {
            true => "`kenning audit verify` checks everything",
            false => "call again to go on; `kenning audit verify` checks everything",
        };
        let checked = if found.from == found.to {
            format!("none of {total} events is new; {since}; {rest}")
        } else {
            format!(
                "events {} to {} of {total} and the {} rows that they changed; {since}; {rest}",
                found.from + 1,
                found.to,
                found.n_rows
            )
        };
        self.checked_logs.set(space, found.place);
        Ok((found.faults, Some(checked)))
    }
}

fn shape(tx: &dyn ReadTx, thresholds: &Thresholds) -> Result<(Topology, bool)> {
    let mut all = Everything::read(tx)?;
    // The oldest are named first. Ids of one millisecond have no order.
    all.memories
        .sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
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
