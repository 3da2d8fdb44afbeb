//! Handlers that have a language model describe entities.

use super::facts::{Answer, bounded};
use super::statements::{RegenerateRequest, regenerate_notes};
use kenning_core::{Code, Error};
use kenning_engine::koi::DescribeEntities;
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The original's message if no model is configured; that key names one, as `KENNING_MODEL_…` do.
const NO_MODEL: &str =
    "LLM enrichment not configured. Set LLM_ENRICHMENT_ENABLED=true and GEMINI_API_KEY.";
/// The entities to describe from texts.
#[derive(Deserialize, JsonSchema)]
pub(super) struct EnrichRequest {
    #[serde(default)]
    #[schemars(with = "String")]
    entity_uri: Option<String>,
    #[serde(default)]
    #[schemars(with = "String")]
    entity_type: Option<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit: Option<i64>,
}

/// The entities to describe from a model's knowledge.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DescribeRequest {
    #[serde(default)]
    #[schemars(with = "String")]
    entity_type: Option<String>,
    #[serde(default)]
    #[schemars(with = "i64")]
    limit: Option<i64>,
    #[serde(default)]
    regenerate_notes: bool,
}

/// The default and the largest number of entities that are described in one call.
const DESCRIBED: (usize, usize) = (10, 200);

/// Descriptions of what texts say of entities.
pub(super) fn enrich(engine: &Engine, caller: &Caller, request: EnrichRequest) -> Answer {
    let wanted = DescribeEntities {
        uri: request.entity_uri,
        kind: request.entity_type,
        limit: bounded(request.limit, DESCRIBED),
        from_texts: true,
    };
    described(engine, caller, &wanted)
}

/// Descriptions from a language model's own knowledge.
pub(super) fn describe(engine: &Engine, caller: &Caller, request: DescribeRequest) -> Answer {
    let wanted = DescribeEntities {
        uri: None,
        kind: request.entity_type.clone(),
        limit: bounded(request.limit, DESCRIBED),
        from_texts: false,
    };
    let mut answer = described(engine, caller, &wanted)?;
    if request.regenerate_notes {
        let of = RegenerateRequest {
            entity_type: request.entity_type,
            limit: request.limit,
        };
        answer["notes"] = regenerate_notes(engine, caller, of)?;
    }
    Ok(answer)
}

/// Without a model the original's clients get its message.
fn described(engine: &Engine, caller: &Caller, wanted: &DescribeEntities) -> Answer {
    let done = engine.koi().describe_entities(caller, wanted);
    let done = done.map_err(|error| match error.code {
        // The model's fault, and not this server's.
        Code::Unavailable | Code::Timeout => Refusal::new(502, error),
        _ => error.into(),
    })?;
    let Some(done) = done else {
        let error = Error::unavailable(NO_MODEL).hint(
            "nothing was described: descriptions are those of notes and pages. A model is also named by \
             KENNING_MODEL_ENDPOINT and KENNING_MODEL_NAME; `process_url` needs none",
        );
        return Err(Refusal::new(503, error));
    };
    let rows = done.described.iter().map(|it| {
        json!({ "uri": it.uri, "name": it.name, "description": it.description, "documents": it.texts })
    });
    let skipped = done
        .skipped
        .iter()
        .map(|(uri, why)| json!({ "uri": uri, "reason": why }));
    Ok(json!({
        "enriched": done.described.len(), "model_used": done.model, "tokens_used": done.tokens,
        "entities": rows.collect::<Vec<_>>(), "skipped": skipped.collect::<Vec<_>>(),
        "entity_type_filter": wanted.kind,
    }))
}
