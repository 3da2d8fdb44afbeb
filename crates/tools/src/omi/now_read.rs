//! `now_read`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct NowRead;

/// Load current operational context from NOW.md. Call this FIRST on session start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// The context; nothing when there is none yet.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    #[serde(flatten)]
    now: Option<Now>,
}

#[derive(Serialize, JsonSchema)]
struct Now {
    current_task: String,
    recent_completions: Vec<String>,
    pending_decisions: Vec<String>,
    key_files: Vec<String>,
    timestamp: String,
}

impl Tool for NowRead {
    const NAME: &'static str = "now_read";
    const TITLE: &'static str = "Read the current context";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A fresh start",
        input: "{}",
        output: "{}",
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, _: Input) -> Result<Output> {
        let now = ctx.engine.omi().now_read(ctx.caller)?.map(|now| Now {
            current_task: now.task,
            recent_completions: now.completions,
            pending_decisions: now.pending,
            key_files: now.files,
            timestamp: now.timestamp,
        });
        Ok(Output { now })
    }
}
