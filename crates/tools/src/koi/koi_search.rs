//! `koi_search`

use super::Refusal;
use super::limit::{Limit, rounded, wanted, within};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{Caller, Engine, FoundDocument, FoundEntity, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KoiSearch;

/// What a cursor goes on in, both at once.
const LISTS: [&str; 2] = ["results", "documents"];

/// Search the knowledge graph using semantic similarity.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Search query
    pub query: String,
    /// Filter by entity type
    #[serde(default)]
    pub type_filter: Option<String>,
    /// Max results (default: 10)
    #[serde(default)]
    #[schemars(extend("default" = 10))]
    pub limit: Option<Limit>,
}

/// What the HTTP API takes.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    /// In any words.
    pub query: String,
    /// Only entities of this type.
    #[serde(default)]
    pub type_filter: Option<String>,
    /// At most so many.
    #[serde(default)]
    pub limit: Option<i64>,
    /// So many that the caller has seen are left out; not a field of that API.
    #[serde(skip)]
    pub skip: usize,
}

/// Entities and documents matching the query.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    query: String,
    /// `semantic`, or `text` where only letters and words were compared
    search_method: &'static str,
    type_filter: Option<String>,
    /// Entities, the best first
    results: Vec<Row>,
    count: usize,
    /// Documents, memories and items, the best first; none where a type was asked for
    documents: Vec<Document>,
    /// Why entities may be missing here
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Where there are more: `cursor` of the same call for those
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip)]
    has_more: (bool, bool),
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Row {
    uri: String,
    name: String,
    r#type: String,
    similarity: f64,
    aliases: Vec<String>,
    /// Absent where the server did not count
    #[serde(skip_serializing_if = "Option::is_none")]
    relationship_count: Option<usize>,
}

impl From<FoundEntity> for Row {
    fn from(it: FoundEntity) -> Self {
        Self {
            uri: it.uri,
            name: it.name,
            r#type: it.kind,
            similarity: rounded(it.similarity),
            aliases: it.aliases,
            relationship_count: Some(it.relationship_count),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Document {
    rid: String,
    title: String,
    r#type: String,
    description: String,
    similarity: f64,
}

impl From<FoundDocument> for Document {
    fn from(it: FoundDocument) -> Self {
        Self {
            rid: it.rid,
            title: it.title,
            r#type: it.kind,
            description: it.description,
            similarity: rounded(it.similarity),
        }
    }
}

impl Tool for KoiSearch {
    const NAME: &'static str = "koi_search";
    const TITLE: &'static str = "Search entities";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "By a part of a name",
            input: r#"{"query": "bill", "type_filter": "Person"}"#,
            output: r#""name": "Bill Baue""#,
        },
        Example {
            title: "Nothing answers",
            input: r#"{"query": "zzzzqq"}"#,
            output: r#""count": 0"#,
        },
    ];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let request = Request {
            query: input.query,
            type_filter: input.type_filter,
            limit: wanted(input.limit),
            skip: ctx.skip_together(&LISTS),
        };
        let answer = answer(ctx.engine, ctx.caller, request)?;
        ctx.more(LISTS[0], answer.has_more.0);
        ctx.more(LISTS[1], answer.has_more.1);
        Ok(answer)
    }
}

/// The entities and documents that answer a question.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let kind = request.type_filter.as_deref();
    let page = Page {
        skip: request.skip,
        limit: within(request.limit),
    };
    let found = engine.search_entities(caller, &request.query, kind, page)?;
    let results: Vec<Row> = found.entities.into_iter().map(Row::from).collect();
    Ok(Output {
        search_method: found.method.as_str(),
        query: request.query,
        type_filter: request.type_filter,
        count: results.len(),
        results,
        documents: found.documents.into_iter().map(Document::from).collect(),
        warnings: engine.entity_warnings(caller),
        next_cursor: None,
        has_more: found.has_more,
    })
}
