//! `kg_health`

use super::words::KgReply;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgHealth;

/// Quick health check of database, cache and tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// How it is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    database: bool,
    cache: bool,
    project_root: Option<String>,
    tool_count: usize,
}

impl Tool for KgHealth {
    const NAME: &'static str = "kg_health";
    const TITLE: &'static str = "Graph health";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "Is it there",
        input: "{}",
        output: r#""toolCount":"#,
    }];
    type Input = Input;
    type Output = KgReply<Health>;

    fn call(ctx: &Call<'_>, _: Input) -> Result<KgReply<Health>> {
        let health = ctx.engine.kg().graph_health(ctx.caller)?;
        let tools = ctx.others.all().iter();
        let tools = tools.filter(|it| it.toolset() == Toolset::Kg);
        Ok(KgReply::new(Health {
            database: health.has_graph,
            cache: health.cache.entries > 0,
            project_root: health.project_root,
            tool_count: tools.count(),
        }))
    }
}
