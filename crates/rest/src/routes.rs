//! The routes, all over the same board.

use crate::guard::{self, Guard};
use crate::handler::{Shared, Slots, arguments, arguments_of_query, attended, attended_as};
use crate::koi::{self, Koi};
use crate::memory::{self, Memory};
use crate::tail::Tail;
use crate::{answer, body, federation, log, openapi, peers, registry, sse};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::routing::{get, post};
use kenning_core::Error;
use kenning_engine::{Caller, Principal, Scope, Waited};
use kenning_tools::slots::Load;
use kenning_tools::{AnyTool, Board, Effect, Toolset, installed_summary, near, summary};
use serde_json::{Value, json};
use std::sync::Arc;

/// Everything that answers, with the layer around it. `extra` holds what other doors bring (`/mcp`).
pub fn router(board: Board, guard: Guard, extra: Router) -> Router {
    let guard = guard.with_slots(board.slots().clone());
    let slots = Slots {
        calls: board.slots().clone(),
        tail: Tail::of(&board),
        refusals: guard.refusals(),
    };
    let memory = Memory::of(&board);
    let koi = Koi::of(&board);
    // Clients of every contract ask `/health`; where the KOI tools are, it is theirs.
    let has_koi_health = koi.has_health();
    let shared = Shared { board, slots };
    let mut router = Router::new();
    if !has_koi_health {
        router = router.route("/health", get(health));
    }
    router
        .route("/", get(front))
        .route("/healthz", get(health))
        .route("/health/ready", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .route("/tools", get(list))
        .route("/tools/{name}", post(call).get(call_safe))
        .route("/events", get(sse::events).post(peers::receive))
        .route("/sync", post(peers::receive))
        .merge(federation::routes())
        .merge(log::routes())
        .merge(log::peers::routes())
        .merge(registry::routes())
        .with_state(shared.clone())
        .merge(koi::routes(shared.clone(), koi))
        .merge(memory::routes(shared, memory))
        .merge(extra)
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(
            Arc::new(guard),
            guard::layer,
        ))
}

async fn front() -> &'static str {
    "Kenning\n\n\
     POST /mcp            Model Context Protocol (Streamable HTTP)\n\
     GET  /tools          the tools\n\
     POST /tools/{name}   call one, with its arguments as a JSON object\n\
     GET  /openapi.json   the same as OpenAPI\n\
     GET  /events         the log as server-sent events; `?event_type=NodeCreated` for some of them\n\
     GET  /log            its size, kinds, newest checkpoint and last verification\n\
     GET  /log/checkpoints its signed checkpoints; /log/proof/{event} proves that an event is in it\n\
     GET  /log/checkpoint the newest checkpoint as a signed note, for witnesses\n\
     GET  /peers          how it stands with other nodes; /peers/conflicts lists what contradicts what they wrote\n\
     POST /sync, /events  messages of other nodes, signed by their keys\n\
     POST /koi-net/…      messages of nodes of KOI-net, signed by their keys\n\
     /registry/v1         directives, tools and knowledge: push, pull, search, versions\n\
     /api/v1              memories: store, recall, beliefs, sessions, events, dashboard\n\
     GET  /health         the KOI API: entities, relationships, documents, pages, repositories\n\
     GET  /healthz        whether it is alive; without a token too\n\
     GET  /readyz         whether it can reach its store; without a token too\n\
     GET  /metrics        counters for Prometheus\n"
}

async fn nothing(request: Request) -> Response<Body> {
    let path = request.uri().path().chars().take(100).collect::<String>();
    body::drain(request.into_body()).await;
    if koi::is_ours(&path) {
        return koi::not_found();
    }
    answer::error(&Error::not_found("route", path).hint("`/` says what there is"))
}

async fn wrong_method(request: Request) -> Response<Body> {
    let response = refuse_method(request.method());
    body::drain(request.into_body()).await;
    response
}

fn refuse_method(method: &Method) -> Response<Body> {
    let method: String = method.as_str().chars().take(20).collect();
    let error = Error::invalid(format!("`{method}` is not a method of this route"));
    let mut response = answer::error(&error);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn health(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    // Whoever has no token learns that somebody answers, and nothing of what is here.
    if !who.scopes.contains(&Scope::Read) {
        return answer::json(StatusCode::OK, &json!({ "status": "ok" }));
    }
    let caller = Caller::new(who).after(waited);
    let state = tokio::task::spawn_blocking(move || board.engine().roots(&caller)).await;
    match state {
        Ok(Ok(roots)) => answer::json(
            StatusCode::OK,
            &json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION"), "events": roots.seq }),
        ),
        Ok(Err(error)) => answer::error(&error),
        Err(cause) => answer::error(&Error::internal("health").because(cause)),
    }
}

/// Whether calls can be answered: the store can be read.
async fn ready(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let owner = Principal::owner(who.space);
    let caller = Caller::new(owner).after(waited);
    let state = tokio::task::spawn_blocking(move || board.engine().roots(&caller)).await;
    match state {
        Ok(Ok(_)) => answer::json(StatusCode::OK, &json!({ "status": "ready" })),
        // The reason may name what only the operator should know; it is in the log.
        Ok(Err(error)) => {
            tracing::warn!("not ready: {error}");
            answer::error(&Error::unavailable("the store cannot be read").hint("call again"))
        }
        Err(cause) => answer::error(&Error::internal("ready").because(cause)),
    }
}

async fn metrics(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let mut text = board.metrics().to_text() + &board.slots().counts().to_text();
    text += &slots.refusals.to_text();
    let caller = Caller::new(who).after(waited);
    // A token that may not read the log still sees the counters.
    let state = tokio::task::spawn_blocking(move || {
        let engine = board.engine();
        let log = engine.log_summary(&caller);
        let peers = engine.sync_status(&caller, None);
        let federation = || match engine.koi().is_federated()? {
            true => engine.koi().federation_status(&caller).map(Some),
            false => Ok(None),
        };
        let mut text = log.map(|it| log::metrics(&it)).unwrap_or_default();
        text += &peers.map(|it| log::peers::metrics(&it)).unwrap_or_default();
        if let Ok(Some(status)) = federation() {
            text += &federation::metrics(&status);
        }
        text
    });
    text += &state.await.unwrap_or_default();
    let mut response = Response::new(Body::from(text));
    let text = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

async fn description(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
) -> Response<Body> {
    let described = attended(&slots, Caller::new(who), move |caller| {
        let document = openapi::with_installed(board.listed(), &board.installed(caller));
        answer::json(StatusCode::OK, &document)
    });
    described.await.unwrap_or_else(|it| answer::error(&it))
}

async fn list(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
) -> Response<Body> {
    let listed = attended(&slots, Caller::new(who), move |caller| {
        let mut tools: Vec<Value> = board.listed().iter().map(|tool| summary(*tool)).collect();
        // They may be others from one request to the next.
        let installed = board.installed(caller);
        tools.extend(installed.iter().map(installed_summary));
        answer::json(StatusCode::OK, &json!({ "tools": tools }))
    });
    listed.await.unwrap_or_else(|it| answer::error(&it))
}

/// Whether a name is that of an installed tool. Those run programs, and a page can make a browser GET.
async fn is_installed(
    board: &Board,
    slots: &Slots,
    who: &Principal,
    name: &str,
) -> Result<bool, Error> {
    let (board, name) = (board.clone(), name.to_owned());
    let caller = Caller::new(who.clone());
    attended(slots, caller, move |caller| {
        board.has_installed(&name, caller)
    })
    .await
}

/// A tool that changes nothing may also be called with GET; its arguments are in the query.
async fn call_safe(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else {
        return unknown("", &[]);
    };
    let tool = board.find(&name);
    let runs = match tool {
        Some(tool) => Ok(tool.effect() != Effect::Read),
        None => is_installed(&board, &slots, &who, &name).await,
    };
    let runs = match runs {
        Ok(it) => it,
        Err(error) => return answer::error(&error),
    };
    if runs {
        let mut response = refuse_method(&Method::GET);
        let post = header::HeaderValue::from_static("POST");
        response.headers_mut().insert(header::ALLOW, post);
        return response;
    }
    let Ok(Query(query)) = query else {
        return answer::error(&Error::invalid("the query is not `NAME=VALUE&NAME=VALUE`"));
    };
    let schema = tool.map(AnyTool::input_schema).unwrap_or_default();
    match arguments_of_query(query, &schema) {
        Ok(arguments) => {
            run(
                board,
                slots,
                Caller::new(who).after(waited),
                name,
                arguments,
            )
            .await
        }
        Err(error) => answer::error(&error),
    }
}

async fn call(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let arguments = arguments(&headers, body).await;
    let Ok(Path(name)) = name else {
        return unknown("", &[]);
    };
    match arguments {
        Ok(arguments) => {
            run(
                board,
                slots,
                Caller::new(who).after(waited),
                name,
                arguments,
            )
            .await
        }
        Err(error) => match board.find(&name).map(|it| it.toolset()) {
            Some(Toolset::Kiwi) => answer::reply(&kenning_tools::malformed(error)),
            _ => answer::error(&error),
        },
    }
}

fn unknown(tool: &str, near: &[String]) -> Response<Body> {
    let tool: String = tool.chars().take(100).collect();
    let message = format!("Unknown tool: {tool}");
    let near = near::sentence(near);
    let hint = format!("GET /tools lists them.{near}");
    let hint = hint.trim_end_matches('.').to_owned();
    let error = Error::new(kenning_core::Code::NotFound, message).hint(hint);
    answer::error(&error)
}

async fn run(
    board: Board,
    slots: Slots,
    caller: Caller,
    name: String,
    arguments: Value,
) -> Response<Body> {
    let (tool, listed) = (name.clone(), board.clone());
    let work = move |caller: &Caller| board.call(&tool, arguments, caller);
    match attended_as(Load::of_tool(&name), &slots, caller, work).await {
        Ok(Some(reply)) => answer::reply(&reply),
        Ok(None) => unknown(&name, &listed.near(&name)),
        Err(error) => answer::error(&error),
    }
}
