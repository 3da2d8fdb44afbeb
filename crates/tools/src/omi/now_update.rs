//! `now_update`

use super::Nothing;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct NowUpdate;

/// Update operational state: at 70% context usage, on task completion, before major context shifts.
/// Omitted fields are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Current focus (replaces previous)
    pub current_task: Option<String>,
    /// Just-completed items (appends to list)
    pub recent_completions: Option<Vec<String>>,
    /// Unresolved choices (replaces list)
    pub pending_decisions: Option<Vec<String>>,
    /// Critical file paths (replaces list)
    pub key_files: Option<Vec<String>>,
}

impl Tool for NowUpdate {
    const NAME: &'static str = "now_update";
    const TITLE: &'static str = "Update the current context";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Update after completing a subtask",
            input: r#"{"current_task": "Writing integration tests for auth middleware", "recent_completions": ["Implemented JWT token validation", "Added refresh token rotation"], "pending_decisions": ["Should we support OAuth2 providers?"], "key_files": ["src/auth/jwt.py", "tests/integration/test_auth_flow.py"]}"#,
            output: "ok",
        },
        Example {
            title: "Minimal update (just mark current task)",
            input: r##"{"current_task": "Code review PR #123"}"##,
            output: "ok",
        },
    ];
    type Input = Input;
    type Output = Nothing;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Nothing> {
        let update = kenning_engine::omi::NowUpdate {
            task: input.current_task,
            completions: input.recent_completions,
            pending: input.pending_decisions,
            files: input.key_files,
        };
        ctx.engine.omi().now_update(ctx.caller, update)?;
        Ok(Nothing {})
    }
}
