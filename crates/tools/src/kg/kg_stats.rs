//! `kg_stats`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::kg::{Connected, GraphStats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgStats;

/// Count nodes and edges of the knowledge graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// Figures of the graph.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    total_nodes: usize,
    total_edges: usize,
    orphan_nodes: usize,
    avg_links_per_node: f64,
    nodes_by_type: Map<String, Value>,
    nodes_by_status: Map<String, Value>,
    most_connected: Vec<ConnectedNode>,
    broken_links: usize,
}

/// A document with many links.
#[derive(Serialize, JsonSchema)]
pub(super) struct ConnectedNode {
    id: String,
    title: String,
    connections: usize,
}

impl From<Connected> for ConnectedNode {
    fn from(it: Connected) -> Self {
        Self {
            id: it.id,
            title: it.title,
            connections: it.connections,
        }
    }
}

/// Counts by their names.
pub(super) fn counts(all: &[(&'static str, usize)]) -> Map<String, Value> {
    let counts = all
        .iter()
        .map(|(name, count)| ((*name).to_owned(), Value::from(*count)));
    counts.collect()
}

impl Tool for KgStats {
    const NAME: &'static str = "kg_stats";
    const TITLE: &'static str = "Graph statistics";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "How large the graph is",
        input: "{}",
        output: r#""totalNodes":"#,
    }];
    type Input = Input;
    type Output = KgReply<Stats>;

    fn call(ctx: &Call<'_>, _: Input) -> Result<KgReply<Stats>> {
        let stats: GraphStats = ctx.engine.kg().graph_stats(ctx.caller)?;
        Ok(KgReply::new(Stats {
            total_nodes: stats.nodes,
            total_edges: stats.edges,
            orphan_nodes: stats.orphans,
            avg_links_per_node: stats.average_links(),
            nodes_by_type: counts(&stats.by_type),
            nodes_by_status: counts(&stats.by_status),
            most_connected: stats
                .most_connected
                .into_iter()
                .take(5)
                .map(ConnectedNode::from)
                .collect(),
            broken_links: stats.broken_links,
        }))
    }
}
