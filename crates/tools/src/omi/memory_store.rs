//! `memory_store`

use super::MemoryTypeWord;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::omi::{MemoryType, NewMemory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct MemoryStore;

/// Persist a memory: a fact, experience, belief or decision. The same memory twice is kept once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Memory text to store
    pub content: String,
    /// Default `experience`
    pub memory_type: Option<MemoryTypeWord>,
    /// IDs of related memories
    pub related_to: Option<Vec<String>>,
    /// For beliefs: how sure
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// ID of a memory that no longer holds because of this one
    pub supersedes: Option<String>,
    /// A name of your own for it
    pub memory_id: Option<String>,
    /// Words to filter by
    pub tags: Option<Vec<String>>,
    /// Session it belongs to (default: this one)
    pub session_id: Option<String>,
    /// `global`: for every project; default `project`
    pub scope: Option<Scope>,
}

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Scope {
    Project,
    Global,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    memory_id: String,
    /// Whether it was there already
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    duplicate: bool,
    /// Whether it waits for a second key and is not stored yet; `memory_id` is the name of the write then
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pending: bool,
}

impl From<Input> for NewMemory {
    fn from(input: Input) -> Self {
        Self {
            content: input.content,
            memory_type: input.memory_type.map_or(MemoryType::Experience, |it| it.0),
            confidence: input.confidence,
            related_to: input.related_to.unwrap_or_default(),
            supersedes: input.supersedes,
            memory_id: input.memory_id,
            tags: input.tags.unwrap_or_default(),
            session_id: input.session_id,
            project: (input.scope == Some(Scope::Global)).then(String::new),
            source: None,
            said_ms: None,
        }
    }
}

impl From<kenning_engine::omi::StoredMemory> for Output {
    fn from(stored: kenning_engine::omi::StoredMemory) -> Self {
        Self {
            memory_id: stored.id,
            duplicate: stored.duplicate,
            pending: stored.is_pending,
        }
    }
}

impl Tool for MemoryStore {
    const NAME: &'static str = "memory_store";
    const TITLE: &'static str = "Store a memory";
    const TOOLSET: Toolset = Toolset::Omi;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Store a fact",
            input: r#"{"content": "SQLite supports full-text search via FTS5", "memory_type": "fact"}"#,
            output: r#"{"memory_id":"mem_"#,
        },
        Example {
            title: "Store a belief with confidence",
            input: r#"{"content": "Async operations improve throughput by 40% in our API", "memory_type": "belief", "confidence": 0.85}"#,
            output: r#"{"memory_id":"mem_"#,
        },
        Example {
            title: "More confidence than there is",
            input: r#"{"content": "x", "memory_type": "belief", "confidence": 1.5}"#,
            output: "confidence must be between 0.0 and 1.0",
        },
        Example {
            title: "Related to what is not there",
            input: r#"{"content": "x", "related_to": ["mem_unknown"]}"#,
            output: "MemoryNotFoundError",
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let mut memory = NewMemory::from(input);
        let session = ctx.caller.session.as_deref();
        memory.session_id = memory.session_id.or_else(|| session.map(str::to_owned));
        let stored = ctx.engine.omi().store_memories(ctx.caller, vec![memory])?;
        let first = stored.into_iter().next();
        if let Some(it) = first.as_ref().filter(|it| it.is_pending) {
            ctx.remark(format!(
                "foundational memories need a second key here: this one is stored, and found, once \
                 `kenning omi pending confirm {}` was said with another key than yours",
                it.id
            ));
        }
        first
            .map(Output::from)
            .ok_or_else(|| Error::internal("nothing was stored"))
    }
}
