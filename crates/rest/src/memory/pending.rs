//! Writes that wait for a second key: `/api/v1/pending`.

use super::{Memory, answered};
use crate::handler::{Asker, Slots, With, arguments, attended};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, parse_public_key};
use kenning_text::hex;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<With<Memory>> {
    Router::new()
        .route("/api/v1/pending", get(list))
        .route("/api/v1/pending/{id}/confirm", post(confirm))
        .route("/api/v1/pending/{id}/reject", post(reject))
}

async fn list(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
) -> Response<Body> {
    let listed = async {
        let work = move |caller: &Caller| {
            let engine = memory.engine_as("memory_recall")?;
            engine.omi().pending_writes(caller)
        };
        let writes = attended(&slots, caller, work).await??;
        let writes: Vec<Value> = writes.iter().map(|it| it.to_json()).collect();
        Ok(json!({ "pending": writes }))
    };
    answered(StatusCode::OK, listed.await)
}

async fn confirm(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let confirmed = async {
        let id = id_of(id)?;
        let body = arguments(&headers, body).await?;
        let text = |field: &str| {
            let text = body[field].as_str().map(str::to_owned);
            text.ok_or_else(|| {
                Error::invalid(format!("`{field}` is missing or not a text"))
                    .hint("give `key` (a DID) and `signature` (128 hexadecimal digits)")
            })
        };
        let key = parse_public_key(&text("key")?)?;
        let signature = text("signature")?;
        let signature = hex::decode(&signature).ok_or_else(|| {
            Error::invalid("`signature` is not hexadecimal").hint("give 128 hexadecimal digits")
        })?;
        let work = move |caller: &Caller| {
            let engine = memory.engine_as("memory_store")?;
            engine.omi().confirm_write(caller, &id, &key, &signature)
        };
        let stored = attended(&slots, caller, work).await??;
        let ids: Vec<&str> = stored.iter().map(|it| it.id.as_str()).collect();
        Ok(json!({ "memory_ids": ids }))
    };
    answered(StatusCode::OK, confirmed.await)
}

async fn reject(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    id: Result<Path<String>, PathRejection>,
) -> Response<Body> {
    let rejected = async {
        let id = id_of(id)?;
        let named = id.clone();
        let work = move |caller: &Caller| {
            let engine = memory.engine_as("memory_store")?;
            engine.omi().reject_write(caller, &id)
        };
        attended(&slots, caller, work).await??;
        Ok(json!({ "rejected": named }))
    };
    answered(StatusCode::OK, rejected.await)
}

fn id_of(id: Result<Path<String>, PathRejection>) -> Result<String> {
    let Path(id) = id.map_err(|_| Error::invalid("the id of the write is not UTF-8 text"))?;
    Ok(id)
}
