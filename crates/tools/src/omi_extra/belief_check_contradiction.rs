//! `belief_check_contradiction`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct BeliefCheckContradiction;

/// Find what contradicts a memory: opposite words, or evidence that supports one belief and contradicts
/// the other.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// ID of a memory
    pub memory_id_1: String,
    /// ID of another; without it, everything is looked through
    pub memory_id_2: Option<String>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    contradicts: bool,
    contradictions: Vec<Contradiction>,
    /// Who compared: `rules`, or the name of the model that was asked beside them.
    method: String,
}

#[derive(Serialize, JsonSchema)]
struct Contradiction {
    memory_id_1: String,
    memory_id_2: String,
    contradiction_pattern: String,
}

impl Tool for BeliefCheckContradiction {
    const NAME: &'static str = "belief_check_contradiction";
    const TITLE: &'static str = "Check for contradictions";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A memory that is not there",
        input: r#"{"memory_id_1": "mem_unknown"}"#,
        output: "MemoryNotFoundError",
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let found = match &input.memory_id_2 {
            Some(other) if *other == input.memory_id_1 => {
                return Err(
                    Error::invalid(format!("`memory_id_2`: `{other}` is the same memory"))
                        .hint("name another, or leave it out"),
                );
            }
            Some(other) => {
                ctx.engine
                    .omi()
                    .check_contradiction(ctx.caller, &input.memory_id_1, other)?
            }
            None => ctx
                .engine
                .omi()
                .contradictions(ctx.caller, &input.memory_id_1)?,
        };
        if let Some(remark) = &found.remark {
            ctx.remark(remark.clone());
        }
        let contradictions: Vec<Contradiction> = found
            .found
            .into_iter()
            .map(|it| Contradiction {
                memory_id_1: it.one,
                memory_id_2: it.other,
                contradiction_pattern: it.pattern,
            })
            .collect();
        Ok(Output {
            contradicts: !contradictions.is_empty(),
            contradictions,
            method: found.model.unwrap_or_else(|| "rules".to_owned()),
        })
    }
}
