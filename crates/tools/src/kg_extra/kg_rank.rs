//! `kg_rank`

use crate::kg::words::{Clamped, KgReply, NodeName};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgRank;

/// Documents that matter most, by how much leads to them (PageRank).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Maximum number of results (default 20)
    pub limit: Option<Clamped<1, 500>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    nodes: Vec<Ranked>,
    count: usize,
    total: usize,
}

/// A document and its rank.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ranked {
    #[serde(flatten)]
    node: NodeName,
    rank: f64,
}

impl Tool for KgRank {
    const NAME: &'static str = "kg_rank";
    const TITLE: &'static str = "PageRank";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "The first ten",
        input: r#"{"limit": 10}"#,
        output: r#""rank":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let skip = ctx.skip("data.nodes");
        let limit = input
            .limit
            .map_or(20, |it| it.get_with_remark(ctx, "limit"));
        let (ranks, total) = ctx.engine.kg().graph_ranks(ctx.caller, skip + limit)?;
        ctx.of_all("data.nodes", total);
        let nodes: Vec<Ranked> = ranks
            .into_iter()
            .skip(skip)
            .map(|(it, rank)| Ranked {
                node: it.into(),
                rank,
            })
            .collect();
        Ok(KgReply::new(Output {
            count: nodes.len(),
            nodes,
            total,
        }))
    }
}
