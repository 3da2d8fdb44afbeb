//! `memory_store_batch`

use crate::omi::memory_store;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::omi::NewMemory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memories that are stored at once: more in one transaction would keep other writers waiting.
const BATCH_MAX: usize = 5_000;

/// The tool.
pub struct MemoryStoreBatch;

/// Store many memories at once: all of them, or none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Each as for `memory_store`
    pub memories: Vec<memory_store::Input>,
}

/// What became of them.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    memories: Vec<memory_store::Output>,
    count: usize,
}

impl Tool for MemoryStoreBatch {
    const NAME: &'static str = "memory_store_batch";
    const TITLE: &'static str = "Store many memories";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "Two at once",
        input: r#"{"memories": [{"content": "The cache is warm after ten minutes"}, {"content": "Deploys happen on Tuesdays", "memory_type": "fact"}]}"#,
        output: r#""count":2"#,
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        if input.memories.len() > BATCH_MAX {
            let n = input.memories.len();
            return Err(
                Error::too_large(format!("`memories`: {n} are more than {BATCH_MAX}"))
                    .hint("send them in several calls"),
            );
        }
        let new: Vec<NewMemory> = input.memories.into_iter().map(NewMemory::from).collect();
        let stored = ctx.engine.omi().store_memories(ctx.caller, new)?;
        let memories: Vec<_> = stored.into_iter().map(memory_store::Output::from).collect();
        Ok(Output {
            count: memories.len(),
            memories,
        })
    }
}
