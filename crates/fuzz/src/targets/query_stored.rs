//! A graph that queries of users run over, filled through a real store, and the same graph in plain memory.

use crate::Source;
use kenning_audit::{Draft, EdgeDraft};
use kenning_core::{Kind, Space};
use kenning_cypher::{Direction, Graph, MemoryGraph, NodeId};
use kenning_engine::Caller;
use kenning_engine::query::Queries;
use kenning_testing::Fixture;
use serde_json::{Map, json};
use std::sync::Arc;

/// The graph of a store, and a copy of what it says.
pub(super) struct Stored {
    /// What holds the store.
    _fixture: Fixture,
    queries: Queries,
    caller: Caller,
    pub(super) copy: MemoryGraph,
}

impl Stored {
    /// Fills a store with nodes of several kinds.
    pub(super) fn open() -> Result<Self, String> {
        let fixture = Fixture::without_vault(kenning_tools::Selection::default());
        fill(&fixture).map_err(|error| error.to_string())?;
        let queries = Queries::new(Arc::clone(fixture.kernel()));
        let mut caller = fixture.owner();
        caller.deadline += std::time::Duration::from_secs(24 * 3_600);
        let copy = queries.look(&caller, copied);
        let copy = copy.map_err(|error| error.to_string())?;
        let copy = copy.map_err(|error| error.to_string())?;
        Ok(Self {
            _fixture: fixture,
            queries,
            caller,
            copy,
        })
    }

    /// Looks at the graph of the store.
    pub(super) fn look<T>(&self, look: impl FnOnce(&dyn Graph) -> T) -> Result<T, String> {
        let looked = self.queries.look(&self.caller, look);
        looked.map_err(|error| error.to_string())
    }
}

fn fill(fixture: &Fixture) -> kenning_core::Result<()> {
    fixture.log().write(&Space::default(), |tx| {
        let mut source = Source::new(8);
        let mut ids = Vec::new();
        for n in 0..40 {
            let (kind, what) = [
                (Kind::Symbol, ("label", "Function")),
                (Kind::Symbol, ("label", "Function")),
                (Kind::Document, ("label", "File")),
                (Kind::Entity, ("type", "person")),
            ][source.below(4)];
            let mut props = Map::new();
            props.insert(what.0.to_owned(), json!(what.1));
            props.insert("n".to_owned(), json!(n % 7));
            props.insert("tags".to_owned(), json!(["a", (n % 3).to_string()]));
            if n % 5 == 0 {
                // A long text stays in its row.
                props.insert("long".to_owned(), json!("x".repeat(900)));
            }
            let node = tx.put_node(Draft {
                kind,
                project: String::new(),
                key: format!("key {n}"),
                title: format!("name {}", n % 20),
                body: format!("text {n}"),
                props,
            })?;
            ids.push(node.id);
        }
        for (at, src) in ids.iter().enumerate().skip(1) {
            let others = [
                ("calls", ids[0]),
                ("calls", ids[source.below(ids.len())]),
                ("contains", ids[source.below(ids.len())]),
            ];
            for (rel, dst) in others {
                let mut props = Map::new();
                props.insert("n".to_owned(), json!(at % 5));
                tx.put_edge(EdgeDraft {
                    src: *src,
                    rel: rel.to_owned(),
                    dst,
                    weight: 1.0,
                    props,
                })?;
            }
        }
        tx.record("NodeUpdated", json!({})).map(drop)
    })
}

/// The same nodes and relationships, with the same numbers.
fn copied(graph: &dyn Graph) -> kenning_cypher::Result<MemoryGraph> {
    let mut copy = MemoryGraph::new();
    let mut nodes: Vec<NodeId> = Vec::new();
    graph.nodes(None, None, usize::MAX, &mut nodes)?;
    let mut rels = Vec::new();
    for node in &nodes {
        let labels = graph.labels(*node)?.into_iter();
        let labels: Vec<Arc<str>> = labels.map(|it| graph.label_name(it)).collect();
        let labels: Vec<&str> = labels.iter().map(|it| &**it).collect();
        let made = copy.add_node(&labels, graph.node_properties(*node)?);
        assert_eq!(made, *node, "a fresh graph has no gaps");
        graph.rels(*node, Direction::Out, &[], &mut rels)?;
    }
    rels.sort_by_key(|it| it.id);
    for rel in rels {
        let kind = graph.type_name(rel.kind);
        let properties = graph.rel_properties(&rel)?;
        let made = copy.add_rel(rel.start, &kind, rel.end, properties);
        assert_eq!(made, Some(rel), "a fresh graph has no gaps");
    }
    Ok(copy)
}
