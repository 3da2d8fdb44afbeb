//! `ingest_url`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::{
    IngestRequest, IngestedPage, Ingestion, MergeOutcome, MergeProposal, StatedMerge, WebEntity,
    WebRelation,
};
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The confidence if the caller gives none.
const CONFIDENCE_DEFAULT: f64 = 0.9;

/// The tool.
pub struct IngestUrl;

/// Ingest a previously previewed URL into the knowledge graph. Call AFTER `preview_url`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL to ingest
    pub url: String,
    /// Entities to resolve and link
    #[serde(default)]
    entities: Option<Vec<Entity>>,
    /// Relationships
    #[serde(default)]
    relationships: Option<Vec<Relation>>,
    /// Entities that are one: see `merge_proposals`
    #[serde(default)]
    merge: Option<Vec<Merge>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[allow(missing_docs, reason = "the fields speak for themselves")]
pub struct Merge {
    pub from: String,
    pub into: String,
}

// Without doc comments: the fields speak for themselves.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct Entity {
    name: String,
    /// From BKC ontology
    r#type: String,
    #[serde(default)]
    context: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct Relation {
    subject: String,
    predicate: String,
    object: String,
}

/// What may be asked over HTTP.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// URL to ingest
    pub url: String,
    /// Who and what it is about
    #[serde(default)]
    #[schemars(with = "Vec<RequestEntity>")]
    pub entities: Option<Vec<RequestEntity>>,
    /// How they are related
    #[serde(default)]
    #[schemars(with = "Vec<RequestRelation>")]
    pub relationships: Option<Vec<RequestRelation>>,
    /// The vault's folder for the note about it
    #[serde(default)]
    #[schemars(with = "String")]
    pub vault_folder: Option<String>,
    /// Which entities are one
    #[serde(default)]
    #[schemars(with = "Vec<Merge>")]
    pub merge: Option<Vec<Merge>>,
}

/// An entity of the page.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct RequestEntity {
    /// Its name
    pub name: String,
    /// Its type
    pub r#type: String,
    /// Where the page names it
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub mentions: Option<Vec<String>>,
    /// How sure that is
    #[serde(default)]
    #[schemars(with = "f64")]
    pub confidence: Option<f64>,
    /// What is said of it
    #[serde(default)]
    pub context: Option<String>,
}

/// A relationship that the page states.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct RequestRelation {
    /// Who stands first
    pub subject: String,
    /// How
    pub predicate: String,
    /// Who stands second
    pub object: String,
    /// How sure that is
    #[serde(default)]
    #[schemars(with = "f64")]
    pub confidence: Option<f64>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        let entities = input.entities.map(|all| {
            let all = all.into_iter().map(|it| RequestEntity {
                name: it.name,
                r#type: it.r#type,
                context: it.context,
                ..RequestEntity::default()
            });
            all.collect()
        });
        let relationships = input.relationships.map(|all| {
            let all = all.into_iter().map(|it| RequestRelation {
                subject: it.subject,
                predicate: it.predicate,
                object: it.object,
                ..RequestRelation::default()
            });
            all.collect()
        });
        Self {
            url: input.url,
            entities,
            relationships,
            vault_folder: None,
            merge: input.merge,
        }
    }
}

/// Ingestion result with resolved entities.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// It is in the graph now
    Done(Box<Done>),
    /// It was before
    Already {
        /// Always true
        already_ingested: bool,
        /// What it is called
        rid: String,
        /// The note about it
        vault_note_path: Option<String>,
        /// The same in words
        message: &'static str,
        /// What became of `merge`
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merges: Vec<MergeRow>,
    },
}

/// What became of everything that was stated.
#[derive(Serialize, JsonSchema)]
pub struct Done {
    success: bool,
    url: String,
    rid: String,
    document_rid: String,
    vault_note_path: Option<String>,
    entities_resolved: usize,
    entities: Vec<EntityOutcome>,
    relationships: Vec<RelationOutcome>,
    /// Entities that became one: as `merge` said, or because it was plain; `kenning koi unmerge` takes it back
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    merges: Vec<MergeRow>,
    /// New entities that may be known ones: call again with those that are, in `merge`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    merge_proposals: Vec<Proposal>,
    warnings: Vec<String>,
}

/// What became of two entities that are said to be one.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct MergeRow {
    from: String,
    from_uri: String,
    into: String,
    into_uri: String,
    /// `merged` or `rejected`
    status: &'static str,
    reason: String,
}

impl From<MergeOutcome> for MergeRow {
    fn from(it: MergeOutcome) -> Self {
        Self {
            from: it.from_name,
            from_uri: it.from_uri,
            into: it.into_name,
            into_uri: it.into_uri,
            status: if it.is_merged { "merged" } else { "rejected" },
            reason: it.reason,
        }
    }
}

/// Two entities that may be one.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Proposal {
    from: String,
    from_uri: String,
    into: String,
    into_uri: String,
    r#type: String,
    confidence: f64,
    reason: &'static str,
}

impl From<MergeProposal> for Proposal {
    fn from(it: MergeProposal) -> Self {
        Self {
            from: it.from_name,
            from_uri: it.from_uri,
            into: it.into_name,
            into_uri: it.into_uri,
            r#type: it.kind,
            confidence: it.confidence,
            reason: it.reason,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct EntityOutcome {
    name: String,
    uri: String,
    r#type: String,
    is_new: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct RelationOutcome {
    subject: String,
    predicate: String,
    object: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<IngestedPage> for Done {
    fn from(it: IngestedPage) -> Self {
        let entities = it.entities.into_iter().map(|it| EntityOutcome {
            name: it.name,
            uri: it.uri,
            r#type: it.kind,
            is_new: it.is_new,
            warning: it.warning,
        });
        let entities: Vec<EntityOutcome> = entities.collect();
        let relationships = it.relationships.into_iter().map(|it| RelationOutcome {
            subject: it.subject,
            predicate: it.predicate,
            object: it.object,
            status: if it.is_stored { "stored" } else { "rejected" },
            reason: it.reason,
        });
        Self {
            success: true,
            url: it.url,
            rid: it.rid,
            document_rid: it.document_rid,
            vault_note_path: it.vault_note_path,
            entities_resolved: entities.iter().filter(|it| !it.uri.is_empty()).count(),
            entities,
            relationships: relationships.collect(),
            merges: it.merged.into_iter().map(MergeRow::from).collect(),
            merge_proposals: it.proposals.into_iter().map(Proposal::from).collect(),
            warnings: it.warnings,
        }
    }
}

/// Takes a page into the graph.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let entities = request.entities.unwrap_or_default().into_iter();
    let relationships = request.relationships.unwrap_or_default().into_iter();
    let merges = request.merge.unwrap_or_default().into_iter();
    let request = IngestRequest {
        url: request.url,
        entities: entities
            .map(|it| WebEntity {
                name: it.name,
                kind: it.r#type,
                mentions: it.mentions.unwrap_or_default(),
                confidence: it.confidence.unwrap_or(CONFIDENCE_DEFAULT),
                context: it.context,
            })
            .collect(),
        relationships: relationships
            .map(|it| WebRelation {
                subject: it.subject,
                predicate: it.predicate,
                object: it.object,
                confidence: it.confidence.unwrap_or(CONFIDENCE_DEFAULT),
            })
            .collect(),
        vault_folder: request.vault_folder,
        merges: merges
            .map(|it| StatedMerge {
                from: it.from,
                into: it.into,
            })
            .collect(),
    };
    Ok(match engine.koi().ingest_page(caller, &request)? {
        Ingestion::Done(done) => Output::Done(Box::new((*done).into())),
        Ingestion::Already {
            rid,
            vault_note_path,
            merged,
        } => Output::Already {
            already_ingested: true,
            rid,
            vault_note_path,
            message: "This URL has already been ingested.",
            merges: merged.into_iter().map(MergeRow::from).collect(),
        },
    })
}

impl Tool for IngestUrl {
    const NAME: &'static str = "ingest_url";
    const TITLE: &'static str = "Ingest a web page";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A page that nobody has previewed",
        input: r#"{"url": "https://example.com/herring", "entities": [{"name": "Bill Baue", "type": "Person"}]}"#,
        output: "URL not found. Preview it first.",
    }];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Post,
            path: "/web/ingest",
            summary: "Takes a page into the graph",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Body,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: |answer| {
            if answer.contains_key("success") {
                for list in ["relationships", "warnings"] {
                    answer.entry(list).or_insert_with(|| json!([]));
                }
            }
        },
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.into())?)
    }
}
