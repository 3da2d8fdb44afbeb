//! `memory_recall`

use super::{MemoryResult, MemoryTypeWord};
use crate::{Call, Effect, Example, Tool, Toolset, pages};
use kenning_core::{Bounded, Result, Unit};
use kenning_engine::omi::{Recall, RecallScope, RecallSort};
use kenning_engine::parse_moment;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct MemoryRecall;

/// Semantic search across memories with recency weighting: 0.7 × relevance + 0.3 × recency. Returns
/// current facts, best first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Natural language search query, or ids of memories
    pub query: String,
    /// Maximum number of results (default 10)
    pub limit: Option<Bounded<1, 100>>,
    /// Relevance threshold (default 0.7)
    pub min_relevance: Option<Unit>,
    /// Filter by type
    pub memory_type: Option<MemoryTypeWord>,
    /// Only memories with all of these tags
    pub tags: Option<Vec<String>>,
    /// What was known at that time (ISO 8601)
    pub as_of: Option<String>,
    /// `relevance`: ignore age
    pub sort: Option<Sort>,
    /// Whose: this project's and global ones (default `project`), only global ones, or `all` projects'
    pub scope: Option<Scope>,
    /// Also give so many memories stored before and after each in its session
    pub context: Option<Bounded<0, 10>>,
}

/// What decides the order.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(
    missing_docs,
    reason = "the words say it, and a schema with a text for each is three times as long"
)]
pub enum Sort {
    FinalScore,
    Relevance,
}

/// Whose memories.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "as above")]
pub enum Scope {
    Project,
    Global,
    All,
}

impl From<Scope> for RecallScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Project => Self::Project,
            Scope::Global => Self::Global,
            Scope::All => Self::All,
        }
    }
}

impl Tool for MemoryRecall {
    const NAME: &'static str = "memory_recall";
    const TITLE: &'static str = "Recall memories";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Experiences with authentication",
            input: r#"{"query": "authentication issues", "limit": 5, "min_relevance": 0.75, "memory_type": "experience"}"#,
            output: "[",
        },
        Example {
            title: "A type that does not exist",
            input: r#"{"query": "x", "memory_type": "rumor"}"#,
            output: "Invalid memory_type: rumor",
        },
    ];
    type Input = Input;
    type Output = Vec<MemoryResult>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Vec<MemoryResult>> {
        let defaults = Recall::default();
        let limit = input
            .limit
            .map(|it| usize::try_from(it.get()).unwrap_or(defaults.limit));
        let recall = Recall {
            query: input.query,
            limit: limit.unwrap_or(defaults.limit),
            skip: ctx.skip(pages::WHOLE),
            min_relevance: input
                .min_relevance
                .map_or(defaults.min_relevance, Unit::get),
            memory_type: input.memory_type.map(|it| it.0),
            tags: input.tags.unwrap_or_default(),
            as_of_ms: input
                .as_of
                .as_deref()
                .map(|it| parse_moment("as_of", it))
                .transpose()?,
            sort: match input.sort {
                Some(Sort::Relevance) => RecallSort::Relevance,
                Some(Sort::FinalScore) | None => RecallSort::FinalScore,
            },
            context: (input.context).map_or(0, |it| usize::try_from(it.get()).unwrap_or(0)),
            scope: input.scope.map(RecallScope::from).unwrap_or_default(),
            ..Recall::default()
        };
        let found = ctx.engine.omi().recall(ctx.caller, &recall)?;
        found.remark.into_iter().for_each(|it| ctx.remark(it));
        ctx.more(pages::WHOLE, found.has_more);
        Ok(found.memories.into_iter().map(MemoryResult::from).collect())
    }
}
