//! `kg_graph_stats`

use super::kg_list_tags::Tag;
use super::kg_stats::{ConnectedNode, counts};
use super::words::{self, KgReply};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgGraphStats;

/// The version of these statistics.
const VERSION: &str = "1.0.0";

/// Count nodes and edges of the knowledge graph, by type and status.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// With connectivity metrics
    #[serde(default)]
    pub detailed: bool,
}

/// Figures of the graph.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    total_nodes: usize,
    total_edges: usize,
    average_links_per_node: f64,
    orphan_nodes: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

/// More of them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    nodes_by_type: Map<String, Value>,
    nodes_by_status: Map<String, Value>,
    most_connected: Vec<ConnectedNode>,
    top_tags: Vec<Tag>,
    total_tags: usize,
    broken_links: usize,
    last_generated: Option<String>,
    last_updated: Option<String>,
    version: &'static str,
}

impl Tool for KgGraphStats {
    const NAME: &'static str = "kg_graph_stats";
    const TITLE: &'static str = "Detailed graph statistics";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "With details",
        input: r#"{"detailed": true}"#,
        output: r#""averageLinksPerNode":"#,
    }];
    type Input = Input;
    type Output = KgReply<Stats>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Stats>> {
        let cached = ctx.engine.kg().graph_is_in_memory(ctx.caller)?;
        let stats = ctx.engine.kg().graph_stats(ctx.caller);
        let stats = stats.map_err(words::run_generation_first)?;
        let average_links_per_node = stats.average_links();
        let details = input.detailed.then(|| Details {
            nodes_by_type: counts(&stats.by_type),
            nodes_by_status: counts(&stats.by_status),
            most_connected: stats
                .most_connected
                .into_iter()
                .map(ConnectedNode::from)
                .collect(),
            top_tags: stats
                .top_tags
                .into_iter()
                .map(|it| Tag {
                    tag: it.tag,
                    count: it.count,
                })
                .collect(),
            total_tags: stats.tags,
            broken_links: stats.broken_links,
            last_generated: stats.generated_ms.map(timestamp),
            last_updated: stats.updated_ms.map(timestamp),
            version: VERSION,
        });
        Ok(KgReply::new(Stats {
            total_nodes: stats.nodes,
            total_edges: stats.edges,
            average_links_per_node,
            orphan_nodes: stats.orphans,
            details,
        })
        .with("cached", cached))
    }
}
