//! `belief_update`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Result, Unit};
use kenning_engine::omi::EvidenceUpdate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct BeliefUpdate;

/// Update belief confidence with evidence. Contradicting evidence counts twice as much as supporting; the
/// same evidence again counts once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// ID of belief to update
    pub belief_id: String,
    /// Memory serving as evidence
    pub evidence_memory_id: String,
    /// `true` = supports belief, `false` = contradicts
    pub supports: bool,
    /// Evidence strength
    pub strength: Unit,
}

/// How sure now.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    new_confidence: f64,
}

impl Tool for BeliefUpdate {
    const NAME: &'static str = "belief_update";
    const TITLE: &'static str = "Update a belief";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Write { idempotent: false };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A belief that is not there",
        input: r#"{"belief_id": "belief_rate_limit_effective", "evidence_memory_id": "mem_1", "supports": true, "strength": 0.85}"#,
        output: "MemoryNotFoundError",
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let update = EvidenceUpdate {
            belief: input.belief_id,
            evidence: input.evidence_memory_id,
            supports: input.supports,
            strength: input.strength,
        };
        let done = ctx.engine.omi().update_belief(ctx.caller, update)?;
        if done.is_known {
            ctx.remark("this evidence was counted before: the confidence stays as it is");
        }
        Ok(Output {
            new_confidence: done.new_confidence,
        })
    }
}
