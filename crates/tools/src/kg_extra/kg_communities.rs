//! `kg_communities`

use crate::kg::words::{Clamped, KgReply, NodeName};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgCommunities;

/// Groups of documents that are linked with each other more than with others, the largest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Maximum number of groups (default 20)
    pub limit: Option<Clamped<1, 200>>,
    /// Members that are named of each (default 10)
    pub members: Option<Clamped<1, 100>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    communities: Vec<Group>,
    count: usize,
    total: usize,
}

/// A group.
#[derive(Serialize, JsonSchema)]
pub(super) struct Group {
    community: u32,
    size: usize,
    members: Vec<NodeName>,
}

impl Tool for KgCommunities {
    const NAME: &'static str = "kg_communities";
    const TITLE: &'static str = "Communities";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "All groups",
        input: r#"{}"#,
        output: r#""communities":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let (limit, members) = (
            input
                .limit
                .map_or(20, |it| it.get_with_remark(ctx, "limit")),
            input
                .members
                .map_or(10, |it| it.get_with_remark(ctx, "members")),
        );
        let skip = ctx.skip("data.communities");
        let (all, total) = ctx
            .engine
            .kg()
            .graph_communities(ctx.caller, skip + limit, members)?;
        ctx.of_all("data.communities", total);
        let communities: Vec<Group> = all
            .into_iter()
            .skip(skip)
            .map(|it| Group {
                community: it.number,
                size: it.size,
                members: it.members.into_iter().map(NodeName::from).collect(),
            })
            .collect();
        Ok(KgReply::new(Output {
            count: communities.len(),
            communities,
            total,
        }))
    }
}
