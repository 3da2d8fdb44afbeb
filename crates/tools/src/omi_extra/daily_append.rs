//! `daily_append`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct DailyAppend;

/// Append an entry to today's log.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The entry, in Markdown
    pub content: String,
}

/// Where it is.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    path: String,
}

impl Tool for DailyAppend {
    const NAME: &'static str = "daily_append";
    const TITLE: &'static str = "Append to the daily log";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A session's summary",
        input: r#"{"content": "Session summary: deployed the rate limiter"}"#,
        output: r#"{"path":"memory/2027-01-15.md"}"#,
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let path = ctx.engine.omi().daily_append(ctx.caller, &input.content)?;
        Ok(Output { path })
    }
}
