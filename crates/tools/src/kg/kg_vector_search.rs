//! `kg_vector_search`

use super::words::{KgReply, NODE_TYPES, vector_of};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kg::{VECTOR_RESULTS_MAX, VectorHit, VectorQuery};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KgVectorSearch;

/// Perform semantic vector search on the knowledge graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["query"]))]
pub struct Input {
    /// Search query string
    #[serde(default)]
    #[schemars(with = "String")]
    pub query: Value,
    /// Number of results (default: 10)
    #[serde(default)]
    #[schemars(schema_with = "k_schema")]
    pub k: Option<f64>,
    /// Node type
    #[serde(default)]
    #[schemars(schema_with = "type_schema")]
    pub r#type: Option<String>,
    /// Also match keywords
    #[schemars(extend("default" = false))]
    pub hybrid: Option<bool>,
    /// Minimum similarity (default: 0)
    #[serde(default)]
    #[schemars(schema_with = "score_schema")]
    pub min_score: Option<f64>,
    /// Include raw vectors
    #[schemars(extend("default" = false))]
    pub include_vectors: Option<bool>,
    /// Vector namespace
    pub namespace: Option<String>,
    /// Search upserted vectors by this one; `query` may then be ""
    #[serde(default)]
    #[schemars(with = "Vec<f64>", extend("items" = { "type": "number" }))]
    pub vector: Value,
    /// Only with all of these tags
    pub tags: Option<Vec<String>>,
    /// Values that the metadata of upserted vectors has
    pub filter: Option<Map<String, Value>>,
}

fn k_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "default": 10, "minimum": 1, "maximum": VECTOR_RESULTS_MAX })
}

fn type_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": NODE_TYPES })
}

fn score_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "default": 0, "minimum": 0, "maximum": 1 })
}

/// One result.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    id: String,
    score: f64,
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combined_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<Vec<f64>>,
}

/// What was asked and found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    results: Vec<Found>,
    count: usize,
    query: String,
    search_mode: &'static str,
    filters: Filters,
}

/// What was left out.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Filters {
    r#type: Option<String>,
    min_score: Option<f64>,
    namespace: Option<String>,
}

/// About the search.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    total_vectors: u64,
    index_type: &'static str,
    cached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

impl From<VectorHit> for Found {
    fn from(hit: VectorHit) -> Self {
        Self {
            id: hit.id,
            score: hit.score,
            metadata: hit.metadata,
            namespace: hit.namespace,
            combined_score: hit.keywords.map(|it| it.combined),
            keyword_score: hit.keywords.map(|it| it.score),
            source: hit.keywords.map(|it| source(hit.score, it.score)),
            vector: hit
                .vector
                .map(|it| it.into_iter().map(as_written).collect()),
        }
    }
}

/// Whether a hybrid search found something by its vector, its words, or both.
fn source(score: f64, keyword_score: f64) -> &'static str {
    match (score > 0.0, keyword_score > 0.0) {
        (true, true) => "merged",
        (false, true) => "keyword",
        (_, false) => "vector",
    }
}

/// The double with the fewest digits that is the same number in single precision: 0.1 and not
/// 0.10000000149011612.
fn as_written(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

impl Tool for KgVectorSearch {
    const NAME: &'static str = "kg_vector_search";
    const TITLE: &'static str = "Search by meaning";
    const TOOLSET: Toolset = Toolset::Kg;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Pure vector search",
            input: r#"{"query": "machine learning optimization techniques", "k": 10, "minScore": 0.7}"#,
            output: r#""searchMode":"vector","filters":{"type":null,"minScore":0.7,"namespace":null}"#,
        },
        Example {
            title: "Hybrid search with type filter",
            input: r#"{"query": "API authentication patterns", "k": 20, "hybrid": true, "type": "guide"}"#,
            output: r#""searchMode":"hybrid","filters":{"type":"guide","minScore":null,"namespace":null}"#,
        },
        Example {
            title: "Nothing was asked",
            input: "{}",
            output: "Query parameter is required and must be a string",
        },
    ];
    type Input = Input;
    type Output = KgReply<Data, Metadata>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Self::Output> {
        let mut query = query_of(input)?;
        let limit = query.limit;
        // One more shows whether there are more.
        query.skip = ctx.skip("data.results");
        query.limit += query.skip + 1;
        let cached = ctx.engine.kg().graph_is_in_memory(ctx.caller)?;
        let found = ctx.engine.kg().search_vectors(ctx.caller, &query)?;
        if found.total == 0
            && found.hits.is_empty()
            && !ctx.engine.kg().graph_health(ctx.caller)?.has_graph
        {
            return Err(Error::unavailable("Vector store not initialized")
                .hint("run `kg_graph_generate`, or put vectors in with `kg_vector_upsert`"));
        }
        let has_more = found.has_more || found.hits.len() > limit;
        ctx.more("data.results", has_more);
        let hits = found.hits.into_iter().take(limit);
        let results: Vec<Found> = hits.map(Found::from).collect();
        let remark = (!found.remarks.is_empty()).then(|| found.remarks.join("; "));
        Ok(KgReply {
            data: Data {
                count: results.len(),
                results,
                search_mode: if query.hybrid { "hybrid" } else { "vector" },
                filters: Filters {
                    r#type: query.node_type,
                    min_score: (query.min_score > 0.0).then_some(query.min_score),
                    namespace: query.namespace,
                },
                query: query.text,
            },
            metadata: Metadata {
                total_vectors: found.total,
                index_type: found.index,
                cached,
                remark,
            },
        })
    }
}

fn query_of(input: Input) -> Result<VectorQuery> {
    let vector = match &input.vector {
        Value::Null => None,
        given => Some(vector_of(given)?),
    };
    let text = match input.query {
        Value::String(text) if !text.is_empty() || vector.is_some() => text,
        Value::Null if vector.is_some() => String::new(),
        _ => {
            return Err(
                Error::invalid("Query parameter is required and must be a string")
                    .hint("say in a few words what to find"),
            );
        }
    };
    if let Some(word) = &input.r#type
        && !NODE_TYPES.contains(&word.as_str())
    {
        return Err(Error::invalid(format!("`type`: `{word}` is not a type"))
            .hint(format!("the types are {}", NODE_TYPES.join(", "))));
    }
    let limit = input
        .k
        .map_or(10, |it| it.clamp(1.0, VECTOR_RESULTS_MAX as f64) as usize);
    Ok(VectorQuery {
        text,
        vector,
        limit,
        node_type: input.r#type,
        tags: input.tags.unwrap_or_default(),
        filter: input.filter.unwrap_or_default(),
        namespace: input.namespace,
        hybrid: input.hybrid.unwrap_or(false),
        min_score: input.min_score.unwrap_or(0.0).clamp(0.0, 1.0),
        include_vectors: input.include_vectors.unwrap_or(false),
        skip: 0,
    })
}
