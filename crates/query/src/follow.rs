//! The graphs of all spaces, following the log.

use crate::graph::Graph;
use kenning_audit::{Change, Continuity};
use kenning_core::{Hlc, NodeId, Result, Space};
use kenning_search::Recent;
use kenning_store::{Edge, EdgeFilter, NodeFilter, ReadTx, Row, Table, When};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Events, and nodes of the past, that are read at a time.
const PAGE: usize = 1_000;

/// Where more than this changed, and a quarter of all, tables are read in place of single rows.
const CHANGES_MANY: usize = 20_000;

/// Graphs that lie in memory at once.
const GRAPHS_MAX: usize = 8;

/// The graphs of all spaces. Each is made when it is first asked, and follows the log from then on,
/// whichever process wrote.
pub(crate) struct Graphs {
    /// By space and by the generation of its log: one that was taken back begins anew.
    spaces: Mutex<Recent<(Space, u64), Shared>>,
    continuity: Arc<Continuity>,
}

type Shared = Arc<RwLock<Followed>>;

/// A graph, and the event up to which it has followed. A query holds the graph and no lock, so that a long
/// one lets the graph go on: then it is copied.
#[derive(Default)]
struct Followed {
    seq: u64,
    graph: Arc<Graph>,
}

impl Graphs {
    pub(crate) fn new(continuity: Arc<Continuity>) -> Self {
        Self {
            spaces: Mutex::new(Recent::new(GRAPHS_MAX)),
            continuity,
        }
    }

    /// The graph of a space as it is in this snapshot, or later where another call has followed further.
    pub(crate) fn now(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Arc<Graph>> {
        let head = tx.head()?;
        let generation = self.continuity.generation(space, tx, head.as_ref())?;
        let seq = head.map_or(0, |it| it.seq);
        let followed = {
            let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
            spaces.retain(|key| &key.0 != space || key.1 >= generation);
            Arc::clone(spaces.entry(&(space.clone(), generation), Arc::default))
        };
        if let Ok(followed) = followed.read()
            && followed.seq >= seq
        {
            return Ok(Arc::clone(&followed.graph));
        }
        let mut followed = followed.write().unwrap_or_else(|broken| {
            let mut followed = broken.into_inner();
            *followed = Followed::default();
            followed
        });
        if followed.seq < seq {
            // What fails halfway is not kept: a graph is of one moment.
            let mut taken = std::mem::take(&mut *followed);
            taken.follow(tx, seq, check)?;
            *followed = taken;
        }
        Ok(Arc::clone(&followed.graph))
    }

    /// How many graphs lie in memory, and their nodes and relationships in all.
    pub(crate) fn sizes(&self) -> (usize, u64, u64) {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sizes = (0, 0, 0);
        for followed in spaces.values() {
            if let Ok(followed) = followed.try_read() {
                sizes.0 += 1;
                sizes.1 += followed.graph.n_nodes(None);
                sizes.2 += followed.graph.n_rels(None);
            }
        }
        sizes
    }
}

impl Followed {
    fn follow(&mut self, tx: &dyn ReadTx, seq: u64, check: &dyn Fn() -> Result<()>) -> Result<()> {
        if self.seq == 0 || self.graph.is_mostly_gaps() {
            self.graph = Arc::new(load(tx, check)?);
            self.seq = seq;
            return Ok(());
        }
        let Some(changes) = Changes::since(tx, self.seq, seq, &self.graph, check)? else {
            self.graph = Arc::new(load(tx, check)?);
            self.seq = seq;
            return Ok(());
        };
        changes.apply(tx, Arc::make_mut(&mut self.graph), check)?;
        self.seq = seq;
        Ok(())
    }
}

/// Which rows may be others than before.
#[derive(Default)]
struct Changes {
    nodes: HashSet<NodeId>,
    edges: HashSet<(NodeId, String, NodeId)>,
}

impl Changes {
    /// What changed between two events; none if it is more than reading single rows is worth.
    fn since(
        tx: &dyn ReadTx,
        from: u64,
        to: u64,
        graph: &Graph,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Self>> {
        let all = graph.n_nodes(None) + graph.n_rels(None);
        let quarter = usize::try_from(all / 4).unwrap_or(usize::MAX);
        let mut changes = Self::default();
        let mut at = from;
        while at < to {
            check()?;
            let left = usize::try_from(to - at).unwrap_or(PAGE);
            let page = tx.events_after(at, PAGE.min(left))?;
            let Some(last) = page.last() else { break };
            at = last.seq;
            for event in page.iter().filter_map(kenning_audit::event::parse) {
                event.changes.into_iter().for_each(|it| changes.add(it));
            }
            if changes.nodes.len() + changes.edges.len() > CHANGES_MANY.max(quarter) {
                return Ok(None);
            }
        }
        Ok(Some(changes))
    }

    fn add(&mut self, change: Change) {
        match change {
            Change::PutNode { id, .. } | Change::RemoveNode { id } => {
                self.nodes.insert(id);
            }
            Change::PutEdge { src, rel, dst, .. } | Change::EndEdge { src, rel, dst } => {
                self.edges.insert((src, rel, dst));
            }
            _ => {}
        }
    }

    fn apply(
        self,
        tx: &dyn ReadTx,
        graph: &mut Graph,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let mut again = Vec::new();
        for (n, id) in self.nodes.into_iter().enumerate() {
            if n % 256 == 0 {
                check()?;
            }
            match tx.node(id, When::Now)? {
                Some(node) => {
                    if graph.is_missing(id) {
                        again.push(id);
                    }
                    graph.put_node(&node);
                }
                None => graph.remove_node(id),
            }
        }
        for id in again {
            let from = EdgeFilter {
                src: Some(id),
                ..EdgeFilter::default()
            };
            let to = EdgeFilter {
                dst: Some(id),
                ..EdgeFilter::default()
            };
            for filter in [from, to] {
                for edge in tx.edges(&filter, When::Now, usize::MAX)? {
                    graph.put_edge(&edge);
                }
            }
        }
        for (n, (src, rel, dst)) in self.edges.into_iter().enumerate() {
            if n % 256 == 0 {
                check()?;
            }
            let filter = EdgeFilter {
                src: Some(src),
                rel: Some(rel.clone()),
                dst: Some(dst),
            };
            match tx.edges(&filter, When::Now, 1)?.first() {
                Some(edge) => graph.put_edge(edge),
                None => graph.end_edge(src, &rel, dst),
            }
        }
        Ok(())
    }
}

/// Reads the whole space.
fn load(tx: &dyn ReadTx, check: &dyn Fn() -> Result<()>) -> Result<Graph> {
    let mut graph = Graph::default();
    let mut n = 0_usize;
    let mut step = move || -> Result<()> {
        n += 1;
        if n.is_multiple_of(PAGE) {
            check()
        } else {
            Ok(())
        }
    };
    tx.scan(Table::Nodes, &mut |row| {
        if let Row::Node(node) = row {
            graph.put_node(&node);
        }
        step()
    })?;
    let mut n = 0_usize;
    tx.scan(Table::Edges, &mut |row| {
        if let Row::Edge(edge) = row
            && edge.to == Hlc::MAX
        {
            graph.put_edge(&edge);
        }
        n += 1;
        if n.is_multiple_of(PAGE) {
            check()
        } else {
            Ok(())
        }
    })?;
    Ok(graph)
}

/// The graph as it was at a moment. It is made for one query: the past is asked seldom.
pub(crate) fn at(tx: &dyn ReadTx, moment: Hlc, check: &dyn Fn() -> Result<()>) -> Result<Graph> {
    let when = When::At(moment);
    let mut graph = Graph::default();
    let mut after = None;
    let mut ids: Vec<NodeId> = Vec::new();
    loop {
        check()?;
        let page = tx.nodes(&NodeFilter::default(), when, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for node in &page {
            ids.push(node.id);
            graph.put_node(node);
        }
    }
    let mut n = 0_usize;
    let mut latest: HashMap<(NodeId, String, NodeId), Edge> = HashMap::new();
    tx.scan(Table::Edges, &mut |row| {
        if let Row::Edge(edge) = row
            && edge.from <= moment
            && moment < edge.to
        {
            latest.insert((edge.src, edge.rel.clone(), edge.dst), edge);
        }
        n += 1;
        if n.is_multiple_of(PAGE) {
            check()
        } else {
            Ok(())
        }
    })?;
    for edge in latest.values() {
        graph.put_edge(edge);
    }
    Ok(graph)
}
