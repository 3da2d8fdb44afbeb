//! `get_entity_documents`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use super::limit::bounded;
use super::moments::naive;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Code, Result};
use kenning_engine::koi::EntityDocument;
use kenning_engine::{Caller, Engine, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct GetEntityDocuments;

/// The list that a cursor continues.
const LIST: &str = "documents";

/// So many documents are answered at most.
const DOCUMENTS_MAX: usize = 500;

/// Find all documents that mention a specific entity.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Entity URI or name
    pub entity_uri: String,
}

/// What the HTTP API takes.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// A URI or a name.
    pub entity_uri: String,
    /// At most so many documents.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub limit: Option<i64>,
    /// So many that the caller has seen are left out; not a field of that API.
    #[serde(skip)]
    pub skip: usize,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            entity_uri: input.entity_uri,
            ..Self::default()
        }
    }
}

/// Document references mentioning the entity.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    entity_uri: String,
    /// How many are answered
    total_count: usize,
    /// Whether there are more
    truncated: bool,
    documents: Vec<Row>,
    /// Why entities may be missing here, and notes about them whose frontmatter cannot be read in full
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Where there are more: `cursor` of the same call for those
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip)]
    total: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Row {
    vault_path: String,
    document_rid: String,
    mention_count: usize,
    /// The day that its name begins with
    doc_date: Option<String>,
    first_seen: String,
    source_url: Option<String>,
    quartz_url: Option<String>,
}

impl From<EntityDocument> for Row {
    fn from(it: EntityDocument) -> Self {
        Self {
            vault_path: it.vault_path,
            document_rid: it.document_rid,
            mention_count: it.mention_count,
            doc_date: it.doc_date,
            first_seen: naive(it.first_seen_ms),
            source_url: it.source_url,
            quartz_url: None,
        }
    }
}

impl Tool for GetEntityDocuments {
    const NAME: &'static str = "get_entity_documents";
    const TITLE: &'static str = "Get an entity's documents";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "By name",
            input: r#"{"entity_uri": "Bill Baue"}"#,
            output: r#""total_count": 0"#,
        },
        Example {
            title: "Nobody whom the vault knows",
            input: r#"{"entity_uri": "Nobody Known"}"#,
            output: r#"Could not resolve "Nobody Known" to a known entity"#,
        },
    ];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Get,
            path: "/entity/{entity_uri}/mentioned-in",
            summary: "The documents that mention an entity",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Query,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, known_or_none),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: api::as_it_is,
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let request = Request {
            skip: ctx.skip(LIST),
            ..Request::from(input)
        };
        let answer = answer(ctx.engine, ctx.caller, request)?;
        ctx.of_all(LIST, answer.total);
        Ok(answer)
    }
}

/// The documents that mention an entity.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let page = Page {
        skip: request.skip,
        limit: bounded(request.limit, DOCUMENTS_MAX, DOCUMENTS_MAX),
    };
    let found = engine
        .koi()
        .entity_documents(caller, &request.entity_uri, page)?;
    Ok(Output {
        warnings: engine
            .koi()
            .note_warnings(caller, std::slice::from_ref(&found.uri))?,
        entity_uri: found.uri,
        total_count: found.documents.len(),
        truncated: found.truncated,
        documents: found.documents.into_iter().map(Row::from).collect(),
        next_cursor: None,
        total: found.total,
    })
}

/// The same for the HTTP API, where an unknown name has no documents; the tool refuses it.
///
/// # Errors
/// What [`answer`] refuses for another reason.
pub fn known_or_none(
    engine: &Engine,
    caller: &Caller,
    request: Request,
) -> Result<Output, Refusal> {
    let entity_uri = request.entity_uri.clone();
    match answer(engine, caller, request) {
        Err(refusal) if refusal.error.code == Code::NotFound => Ok(Output {
            entity_uri,
            total_count: 0,
            truncated: false,
            documents: Vec::new(),
            warnings: engine.koi().entity_warnings(caller),
            next_cursor: None,
            total: 0,
        }),
        answered => answered,
    }
}
