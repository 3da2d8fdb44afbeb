//! One request through the host's `wasi:http`.

use crate::url::Url;
use crate::{Failure, Response};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// How much is asked of a stream at once.
const CHUNK_BYTES: u64 = 64 * 1024;

/// Asks, waits, and reads at most so many bytes of the body.
pub(crate) fn get(url: &Url, bytes_max: usize) -> Result<Response, Failure> {
    let pending = outgoing_handler::handle(request(url)?, None)?;
    pending.subscribe().block();
    let response = match pending.get() {
        Some(Ok(response)) => response?,
        Some(Err(())) | None => return Err(other("the host gave no response")),
    };
    Ok(Response {
        status: response.status(),
        headers: response.headers().entries(),
        body: body(&response, bytes_max)?,
    })
}

fn request(url: &Url) -> Result<OutgoingRequest, Failure> {
    let scheme = if url.is_tls {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let request = OutgoingRequest::new(Fields::new());
    let named = request
        .set_scheme(Some(&scheme))
        .and_then(|()| request.set_authority(Some(&url.authority)))
        .and_then(|()| request.set_path_with_query(Some(&url.path_with_query)));
    named.map_err(|()| other("it is not an address that can be asked"))?;
    Ok(request)
}

fn body(response: &IncomingResponse, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let taken_twice = |()| other("the body was taken before");
    let body = response.consume().map_err(taken_twice)?;
    let stream = body.stream().map_err(taken_twice)?;
    let mut bytes = Vec::new();
    while bytes.len() < bytes_max {
        let wanted = CHUNK_BYTES.min((bytes_max - bytes.len()) as u64);
        match stream.blocking_read(wanted) {
            Ok(chunk) => bytes.extend(chunk),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(err)) => {
                return Err(other(&err.to_debug_string()))
            }
        }
    }
    Ok(bytes)
}

fn other(why: &str) -> Failure {
    Failure::Other(why.to_owned())
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => Self::Denied,
            ErrorCode::InternalError(Some(why)) => Self::Other(why),
            ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => other("no such host"),
            ErrorCode::ConnectionRefused => other("nobody listens there"),
            ErrorCode::ConnectionTimeout | ErrorCode::HttpResponseTimeout => {
                other("no answer in time")
            }
            code => Self::Other(code.to_string()),
        }
    }
}
