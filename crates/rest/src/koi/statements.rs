//! Handlers of routes that state something: registering notes, relationships, documents, and what pages are worth.

use super::facts::{Answer, LISTED, bounded, written};
use kenning_core::{Code, Hash};
use kenning_engine::koi::{
    PageEvaluation, RegisterEntity, StatedDocument, StatedEntity, StatedRelation, note_of_entity,
};
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::{ingest_url, resolve_entity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The confidence of a statement that gives none.
const CONFIDENCE: f64 = 0.9;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RegisterRequest {
    vault_rid: String,
    vault_path: String,
    entity_type: String,
    #[schemars(length(min = 1))]
    name: String,
    #[serde(default)]
    properties: Map<String, Value>,
    #[serde(default)]
    frontmatter: Option<Map<String, Value>>,
    content_hash: String,
}

/// Registers a note about an entity.
pub(super) fn register_entity(
    engine: &Engine,
    caller: &Caller,
    request: RegisterRequest,
) -> Answer {
    let vault_rid = request.vault_rid.clone();
    let note = RegisterEntity {
        vault_rid: request.vault_rid,
        vault_path: request.vault_path,
        entity_type: request.entity_type,
        name: request.name,
        properties: request.properties,
        frontmatter: request.frontmatter.unwrap_or_default(),
        content_hash: Some(request.content_hash),
    };
    let done = engine.koi().register_entity(caller, note)?;
    let mut answer = json!({
        "success": true, "canonical_uri": done.canonical_uri, "is_new": done.is_new,
        "vault_rid": vault_rid, "merged_with": done.merged_with,
    });
    if let Some(warning) = done.warning {
        answer["warning"] = warning.into();
    }
    Ok(answer)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SyncRequest {
    vault_path: String,
    entity_uri: String,
    frontmatter: Map<String, Value>,
}

/// Applies the fields of a note. The note is about the entity of the URI.
pub(super) fn sync_relationships(engine: &Engine, caller: &Caller, request: SyncRequest) -> Answer {
    let known = match engine.koi().entity(caller, &request.entity_uri) {
        Err(error) if error.code == Code::NotFound => None,
        known => known?,
    };
    let known = known.unwrap_or_default();
    let note = RegisterEntity {
        vault_path: request.vault_path.clone(),
        entity_type: known.kind,
        name: known.name,
        frontmatter: request.frontmatter,
        ..RegisterEntity::default()
    };
    let done = engine.koi().sync_relationships(caller, note)?;
    Ok(json!({
        "success": true, "vault_path": request.vault_path, "entity_uri": done.uri,
        "stats": { "resolved": done.n_stored, "pending": done.n_pending },
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct IngestRequest {
    document_rid: String,
    #[serde(default)]
    content: Option<String>,
    entities: Vec<ingest_url::RequestEntity>,
    #[serde(default)]
    relationships: Vec<ingest_url::RequestRelation>,
    #[serde(default)]
    #[schemars(with = "String")]
    source: Option<String>,
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "clients of the original send it; it is checked, and not looked at"
    )]
    context: Option<resolve_entity::Context>,
}

/// Stores what a document states about entities, and returns the result for each. The context of a
/// mention describes an entity that no note describes.
pub(super) fn ingest(engine: &Engine, caller: &Caller, request: IngestRequest) -> Answer {
    let rid = request.document_rid;
    let entities: Vec<StatedEntity> = request
        .entities
        .into_iter()
        .map(|it| StatedEntity {
            name: it.name,
            kind: it.r#type,
            n_mentions: 1,
            confidence: it.confidence.unwrap_or(CONFIDENCE),
            description: it.context.unwrap_or_default(),
            ..StatedEntity::default()
        })
        .collect();
    let relations: Vec<StatedRelation> = request
        .relationships
        .into_iter()
        .map(|it| StatedRelation {
            subject: it.subject,
            predicate: it.predicate,
            object: it.object,
            confidence: it.confidence.unwrap_or(CONFIDENCE),
        })
        .collect();
    let receipt = format!("{rid} {entities:?} {relations:?}");
    let receipt = Hash::of(receipt.as_bytes()).to_string();
    let receipt = receipt.chars().take(16).collect::<String>();
    let stated = StatedDocument {
        rid,
        source: request.source,
        content: request.content,
        entities,
        relations,
    };
    let done = engine.koi().ingest_statement(caller, stated)?;
    let rows = done.entities.iter().map(|it| {
        let merged = (it.said != it.name).then_some(&it.said);
        let mut row = json!({
            "name": it.name, "uri": it.uri, "type": it.kind, "is_new": it.is_new,
            "merged_with": merged, "confidence": it.confidence,
        });
        if let Some(warning) = &it.warning {
            row["warning"] = warning.as_str().into();
        }
        row
    });
    let rows: Vec<Value> = rows.collect();
    let n_new = done.n_new();
    let mut answer = json!({
        "success": true, "canonical_entities": rows,
        "receipt_rid": format!("orn:personal-koi.receipt:{receipt}"),
        "stats": {
            "entities_processed": done.entities.len(), "new_entities": n_new,
            "resolved_entities": done.entities.len() - n_new,
            "relationships_processed": done.relations.len(),
        },
    });
    if !done.relations.is_empty() {
        let rows = done.relations.iter().map(|it| {
            json!({
                "subject": it.subject, "predicate": it.predicate, "object": it.object,
                "stored": it.is_stored, "reason": it.reason,
            })
        });
        answer["relationships"] = rows.collect();
    }
    if !done.merged.is_empty() {
        let rows = done.merged.into_iter().map(ingest_url::MergeRow::from);
        answer["merges"] = written(&rows.collect::<Vec<_>>())?;
    }
    if !done.proposals.is_empty() {
        let rows = done.proposals.into_iter().map(ingest_url::Proposal::from);
        answer["merge_proposals"] = written(&rows.collect::<Vec<_>>())?;
    }
    if !done.warnings.is_empty() {
        answer["warnings"] = json!(done.warnings);
    }
    Ok(answer)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct EvaluateRequest {
    url: String,
    #[serde(default)]
    relevance_score: Option<f64>,
    #[serde(default)]
    relevance_reasoning: Option<String>,
    #[serde(default)]
    bioregional_tags: Vec<String>,
    #[serde(default)]
    #[schemars(with = "String")]
    decision: Option<String>,
}

/// Stores an evaluation of a page, and whether it may be ingested.
pub(super) fn evaluate(engine: &Engine, caller: &Caller, request: EvaluateRequest) -> Answer {
    let evaluation = PageEvaluation {
        decision: request.decision,
        relevance_score: request.relevance_score,
        relevance_reasoning: request.relevance_reasoning,
        bioregional_tags: request.bioregional_tags,
    };
    let done = engine
        .koi()
        .evaluate_page(caller, &request.url, evaluation)?;
    Ok(json!({
        "url": done.url, "status": done.status,
        "relevance_score": done.evaluation.relevance_score,
        "relevance_reasoning": done.evaluation.relevance_reasoning,
        "bioregional_tags": done.evaluation.bioregional_tags,
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RegenerateRequest {
    #[serde(default)]
    pub(super) entity_type: Option<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    pub(super) limit: Option<i64>,
}

/// Writes notes about entities that have none. Existing notes stay as they are.
pub(super) fn regenerate_notes(
    engine: &Engine,
    caller: &Caller,
    request: RegenerateRequest,
) -> Answer {
    let limit = bounded(request.limit, (500, LISTED.1));
    let kind = request.entity_type.as_deref();
    let types = engine.koi().entity_types(caller)?.types;
    let all = engine.koi().entities(caller, kind, usize::MAX, 0)?;
    let (mut n_written, mut n_faults) = (0, 0);
    for it in all.iter().filter(|it| it.path.is_none()) {
        if n_written == limit {
            break;
        }
        let folder = types.iter().find(|kind| kind.key == it.kind);
        let folder = folder.map_or("Misc", |it| it.folder.as_str());
        let (file, content) = note_of_entity(it);
        let path = format!("{folder}/{file}");
        let is_free = match engine.koi().read_note(caller, &path) {
            Err(error) if error.code == Code::NotFound => true,
            Err(error) if error.code == Code::InvalidInput => return Err(error.into()),
            _ => false,
        };
        let written = is_free && engine.koi().write_note(caller, &path, content).is_ok();
        if written {
            n_written += 1;
        } else {
            n_faults += 1;
        }
    }
    Ok(json!({
        "regenerated": n_written, "errors": n_faults, "total": n_written + n_faults,
        "entity_type_filter": request.entity_type,
    }))
}
