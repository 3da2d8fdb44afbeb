//! `kg_list_tags`

use super::words::{Clamped, KgReply};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgListTags;

/// List all tags of the knowledge graph with their counts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Default 100
    pub limit: Option<Clamped<1, 1_000>>,
}

/// A tag and how many documents have it.
#[derive(Serialize, JsonSchema)]
pub struct Tag {
    pub(super) tag: String,
    pub(super) count: usize,
}

impl Tool for KgListTags {
    const NAME: &'static str = "kg_list_tags";
    const TITLE: &'static str = "List tags";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "The most used tags",
        input: r#"{"limit": 10}"#,
        output: r#""itemCount":"#,
    }];
    type Input = Input;
    type Output = KgReply<Vec<Tag>>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Vec<Tag>>> {
        let all = ctx.engine.kg().document_tags(ctx.caller)?;
        let total = all.len();
        let skip = ctx.skip("data");
        ctx.of_all("data", total);
        let limit = input
            .limit
            .map_or(100, |it| it.get_with_remark(ctx, "limit"));
        let shown = all.into_iter().skip(skip).take(limit);
        let shown = shown.map(|it| Tag {
            tag: it.tag,
            count: it.count,
        });
        let shown: Vec<Tag> = shown.collect();
        let count = shown.len();
        Ok(KgReply::new(shown)
            .with("itemCount", count)
            .with("totalCount", total))
    }
}
