//! `kg_broken_links`

use crate::kg::words::{Clamped, KgReply, NodeName};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_text::round::{Ties, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgBrokenLinks;

/// Links that lead nowhere: to documents, images and other files, and headings that are not there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Maximum number of results (default 100)
    pub limit: Option<Clamped<1, 1_000>>,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    links: Vec<Broken>,
    count: usize,
    total: usize,
}

/// A link that leads nowhere.
#[derive(Serialize, JsonSchema)]
pub(super) struct Broken {
    source: NodeName,
    line: u32,
    target: String,
    text: String,
    /// What is not there: `document`, `file` or `heading`.
    missing: &'static str,
    suggestion: Option<NodeName>,
    /// How alike the names are, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    likeness: Option<f64>,
}

impl Tool for KgBrokenLinks {
    const NAME: &'static str = "kg_broken_links";
    const TITLE: &'static str = "Broken links";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "All of them",
        input: r#"{}"#,
        output: r#""links":"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let skip = ctx.skip("data.links");
        let limit = input
            .limit
            .map_or(100, |it| it.get_with_remark(ctx, "limit"));
        let (links, total) = ctx
            .engine
            .kg()
            .graph_broken_links(ctx.caller, skip, limit)?;
        ctx.of_all("data.links", total);
        let links: Vec<Broken> = links
            .into_iter()
            .map(|it| {
                let (suggestion, likeness) = it.suggestion.unzip();
                Broken {
                    source: it.source.into(),
                    line: it.line,
                    target: it.target,
                    text: it.text,
                    missing: it.missing,
                    suggestion: suggestion.map(NodeName::from),
                    likeness: likeness.map(|it| rounded(it, 2, Ties::Away)),
                }
            })
            .collect();
        Ok(KgReply::new(Output {
            count: links.len(),
            links,
            total,
        }))
    }
}
