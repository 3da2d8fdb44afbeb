//! Another KOI server in place of this one (`KOI_API_ENDPOINT`), by the API that our own servers speak too.
//!
//! The operator named it, so it may be anywhere, loopback included; nothing but that address is reached, and
//! no redirect is followed, because the token would go with it. An address that this very process listens on
//! means "here".

use crate::Engine;
use kenning_core::{Error, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, host_of};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Names the server.
const ENDPOINT: &str = "KOI_API_ENDPOINT";
/// Holds the token for it.
const TOKEN: &str = "KOI_API_TOKEN";
/// Pages are fetched and repositories scanned there meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What a server that has asked another one says of it, so that two that name each other notice.
pub const FORWARDED: &str = "kenning-forwarded";

/// What this process knows of the other server, and where it is reached itself.
#[derive(Default)]
pub(crate) struct Far {
    /// What was named, as it was written, and the server, if that is one.
    named: OnceLock<Option<(String, Option<Arc<FarServer>>)>>,
    served_at: Mutex<Vec<SocketAddr>>,
}

/// Another KOI server.
pub struct FarServer {
    base: String,
    host: String,
    port: u16,
    token: Option<String>,
    egress: Egress,
}

/// What it answered: any status is an answer.
#[derive(Clone, Debug)]
pub struct FarAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body; a text where it is not JSON.
    pub body: Value,
}

impl FarAnswer {
    /// Whether it did what it was asked for.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Engine {
    /// The KOI server that answers in place of this one, if the operator named one.
    ///
    /// # Errors
    /// Invalid input when what he named is no address.
    pub fn far_server(&self) -> Result<Option<Arc<FarServer>>> {
        let named = self.far.named.get_or_init(|| {
            let said = |name: &str| {
                let text = (self.environment)(name)?.trim().to_owned();
                (!text.is_empty()).then_some(text)
            };
            let base = said(ENDPOINT)?;
            let server = FarServer::new(&base, said(TOKEN)).ok();
            Some((base, server.map(Arc::new)))
        });
        let Some((base, server)) = named else {
            return Ok(None);
        };
        let server = server.clone().ok_or_else(|| {
            Error::invalid(format!(
                "{ENDPOINT}: `{base}` is not the address of a server"
            ))
            .hint("write it as http://NAME:PORT, or unset it to answer from here")
        })?;
        let served_at = self.far.served_at.lock();
        let served_at = served_at.unwrap_or_else(PoisonError::into_inner);
        let is_here = served_at.iter().any(|it| server.is_at(*it));
        Ok((!is_here).then_some(server))
    }

    /// Notes an address that this process listens on.
    pub fn note_served_at(&self, address: SocketAddr) {
        let served_at = self.far.served_at.lock();
        served_at
            .unwrap_or_else(PoisonError::into_inner)
            .push(address);
    }
}

impl FarServer {
    fn new(base: &str, token: Option<String>) -> Result<Self> {
        let base = base.trim_end_matches('/').to_owned();
        let (host, port) = host_of(&base)?;
        let policy = Policy {
            grants: vec![Grant::parse(&base)?],
            limits: Limits {
                total_timeout: PATIENCE,
                body_bytes_max: BODY_BYTES_MAX,
                redirects_max: 0,
                ..Limits::default()
            },
            ..Policy::default()
        };
        Ok(Self {
            base,
            host,
            port,
            token,
            egress: Egress::new(policy),
        })
    }

    /// Whether this is the server that listens there.
    fn is_at(&self, address: SocketAddr) -> bool {
        if self.port != address.port() {
            return false;
        }
        let own = address.ip().to_canonical();
        let literal = self.host.trim_matches(['[', ']']).parse::<IpAddr>();
        match literal.map(|it| it.to_canonical()) {
            Ok(ip) => ip == own || (own.is_unspecified() && ip.is_loopback()),
            Err(_) => {
                let is_local = self.host.eq_ignore_ascii_case("localhost");
                is_local && (own.is_loopback() || own.is_unspecified())
            }
        }
    }

    /// Fetches, by a path with its query.
    ///
    /// # Errors
    /// Unavailable when the server does not answer.
    pub fn get(&self, path: &str) -> Result<FarAnswer> {
        self.ask(Method::Get, path, Vec::new())
    }

    /// Sends a JSON text, or nothing.
    ///
    /// # Errors
    /// Unavailable when the server does not answer.
    pub fn post(&self, path: &str, body: Vec<u8>) -> Result<FarAnswer> {
        self.ask(Method::Post, path, body)
    }

    fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> Result<FarAnswer> {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![header("Accept", "application/json"), header(FORWARDED, "1")];
        if let Some(token) = &self.token {
            headers.push(header("Authorization", &format!("Bearer {token}")));
        }
        if !body.is_empty() {
            headers.push(header("Content-Type", "application/json"));
        }
        let answer = self.egress.fetch(Request {
            method,
            url: format!("{}{path}", self.base),
            headers,
            body,
            ..Request::default()
        });
        let answer = answer.map_err(|error| {
            let (host, port) = (&self.host, self.port);
            let why = format!(
                "the KOI server at {host}:{port}, which {ENDPOINT} names, does not answer: {error}"
            );
            Error::unavailable(why)
                .hint(format!(
                    "look whether it runs, or unset {ENDPOINT} to answer from here"
                ))
                .because(error)
        })?;
        let text = || String::from_utf8_lossy(&answer.body).into_owned();
        let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| Value::String(text()));
        Ok(FarAnswer {
            status: answer.status,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_listened_on_is_here() {
        for (base, address, expected) in [
            ("http://127.0.0.1:8351", "127.0.0.1:8351", true),
            ("http://127.0.0.1:8351/", "0.0.0.0:8351", true),
            ("http://localhost:8351", "127.0.0.1:8351", true),
            ("http://LOCALHOST:8351", "[::]:8351", true),
            ("http://[::1]:8351", "[::1]:8351", true),
            ("http://[::1]:8351", "127.0.0.1:8351", false),
            ("http://127.0.0.1:8352", "127.0.0.1:8351", false),
            ("http://10.0.0.5:8351", "127.0.0.1:8351", false),
            ("http://10.0.0.5:8351", "10.0.0.5:8351", true),
            ("http://host.docker.internal:8351", "0.0.0.0:8351", false),
        ] {
            let server = FarServer::new(base, None).unwrap();
            let is_here = server.is_at(address.parse().unwrap());
            assert_eq!(is_here, expected, "{base} {address}");
        }
    }
}
