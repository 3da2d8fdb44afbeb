//! Errors and replies as HTTP answers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
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

/// The response for an error, with its status, its code and its hint.
pub(crate) fn error(error: &Error) -> Response<Body> {
    // A cause is for the log. Errors of tools have theirs hidden already.
    let hidden = (error.code == Code::Internal && error.source.is_some())
        .then(|| kenning_tools::hide_internal(error, "a request"));
    let error = hidden.as_ref().unwrap_or(error);
    let row = error.code.row();
    let mut body = json!({ "error": {
        "code": row.name, "message": error.message, "retryable": row.retryable,
    }});
    if let Some(hint) = &error.hint {
        body["error"]["hint"] = hint.as_str().into();
    }
    let mut response = json(status(row.http), &body);
    say(error.code, response.headers_mut());
    response
}

/// The response for a tool's reply: the contract's own object, with the status of its error.
pub(crate) fn reply(reply: &Reply) -> Response<Body> {
    match (&reply.error, &reply.value) {
        (Some(failed), None) => error(failed),
        (Some(failed), Some(envelope)) => {
            let http = reply.status.unwrap_or(failed.code.row().http);
            let mut response = json(status(http), envelope);
            say(failed.code, response.headers_mut());
            response
        }
        (None, _) => {
            let mut response = json(StatusCode::OK, &reply.to_json());
            remark(reply, &mut response);
            response
        }
    }
}

/// Remarks go into a header, because the payload is the contract's.
pub(crate) fn remark(reply: &Reply, response: &mut Response<Body>) {
    for remark in &reply.remarks {
        if let Ok(value) = HeaderValue::from_str(remark) {
            response.headers_mut().append("kenning-remark", value);
        }
    }
}

/// Sets the headers that HTTP has for an error.
fn say(code: Code, headers: &mut HeaderMap) {
    if code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(code, Code::Limited | Code::Unavailable) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
