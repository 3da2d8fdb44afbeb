//! `resolve_entity`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use super::limit::bounded;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::{EntityCandidate, EntityContext, EntityResolution, ProposedEntity};
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct ResolveEntity;

/// Resolve an entity name to its canonical form in the knowledge graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Entity name or label to resolve
    pub label: String,
    /// Type hint: Person, Organization, Project, Concept, Location, Meeting
    #[serde(default)]
    pub type_hint: Option<String>,
}

/// What the HTTP API takes.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// Entity name or label to resolve.
    #[schemars(length(min = 1))]
    pub label: String,
    /// Its type, if the caller knows.
    #[serde(default)]
    pub type_hint: Option<String>,
    /// At most so many candidates.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub limit: Option<i64>,
    /// What stands around the label.
    #[serde(default)]
    pub context: Option<Context>,
}

/// What stands around a label.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Context {
    /// People who are spoken of.
    #[serde(default)]
    pub associated_people: Option<Vec<String>>,
    /// The project that is spoken of.
    #[serde(default)]
    pub project: Option<String>,
    /// Organizations that are spoken of.
    #[serde(default)]
    pub organizations: Option<Vec<String>>,
    /// What is spoken of; taken, and not looked at.
    #[serde(default)]
    pub topics: Option<Vec<String>>,
    /// The text around it; taken, and not looked at.
    #[serde(default)]
    pub source_text: Option<String>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            label: input.label,
            type_hint: input.type_hint,
            ..Self::default()
        }
    }
}

/// Which entities a label may mean.
const RESOLVE: Route = Route {
    verb: Verb::Post,
    path: api::RESOLVE_PATH,
    summary: "Which entities a label may mean",
    tool: ResolveEntity::NAME,
    fixed: &[],
    place: Place::Body,
    schema: api::fields::<Request>,
    answer: |engine, caller, request| api::via(engine, caller, request, answer),
};

/// The same by a query, where what stands around the label has no place.
const RESOLVE_BY_QUERY: Route = Route {
    verb: Verb::Get,
    summary: "The same by a query",
    place: Place::Query,
    ..RESOLVE
};

/// So many candidates are answered unless the request says otherwise, and at most.
const CANDIDATES: (usize, usize) = (5, 100);

/// Ranked candidates.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What the label may mean, the surest first
    candidates: Vec<Row>,
    /// Whether it means nothing known
    is_new: bool,
    /// What an unknown label would become; it is not stored
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed: Option<Proposed>,
    /// Why entities may be missing here, and notes about them whose frontmatter cannot be read in full
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Row {
    name: String,
    uri: String,
    r#type: String,
    confidence: f64,
    /// The label, where it is not the entity's name
    merged_with: Option<String>,
}

impl From<EntityCandidate> for Row {
    fn from(it: EntityCandidate) -> Self {
        Self {
            name: it.entity.name,
            uri: it.entity.uri,
            r#type: it.entity.kind,
            confidence: it.confidence,
            merged_with: it.merged_with,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Proposed {
    name: String,
    uri: String,
    r#type: String,
}

impl From<ProposedEntity> for Proposed {
    fn from(it: ProposedEntity) -> Self {
        Self {
            name: it.name,
            uri: it.uri,
            r#type: it.kind,
        }
    }
}

impl Tool for ResolveEntity {
    const NAME: &'static str = "resolve_entity";
    const TITLE: &'static str = "Resolve an entity";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A name as somebody writes it",
            input: r#"{"label": "bill_baue", "type_hint": "Person"}"#,
            output: r#""uri": "orn:personal-koi.entity:person-bill-baue-376ffc2e6245""#,
        },
        Example {
            title: "Nobody whom the vault knows",
            input: r#"{"label": "Unknown Thing", "type_hint": "Concept"}"#,
            output: r#""uri": "orn:personal-koi.entity:concept-unknown-thing-3ebcc43853dd""#,
        },
    ];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[RESOLVE, RESOLVE_BY_QUERY],
        request: |input| api::written(&Request::from(input)),
        complete: api::as_it_is,
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let hint = input.type_hint.as_deref();
        let (found, doubts) = ctx.engine.koi().resolve_entity_with_doubts(
            ctx.caller,
            &input.label,
            hint,
            EntityContext::default(),
        )?;
        doubts.into_iter().for_each(|it| ctx.remark(it));
        output(ctx.engine, ctx.caller, found, None)
    }
}

/// What a label may mean.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let context = request.context.unwrap_or_default();
    let context = EntityContext {
        people: context.associated_people.unwrap_or_default(),
        project: context.project,
        organizations: context.organizations.unwrap_or_default(),
    };
    let hint = request.type_hint.as_deref();
    let found = engine
        .koi()
        .resolve_entity(caller, &request.label, hint, context)?;
    Ok(output(engine, caller, found, request.limit)?)
}

fn output(
    engine: &Engine,
    caller: &Caller,
    found: EntityResolution,
    limit: Option<i64>,
) -> Result<Output> {
    let candidates = found.candidates.iter();
    let uris: Vec<String> = candidates.map(|it| it.entity.uri.clone()).collect();
    let limit = bounded(limit, CANDIDATES.0, CANDIDATES.1);
    let is_new = found.is_new();
    let candidates = found.candidates.into_iter().take(limit);
    Ok(Output {
        warnings: engine.koi().note_warnings(caller, &uris)?,
        is_new,
        candidates: candidates.map(Row::from).collect(),
        proposed: found.proposed.map(Proposed::from),
    })
}
