//! The memory contract's own routes, under `/api/v1`.
//!
//! They are thin: a route calls its tool, so that the same input means the same over every transport.
//! If the operator excluded these tools, the routes do not exist either. Invalid input is answered
//! with 400, as in the contract.

mod dashboard;
pub(crate) mod description;
mod events;
mod pending;

use crate::answer;
use crate::handler::{Asker, Shared, Slots, With, arguments, arguments_of_query, attended};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRef, Path, Query, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post, put};
use kenning_core::{Code, Error, Result};
use kenning_engine::{Caller, Engine};
use kenning_tools::{AnyTool, Board, Reply, Selection, Toolset};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The confidence of a belief that was stored without one.
const CONFIDENCE_DEFAULT: f64 = 0.5;

/// The tools behind the routes.
#[derive(Clone)]
pub(crate) struct Memory {
    board: Board,
}

impl Memory {
    /// The memory tools that the operator did not exclude. More tools than the contract's six cost a
    /// model context, but a route costs nothing.
    pub(crate) fn of(board: &Board) -> Self {
        let chosen = board.selection();
        if !(chosen.has(Toolset::Omi) || chosen.is_default_set()) {
            return Self {
                board: board.clone(),
            };
        }
        let selection = Selection {
            toolsets: [Toolset::Omi, Toolset::OmiExtra]
                .map(|it| it.as_str().to_owned())
                .into(),
            ..chosen.clone()
        };
        // Every name in it was accepted before.
        let own = Board::new(board.engine().clone(), selection);
        Self {
            board: own.unwrap_or_else(|_| board.clone()),
        }
    }

    /// The engine, for a route that needs this tool's permission.
    pub(crate) fn engine_as(&self, tool: &str) -> Result<&Arc<Engine>> {
        match self.board.find(tool) {
            Some(_) => Ok(self.board.engine()),
            None if self.board.selection().read_only => {
                Err(Error::denied("this call changes data")
                    .hint("this server was started with `--read-only`"))
            }
            None => Err(not_served()),
        }
    }
}

impl FromRef<With<Memory>> for Memory {
    fn from_ref(state: &With<Self>) -> Self {
        state.own.clone()
    }
}

fn not_served() -> Error {
    Error::not_found("route", "of memories").hint("this server was started with other toolsets")
}

/// The routes.
pub(crate) fn routes(shared: Shared, memory: Memory) -> Router {
    Router::new()
        .route("/api/v1/health", get(health))
        .route("/api/v1/store", post(store))
        .route("/api/v1/recall", get(recall))
        .route("/api/v1/beliefs", post(add_belief))
        .route("/api/v1/beliefs/{id}", put(update_belief))
        .route("/api/v1/sessions/start", post(start_session))
        .route("/api/v1/sessions/end", post(end_session))
        .route("/api/v1/events", get(events::follow))
        .merge(dashboard::routes())
        .merge(pending::routes())
        .with_state(With {
            shared,
            own: memory,
        })
}

/// The usual error response, but with the contract's status for invalid input.
fn refused(error: &Error) -> Response<Body> {
    let mut response = answer::error(error);
    if error.code == Code::InvalidInput {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
}

fn answered(status: StatusCode, done: Result<Value>) -> Response<Body> {
    match done {
        Ok(value) => answer::json(status, &value),
        Err(error) => refused(&error),
    }
}

/// Calls a tool and returns its value and its remarks.
async fn call(
    memory: Memory,
    slots: &Slots,
    caller: Caller,
    tool: &'static str,
    arguments: Value,
) -> Result<Reply> {
    let work = move |caller: &Caller| memory.board.call(tool, arguments, caller);
    let mut reply = attended(slots, caller, work)
        .await?
        .ok_or_else(not_served)?;
    match reply.error.take() {
        Some(error) => Err(error),
        None => Ok(reply),
    }
}

async fn health(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
) -> Response<Body> {
    let work = move |caller: &Caller| {
        memory
            .engine_as("memory_recall")?
            .omi()
            .memory_count(caller)
    };
    let counted = attended(&slots, caller, work).await.and_then(|it| it);
    let shown = counted.map(
        |n| json!({ "status": "healthy", "version": env!("CARGO_PKG_VERSION"), "memories": n }),
    );
    answered(StatusCode::OK, shown)
}

/// One memory, or an array of them: all or none.
async fn store(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let stored = async {
        let (tool, arguments) = match arguments(&headers, body).await? {
            Value::Array(memories) => ("memory_store_batch", json!({ "memories": memories })),
            one => ("memory_store", one),
        };
        let reply = call(memory, &slots, caller, tool, arguments).await?;
        Ok(reply.to_json())
    };
    answered(StatusCode::CREATED, stored.await)
}

async fn recall(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response<Body> {
    let recalled = async {
        let query = pairs(query)?;
        let tool = memory.board.find("memory_recall");
        let schema = tool.map(AnyTool::input_schema).unwrap_or_default();
        let arguments = arguments_of_query(query, &schema)?;
        call(memory, &slots, caller, "memory_recall", arguments).await
    };
    match recalled.await {
        Ok(reply) => {
            let memories = reply.to_json();
            let count = memories.as_array().map_or(0, Vec::len);
            let shown = json!({ "memories": memories, "count": count });
            let mut response = answer::json(StatusCode::OK, &shown);
            answer::remark(&reply, &mut response);
            response
        }
        Err(error) => refused(&error),
    }
}

/// The pairs of a query.
fn pairs(
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Vec<(String, String)>> {
    let query = query.map(|it| it.0);
    query.map_err(|_| Error::invalid("the query is not `NAME=VALUE&NAME=VALUE`"))
}

/// The fields of a body; an empty one has none.
fn fields(body: Value) -> Result<Map<String, Value>> {
    match body {
        Value::Null => Ok(Map::new()),
        Value::Object(fields) => Ok(fields),
        _ => Err(Error::invalid("the body is not a JSON object")),
    }
}

async fn add_belief(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let added = async {
        let mut belief = fields(arguments(&headers, body).await?)?;
        let kind = belief.insert("memory_type".to_owned(), "belief".into());
        if kind.as_ref().is_some_and(|it| it != "belief") {
            return Err(Error::invalid("`memory_type`: a belief is a `belief`")
                .hint("leave it out, or use /api/v1/store"));
        }
        let confidence = belief
            .entry("confidence")
            .or_insert_with(|| CONFIDENCE_DEFAULT.into())
            .clone();
        let arguments = Value::Object(belief);
        let reply = call(memory, &slots, caller, "memory_store", arguments).await?;
        let mut shown = reply.to_json();
        shown["belief_id"] = shown["memory_id"].clone();
        shown["confidence"] = confidence;
        Ok(shown)
    };
    answered(StatusCode::CREATED, added.await)
}

async fn update_belief(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let updated = async {
        let mut update = fields(arguments(&headers, body).await?)?;
        let Path(id) = id.map_err(|_| Error::invalid("the belief's id is not UTF-8 text"))?;
        let given = update.insert("belief_id".to_owned(), id.as_str().into());
        if given.is_some_and(|it| it != id.as_str()) {
            return Err(
                Error::invalid("`belief_id` differs from the id in the path").hint("leave it out"),
            );
        }
        let arguments = Value::Object(update);
        let reply = call(memory, &slots, caller, "belief_update", arguments).await?;
        let mut shown = json!({ "belief_id": id });
        shown["new_confidence"] = reply.to_json()["new_confidence"].clone();
        Ok(shown)
    };
    answered(StatusCode::OK, updated.await)
}

/// The client's id for its session, if it gave one.
async fn session_id(headers: &HeaderMap, body: Body) -> Result<Option<String>> {
    let mut body = fields(arguments(headers, body).await?)?;
    let id = body.remove("session_id");
    if let Some(other) = body.keys().next() {
        return Err(Error::invalid(format!("unknown field `{other}`")).hint("takes `session_id`"));
    }
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(_) => Err(Error::invalid("`session_id` is not a string")),
    }
}

async fn start_session(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let started = async {
        let id = session_id(&headers, body).await?;
        let work = move |caller: &Caller| {
            let engine = memory.engine_as("memory_store")?;
            engine.omi().session_start(caller, id.as_deref())
        };
        let started = attended(&slots, caller, work).await??;
        Ok(json!({
            "session_id": started.id, "memory_count": started.memory_count,
            "now_integrity": started.now_integrity,
        }))
    };
    answered(StatusCode::OK, started.await)
}

async fn end_session(
    State(memory): State<Memory>,
    State(slots): State<Slots>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let ended = async {
        let id = session_id(&headers, body).await?;
        let work = move |caller: &Caller| {
            let engine = memory.engine_as("memory_store")?;
            engine.omi().session_end(caller, id.as_deref())
        };
        let ended = attended(&slots, caller, work).await??;
        Ok(json!({
            "session_id": ended.id, "duration_seconds": ended.duration_seconds, "log": ended.log,
        }))
    };
    answered(StatusCode::OK, ended.await)
}
