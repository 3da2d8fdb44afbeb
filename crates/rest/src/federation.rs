//! `/koi-net/…`: what other nodes of KOI-net ask.
//!
//! They carry no token: each message is signed by the key that is in its sender's name, and answered with the
//! network's own bodies. Base URLs have `/koi-net` at their end or have not, so every path is there twice.

use crate::answer;
use crate::handler::Shared;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use kenning_core::Error;
use kenning_engine::koi::{FEDERATION_BYTES_MAX, FEDERATION_PATHS, FederationHttp};
use kenning_tools::Board;
use kenning_tools::koi::federation_status;
use serde_json::json;

const PREFIX: &str = "/koi-net";
const HEALTH: &str = "/health";

/// The largest body of a message.
pub(crate) const BYTES_MAX: usize = FEDERATION_BYTES_MAX;

/// Whether a request comes from this machine, and not through a proxy; the layer says so.
#[derive(Clone, Copy)]
pub(crate) struct IsLocal(pub(crate) bool);

/// The path below the prefix, however often that stands there.
fn endpoint(uri: &Uri) -> Option<&str> {
    let rest = uri.path().strip_prefix(PREFIX)?;
    Some(rest.strip_prefix(PREFIX).unwrap_or(rest))
}

/// Whether a request is a message of another node, which its signature admits and not a token.
pub(crate) fn is_message(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && endpoint(uri).is_some_and(|it| FEDERATION_PATHS.contains(&it))
}

/// Whether a request only asks who this node is.
pub(crate) fn is_visit(method: &Method, uri: &Uri) -> bool {
    *method == Method::GET && endpoint(uri) == Some(HEALTH)
}

pub(crate) fn routes() -> Router<Shared> {
    let mut router = Router::new().route("/koi-net/koi-net/health", get(health));
    for path in FEDERATION_PATHS {
        router = router
            .route(&format!("{PREFIX}{path}"), post(receive))
            .route(&format!("{PREFIX}{PREFIX}{path}"), post(receive));
    }
    router
}

async fn receive(
    State(board): State<Board>,
    local: Option<Extension<IsLocal>>,
    uri: Uri,
    body: Body,
) -> Response<Body> {
    let Ok(body) = body.collect().await else {
        return answer::error(&Error::invalid("the request body could not be read"));
    };
    let body = body.to_bytes();
    let is_local = local.is_some_and(|it| it.0.0);
    let path = endpoint(&uri).unwrap_or_default().to_owned();
    let engine = board.engine().clone();
    let answered = tokio::task::spawn_blocking(move || {
        let koi = engine.koi();
        koi.answer_federation(&FederationHttp, &path, &body, is_local)
    });
    match answered.await {
        Err(cause) => answer::error(&Error::internal("a message of a node").because(cause)),
        Ok(answered) => {
            let mut response = Response::new(Body::from(answered.body));
            *response.status_mut() =
                StatusCode::from_u16(answered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
    }
}

/// Who this node is, for whoever asks.
pub(crate) async fn health(State(board): State<Board>) -> Response<Body> {
    let engine = board.engine().clone();
    let told = tokio::task::spawn_blocking(move || federation_status::public(&engine)).await;
    match told
        .map_err(|cause| Error::internal("health").because(cause))
        .and_then(|it| it)
    {
        Ok(Some(value)) => answer::json(StatusCode::OK, &value),
        Ok(None) => {
            let off = json!({ "detail": "KOI-net is not enabled" });
            answer::json(StatusCode::NOT_FOUND, &off)
        }
        Err(error) => answer::error(&error),
    }
}

/// Figures of the federation for Prometheus; empty where it is off.
pub(crate) fn metrics(status: &kenning_engine::koi::FederationStatus) -> String {
    let mut text = String::new();
    let mut add = |name: &str, help: &str, value: u64| {
        text += &format!(
            "# HELP kenning_federation_{name} {help}\n# TYPE kenning_federation_{name} gauge\n\
             kenning_federation_{name} {value}\n"
        );
    };
    let peers = &status.peers;
    let count = |state: &str| peers.iter().filter(|it| it.state == state).count() as u64;
    add("peers", "Nodes that are known", peers.len() as u64);
    add(
        "peers_active",
        "Nodes that things are exchanged with",
        count("active"),
    );
    add(
        "peers_unreachable",
        "Nodes that did not answer last",
        count("unreachable"),
    );
    add(
        "peers_cut_off",
        "Nodes that nothing is exchanged with any more",
        count("cut off"),
    );
    add(
        "queued",
        "Events that wait to be delivered",
        status.n_queued as u64,
    );
    add(
        "dead_letters",
        "Events that could not be delivered",
        status.n_dead as u64,
    );
    add(
        "inbox",
        "Messages that are not taken in yet",
        status.n_inbox as u64,
    );
    add(
        "provided",
        "Things that are provided",
        status.n_published as u64,
    );
    let lag = peers.iter().map(|it| it.lag_ms).max().unwrap_or_default();
    add("lag_milliseconds", "How long the oldest event waits", lag);
    text
}
