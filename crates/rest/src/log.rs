//! The signed log: its state, its checkpoints, and proofs. What happened is asked by `kg_audit_query`.

pub(crate) mod peers;

use crate::answer;
use crate::handler::{Shared, Slots, attended};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::{Response, StatusCode, header};
use axum::routing::get;
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine, LogStats, Principal, Waited};
use kenning_tools::Board;
use serde_json::{Value, json};
use std::fmt::Write;

/// The most checkpoints of an answer.
const CHECKPOINTS_MAX: usize = 1_000;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/log", get(state))
        .route("/log/checkpoint", get(checkpoint))
        .route("/log/checkpoints", get(checkpoints))
        .route("/log/proof/{event}", get(proof))
}

async fn answered(
    board: Board,
    slots: Slots,
    who: Principal,
    waited: Waited,
    work: impl FnOnce(&Engine, &Caller) -> Result<Value> + Send + 'static,
) -> Response<Body> {
    let caller = Caller::new(who).after(waited);
    let found = attended(&slots, caller, move |caller| work(board.engine(), caller)).await;
    match found {
        Ok(Ok(value)) => answer::json(StatusCode::OK, &value),
        Ok(Err(error)) | Err(error) => answer::error(&error),
    }
}

/// `GET /log`: events, kinds, authors, the newest checkpoint, and when the log was last verified.
async fn state(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let work = |engine: &Engine, caller: &Caller| {
        let stats = engine.log_stats(caller)?;
        let roots = engine.roots(caller)?;
        let mut state = stats.to_json();
        state["eventRoot"] = roots.event_root.to_string().into();
        state["stateRoot"] = roots.state_root.to_string().into();
        Ok(state)
    };
    answered(board, slots, who, waited, work).await
}

/// `GET /log/checkpoints?limit=&below=`: signed checkpoints, newest first.
async fn checkpoints(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response<Body> {
    let query = query.map(|it| it.0).unwrap_or_default();
    let number = |name: &str| {
        let given = query.iter().find(|it| it.0 == name);
        let given = given.map(|it| {
            it.1.parse::<u64>().map_err(|_| {
                let text: String = it.1.chars().take(100).collect();
                Error::invalid(format!("`{name}`: `{text}` is not a number"))
                    .hint("give a whole number, or leave it out")
            })
        });
        given.transpose()
    };
    let (limit, below) = match (number("limit"), number("below")) {
        (Ok(limit), Ok(below)) => (limit.unwrap_or(50), below),
        (Err(error), _) | (_, Err(error)) => return answer::error(&error),
    };
    if limit == 0 || limit > CHECKPOINTS_MAX as u64 {
        let error = Error::invalid(format!(
            "`limit`: {limit} is not from 1 to {CHECKPOINTS_MAX}"
        ));
        return answer::error(&error.hint("ask for fewer, and go on with `below`"));
    }
    let work = move |engine: &Engine, caller: &Caller| {
        let limit = usize::try_from(limit).unwrap_or(CHECKPOINTS_MAX);
        let found = engine.checkpoints(caller, below, limit)?;
        let has_more = found.last().is_some_and(|it| it.row.height > 0);
        let found: Vec<Value> = found.iter().map(|it| it.to_json()).collect();
        Ok(json!({ "checkpoints": found, "hasMore": has_more }))
    };
    answered(board, slots, who, waited, work).await
}

/// `GET /log/proof/{event}`: an event, by its place or its id, with a signed checkpoint and the path between
/// them, for `kenning audit verify-proof`.
async fn proof(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
    event: Result<Path<String>, PathRejection>,
) -> Response<Body> {
    let Ok(Path(event)) = event else {
        return answer::error(&Error::invalid("the event is not UTF-8 text"));
    };
    let work =
        move |engine: &Engine, caller: &Caller| engine.prove_covered_event(caller, event.trim());
    answered(board, slots, who, waited, work).await
}

/// `GET /log/checkpoint`: the newest checkpoint as a signed note (C2SP tlog-checkpoint).
async fn checkpoint(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let caller = Caller::new(who).after(waited);
    let work = move |caller: &Caller| board.engine().checkpoint_note(caller, None);
    match attended(&slots, caller, work).await {
        Ok(Ok(note)) => {
            let mut response = Response::new(Body::from(note.to_signed_text()));
            let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, plain);
            response
        }
        Ok(Err(error)) | Err(error) => answer::error(&error),
    }
}

/// The log of the caller's space, in the text form of Prometheus.
pub(crate) fn metrics(log: &LogStats) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        let _infallible = writeln!(
            text,
            "# HELP kenning_log_{name} {help}\n# TYPE kenning_log_{name} gauge\nkenning_log_{name} {value}"
        );
    };
    gauge("events", "Events of this space's log.", log.n_events);
    gauge(
        "checkpoints",
        "Signed checkpoints of this space's log.",
        log.n_checkpoints,
    );
    gauge(
        "events_since_checkpoint",
        "Events that the newest checkpoint does not cover.",
        log.n_since_checkpoint,
    );
    gauge(
        "authors",
        "Keys that may sign this space's log.",
        log.n_authors as u64,
    );
    if let Some(it) = &log.last_checkpoint {
        gauge(
            "checkpoint_height",
            "Height of the newest checkpoint.",
            it.height,
        );
        gauge(
            "checkpoint_timestamp_seconds",
            "When the newest checkpoint was signed.",
            it.hlc.ms() / 1_000,
        );
    }
    if let Some(it) = log.last_verified {
        gauge(
            "verified_timestamp_seconds",
            "When this machine last verified the whole log.",
            it.at_ms / 1_000,
        );
        gauge(
            "verified_events",
            "Events of the log when it was last verified.",
            it.n_events,
        );
        gauge(
            "verified_clean",
            "Whether the last verification found no fault.",
            u64::from(it.is_clean),
        );
    }
    text
}
