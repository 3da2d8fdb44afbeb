//! `POST /sync` and `POST /events`: what other nodes ask.
//!
//! They carry no token: each message is signed by the key of a node that is known here, and so is each
//! answer. Whoever sends no challenge is given one, and learns nothing but which key this node has.

use crate::answer;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Response, Uri, header};
use http_body_util::BodyExt;
use kenning_core::Error;
use kenning_engine::{PEER_MESSAGE_BYTES_MAX, PeerAnswer, PeerMessage};
use kenning_tools::Board;

/// Where nodes send their messages.
pub(crate) const PATHS: [&str; 2] = ["/sync", "/events"];

/// Whether a request is a message of another node, which its signature admits and not a token.
pub(crate) fn is_message(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && PATHS.contains(&uri.path())
}

/// The header that names the sender.
pub(crate) const PEER: &str = "kenning-peer";

/// The header without which a message is only greeted.
const CHALLENGE: &str = "kenning-challenge";

/// A greeting needs no body.
const GREETING_BYTES_MAX: usize = 64 * 1024;

/// Whether a message says by whom it is signed.
pub(crate) fn is_sealed(headers: &HeaderMap) -> bool {
    headers.contains_key(CHALLENGE)
}

/// The largest body of a message.
pub(crate) fn bytes_max(headers: &HeaderMap) -> usize {
    if is_sealed(headers) {
        usize::try_from(PEER_MESSAGE_BYTES_MAX).unwrap_or(usize::MAX)
    } else {
        GREETING_BYTES_MAX
    }
}

pub(crate) async fn receive(
    State(board): State<Board>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    // Not as an argument of the function: there a body has another limit. What is wrong with it, the layer says.
    let Ok(body) = body.collect().await else {
        return answer::error(&Error::invalid("the request body could not be read"));
    };
    let message = PeerMessage {
        path: uri.path().to_owned(),
        peer: text(PEER),
        challenge: text(CHALLENGE),
        number: text("kenning-number"),
        signature: text("kenning-signature"),
        body: body.to_bytes().to_vec(),
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
