//! Handlers of routes that are not tools: counts, lists, registration, and the formats that other
//! clients of the original expect.

use kenning_core::{Code, Error};
use kenning_engine::koi::{EntityDocument, EntityView, normalized_name};
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::api::Nothing;
use kenning_tools::koi::moments::naive as moment;
use kenning_tools::koi::{Refusal, get_entity_documents, knowledge_search};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(super) type Answer = Result<Value, Refusal>;

/// The default and the largest number of listed entities.
pub(super) const LISTED: (usize, usize) = (100, 1_000);
/// At most this many documents of one entity are listed.
const DOCUMENTS_MAX: usize = 500;
/// At most this many entities in one request.
const URIS_MAX: usize = 1_000;
/// The original's name for a note.
const NOTE_RID: &str = "orn:obsidian.entity:Notes/";

pub(super) fn bounded(wanted: Option<i64>, (default, max): (usize, usize)) -> usize {
    wanted.map_or(default, |it| {
        usize::try_from(it.max(1)).unwrap_or(max).min(max)
    })
}

/// An answer with the warnings about missing entities, if there are any.
fn warned(engine: &Engine, caller: &Caller, mut answer: Value) -> Value {
    let warnings = engine.koi().entity_warnings(caller);
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

pub(super) fn written(answer: &impl serde::Serialize) -> Answer {
    let written = serde_json::to_value(answer);
    Ok(written.map_err(|cause| Error::internal("an answer is not JSON").because(cause))?)
}

/// Reports only what was checked: the store, the models, the types, the settings.
pub(super) fn health(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let unavailable = |error: Error| match error.code {
        Code::Unavailable | Code::Internal | Code::Corrupt => Refusal::new(
            503,
            Error::unavailable("Database not available").because(error),
        ),
        _ => error.into(),
    };
    let types = engine.koi().entity_types(caller).map_err(unavailable)?;
    let model = engine.embedding_status(caller).map_err(unavailable)?;
    let web = engine.koi().web_abilities()?;
    let is_built_in = model.provider == "builtin";
    let tells_meanings = !is_built_in && model.fault.is_none();
    let keys: Vec<&str> = types.types.iter().map(|it| it.key.as_str()).collect();
    let health = json!({
        "status": "healthy",
        "mode": "personal",
        "database": "connected",
        "openai_available": tells_meanings && model.provider == "openai",
        "embedding_model": model.model,
        "semantic_matching": tells_meanings,
        "entity_types": keys,
        "schema_version": types.version,
        "github_sensor": engine.koi().can_scan_repositories(),
        "web_sensor": web.is_monitoring,
        "llm_enrichment": web.has_model,
        "resolution_tiers": {
            "tier1_exact": true,
            "tier1x_fuzzy": true,
            "tier15_contextual": true,
            "tier2_semantic": tells_meanings,
            "tier3_create": true,
        },
    });
    Ok(warned(engine, caller, health))
}

/// How many entities there are, and the newest.
pub(super) fn stats(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let stats = engine.koi().entity_stats(caller)?;
    let recent = stats.recent.iter().map(|it| {
        json!({
            "entity_text": it.name, "entity_type": it.kind, "created_at": moment(it.created_ms),
        })
    });
    Ok(json!({
        "total_entities": stats.total,
        "by_type": stats.by_type,
        "recent_entities": recent.collect::<Vec<_>>(),
        "mode": "personal",
    }))
}

/// How many relationships there are, and which wait for an entity.
pub(super) fn relationship_stats(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let stats = engine.koi().relationship_stats(caller)?;
    let pending = stats.top_pending.iter().take(20).map(|it| {
        let side = if it.is_subject { "subject" } else { "object" };
        json!({
            "raw_unknown_label": it.label, "predicate": it.predicate, "unknown_side": side,
            "count": it.count,
        })
    });
    Ok(json!({
        "total_relationships": stats.total,
        "total_pending": stats.total_pending,
        "by_predicate": stats.by_predicate,
        "top_pending": pending.collect::<Vec<_>>(),
    }))
}

/// The types, and how their names are compared.
pub(super) fn entity_types(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let types = engine.koi().entity_types(caller)?;
    let rows = types.types.iter().map(|it| {
        json!({
            "type_key": it.key, "label": label(&it.key), "folder": it.folder,
            "phonetic_matching": it.phonetic_matching,
            "min_context_people": it.min_context_people,
            "similarity_threshold": it.similarity_threshold,
            "semantic_threshold": it.semantic_threshold,
            "require_token_overlap": it.require_token_overlap,
        })
    });
    Ok(json!({ "version": types.version, "types": rows.collect::<Vec<_>>() }))
}

/// `CaseStudy` as people write it.
fn label(key: &str) -> String {
    let mut label = String::new();
    for (n, letter) in key.chars().enumerate() {
        if n > 0 && letter.is_uppercase() {
            label.push(' ');
        }
        label.push(letter);
    }
    label
}

/// Types are read on every request; this lists the current ones.
pub(super) fn reload_schemas(engine: &Engine, caller: &Caller, _: Nothing) -> Answer {
    let types = engine.koi().entity_types(caller)?;
    let keys: Vec<&str> = types.types.iter().map(|it| it.key.as_str()).collect();
    let heard = types.types.iter().filter(|it| it.phonetic_matching);
    let heard: Vec<&str> = heard.map(|it| it.key.as_str()).collect();
    Ok(json!({
        "success": true, "version": types.version, "types": keys, "phonetic_enabled": heard,
        "count": keys.len(),
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PageRequest {
    #[serde(default)]
    entity_type: Option<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit: Option<i64>,
    #[serde(default)]
    #[schemars(with = "i64")]
    offset: Option<i64>,
}

impl PageRequest {
    fn bounds(&self) -> (usize, usize) {
        let offset = self.offset.unwrap_or_default().max(0);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        (bounded(self.limit, LISTED), offset)
    }
}

/// The entities, in the field names of the original and of its other answers, so that an export can
/// be imported anywhere.
pub(super) fn entities(engine: &Engine, caller: &Caller, request: PageRequest) -> Answer {
    let (limit, offset) = request.bounds();
    let kind = request.entity_type.as_deref();
    let found = engine.koi().entities(caller, kind, limit, offset)?;
    let rows: Vec<Value> = found.iter().map(listed).collect();
    Ok(json!({ "entities": rows, "count": rows.len(), "limit": limit, "offset": offset }))
}

fn listed(it: &EntityView) -> Value {
    let mut row = registry_row(it);
    for (name, value) in [
        ("uri", json!(it.uri)),
        ("name", json!(it.name)),
        ("type", json!(it.kind)),
        ("aliases", json!(it.aliases)),
        ("description", json!(it.description)),
    ] {
        row[name] = value;
    }
    row
}

/// An entity as a row of the original's table.
fn registry_row(it: &EntityView) -> Value {
    let first_seen = match &it.path {
        Some(path) => format!("{NOTE_RID}{path}"),
        None => it.source_rid.clone(),
    };
    let source = match it.source.as_str() {
        "vault" => "personal-vault",
        other => other,
    };
    let mut metadata = json!({ "aliases": it.aliases, "koi_rid": it.rid });
    if !it.description.is_empty() {
        metadata["description"] = it.description.as_str().into();
    }
    if !it.merged.is_empty() {
        metadata["merged"] = json!(it.merged);
    }
    json!({
        "fuseki_uri": it.uri, "entity_text": it.name, "entity_type": it.kind,
        "normalized_text": normalized_name(&it.name), "source": source,
        "first_seen_rid": first_seen, "metadata": metadata, "created_at": moment(it.created_ms),
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct EntityRequest {
    entity_uri: String,
}

/// An entity and what mentions it, the newest first.
pub(super) fn entity(engine: &Engine, caller: &Caller, request: EntityRequest) -> Answer {
    let unknown = || Refusal::new(404, Error::new(Code::NotFound, "Entity not found"));
    let found = engine
        .koi()
        .entity_with_documents(caller, &request.entity_uri, DOCUMENTS_MAX);
    let found = match found {
        Err(error) if error.code == Code::NotFound => None,
        found => found?,
    };
    let (view, mut documents) = found.ok_or_else(unknown)?;
    documents.sort_by_key(|it| std::cmp::Reverse(it.first_seen_ms));
    let rows = documents.iter().map(|it: &EntityDocument| {
        json!({
            "document_rid": it.document_rid, "mention_count": it.mention_count,
            "context": null, "created_at": moment(it.first_seen_ms),
        })
    });
    Ok(json!({ "entity": registry_row(&view), "documents": rows.collect::<Vec<_>>() }))
}

/// The entities that notes are about, with the state of each note.
pub(super) fn vault_entities(engine: &Engine, caller: &Caller, request: PageRequest) -> Answer {
    let (limit, offset) = request.bounds();
    let kind = request.entity_type.as_deref();
    let all = engine.koi().entities(caller, kind, usize::MAX, 0)?;
    let noted: Vec<(&EntityView, &str)> = all
        .iter()
        .filter_map(|it| Some((it, it.path.as_deref()?)))
        .collect();
    let shown: Vec<(&EntityView, &str)> = noted.iter().copied().skip(offset).take(limit).collect();
    let paths: Vec<&str> = shown.iter().map(|it| it.1).collect();
    let states = engine.koi().note_states(caller, &paths)?;
    let rows = shown.iter().zip(states).map(|((it, path), state)| {
        json!({
            "vault_rid": format!("{NOTE_RID}{path}"), "vault_path": path,
            "canonical_uri": it.uri, "entity_type": it.kind, "name": it.name,
            "sync_status": state.status, "content_hash": state.content_hash,
            "last_synced": state.synced_ms.map(moment),
        })
    });
    let rows: Vec<Value> = rows.collect();
    let answer = json!({
        "entities": rows, "count": noted.len(), "limit": limit, "offset": offset,
    });
    Ok(warned(engine, caller, answer))
}

/// The notes about entities, as links.
pub(super) fn resolve_to_vault(engine: &Engine, caller: &Caller, uris: Vec<String>) -> Answer {
    check_many(&uris)?;
    let (mut mappings, mut not_found) = (Vec::new(), Vec::new());
    for uri in &uris {
        let found = match engine.koi().entity(caller, uri) {
            Err(error) if error.code == Code::NotFound => None,
            found => found?,
        };
        let noted = found.and_then(|it| Some((it.path.clone()?, it)));
        let Some((path, it)) = noted else {
            not_found.push(uri);
            continue;
        };
        let link = path.strip_suffix(".md").unwrap_or(&path);
        mappings.push(json!({
            "canonical_uri": it.uri, "vault_path": path, "name": it.name, "entity_type": it.kind,
            "wikilink": format!("[[{link}]]"),
        }));
    }
    Ok(json!({
        "resolved": mappings.len(), "total": uris.len(), "mappings": mappings,
        "not_found": not_found,
    }))
}

fn check_many(uris: &[String]) -> Result<(), Refusal> {
    if uris.len() > URIS_MAX {
        let n = uris.len();
        let error = Error::too_large(format!("{n} URIs are more than {URIS_MAX}"));
        return Err(error.hint("ask for some at a time").into());
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AllMentionedRequest {
    uris: Vec<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit_per_entity: Option<i64>,
}

/// The documents that mention each of several entities.
pub(super) fn all_mentioned_in(
    engine: &Engine,
    caller: &Caller,
    request: AllMentionedRequest,
) -> Answer {
    check_many(&request.uris)?;
    let mut results = Map::new();
    for uri in request.uris {
        let one = get_entity_documents::Request {
            entity_uri: uri.clone(),
            limit: request.limit_per_entity,
            skip: 0,
        };
        let found = get_entity_documents::known_or_none(engine, caller, one)?;
        results.insert(uri, written(&found)?);
    }
    Ok(json!({ "total_entities": results.len(), "results": results }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CandidatesRequest {
    #[serde(default)]
    project: Option<String>,
    #[serde(default)]
    attendees: Option<Vec<String>>,
    #[serde(default)]
    topics: Option<Vec<String>>,
    #[serde(default)]
    document_rid: Option<String>,
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    entity_types: Option<Vec<String>>,
}

/// Entities that are mentioned together with a project, people or topics.
pub(super) fn contextual_candidates(
    engine: &Engine,
    caller: &Caller,
    request: CandidatesRequest,
) -> Answer {
    let groups = [
        ("project", Vec::from_iter(request.project)),
        ("attendees", request.attendees.unwrap_or_default()),
        ("topics", request.topics.unwrap_or_default()),
    ];
    let names: Vec<String> = groups.iter().flat_map(|it| it.1.clone()).collect();
    check_many(&names)?;
    let types = request
        .entity_types
        .unwrap_or_else(|| vec!["Person".to_owned()]);
    let except = request.document_rid.as_deref();
    let company = engine
        .koi()
        .entities_in_company(caller, &names, &types, except)?;
    let candidates = company.found.iter().map(|it| {
        json!({
            "name": it.entity.name, "uri": it.entity.uri,
            "normalized_name": normalized_name(&it.entity.name), "entity_type": it.entity.kind,
            "source_documents": it.documents, "vault_path": it.entity.path,
        })
    });
    let candidates: Vec<Value> = candidates.collect();
    let is_known = |it: &&(&str, Vec<String>)| it.1.iter().any(|it| company.known.contains(it));
    let context: Vec<&str> = groups.iter().filter(is_known).map(|it| it.0).collect();
    Ok(json!({
        "candidate_count": candidates.len(), "candidates": candidates,
        "related_document_count": company.documents.len(),
        "related_documents": company.documents, "context_types": context,
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct QueryRequest {
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    question: Option<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit: Option<i64>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    filters: Option<Map<String, Value>>,
}

/// A search in the format of the neighboring server. Clients send an empty one to wake it.
pub(super) fn query(engine: &Engine, caller: &Caller, request: QueryRequest) -> Answer {
    let text = [request.query, request.question];
    let text = text.into_iter().flatten().find(|it| !it.trim().is_empty());
    let text = text.unwrap_or_default();
    if text.is_empty() || text == "warmup" {
        return Ok(json!({ "results": [], "count": 0, "query": text }));
    }
    let filters = request.filters.unwrap_or_default();
    let filtered = filters.get("source").and_then(Value::as_str);
    let asked = knowledge_search::Request {
        query: text.clone(),
        limit: request.limit,
        source: filtered.map(ToOwned::to_owned).or(request.source),
        include_chunks: false,
        skip: 0,
    };
    let found = written(&knowledge_search::answer(engine, caller, asked)?)?;
    let rows = found["results"].as_array().into_iter().flatten().map(|it| {
        json!({
            "rid": it["rid"], "title": it["title"], "content": it["content_preview"],
            "similarity": it["similarity"], "source": it["source"],
            "url": it["metadata"]["url"], "published_at": null, "metadata": it["metadata"],
        })
    });
    let rows: Vec<Value> = rows.collect();
    Ok(json!({
        "count": rows.len(), "results": rows, "query": text, "search_type": found["search_type"],
    }))
}
