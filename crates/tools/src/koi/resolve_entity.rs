//! `resolve_entity`

use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::{EntityCandidate, EntityContext, ProposedEntity};
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

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let Input { label, type_hint } = input;
        let (hint, context) = (type_hint.as_deref(), EntityContext::default());
        let found = ctx
            .engine
            .resolve_entity(ctx.caller, &label, hint, context)?;
        Ok(Output {
            is_new: found.is_new(),
            candidates: found.candidates.into_iter().map(Row::from).collect(),
            proposed: found.proposed.map(Proposed::from),
        })
    }
}
