//! `memory_forget`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::omi::{Forget, ForgetReport};
use kenning_engine::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memories in one call.
const IDS_MAX: usize = 100;

/// The tool.
pub struct MemoryForget;

/// Forget memories by id, when the user asks for it. They are found no more, and erased for good after a grace time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which, at most 100; earlier versions that they superseded go too
    #[schemars(length(min = 1, max = 100))]
    pub memory_ids: Vec<String>,
    /// Erase at once: nothing can be restored
    #[serde(default)]
    pub erase_now: bool,
}

/// What became of them.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The memories that are gone
    forgotten: Vec<String>,
    /// Ids that no memory has
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    missing: Vec<String>,
    /// Until when `omi restore` brings them back; absent if they are erased
    #[serde(skip_serializing_if = "Option::is_none")]
    restorable_until: Option<String>,
    /// Files from which what repeated them was removed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    files_changed: Vec<String>,
    /// Notes and other things that still hold the text: the user decides about them
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    still_in: Vec<String>,
    /// Old events that cannot be erased
    #[serde(skip_serializing_if = "Option::is_none")]
    events_not_erased: Option<u64>,
}

impl From<ForgetReport> for Output {
    fn from(report: ForgetReport) -> Self {
        let left = report.erased.map(|it| it.unerasable).filter(|it| *it > 0);
        Self {
            forgotten: report.ids,
            missing: report.missing,
            restorable_until: report.due_ms.map(timestamp),
            files_changed: report.files,
            still_in: report.also_in,
            events_not_erased: left,
        }
    }
}

impl Tool for MemoryForget {
    const NAME: &'static str = "memory_forget";
    const TITLE: &'static str = "Forget memories";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Destroy;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A memory that is not there",
        input: r#"{"memory_ids": ["mem_unknown"]}"#,
        output: r#"{"forgotten":[],"missing":["mem_unknown"]}"#,
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let n = input.memory_ids.len();
        if n == 0 || n > IDS_MAX {
            return Err(Error::invalid(format!(
                "`memory_ids`: {n} ids are not between 1 and {IDS_MAX}"
            ))
            .hint("forget the others in another call"));
        }
        let forget = Forget {
            ids: input.memory_ids,
            at_once: input.erase_now,
        };
        let report = ctx.engine.omi().forget_memories(ctx.caller, &forget)?;
        Ok(report.into())
    }
}
