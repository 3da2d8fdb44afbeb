//! The log of requests: one line each, with fields.
//!
//! What is refused is told at `info`: an operator sees who is turned away without reading every call. What is
//! answered is told at `debug`. Neither has a token, a query or a body.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use std::net::IpAddr;
use std::time::Duration;

/// What is told of a path at most.
const PATH_CHARS_MAX: usize = 80;

/// A request, before it is answered.
pub(crate) struct Asked {
    method: Method,
    path: String,
    peer: Option<IpAddr>,
}

impl Asked {
    pub(crate) fn of(request: &Request) -> Self {
        let peer = request.extensions().get::<crate::server::Peer>();
        Self {
            method: request.method().clone(),
            path: shown(request.uri().path()),
            peer: peer.map(|it| it.0.ip()),
        }
    }

    /// Tells how it was answered.
    pub(crate) fn log(&self, status: StatusCode, who: Option<&str>, took: Duration) {
        let Self { method, path, peer } = self;
        let (status, ms) = (status.as_u16(), took.as_millis());
        let peer = peer.map(|it| it.to_string()).unwrap_or_default();
        let who = who.unwrap_or_default();
        if is_refusal(status) {
            tracing::info!(target: "kenning::requests", %method, path, status, ms, who, peer, "refused");
        } else {
            tracing::debug!(target: "kenning::requests", %method, path, status, ms, who, peer, "answered");
        }
    }
}

/// Who may not, who asks too often, and what the server cannot do now.
fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 413 | 421 | 429 | 503)
}

fn shown(path: &str) -> String {
    let plain = path.chars().map(|it| match it.is_control() {
        true => '?',
        false => it,
    });
    plain.take(PATH_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_short_line() {
        assert_eq!(shown("/tools/now_read"), "/tools/now_read");
        assert_eq!(shown("/a\nb"), "/a?b");
        assert_eq!(shown(&"/x".repeat(500)).chars().count(), PATH_CHARS_MAX);
    }

    #[test]
    fn refusals_are_those_that_an_operator_looks_for() {
        assert!([401, 403, 429, 503].into_iter().all(is_refusal));
        assert!(![200, 202, 404, 500].into_iter().any(is_refusal));
    }
}
