//! `belief_evidence`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct BeliefEvidence;

/// The evidence chain of a belief, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// ID of the belief
    pub belief_id: String,
}

/// One piece of evidence.
#[derive(Serialize, JsonSchema)]
pub struct Evidence {
    memory_id: String,
    supports: bool,
    strength: f64,
    timestamp: String,
}

impl Tool for BeliefEvidence {
    const NAME: &'static str = "belief_evidence";
    const TITLE: &'static str = "Evidence of a belief";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A belief that is not there",
        input: r#"{"belief_id": "mem_unknown"}"#,
        output: "MemoryNotFoundError",
    }];
    type Input = Input;
    type Output = Vec<Evidence>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Vec<Evidence>> {
        let chain = ctx
            .engine
            .omi()
            .evidence_chain(ctx.caller, &input.belief_id)?;
        let chain = chain.into_iter().map(|it| Evidence {
            memory_id: it.id,
            supports: it.supports,
            strength: it.strength,
            timestamp: timestamp(it.at_ms),
        });
        Ok(chain.collect())
    }
}
