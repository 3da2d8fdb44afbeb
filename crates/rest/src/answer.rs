//! Errors and replies as HTTP answers.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use kenning_core::{Code, Error};
use kenning_tools::Reply;
use serde_json::{Value, json};

/// A JSON answer.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{value}\n")));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The answer for an error, with its status, its code and its remedy.
pub(crate) fn error(error: &Error) -> Response<Body> {
    let row = error.code.row();
    let mut body = json!({ "error": {
        "code": row.name, "message": error.message, "retryable": row.retryable,
    }});
    if let Some(hint) = &error.hint {
        body["error"]["hint"] = hint.as_str().into();
    }
    let mut response = json(status(row.http), &body);
    let headers = response.headers_mut();
    if error.code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(error.code, Code::Limited | Code::Unavailable) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// The answer for a tool's reply: the contract's own object, with the status of its error.
pub(crate) fn reply(reply: &Reply) -> Response<Body> {
    match (&reply.error, &reply.structured) {
        (Some(failed), None) => error(failed),
        (Some(failed), Some(envelope)) => json(status(failed.code.row().http), envelope),
        (None, _) => json(StatusCode::OK, &reply.to_json()),
    }
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
