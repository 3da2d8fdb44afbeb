//! How it stands with other nodes, and the conflicts with what they wrote: what `kenning peer` shows, for agents
//! and programs.

use super::answered;
use crate::answer;
use crate::handler::{Shared, Slots, arguments};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, Response};
use axum::routing::{get, post};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Choice, Engine, PeerView, Principal, SyncStatus, Waited};
use kenning_tools::Board;
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/peers", get(state))
        .route("/peers/conflicts", get(conflicts))
        .route("/peers/conflicts/{id}/settle", post(settle))
}

/// `GET /peers`: the peers of the caller's space, and what this node does by itself.
async fn state(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let work = |engine: &Engine, caller: &Caller| {
        let status = engine.sync_status(caller, None)?;
        let peers: Vec<Value> = status.peers.iter().map(PeerView::to_json).collect();
        Ok(json!({
            "peers": peers, "running": status.is_running, "autoSync": status.interval_ms > 0,
            "syncIntervalMs": status.interval_ms, "syncing": status.is_syncing,
        }))
    };
    answered(board, slots, who, waited, work).await
}

/// `GET /peers/conflicts`: the open ones of the caller's space, oldest first, with both texts.
async fn conflicts(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
) -> Response<Body> {
    let work = |engine: &Engine, caller: &Caller| {
        let open = engine.conflicts(caller)?;
        let open: Vec<Value> = open.iter().map(|it| it.to_json()).collect();
        Ok(json!({ "conflicts": open }))
    };
    answered(board, slots, who, waited, work).await
}

/// `POST /peers/conflicts/{id}/settle` with `{"take": "winner"}` or `{"take": "loser"}`.
async fn settle(
    State(board): State<Board>,
    State(slots): State<Slots>,
    Extension(who): Extension<Principal>,
    Extension(waited): Extension<Waited>,
    id: std::result::Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let body = arguments(&headers, body).await;
    let Ok(Path(id)) = id else {
        return answer::error(&Error::invalid(
            "the name of the conflict is not UTF-8 text",
        ));
    };
    let choice = match body.and_then(|it| choice(&it)) {
        Ok(choice) => choice,
        Err(error) => return answer::error(&error),
    };
    let work = move |engine: &Engine, caller: &Caller| {
        let settled = engine.settle_conflict(caller, id.trim(), choice)?;
        Ok(json!({ "settled": settled.to_json() }))
    };
    answered(board, slots, who, waited, work).await
}

fn choice(body: &Value) -> Result<Choice> {
    let remedy = r#"send {"take": "winner"} for the version that holds, or {"take": "loser"} for the one that lost"#;
    let none = Map::new();
    let fields = match body {
        Value::Null => &none,
        Value::Object(fields) => fields,
        _ => return Err(Error::invalid("the body is not a JSON object").hint(remedy)),
    };
    if let Some(name) = fields.keys().find(|it| *it != "take") {
        let name: String = name.chars().take(100).collect();
        return Err(
            Error::invalid(format!("`{name}` is not a field of this request")).hint(remedy),
        );
    }
    match fields.get("take").map(|it| it.as_str()) {
        Some(Some("winner")) => Ok(Choice::Winner),
        Some(Some("loser")) => Ok(Choice::Loser),
        Some(_) => {
            let given: String = fields["take"].to_string().chars().take(100).collect();
            Err(Error::invalid(format!("`take`: {given} is not a choice")).hint(remedy))
        }
        None => Err(Error::invalid("`take` is missing").hint(remedy)),
    }
}

/// The peers of the caller's space, in the text form of Prometheus.
pub(crate) fn metrics(status: &SyncStatus) -> String {
    let mut text = String::new();
    let mut series = |name: &str, kind: &str, help: &str, of: &dyn Fn(&PeerView) -> Option<u64>| {
        let _infallible = writeln!(
            text,
            "# HELP kenning_peer_{name} {help}\n# TYPE kenning_peer_{name} {kind}"
        );
        for it in &status.peers {
            if let Some(value) = of(it) {
                let id = &it.peer.id;
                let _infallible = writeln!(text, "kenning_peer_{name}{{peer=\"{id}\"}} {value}");
            }
        }
    };
    if status.peers.is_empty() {
        return text;
    }
    series(
        "lag",
        "gauge",
        "Entries of the peer's log that are known to be missing here.",
        &|it| Some(it.lag),
    );
    series(
        "unsent",
        "gauge",
        "Entries of this log that the peer is not known to have.",
        &|it| Some(it.n_unsent),
    );
    series(
        "errors_total",
        "counter",
        "Exchanges with the peer that failed.",
        &|it| Some(it.n_errors),
    );
    series(
        "last_sync_seconds",
        "gauge",
        "When everything was last exchanged with the peer, in seconds since 1970.",
        &|it| it.last_sync_ms.map(|it| it / 1_000),
    );
    text
}

/// The routes in the OpenAPI document.
pub(crate) fn paths() -> Map<String, Value> {
    let error = json!({ "$ref": "#/components/responses/Error" });
    let ok = |schema: Value| {
        json!({
            "200": {
                "description": "The answer",
                "content": { "application/json": { "schema": schema } },
            },
            "default": error,
        })
    };
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer" });
    let maybe = json!({ "type": ["string", "null"] });
    let maybe_number = json!({ "type": ["integer", "null"] });
    let peer = json!({ "type": "object", "properties": {
        "id": text, "endpoint": text, "did": text,
        "status": { "type": "string", "enum": ["connected", "syncing", "disconnected", "error"] },
        "lastSync": maybe, "errors": number, "lastError": maybe, "received": number,
        "sent": number, "refused": number, "conflicts": number, "latencyMs": maybe_number,
        "read": number, "lag": number, "unsent": number, "checkpoint": maybe_number,
    }});
    let peers = json!({ "type": "object", "properties": {
        "peers": { "type": "array", "items": peer }, "running": { "type": "boolean" },
        "autoSync": { "type": "boolean" }, "syncIntervalMs": number,
        "syncing": { "type": "boolean" },
    }});
    let conflict = json!({ "type": "object", "properties": {
        "id": text, "at": text, "nodeId": text, "nodeType": text, "key": text,
        "current": maybe, "lost": maybe, "winnerAuthor": text, "loserAuthor": text,
    }});
    let open = json!({ "type": "object", "properties": {
        "conflicts": { "type": "array", "items": conflict },
    }});
    let settled = json!({ "type": "object", "properties": { "settled": conflict } });
    let take = json!({ "type": "object", "required": ["take"], "properties": {
        "take": { "type": "string", "enum": ["winner", "loser"] },
    }});
    let mut paths = Map::new();
    let mut add = |path: &str, operation: Value| paths.insert(path.to_owned(), operation);
    add(
        "/peers",
        json!({ "get": { "summary": "How it stands with other nodes", "responses": ok(peers) } }),
    );
    add(
        "/peers/conflicts",
        json!({ "get": {
            "summary": "Writes of other nodes that contradict writes of this one", "responses": ok(open),
        }}),
    );
    let settle = json!({
        "summary": "Settle a conflict: keep the version that holds, or bring back the one that lost",
        "parameters": [{
            "name": "id", "in": "path", "required": true, "schema": { "type": "string" },
            "description": "Its id, or the key of what it is about",
        }],
        "requestBody": {
            "required": true, "content": { "application/json": { "schema": take } },
        },
        "responses": ok(settled),
    });
    add("/peers/conflicts/{id}/settle", json!({ "post": settle }));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_the_winner_or_the_loser_and_nothing_else() {
        assert_eq!(
            choice(&json!({ "take": "loser" })).ok(),
            Some(Choice::Loser)
        );
        assert_eq!(
            choice(&json!({ "take": "winner" })).ok(),
            Some(Choice::Winner)
        );
        for (body, expected) in [
            (json!({}), "`take` is missing"),
            (Value::Null, "`take` is missing"),
            (json!([]), "not a JSON object"),
            (
                json!({ "take": "both" }),
                "`take`: \"both\" is not a choice",
            ),
            (json!({ "take": 1 }), "`take`: 1 is not a choice"),
            (json!({ "take": "loser", "x": 1 }), "`x` is not a field"),
        ] {
            let error = choice(&body).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
            assert!(error.hint.is_some(), "{error}");
        }
    }
}
