//! What the memory tools share on the wire.

use kenning_engine::omi::{MemoryType, Neighbor, RecalledMemory};
use kenning_engine::timestamp;
use kenning_text::round::{self, Ties};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// A memory longer than this is answered by the part that was found.
pub(crate) const CONTENT_CHARS_MAX: usize = 6_000;

/// `fact`, `experience`, `belief` or `decision`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTypeWord(pub MemoryType);

impl<'de> Deserialize<'de> for MemoryTypeWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let parsed = word.parse::<MemoryType>();
        parsed
            .map(Self)
            .map_err(|error| de::Error::custom(error.message))
    }
}

impl JsonSchema for MemoryTypeWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MemoryType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = MemoryType::ALL.map(MemoryType::as_str);
        json_schema!({ "type": "string", "enum": words })
    }
}

/// A tool that answers nothing: an empty object, and `ok` as text.
#[derive(Debug, Default, JsonSchema)]
pub struct Nothing {}

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

/// A memory that was found.
#[derive(Serialize, JsonSchema)]
pub struct MemoryResult {
    memory_id: String,
    content: String,
    memory_type: &'static str,
    created_at: String,
    relevance: f64,
    final_score: f64,
    related_memories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// Set when `content` is a part of a longer memory: its whole length in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of_chars: Option<usize>,
    /// What was stored before and after it in its session, where `context` was asked for
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    context: Vec<ContextMemory>,
    /// The project it belongs to; absent for what is global
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    project: String,
    /// Memories of the same words, left out for this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    near_identical: Vec<String>,
}

/// A memory before or after one that was found.
#[derive(Serialize, JsonSchema)]
struct ContextMemory {
    memory_id: String,
    content: String,
    /// How far before (negative) or after
    offset: i32,
}

/// A neighbor is told by its beginning.
const NEIGHBOR_CHARS_MAX: usize = 600;

impl From<Neighbor> for ContextMemory {
    fn from(near: Neighbor) -> Self {
        let content: String = near
            .memory
            .content
            .chars()
            .take(NEIGHBOR_CHARS_MAX)
            .collect();
        Self {
            memory_id: near.memory.id,
            content,
            offset: near.offset,
        }
    }
}

impl From<RecalledMemory> for MemoryResult {
    fn from(found: RecalledMemory) -> Self {
        let RecalledMemory {
            memory,
            relevance,
            final_score,
            related,
            part,
            context,
            near_identical,
        } = found;
        let chars = memory.content.chars().count();
        let is_long = chars > CONTENT_CHARS_MAX;
        let content = if is_long {
            memory.content[part].to_owned()
        } else {
            memory.content
        };
        Self {
            memory_id: memory.id,
            content,
            memory_type: memory.memory_type.as_str(),
            created_at: timestamp(memory.created_ms),
            relevance: rounded(relevance),
            final_score: rounded(final_score),
            related_memories: related,
            confidence: memory.confidence,
            project: memory.project,
            part_of_chars: is_long.then_some(chars),
            context: context.into_iter().map(ContextMemory::from).collect(),
            near_identical,
        }
    }
}

/// Four digits: more would be noise.
fn rounded(value: f64) -> f64 {
    round::rounded(value, 4, Ties::Even)
}
