//! The registry of items, under `/registry/v1`.
//!
//! Another Kenning reaches it with `KIWI_REGISTRY_URL=http://HOST:PORT/registry`. A push is checked
//! again here: its format, its hashes, its signature, the owner of the id.

pub(crate) mod description;

use crate::answer;
use crate::handler::{Asker, Shared, Slots, arguments, attended};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{delete, get, post};
use kenning_core::{Bounded, Code, Error, Result};
use kenning_engine::kiwi::{
    ItemFault, ItemQuery, ItemResult, ItemSource, ItemType, RegistryPackage, RegistryVersion,
};
use kenning_engine::{Caller, Engine};
use kenning_tools::{Board, Toolset};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The routes.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/registry/v1/push", post(push))
        .route("/registry/v1/search", get(search))
        .route("/registry/v1/pull/{item_type}/{id}", get(pull))
        .route("/registry/v1/versions/{item_type}/{id}", get(versions))
        .route("/registry/v1/deprecate/{item_type}/{id}", post(deprecate))
        .route("/registry/v1/items/{item_type}/{id}", delete(remove))
}

type Named = std::result::Result<Path<(String, String)>, PathRejection>;
type Asked<T> = std::result::Result<Query<T>, QueryRejection>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    item_type: Option<String>,
    query: String,
    limit: Option<i64>,
}

/// The engine, if this server serves items at all.
fn engine(board: &Board) -> Result<Arc<Engine>> {
    if board.selection().has(Toolset::Kiwi) {
        return Ok(Arc::clone(board.engine()));
    }
    Err(Error::not_found("route", "of the registry")
        .hint("this server was started with other toolsets"))
}

/// The engine, if this server is not read-only.
fn writable(board: &Board) -> Result<Arc<Engine>> {
    if board.selection().read_only {
        return Err(Error::denied("this call changes data")
            .hint("this server was started with `--read-only`"));
    }
    engine(board)
}

async fn worked(
    slots: &Slots,
    caller: Caller,
    status: StatusCode,
    work: impl FnOnce(&Caller) -> ItemResult<Value> + Send + 'static,
) -> Response<Body> {
    let done = attended(slots, caller, work).await;
    match done {
        Ok(Ok(value)) => answer::json(status, &value),
        Ok(Err(fault)) => refused(*fault),
        Err(error) => answer::error(&error),
    }
}

/// An error in the contract's format, with its status.
fn refused(fault: ItemFault) -> Response<Body> {
    let ItemFault { error, details } = fault;
    let mut response = answer::error(&error);
    let status = match error.code {
        Code::InvalidInput => StatusCode::UNPROCESSABLE_ENTITY,
        _ => response.status(),
    };
    let mut body = Map::new();
    body.insert("error".to_owned(), error.message.as_str().into());
    if let Some(hint) = &error.hint {
        body.insert("hint".to_owned(), hint.as_str().into());
    }
    body.extend(details);
    if error.code != Code::Internal {
        response = answer::json(status, &Value::Object(body));
    }
    response
}

fn named(named: Named) -> Result<(ItemType, String)> {
    let Path((item_type, id)) = named.map_err(|_| Error::invalid("the path is not `/TYPE/ID`"))?;
    Ok((item_type.parse()?, id))
}

fn asked<T>(asked: Asked<T>) -> Result<T> {
    asked.map(|it| it.0).map_err(|cause| {
        Error::invalid(format!("the query cannot be read: {}", cause.body_text()))
            .hint("/openapi.json lists its parameters")
    })
}

async fn push(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let sent = arguments(&headers, body).await;
    worked(&slots, caller, StatusCode::CREATED, move |caller| {
        let pushed = RegistryPackage::of_json(&sent?)?;
        let done = writable(&board)?
            .kiwi()
            .registry_push(caller, &pushed, false)?;
        Ok(json!({
            "status": "published", "name": done.id, "version": done.version, "url": done.url,
            "integrity": done.sha256,
        }))
    })
    .await
}

async fn pull(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    path: Named,
    query: Asked<Version>,
) -> Response<Body> {
    worked(&slots, caller, StatusCode::OK, move |caller| {
        let ((item_type, id), version) = (named(path)?, asked(query)?.version);
        let pulled =
            engine(&board)?
                .kiwi()
                .registry_pull(caller, item_type, &id, version.as_deref())?;
        Ok(pulled.to_json())
    })
    .await
}

async fn versions(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    path: Named,
) -> Response<Body> {
    worked(&slots, caller, StatusCode::OK, move |caller| {
        let (item_type, id) = named(path)?;
        let versions = engine(&board)?
            .kiwi()
            .registry_versions(caller, item_type, &id)?;
        let versions: Vec<Value> = versions.iter().map(RegistryVersion::to_json).collect();
        Ok(json!({ "item_type": item_type.word(), "item_id": id, "versions": versions }))
    })
    .await
}

async fn search(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Asked<Search>,
) -> Response<Body> {
    worked(&slots, caller, StatusCode::OK, move |caller| {
        let Search {
            item_type,
            query,
            limit,
        } = asked(query)?;
        let limit = Bounded::<1, 100>::try_from(limit.unwrap_or(10))
            .map_err(|it| Error::invalid(format!("`limit`: {it}")))?;
        let asked = ItemQuery {
            item_type: item_type.map(|it| it.parse()).transpose()?,
            text: query.clone(),
            source: ItemSource::OwnRegistry,
            limit: usize::try_from(limit.get()).unwrap_or(10),
            ..ItemQuery::default()
        };
        let found = engine(&board)?.kiwi().search_items(caller, &asked)?;
        let results: Vec<Value> = found
            .items
            .iter()
            .map(|it| {
                json!({
                    "id": it.id, "item_type": it.item_type, "name": it.name,
                    "category": it.category, "description": it.description,
                    "quality_score": it.quality, "version": it.version,
                    "relevance": it.relevance, "success_rate": it.success_rate,
                    "parameters": it.parameters, "updated_ms": it.updated_ms,
                })
            })
            .collect();
        Ok(json!({ "results": results, "total": found.total, "query": query }))
    })
    .await
}

async fn deprecate(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    path: Named,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let sent = arguments(&headers, body).await;
    worked(&slots, caller, StatusCode::OK, move |caller| {
        let ((item_type, id), sent) = (named(path)?, sent?);
        let text = |name: &str| sent.get(name).and_then(Value::as_str);
        let version = text("version").ok_or_else(|| {
            Error::invalid("`version` is missing").hint("say which version should not be used")
        })?;
        let reason = text("reason").unwrap_or("deprecated");
        writable(&board)?
            .kiwi()
            .registry_deprecate(caller, item_type, &id, version, reason)?;
        Ok(json!({ "status": "deprecated", "name": id, "version": version, "reason": reason }))
    })
    .await
}

async fn remove(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    path: Named,
    query: Asked<Version>,
) -> Response<Body> {
    worked(&slots, caller, StatusCode::OK, move |caller| {
        let ((item_type, id), version) = (named(path)?, asked(query)?.version);
        let engine = writable(&board)?;
        let done =
            engine
                .kiwi()
                .registry_delete(caller, item_type, &id, version.as_deref(), false)?;
        Ok(json!({ "status": "deleted", "name": id, "deleted": done.paths }))
    })
    .await
}
