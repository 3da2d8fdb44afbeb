//! `belief_retrieve`

use crate::omi::MemoryResult;
use crate::{Call, Effect, Example, Tool, Toolset, pages};
use kenning_core::{Bounded, Result, Unit};
use kenning_engine::Page;
use kenning_engine::omi::Recall;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct BeliefRetrieve;

/// Find beliefs, weighted by confidence: relevance × 1.5^confidence.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Natural language search query
    pub query: String,
    /// Relevance threshold (default 0.7)
    pub min_relevance: Option<Unit>,
    /// Leave out less confident beliefs (default 0)
    pub min_confidence: Option<Unit>,
    /// Maximum number of results (default 10)
    pub limit: Option<Bounded<1, 100>>,
}

impl Tool for BeliefRetrieve {
    const NAME: &'static str = "belief_retrieve";
    const TITLE: &'static str = "Retrieve beliefs";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "Confident beliefs",
        input: r#"{"query": "throughput of the API", "min_confidence": 0.5}"#,
        output: "[",
    }];
    type Input = Input;
    type Output = Vec<MemoryResult>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Vec<MemoryResult>> {
        let limit = input
            .limit
            .map_or(10, |it| usize::try_from(it.get()).unwrap_or(10));
        let skip = ctx.skip(pages::WHOLE);
        let min_confidence = input.min_confidence.map_or(0.0, Unit::get);
        let defaults = Recall::default();
        let min_relevance = input
            .min_relevance
            .map_or(defaults.min_relevance, Unit::get);
        let found = ctx.engine.omi().recall_beliefs(
            ctx.caller,
            &input.query,
            min_relevance,
            min_confidence,
            Page { skip, limit },
        )?;
        found.remark.into_iter().for_each(|it| ctx.remark(it));
        ctx.more(pages::WHOLE, found.has_more);
        Ok(found.memories.into_iter().map(MemoryResult::from).collect())
    }
}
