//! The routes, all over the same board.

use crate::guard::{self, Guard};
use crate::{answer, openapi, sse};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::routing::{get, post};
use http_body_util::{BodyExt, LengthLimitError};
use kenning_core::Error;
use kenning_engine::{Caller, Principal};
use kenning_tools::{Board, Effect};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that answers, with the layer around it. `extra` holds what other doors bring (`/mcp`).
pub fn router(board: Board, guard: Guard, extra: Router) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .route("/tools", get(list))
        .route("/tools/{name}", post(call).get(call_safe))
        .route("/events", get(sse::events))
        .with_state(board)
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
     GET  /events         the log as server-sent events\n\
     GET  /healthz        whether all is well\n\
     GET  /metrics        counters for Prometheus\n"
}

async fn nothing(request: Request) -> Response<Body> {
    let path = request.uri().path().chars().take(100).collect::<String>();
    answer::error(&Error::not_found("route", path).hint("`/` says what there is"))
}

async fn wrong_method(method: Method) -> Response<Body> {
    let error = Error::invalid(format!("`{method}` is not a method of this route"));
    let mut response = answer::error(&error);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn health(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
) -> Response<Body> {
    let state = tokio::task::spawn_blocking(move || board.engine().roots(&Caller::new(who))).await;
    match state {
        Ok(Ok(roots)) => answer::json(
            StatusCode::OK,
            &json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION"), "events": roots.seq }),
        ),
        Ok(Err(error)) => answer::error(&error),
        Err(cause) => answer::error(&Error::internal("health").because(cause)),
    }
}

async fn metrics(State(board): State<Board>) -> Response<Body> {
    let mut response = Response::new(Body::from(board.metrics().to_text()));
    let text = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

async fn description(State(board): State<Board>) -> Response<Body> {
    answer::json(StatusCode::OK, &openapi::document(board.listed()))
}

async fn list(State(board): State<Board>) -> Response<Body> {
    let tools: Vec<Value> = board
        .listed()
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name(), "title": tool.title(), "toolset": tool.toolset().as_str(),
                "effect": tool.effect().as_str(), "description": tool.description(),
                "inputSchema": tool.input_schema(),
            })
        })
        .collect();
    answer::json(StatusCode::OK, &json!({ "tools": tools }))
}

/// A tool that changes nothing may also be called with GET; its arguments are in the query.
async fn call_safe(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
    Path(name): Path<String>,
    axum::extract::Query(query): axum::extract::Query<Vec<(String, String)>>,
) -> Response<Body> {
    if board
        .find(&name)
        .is_some_and(|tool| tool.effect() != Effect::Read)
    {
        return wrong_method(Method::GET).await;
    }
    let schema = board
        .find(&name)
        .map(|tool| tool.input_schema())
        .unwrap_or_default();
    let arguments = query
        .into_iter()
        .map(|(field, text)| {
            // A query knows only text; where the schema wants something else, read it as JSON.
            let wants_text = schema["properties"][&field]["type"]
                .to_string()
                .contains("string");
            let value = if wants_text {
                None
            } else {
                serde_json::from_str(&text).ok()
            };
            (field, value.unwrap_or(Value::String(text)))
        })
        .collect();
    run(board, who, name, Value::Object(arguments)).await
}

async fn call(
    State(board): State<Board>,
    Extension(who): Extension<Principal>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    match arguments(&headers, body).await {
        Ok(arguments) => run(board, who, name, arguments).await,
        Err(error) => answer::error(&error),
    }
}

/// Reads the body. A form that a web page could send without asking is not JSON and is refused.
async fn arguments(headers: &HeaderMap, body: Body) -> Result<Value, Error> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let bytes = body.collect().await.map_err(|cause| {
        let cause = cause.into_inner();
        if cause.downcast_ref::<LengthLimitError>().is_some() {
            return Error::too_large(format!(
                "the request body is over {} bytes",
                guard::BODY_BYTES_MAX
            ));
        }
        Error::invalid("the request body could not be read").because(cause)
    })?;
    let bytes = bytes.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    if kind != "application/json" {
        return Err(Error::invalid(format!("the content type is `{kind}`"))
            .hint("send `Content-Type: application/json`"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|cause| Error::invalid(format!("the body is not JSON: {cause}")))
}

/// Told when its owner goes away, as a handler does when the client closes the connection.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn run(board: Board, who: Principal, name: String, arguments: Value) -> Response<Body> {
    let caller = Caller::new(who);
    let _cancel = CancelOnDrop(caller.cancelled.clone());
    let tool = name.clone();
    let done = tokio::task::spawn_blocking(move || board.call(&tool, arguments, &caller)).await;
    match done {
        Ok(Some(reply)) => answer::reply(&reply),
        Ok(None) => answer::error(
            &Error::new(
                kenning_core::Code::NotFound,
                format!("Unknown tool: {name}"),
            )
            .hint("GET /tools lists them"),
        ),
        Err(cause) => answer::error(&kenning_tools::hide_internal(
            &Error::internal("a call").because(cause),
            "a call over HTTP",
        )),
    }
}
