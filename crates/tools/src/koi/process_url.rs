//! `process_url`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::ProcessRequest;
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct ProcessUrl;

/// Extract entities/relationships from a previewed URL using server-side LLM. Call AFTER `preview_url`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL to process (must be previewed first)
    pub url: String,
    /// Entity names to help the LLM match
    #[serde(default)]
    pub hint_entities: Option<Vec<String>>,
}

/// What may be asked over HTTP.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// URL to process
    pub url: String,
    /// Entity names that may be in it
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub hint_entities: Option<Vec<String>>,
    /// Whether what is found goes into the graph at once; not unless somebody says so
    #[serde(default)]
    #[schemars(with = "bool")]
    pub auto_ingest: Option<bool>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            url: input.url,
            hint_entities: input.hint_entities,
            // Older servers ingest what they process unless they are told not to.
            auto_ingest: Some(false),
        }
    }
}

/// Structured extraction with entities, relationships, descriptions.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    url: String,
    title: Option<String>,
    summary: String,
    topics: Vec<String>,
    /// `none` where rules were used
    model_used: String,
    entities: Vec<Entity>,
    relationships: Vec<Relation>,
    ingestion: Option<Ingested>,
    /// Why entities may be missing here
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Entity {
    name: String,
    r#type: String,
    description: String,
    fields: Map<String, Value>,
    confidence: f64,
    context: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Relation {
    subject: String,
    predicate: String,
    object: String,
    confidence: f64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Ingested {
    auto_ingested: bool,
    entities_resolved: usize,
    new_entities: usize,
    new_relationships: usize,
    vault_notes_created: usize,
}

/// Says what a page states.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let request = ProcessRequest {
        url: request.url,
        hint_entities: request.hint_entities.unwrap_or_default(),
        auto_ingest: request.auto_ingest.unwrap_or(false),
    };
    let done = engine.koi().process_page(caller, &request)?;
    let entities = done.entities.into_iter().map(|it| Entity {
        name: it.name,
        r#type: it.kind,
        description: it.description,
        fields: it.fields,
        confidence: it.confidence,
        context: it.context,
    });
    let relationships = done.relationships.into_iter().map(|it| Relation {
        subject: it.subject,
        predicate: it.predicate,
        object: it.object,
        confidence: it.confidence,
    });
    let ingestion = done.ingestion.map(|it| Ingested {
        auto_ingested: true,
        entities_resolved: it.entities.iter().filter(|it| !it.uri.is_empty()).count(),
        new_entities: it.entities.iter().filter(|it| it.is_new).count(),
        new_relationships: it.relationships.iter().filter(|it| it.is_stored).count(),
        vault_notes_created: it.n_notes,
    });
    Ok(Output {
        url: done.url,
        title: done.title,
        summary: done.summary,
        topics: done.topics,
        model_used: done.model_used,
        entities: entities.collect(),
        relationships: relationships.collect(),
        ingestion,
        warnings: engine.koi().entity_warnings(caller),
    })
}

impl Tool for ProcessUrl {
    const NAME: &'static str = "process_url";
    const TITLE: &'static str = "Extract from a web page";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Fetch;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A page that nobody has previewed",
        input: r#"{"url": "https://example.com/herring"}"#,
        output: "URL not found. Preview it first with /web/preview.",
    }];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Post,
            path: "/web/process",
            summary: "Extracts entities and relationships from a page",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Body,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: api::as_it_is,
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.into())?)
    }
}
