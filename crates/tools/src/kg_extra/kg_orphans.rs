//! `kg_orphans`

use crate::kg::words::{Clamped, KgReply, NodeName, SuggestedLink};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgOrphans;

/// Documents that no link leads to or from, with links that would join them to others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Maximum number of results (default 20)
    pub limit: Option<Clamped<1, 200>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    orphans: Vec<Lonely>,
    count: usize,
    total: usize,
}

/// A document without links.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lonely {
    #[serde(flatten)]
    node: NodeName,
    suggestions: Vec<SuggestedLink>,
}

impl Tool for KgOrphans {
    const NAME: &'static str = "kg_orphans";
    const TITLE: &'static str = "Orphans";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "The first ones",
        input: r#"{"limit": 5}"#,
        output: r#""orphans":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let skip = ctx.skip("data.orphans");
        let limit = input
            .limit
            .map_or(20, |it| it.get_with_remark(ctx, "limit"));
        let (orphans, total) = ctx.engine.kg().graph_orphans(ctx.caller, skip, limit)?;
        ctx.of_all("data.orphans", total);
        let orphans: Vec<Lonely> = orphans
            .into_iter()
            .map(|it| Lonely {
                node: it.document.into(),
                suggestions: it
                    .suggestions
                    .into_iter()
                    .map(SuggestedLink::from)
                    .collect(),
            })
            .collect();
        Ok(KgReply::new(Output {
            count: orphans.len(),
            orphans,
            total,
        }))
    }
}
