//! Events of the log, as queries see them.

use crate::graph::Graph;
use crate::rows::{self, Property};
use kenning_audit::Change;
use kenning_core::{NodeId, Result, Space};
use kenning_cypher::Value;
use kenning_kernel::Kernel;
use kenning_store::{EventFilter, EventPage, EventRow, When};

/// Events at most, the newest of them: as many as an answer has rows.
pub(crate) const EVENTS_MAX: i64 = 10_000;

/// The events of a space, the newest first.
pub(crate) fn read(
    kernel: &Kernel,
    space: &Space,
    when: When,
    kinds: Vec<String>,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let filter = EventFilter {
        kinds,
        to: match when {
            When::Now => None,
            When::At(moment) => Some(moment),
        },
        ..EventFilter::default()
    };
    let page = EventPage {
        limit,
        newest_first: true,
        ..EventPage::default()
    };
    kernel.log().read(space, |tx| tx.find_events(&filter, page))
}

/// What an event says of itself, by name.
pub(crate) fn properties(row: &EventRow) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        (
            "seq",
            Value::Int(i64::try_from(row.seq).unwrap_or(i64::MAX)),
        ),
        ("id", Value::str(row.id.to_string())),
        ("kind", Value::str(&row.kind)),
        ("at", rows::moment(row.hlc.ms())),
        ("author", Value::str(&row.author)),
    ];
    if !row.sealed.agent.is_empty() {
        all.push(("agent", Value::str(&row.sealed.agent)));
    }
    all
}

/// The nodes that an event changed or connected, each once.
pub(crate) fn changed(row: &EventRow) -> Vec<NodeId> {
    let changes = kenning_audit::event::parse(row).map_or_else(Vec::new, |it| it.changes);
    let mut nodes: Vec<NodeId> = changes.iter().flat_map(changed_by).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn changed_by(change: &Change) -> Vec<NodeId> {
    match change {
        Change::PutNode { id, .. } | Change::RemoveNode { id } => vec![*id],
        Change::PutEdge { src, dst, .. } | Change::EndEdge { src, dst, .. } => vec![*src, *dst],
        _ => Vec::new(),
    }
}

/// A copy of a graph that has the newest events as nodes too. Only a query that names their label pays for it:
/// otherwise every write would be a node more in every graph.
pub(crate) fn with_events(
    graph: &Graph,
    kernel: &Kernel,
    space: &Space,
    when: When,
) -> Result<Graph> {
    let limit = usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX);
    let mut graph = graph.clone();
    for row in read(kernel, space, when, Vec::new(), limit)? {
        let named = properties(&row).into_iter();
        let named = named.map(|(name, it)| (name.to_owned(), Property::Here(it)));
        let changed = changed(&row).into_iter();
        let changed: Vec<u32> = changed.filter_map(|it| graph.slot_of(it)).collect();
        graph.add_event(named.collect(), &changed);
    }
    Ok(graph)
}
