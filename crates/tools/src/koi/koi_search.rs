//! `koi_search`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use super::limit::{Limit, asked, rounded, within};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::{FoundDocument, FoundEntity};
use kenning_engine::{Caller, Engine, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The tool.
pub struct KoiSearch;

/// The lists that a cursor continues, both at once.
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
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// Search text, free form.
    #[schemars(length(min = 1))]
    pub query: String,
    /// At most so many.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub limit: Option<i64>,
    /// Only entities of this type.
    #[serde(default)]
    pub type_filter: Option<String>,
    /// So many that the caller has seen are left out; not a field of that API.
    #[serde(skip)]
    pub skip: usize,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            query: input.query,
            limit: asked(input.limit),
            type_filter: input.type_filter,
            skip: 0,
        }
    }
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
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Get,
            path: "/entity-search",
            summary: "Entities and documents that answer a question",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Query,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: |answer| {
            answer.entry("documents").or_insert_with(|| json!([]));
        },
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let request = Request {
            skip: ctx.skip_together(&LISTS),
            ..Request::from(input)
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
    let found = engine
        .koi()
        .search_entities(caller, &request.query, kind, page)?;
    let results: Vec<Row> = found.entities.into_iter().map(Row::from).collect();
    Ok(Output {
        search_method: found.method.as_str(),
        query: request.query,
        type_filter: request.type_filter,
        count: results.len(),
        results,
        documents: found.documents.into_iter().map(Document::from).collect(),
        warnings: engine.koi().entity_warnings(caller),
        next_cursor: None,
        has_more: found.has_more,
    })
}
