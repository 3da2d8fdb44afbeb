//! Origins that the operator allows (CORS).
//!
//! A browser first asks whether a page may call, and shows it the response only if that says so. This
//! preflight request carries no token, so it is answered before authentication. Cookies are never
//! read; a page that needs a token sends it in a header.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use kenning_core::{Error, Result};

/// Sent by browsers before a public page may call a private address.
const PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK_ALLOWED: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// An allowed origin: `https://app.example`, with a port if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Parses an origin.
    ///
    /// # Errors
    /// Invalid input if it is anything but one origin.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim().trim_end_matches('/').to_ascii_lowercase();
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let plain = |it: char| it.is_ascii_alphanumeric() || "-.:[]_".contains(it);
        match rest {
            Some(rest) if !rest.is_empty() && rest.chars().all(plain) => Ok(Self(text)),
            _ => Err(
                Error::invalid(format!("`{text}` is not the origin of a page"))
                    .hint("write it as https://NAME or http://NAME:PORT, one at a time"),
            ),
        }
    }

    /// Whether this is the origin in a header.
    pub(crate) fn is(&self, origin: &str) -> bool {
        self.0.eq_ignore_ascii_case(origin)
    }
}

/// The response to a preflight request; `None` for other requests.
pub(crate) fn preflight(origin: Option<&HeaderValue>, request: &Request) -> Option<Response<Body>> {
    let asked = request.headers();
    let is_question = *request.method() == Method::OPTIONS
        && asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if origin.is_none() || !is_question {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            "GET, POST, PUT, DELETE",
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
             mcp-protocol-version, mcp-session-id, x-api-key",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if asked.contains_key(PRIVATE_NETWORK) {
        headers.insert(PRIVATE_NETWORK_ALLOWED, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Tells a browser that a page of this origin may read the response.
pub(crate) fn share(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("kenning-remark, mcp-session-id, retry-after"),
    );
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("cross-origin"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_name_and_perhaps_a_port() {
        for text in [
            "https://app.example",
            "http://10.0.0.5:3000",
            "http://[::1]:80/",
        ] {
            assert!(Origin::parse(text).is_ok(), "{text}");
        }
        for text in [
            "*",
            "null",
            "",
            "app.example",
            "https://",
            "https://a/b",
            "https://a, https://b",
            "ftp://a",
            "https://user@a",
        ] {
            assert!(Origin::parse(text).is_err(), "{text}");
        }
        let origin = Origin::parse("https://App.Example/").unwrap();
        assert!(origin.is("https://app.example") && !origin.is("https://app.example.evil"));
    }
}
