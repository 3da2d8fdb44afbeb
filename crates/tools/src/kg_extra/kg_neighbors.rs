//! `kg_neighbors`

use crate::kg::words::{Clamped, KgReply, NodeName};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgNeighbors;

/// Documents within a few links of one, in both directions, the nearest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Id, path or title of the document
    pub node: String,
    /// How many links away at most (default 1)
    pub depth: Option<Clamped<1, 10>>,
    /// Maximum number of results (default 50)
    pub limit: Option<Clamped<1, 500>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    node: NodeName,
    neighbors: Vec<Neighbor>,
    count: usize,
    total: usize,
}

/// A document and how far it is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Neighbor {
    #[serde(flatten)]
    node: NodeName,
    distance: u32,
}

impl Tool for KgNeighbors {
    const NAME: &'static str = "kg_neighbors";
    const TITLE: &'static str = "Neighborhood";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "Two links away",
        input: r#"{"node": "concepts/auth", "depth": 2}"#,
        output: r#""neighbors":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let depth = u32::try_from(input.depth.map_or(1, |it| it.get_with_remark(ctx, "depth")))
            .unwrap_or(1);
        let limit = input
            .limit
            .map_or(50, |it| it.get_with_remark(ctx, "limit"));
        let (node, near) =
            ctx.engine
                .kg()
                .graph_neighbors(ctx.caller, &input.node, depth, usize::MAX)?;
        let total = near.len();
        let neighbors: Vec<Neighbor> = ctx
            .part("data.neighbors", near, limit)
            .into_iter()
            .map(|(it, distance)| Neighbor {
                node: it.into(),
                distance,
            })
            .collect();
        Ok(KgReply::new(Output {
            node: node.into(),
            count: neighbors.len(),
            neighbors,
            total,
        }))
    }
}
