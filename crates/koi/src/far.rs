//! Another KOI server in place of this one (`KOI_API_ENDPOINT`), by the API that our own servers speak too.
//!
//! The operator named it, so it may be anywhere, loopback included; nothing but that address is reached, and
//! no redirect is followed, because the token would go with it. An address that this very process listens on
//! means "here".

use crate::Koi;
use kenning_core::{Error, Result, Space};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, host_of};
use kenning_text::percent;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The variable with the server's URL.
const ENDPOINT: &str = "KOI_API_ENDPOINT";
/// The variable with the token for it.
const TOKEN: &str = "KOI_API_TOKEN";
/// Pages are fetched and repositories scanned there meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A header of forwarded requests, so that two servers that name each other notice it.
pub const FORWARDED: &str = "kenning-forwarded";

/// What this process knows of the other server, and where it is reached itself.
#[derive(Default)]
pub(crate) struct Far {
    /// The configured server, or what is wrong with its URL.
    named: OnceLock<Option<std::result::Result<Arc<FarServer>, Misnamed>>>,
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

/// What is wrong with a URL. What may contain a secret is not repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Misnamed {
    /// It contains a user name or a password.
    UserInfo,
    /// It has more than a base path.
    Query,
    /// It is not a URL.
    NoAddress(String),
}

impl Misnamed {
    fn error(&self) -> Error {
        const HINT: &str = "write it as http://NAME:PORT, or unset it to answer from here";
        match self {
            Self::UserInfo => Error::invalid(format!(
                "{ENDPOINT}: the address has a user name or a password in it"
            ))
            .hint(format!(
                "write it as http://NAME:PORT, and put a token into {TOKEN}"
            )),
            Self::Query => {
                Error::invalid(format!("{ENDPOINT}: the address has a query in it")).hint(HINT)
            }
            Self::NoAddress(base) => {
                Error::invalid(format!("{ENDPOINT}: `{base}` is not the URL of a server"))
                    .hint(HINT)
            }
        }
    }
}

/// Its answer: a JSON object, or a status that says why not.
#[derive(Clone, Debug)]
pub struct FarAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body; a string if it is not JSON.
    pub body: Value,
}

impl FarAnswer {
    /// Whether it succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Koi {
    /// The KOI server that answers this space's calls in place of this one, if the operator named one.
    ///
    /// The token for it is the operator's, so only the space that this process serves may use it: a token of
    /// another space would read and write the graph there, which is not its own.
    ///
    /// # Errors
    /// Denied for another space; invalid input when what was named is no address.
    pub fn far_server(&self, space: &Space) -> Result<Option<Arc<FarServer>>> {
        let named = self.far.named.get_or_init(|| {
            let said = |name: &str| {
                let text = (self.kernel.environment())(name)?.trim().to_owned();
                (!text.is_empty()).then_some(text)
            };
            let base = said(ENDPOINT)?;
            Some(FarServer::new(&base, said(TOKEN)).map(Arc::new))
        });
        let server = match named {
            None => return Ok(None),
            Some(Err(misnamed)) => return Err(misnamed.error()),
            Some(Ok(server)) => Arc::clone(server),
        };
        let served_at = self.far.served_at.lock();
        let served_at = served_at.unwrap_or_else(PoisonError::into_inner);
        let is_here = served_at.iter().any(|it| server.is_at(*it));
        if is_here {
            return Ok(None);
        }
        if space != self.kernel.vault().space() {
            return Err(Error::denied(format!(
                "the KOI server that {ENDPOINT} names is not served to the space `{space}`"
            ))
            .hint(format!(
                "use a token of the space `{}`, or start a server for `{space}` with an endpoint of its own",
                self.kernel.vault().space()
            )));
        }
        Ok(Some(server))
    }

    /// Records an address that this process listens on.
    pub fn note_served_at(&self, address: SocketAddr) {
        let served_at = self.far.served_at.lock();
        served_at
            .unwrap_or_else(PoisonError::into_inner)
            .push(address);
    }
}

impl FarServer {
    fn new(base: &str, token: Option<String>) -> std::result::Result<Self, Misnamed> {
        if base.contains('@') {
            return Err(Misnamed::UserInfo);
        }
        if base.contains(['?', '#']) {
            return Err(Misnamed::Query);
        }
        let base = base.trim_end_matches('/').to_owned();
        let no_address = |_| Misnamed::NoAddress(base.clone());
        let (host, port) = host_of(&base).map_err(no_address)?;
        let grant = Grant::parse(&base).map_err(no_address)?;
        let policy = Policy {
            grants: vec![grant],
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

    /// A text as one part of a path. What would lead out of that part is refused, because whoever stands
    /// before the server may understand it although it is escaped.
    ///
    /// # Errors
    /// Invalid input when parts `..` lead out of it, or leave nothing of it.
    pub fn segment(text: &str) -> Result<String> {
        let mut depth = Some(0_usize);
        for part in text.split(['/', '\\']) {
            depth = match part {
                "" | "." => depth,
                ".." => depth.and_then(|it| it.checked_sub(1)),
                _ => depth.map(|it| it + 1),
            };
        }
        if depth.is_none_or(|it| it == 0) {
            return Err(
                Error::invalid("the URI is not that of an entity: it leads elsewhere")
                    .hint("name an entity as `koi_search` does"),
            );
        }
        Ok(percent::encoded(text, ""))
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
                    "check that it runs, or unset {ENDPOINT} to answer from here"
                ))
                .because(error)
        })?;
        let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let status = answer.status;
        let is_told = status >= 400 || (200..300).contains(&status);
        if !is_told || (status < 400 && !body.as_ref().is_some_and(Value::is_object)) {
            return Err(self.no_answer(status));
        }
        let text = || String::from_utf8_lossy(&answer.body).into_owned();
        Ok(FarAnswer {
            status,
            body: body.unwrap_or_else(|| Value::String(text())),
        })
    }

    /// An answer that no KOI server gives: a login page, a redirect, nothing.
    fn no_answer(&self, status: u16) -> Error {
        let (host, port) = (&self.host, self.port);
        Error::unavailable(format!(
            "what {host}:{port} answers, which {ENDPOINT} names, is not a JSON object (status {status})"
        ))
        .hint(format!(
            "check that a KOI server is at that URL, or unset {ENDPOINT} to answer from here"
        ))
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

    #[test]
    fn no_secret_of_a_misnamed_server_is_repeated() {
        for (base, expected) in [
            (
                "http://ann:hunter2@127.0.0.1:1",
                "a user name or a password",
            ),
            (
                "http://hunter2@127.0.0.1:1/base",
                "a user name or a password",
            ),
            ("ann:hunter2@host", "a user name or a password"),
            ("http://127.0.0.1:1/?token=hunter2", "a query"),
            ("http://127.0.0.1:1/#hunter2", "a query"),
            ("nowhere", "`nowhere` is not the URL"),
        ] {
            let misnamed = FarServer::new(base, None).err().unwrap();
            let error = misnamed.error();
            let said = format!("{} {:?}", error.message, error.hint);
            assert!(said.contains(expected), "{base}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_part_of_a_path_leads_nowhere_else() {
        for (text, expected) in [
            ("orn:a/é b", Some("orn%3Aa%2F%C3%A9%20b")),
            ("%2e%2e", Some("%252e%252e")),
            ("..a", Some("..a")),
            ("a?b#c", Some("a%3Fb%23c")),
            (".", None),
            ("..", None),
            ("../../admin/tokens", None),
            ("orn:x/../y", Some("orn%3Ax%2F..%2Fy")),
            ("orn:x/../../y", None),
            ("orn:x\\..\\..\\y", None),
            ("orn:x//../../y", None),
            ("orn:x/..", None),
            ("./", None),
        ] {
            assert_eq!(FarServer::segment(text).ok().as_deref(), expected, "{text}");
        }
    }
}
