//! `knowledge_search`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use super::limit::{Limit, asked, rounded, within};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::{FoundPassage, KnowledgeQuery};
use kenning_engine::{Caller, Engine, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct KnowledgeSearch;

/// The lists that a cursor continues, both at once.
const LISTS: [&str; 2] = ["results", "chunk_results"];

/// Semantic search over indexed documents (RAG).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Natural language query or keywords
    pub query: String,
    /// Filter by source: 'github', 'vault', 'email'; also 'web', 'memory', 'project'
    #[serde(default)]
    pub source: Option<String>,
    /// Max results (default: 10)
    #[serde(default)]
    #[schemars(extend("default" = 10))]
    pub limit: Option<Limit>,
    /// Include chunk-level results (default: true)
    #[serde(default)]
    #[schemars(extend("default" = true))]
    pub include_chunks: Option<bool>,
}

/// What the HTTP API takes.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// Search text, free form.
    #[schemars(length(min = 1))]
    pub query: String,
    /// At most so many documents, and so many passages.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub limit: Option<i64>,
    /// Only what is from there.
    #[serde(default)]
    pub source: Option<String>,
    /// Whether passages are wanted too.
    #[serde(default)]
    pub include_chunks: bool,
    /// So many that the caller has seen are left out; not a field of that API.
    #[serde(skip)]
    pub skip: usize,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            query: input.query,
            limit: asked(input.limit),
            source: input.source,
            include_chunks: input.include_chunks.unwrap_or(true),
            skip: 0,
        }
    }
}

/// The same as parameters of a query, where the question has another name.
#[derive(Debug, Deserialize, JsonSchema)]
struct QueryRequest {
    #[schemars(length(min = 1))]
    q: String,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit: Option<i64>,
    #[serde(default)]
    source: Option<String>,
}

/// Document-level and chunk-level search results.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    results: Vec<Document>,
    count: usize,
    query: String,
    /// `semantic`, or `text` where only words were compared
    search_type: &'static str,
    source_filter: Option<String>,
    /// Passages, verbatim; absent when there are none
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chunk_results: Vec<Chunk>,
    /// Why documents may be missing here
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
struct Document {
    rid: String,
    title: String,
    content_preview: String,
    /// Null where the server only compared words
    similarity: Option<f64>,
    source: String,
    metadata: Map<String, Value>,
    /// Of a mail: from, to, date, subject
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<Value>,
}

impl From<FoundPassage> for Document {
    fn from(mut it: FoundPassage) -> Self {
        Self {
            email: it.metadata.remove("email"),
            source: sensor(&it.source),
            rid: it.rid,
            title: it.title,
            content_preview: it.text,
            similarity: Some(rounded(it.similarity)),
            metadata: it.metadata,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Chunk {
    chunk_rid: String,
    document_rid: String,
    doc_title: String,
    text: String,
    similarity: Option<f64>,
    source: String,
    metadata: Map<String, Value>,
}

impl From<FoundPassage> for Chunk {
    fn from(it: FoundPassage) -> Self {
        Self {
            source: sensor(&it.source),
            chunk_rid: it.chunk_rid.unwrap_or_default(),
            document_rid: it.rid,
            doc_title: it.title,
            text: it.text,
            similarity: Some(rounded(it.similarity)),
            metadata: it.metadata,
        }
    }
}

/// Where texts come from.
const SOURCES: [&str; 6] = ["vault", "github", "email", "web", "memory", "project"];

/// Lists the sources for a caller that named an unknown one and found nothing.
fn unknown_source(source: &str) -> Option<String> {
    let named = source.trim().to_lowercase();
    let named = named.strip_suffix("-sensor").unwrap_or(&named);
    if named.is_empty() || named == "obsidian" || SOURCES.contains(&named) {
        return None;
    }
    let named: String = named.chars().take(60).collect();
    let known = SOURCES.join(", ");
    Some(format!(
        "`source`: nothing is from `{named}`; sources are {known}"
    ))
}

/// The contract's name of a source.
fn sensor(source: &str) -> String {
    match source {
        "vault" | "web" | "github" | "email" => format!("{source}-sensor"),
        other => other.to_owned(),
    }
}

impl Tool for KnowledgeSearch {
    const NAME: &'static str = "knowledge_search";
    const TITLE: &'static str = "Search documents";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "Among the notes of the vault",
            input: r#"{"query": "Bill Baue", "source": "vault"}"#,
            output: r#""rid": "vault:People/Bill Baue.md""#,
        },
        Example {
            title: "A source that nothing is from",
            input: r#"{"query": "herring", "source": "email"}"#,
            output: r#""count": 0"#,
        },
    ];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[
            Route {
                verb: Verb::Post,
                path: "/search",
                summary: "Documents and passages that answer a question",
                tool: Self::NAME,
                fixed: &[],
                place: Place::Body,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
            Route {
                verb: Verb::Get,
                path: "/search",
                summary: "The same by a query",
                tool: Self::NAME,
                fixed: &[],
                place: Place::Query,
                schema: api::fields::<QueryRequest>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer_query),
            },
        ],
        request: |input| api::written(&Request::from(input)),
        complete: api::as_it_is,
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

fn answer_query(
    engine: &Engine,
    caller: &Caller,
    request: QueryRequest,
) -> Result<Output, Refusal> {
    let request = Request {
        query: request.q,
        limit: request.limit,
        source: request.source,
        ..Request::default()
    };
    answer(engine, caller, request)
}

/// The documents and passages that answer a question.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let asked = KnowledgeQuery {
        text: request.query,
        source: request.source,
        page: Page {
            skip: request.skip,
            limit: within(request.limit),
        },
    };
    let found = engine.koi().search_knowledge(caller, &asked)?;
    let (has_more, has_more_passages) = found.has_more;
    let results: Vec<Document> = found.documents.into_iter().map(Document::from).collect();
    let chunks = if request.include_chunks {
        found.passages
    } else {
        Vec::new()
    };
    let mut warnings = engine.koi().entity_warnings(caller);
    if let Some(source) = asked.source.as_deref().filter(|_| results.is_empty()) {
        warnings.extend(unknown_source(source));
    }
    Ok(Output {
        count: results.len(),
        results,
        query: asked.text,
        search_type: found.method.as_str(),
        source_filter: asked.source,
        chunk_results: chunks.into_iter().map(Chunk::from).collect(),
        warnings,
        next_cursor: None,
        has_more: (has_more, has_more_passages && request.include_chunks),
    })
}
