//! `kg_vector_upsert`

use super::words::{KgReply, NODE_TYPES, vector_of};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kg::NewVector;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgVectorUpsert;

/// Insert a vector into the knowledge graph, or replace the one with this ID.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["id", "vector"]))]
pub struct Input {
    /// Unique identifier for the vector
    #[serde(default)]
    #[schemars(with = "String")]
    pub id: Value,
    /// The embedding, at most 4,096 numbers of any model
    #[serde(default)]
    #[schemars(with = "Vec<f64>", extend("items" = { "type": "number" }))]
    pub vector: Value,
    /// Its metadata
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Value,
    /// Namespace (default: "default")
    pub namespace: Option<String>,
}

fn metadata_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "title": { "type": "string" },
            "content": { "type": "string" },
            "type": { "type": "string", "enum": NODE_TYPES },
            "path": { "type": "string" },
            "tags": {
                "type": "array", "items": { "type": "string" },
            },
            "sourceId": { "type": "string" },
        },
        "additionalProperties": true,
    })
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    id: String,
    operation: &'static str,
    dimensions: usize,
    has_metadata: bool,
    namespace: String,
}

/// About the store.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    total_vectors: u64,
    was_update: bool,
}

impl Tool for KgVectorUpsert {
    const NAME: &'static str = "kg_vector_upsert";
    const TITLE: &'static str = "Insert or update a vector";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A vector with its source",
            input: r#"{"id": "doc-neural-networks", "vector": [0.1, 0.2, 0.3], "metadata": {"title": "Neural Networks", "type": "concept", "tags": ["AI", "ML"], "path": "docs/concepts/neural.md"}, "namespace": "concepts"}"#,
            output: r#""operation":"inserted","dimensions":3,"hasMetadata":true,"namespace":"concepts""#,
        },
        Example {
            title: "Something that is not a number",
            input: r#"{"id": "doc-1", "vector": [0.1, "x"]}"#,
            output: "Invalid vector element at index 1: must be a finite number",
        },
    ];
    type Input = Input;
    type Output = KgReply<Data, Metadata>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Self::Output> {
        let Value::String(id) = input.id else {
            return Err(Error::invalid("ID must be a string").hint("give the vector a name"));
        };
        if id.is_empty() {
            return Err(Error::invalid("ID cannot be empty").hint("give the vector a name"));
        }
        let metadata = match input.metadata {
            Value::Object(metadata) => metadata,
            Value::Null => Map::new(),
            _ => {
                return Err(Error::invalid("Metadata must be an object")
                    .hint("names with their values, or leave it out"));
            }
        };
        let new = NewVector {
            id,
            namespace: input.namespace,
            numbers: vector_of(&input.vector)?,
            metadata,
        };
        let (put, total_vectors) = ctx.engine.kg().upsert_vector(ctx.caller, new)?;
        Ok(KgReply {
            data: Data {
                id: put.id,
                operation: if put.was_update {
                    "updated"
                } else {
                    "inserted"
                },
                dimensions: put.dimensions,
                has_metadata: put.has_metadata,
                namespace: put.namespace,
            },
            metadata: Metadata {
                total_vectors,
                was_update: put.was_update,
            },
        })
    }
}
