//! `memory_get`

use crate::omi::CONTENT_CHARS_MAX;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::omi::MemoryDetails;
use kenning_engine::timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memories in one answer: more would not fit a model's context.
const IDS_MAX: usize = 10;

/// The tool.
pub struct MemoryGet;

/// Read memories by their ids, for example those of `related_memories`, with everything they are joined to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which, at most 10
    #[schemars(length(min = 1, max = 10))]
    pub memory_ids: Vec<String>,
    /// Where to begin in a long memory, in characters (default 0): `next_offset` of the answer before
    pub offset: Option<u64>,
}

/// What there is.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    memories: Vec<Memory>,
    /// Ids that nothing has
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    missing: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Memory {
    memory_id: String,
    content: String,
    memory_type: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    tags: Vec<String>,
    /// The memory that took its place
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
    /// How often it was recalled
    access_count: u64,
    /// What it is joined to, the strongest first
    relations: Vec<Relation>,
    /// How many relations there are, where not all are listed
    #[serde(skip_serializing_if = "Option::is_none")]
    relations_total: Option<usize>,
    /// Set when `content` is a part of a longer memory: its whole length in characters
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of_chars: Option<usize>,
    /// Where the next part begins
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Relation {
    memory_id: String,
    relation: String,
    strength: f64,
    /// `out` if it begins at this memory, `in` if it ends there
    direction: &'static str,
}

impl Tool for MemoryGet {
    const NAME: &'static str = "memory_get";
    const TITLE: &'static str = "Read memories by id";
    const TOOLSET: Toolset = Toolset::OmiExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A memory that is not there",
        input: r#"{"memory_ids": ["mem_unknown"]}"#,
        output: r#"{"memories":[],"missing":["mem_unknown"]}"#,
    }];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let n = input.memory_ids.len();
        if n == 0 || n > IDS_MAX {
            return Err(Error::invalid(format!(
                "`memory_ids`: {n} ids are not between 1 and {IDS_MAX}"
            ))
            .hint("ask for the others in another call"));
        }
        let offset = usize::try_from(input.offset.unwrap_or(0)).unwrap_or(usize::MAX);
        let found = ctx
            .engine
            .omi()
            .memories_by_id(ctx.caller, &input.memory_ids)?;
        let mut output = Output {
            memories: Vec::new(),
            missing: Vec::new(),
        };
        for (id, details) in input.memory_ids.into_iter().zip(found) {
            match details {
                Some(details) => output.memories.push(Memory::of(details, offset)),
                None => output.missing.push(id),
            }
        }
        Ok(output)
    }
}

impl Memory {
    fn of(details: MemoryDetails, offset: usize) -> Self {
        let MemoryDetails {
            memory,
            access,
            relations,
            n_relations,
        } = details;
        let chars = memory.content.chars().count();
        let content: String = memory
            .content
            .chars()
            .skip(offset)
            .take(CONTENT_CHARS_MAX)
            .collect();
        let end = offset.saturating_add(CONTENT_CHARS_MAX);
        let relations: Vec<Relation> = relations
            .into_iter()
            .map(|it| Relation {
                memory_id: it.id,
                relation: it.relation,
                strength: it.strength,
                direction: if it.is_outgoing { "out" } else { "in" },
            })
            .collect();
        Self {
            memory_id: memory.id,
            content,
            memory_type: memory.memory_type.as_str(),
            created_at: timestamp(memory.created_ms),
            confidence: memory.confidence,
            tags: memory.tags,
            superseded_by: memory.superseded_by,
            access_count: access.count,
            relations_total: (n_relations > relations.len()).then_some(n_relations),
            relations,
            part_of_chars: (offset > 0 || end < chars).then_some(chars),
            next_offset: (end < chars).then_some(end),
        }
    }
}
