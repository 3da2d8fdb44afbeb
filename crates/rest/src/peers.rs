//! `POST /sync` and `POST /events`: what other nodes ask.
//!
//! They carry no token: each message is signed by the key of a node that is known here, and so is each
//! answer. Whoever sends no challenge is given one, and learns nothing but which key this node has.

use crate::answer;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Response, Uri, header};
use kenning_core::Error;
use kenning_engine::{PeerAnswer, PeerMessage};
use kenning_tools::Board;

/// Where nodes send their messages.
pub(crate) const PATHS: [&str; 2] = ["/sync", "/events"];

/// Whether a request is a message of another node, which its signature admits and not a token.
pub(crate) fn is_message(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && PATHS.contains(&uri.path())
}

pub(crate) async fn receive(
    State(board): State<Board>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let message = PeerMessage {
        path: uri.path().to_owned(),
        peer: text("kenning-peer"),
        challenge: text("kenning-challenge"),
        number: text("kenning-number"),
        signature: text("kenning-signature"),
        body: body.to_vec(),
    };
    let engine = board.engine().clone();
    let answered = tokio::task::spawn_blocking(move || engine.answer_peer(&message)).await;
    let answered = answered.map_err(|cause| Error::internal("a message of a peer").because(cause));
    match answered.and_then(|it| it) {
        Err(error) => answer::error(&error),
        Ok(PeerAnswer::Greeting(value)) => answer::json(axum::http::StatusCode::OK, &value),
        Ok(PeerAnswer::Signed { body, signature }) => {
            let mut response = Response::new(Body::from(body));
            let octets = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, octets);
            if let Ok(signature) = HeaderValue::from_str(&signature) {
                response
                    .headers_mut()
                    .insert("kenning-signature", signature);
            }
            response
        }
    }
}
