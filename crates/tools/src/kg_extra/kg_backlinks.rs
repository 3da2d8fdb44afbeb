//! `kg_backlinks`

use crate::kg::words::{KgReply, NodeName, SuggestedLink};
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
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    node: NodeName,
    backlinks: Vec<Back>,
    count: usize,
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
        let (node, links, unlinked) = ctx.engine.graph_backlinks(ctx.caller, &input.node)?;
        let backlinks: Vec<Back> = links
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
            node: node.into(),
            count: backlinks.len(),
            backlinks,
            unlinked_mentions: unlinked.into_iter().map(SuggestedLink::from).collect(),
        }))
    }
}
