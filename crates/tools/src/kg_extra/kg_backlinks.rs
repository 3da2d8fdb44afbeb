//! `kg_backlinks`

use crate::kg::words::{Clamped, KgReply, NodeName, SuggestedLink};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgBacklinks;

/// What links to a document, with the words around each link, and what names it without a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Id, path or title of the document
    pub node: String,
    /// Maximum number of backlinks (default 50)
    pub limit: Option<Clamped<1, 500>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    node: NodeName,
    backlinks: Vec<Back>,
    count: usize,
    /// How many there are in all.
    total: usize,
    unlinked_mentions: Vec<SuggestedLink>,
}

/// A link to the document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Back {
    source: NodeName,
    relation: String,
    text: String,
    line: u32,
    context: String,
}

impl Tool for KgBacklinks {
    const NAME: &'static str = "kg_backlinks";
    const TITLE: &'static str = "Backlinks";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "Of one document",
        input: r#"{"node": "concepts/auth"}"#,
        output: r#""backlinks":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let skip = ctx.skip("data.backlinks");
        let limit = input
            .limit
            .map_or(50, |it| it.get_with_remark(ctx, "limit"));
        let found = ctx
            .engine
            .kg()
            .graph_backlinks(ctx.caller, &input.node, skip, limit)?;
        ctx.of_all("data.backlinks", found.total);
        let backlinks: Vec<Back> = found
            .links
            .into_iter()
            .map(|it| Back {
                source: it.source.into(),
                relation: it.relation,
                text: it.text,
                line: it.line,
                context: it.context,
            })
            .collect();
        Ok(KgReply::new(Output {
            node: found.document.into(),
            count: backlinks.len(),
            backlinks,
            total: found.total,
            unlinked_mentions: found
                .unlinked
                .into_iter()
                .map(SuggestedLink::from)
                .collect(),
        }))
    }
}
