//! `get_entity_neighborhood`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Code, Result};
use kenning_engine::koi::Relationship;
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct GetEntityNeighborhood;

/// Get the neighborhood of an entity: relationships, affiliated organizations, projects, connected people.
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
    /// Only relationships of this kind.
    #[serde(default)]
    pub predicate: Option<String>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            entity_uri: input.entity_uri,
            predicate: None,
        }
    }
}

/// Typed relationships and connected entities.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    entity_uri: String,
    /// In both directions, by predicate
    relationships: Vec<Row>,
    count: usize,
    /// Why entities may be missing here, and notes about them whose frontmatter cannot be read in full
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Row {
    subject_uri: String,
    predicate: String,
    object_uri: String,
    confidence: f64,
    source: String,
    /// The note that says so
    source_rid: String,
    subject_name: String,
    subject_type: String,
    object_name: String,
    object_type: String,
}

impl From<Relationship> for Row {
    fn from(it: Relationship) -> Self {
        Self {
            subject_uri: it.subject_uri,
            predicate: it.predicate,
            object_uri: it.object_uri,
            confidence: it.confidence,
            source: it.source,
            source_rid: it.source_rid,
            subject_name: it.subject_name,
            subject_type: it.subject_type,
            object_name: it.object_name,
            object_type: it.object_type,
        }
    }
}

impl Tool for GetEntityNeighborhood {
    const NAME: &'static str = "get_entity_neighborhood";
    const TITLE: &'static str = "Get an entity's neighborhood";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "By name",
            input: r#"{"entity_uri": "Bill Baue"}"#,
            output: r#""entity_uri": "orn:personal-koi.entity:person-bill-baue-376ffc2e6245""#,
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
            path: "/relationships/{entity_uri}",
            summary: "What an entity is related to",
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
        Ok(answer(ctx.engine, ctx.caller, input.into())?)
    }
}

/// What an entity is related to.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let predicate = request.predicate.as_deref();
    let found = engine
        .koi()
        .entity_neighborhood(caller, &request.entity_uri, predicate)?;
    Ok(Output {
        warnings: engine
            .koi()
            .note_warnings(caller, std::slice::from_ref(&found.uri))?,
        entity_uri: found.uri,
        count: found.relationships.len(),
        relationships: found.relationships.into_iter().map(Row::from).collect(),
    })
}

/// The same for the HTTP API, where an unknown name has no relationships; the tool refuses it.
fn known_or_none(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let entity_uri = request.entity_uri.clone();
    match answer(engine, caller, request) {
        Err(refusal) if refusal.error.code == Code::NotFound => Ok(Output {
            entity_uri,
            relationships: Vec::new(),
            count: 0,
            warnings: engine.koi().entity_warnings(caller),
        }),
        answered => answered,
    }
}
