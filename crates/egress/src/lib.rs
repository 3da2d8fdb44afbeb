//! Outgoing connections: the only crate that connects to an address from outside (a caller, a page, a tool).
//!
//! A URL is read once, its name is resolved once, every address that came back is checked against
//! one table of special ranges ([`SPECIAL`]), and the connection is opened to one of those very addresses.
//! There is no second lookup that could answer differently, and the HTTP client never opens a connection
//! itself. Each redirect is checked again in full.
//!
//! This crate does not know who calls or why: the [`Grant`]s of the [`Policy`] decide what is permitted
//! beyond the public internet.
//!
//! Its one invariant: a connection is opened only to an address inside a [`Checked`], and only
//! [`Egress`] can make one.
//!
//! # Choices
//!
//! - **One special address among many refuses the whole name.** Connecting to the public ones of a
//!   mixed answer would let a name server choose when the private one is tried.
//! - **Too many redirects are [`Code::Denied`]**, not `limited`: `limited` invites a retry, and a
//!   ring of redirects will not open by being asked again.
//! - **On the way to another origin only harmless headers are kept** ([`Request::headers`]). Keys
//!   travel in headers of any name, so a list of what to drop would be too short.
//! - **Nothing of a path, a query or userinfo is in a message**: those carry tokens.
//!
//! [`Code::Denied`]: kenning_core::Code::Denied

#![deny(missing_docs)]

mod grant;
mod http;
mod key;
mod net;
mod patience;
mod place;
mod special;
mod tunnel;

pub use grant::Grant;
pub use key::Key;
pub use net::{Connect, Resolve, SystemConnector, SystemResolver};
pub use patience::Patience;
pub use special::{Net, SPECIAL, Special, is_special, special};
pub use tunnel::{Tunnel, TunnelLimits};

use kenning_core::{Error, Result};
use place::{Named, Place};
use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::{HeaderName, HeaderValue};
use ureq::tls::TlsConfig;

/// What is permitted, with which limits, and how the network is reached.
#[derive(Clone)]
pub struct Policy {
    /// What the operator permitted beyond the public internet.
    pub grants: Vec<Grant>,
    /// Bounds of every exchange.
    pub limits: Limits,
    /// Looks up names.
    pub resolver: Arc<dyn Resolve>,
    /// Opens connections.
    pub connector: Arc<dyn Connect>,
    /// Certificates (DER) that servers are trusted by, in place of the public ones.
    pub roots: Option<Vec<Vec<u8>>>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            grants: Vec::new(),
            limits: Limits::default(),
            resolver: Arc::new(SystemResolver::default()),
            connector: Arc::new(SystemConnector),
            roots: None,
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("grants", &self.grants)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Bounds of an exchange. Redirects share them; a redirect does not reset them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For opening one connection, over all addresses of the name.
    pub connect_timeout: Duration,
    /// From the call to the last byte of the body.
    pub total_timeout: Duration,
    /// Size of the body, after decompression.
    pub body_bytes_max: u64,
    /// Size of the status line and headers of one response.
    pub header_bytes_max: usize,
    /// How many redirects are followed.
    pub redirects_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(30),
            body_bytes_max: 10 * 1024 * 1024,
            header_bytes_max: 64 * 1024,
            redirects_max: 5,
        }
    }
}

/// The HTTP method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `PATCH`.
    Patch,
    /// `OPTIONS`.
    Options,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Patch => "PATCH",
            Self::Options => "OPTIONS",
        }
    }

    fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// What a redirect turns it into (the Fetch standard, 4.4).
    fn after(self, status: u16) -> Self {
        match (status, self) {
            (303, Self::Head) => Self::Head,
            (303, _) | (301 | 302, Self::Post) => Self::Get,
            _ => self,
        }
    }
}

/// A request to an untrusted address.
#[derive(Clone, Default)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: String,
    /// Headers to send. `Host`, `Content-Length` and others of the connection are refused. On
    /// a redirect to another origin only `Accept`, `Accept-Language`, `User-Agent` and those that
    /// describe a body still sent go on.
    pub headers: Vec<(String, String)>,
    /// Only with [`Method::Post`], [`Method::Put`] and [`Method::Patch`].
    pub body: Vec<u8>,
    /// If given, a successful answer must have a content type that begins with one of these, such
    /// as `text/` or `application/json`.
    pub accept_types: Option<Vec<String>>,
    /// Whether plain HTTP is refused, at the start and after every redirect.
    pub https_only: bool,
    /// Whether to return a redirect instead of following it, for a caller that checks the next address itself.
    pub redirect_is_answer: bool,
}

impl Request {
    /// A plain GET.
    pub fn get(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            url,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Request {
    /// Headers, body and the rest of the URL may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.name(), place::shown(&self.url))
    }
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Response {
    /// Any status that is not a redirect we followed; 404 and 500 are answers, not errors.
    pub status: u16,
    /// Names in lower case. Without `content-encoding` and `content-length` if it was decompressed.
    pub headers: Vec<(String, String)>,
    /// Decompressed, whole.
    pub body: Vec<u8>,
    /// Where it came from after redirects, without fragment.
    pub final_url: String,
    /// The address that was connected.
    pub address: SocketAddr,
    /// The URLs that redirected, in order.
    pub redirects: Vec<String>,
}

impl Response {
    /// The first header of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An address that was checked and may be connected to.
#[derive(Clone, Debug)]
pub struct Checked {
    place: Place,
    addresses: Vec<SocketAddr>,
    granted: bool,
}

impl Checked {
    /// The normalized URL, without fragment.
    pub fn url(&self) -> &str {
        self.place.url.as_str()
    }

    /// The host, as name or number.
    pub fn host(&self) -> &str {
        self.place.url.host_str().unwrap_or_default()
    }

    /// Where it would be connected, in order of preference.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether it passed only because the operator permitted it.
    pub fn granted(&self) -> bool {
        self.granted
    }
}

/// Why an address was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// It is not a web address, or one that parsers read differently.
    Text,
    /// The name is never one of the public internet.
    Name,
    /// Something other than the web listens on this port.
    Port(u16),
    /// The name has no address.
    NoAddress,
    /// It resolves to this address, which is not on the public internet.
    Address(IpAddr),
}

/// A refused address, and why.
#[derive(Debug)]
pub struct Stopped {
    /// The reason.
    pub at: Barrier,
    /// The reason as an error.
    pub error: Error,
}

impl Stopped {
    fn at(at: Barrier, error: Error) -> Box<Self> {
        Box::new(Self { at, error })
    }
}

/// The host and the port that a URL names, without looking anything up.
pub fn host_of(url: &str) -> Result<(String, u16)> {
    let place = Place::parse(url)?;
    let host = place.url.host_str().unwrap_or_default().to_owned();
    Ok((host, place.port))
}

/// Makes requests under a policy. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    inner: Arc<Inner>,
}

struct Inner {
    policy: Policy,
    tls: TlsConfig,
}

/// Addresses of one name that are tried before giving up.
const TRIES_MAX: usize = 6;

/// Headers that reveal nothing about the caller.
const HARMLESS: &[&str] = &["accept", "accept-language", "user-agent"];
/// Headers that describe the body, and go where it goes.
const OF_BODY: &[&str] = &["content-type", "content-language", "content-encoding"];
/// Headers that belong to the connection. A caller who sets them could make one request look like
/// two, or reach another host behind the same address.
const OF_CONNECTION: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Egress {
    /// With this policy.
    pub fn new(policy: Policy) -> Self {
        let tls = http::tls(policy.roots.as_deref());
        let inner = Arc::new(Inner { policy, tls });
        Self { inner }
    }

    /// Reads, resolves and checks an address without connecting to it.
    pub fn check(&self, url: &str) -> Result<Checked> {
        self.judge(url).map_err(|it| it.error)
    }

    /// The same for a caller that writes its own error messages.
    pub fn judge(&self, url: &str) -> std::result::Result<Checked, Box<Stopped>> {
        let place = Place::parse(url).map_err(|error| Stopped::at(Barrier::Text, error))?;
        self.admit(place, Instant::now() + self.limits().total_timeout)
    }

    /// Sends a request, checking the address at every hop.
    pub fn fetch(&self, request: Request) -> Result<Response> {
        kenning_core::idle::waiting(|| self.follow(request))
    }

    fn follow(&self, request: Request) -> Result<Response> {
        let deadline = Instant::now() + self.limits().total_timeout;
        let Request {
            mut method,
            url,
            mut headers,
            mut body,
            accept_types,
            https_only,
            redirect_is_answer,
        } = request;
        let mut place = Place::parse(&url)?;
        refuse_headers(&headers)?;
        if !body.is_empty() && !method.has_body() {
            let name = method.name();
            return Err(Error::invalid(format!("a `{name}` request has no body")));
        }
        let start = place.shown.clone();
        let mut redirects: Vec<String> = Vec::new();
        loop {
            // After a redirect, the message must say which of the caller's addresses led there.
            let hop = |err: Error| match redirects.is_empty() {
                true => err,
                false => after_redirect(&start, err),
            };
            if https_only && !place.is_https() {
                let refused = format!("`{}` is not https", place.shown);
                return Err(hop(Error::denied(refused)));
            }
            let checked = self.admit(place, deadline).map_err(|it| hop(it.error))?;
            let (stream, address) = self.connect(&checked, deadline).map_err(hop)?;
            let ask = http::Ask {
                place: &checked.place,
                method,
                headers: &headers,
                body: &body,
                deadline,
            };
            let (limits, tls) = (self.limits(), &self.inner.tls);
            let answer = http::exchange(stream, address, &ask, limits, tls).map_err(hop)?;
            let shown = &checked.place.shown;

            let redirected = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            let redirected = redirected && !redirect_is_answer;
            if let Some(location) = answer.header("location").filter(|_| redirected) {
                if redirects.len() >= limits.redirects_max {
                    let max = limits.redirects_max;
                    let refused = format!("`{start}` redirects more than {max} times");
                    return Err(Error::denied(refused));
                }
                let next = checked.place.follow(location);
                let next = next.map_err(|err| after_redirect(&start, err))?;
                if checked.place.is_https() && !next.is_https() {
                    let to = &next.shown;
                    let refused = format!("`{shown}` redirects from https to `{to}`");
                    return Err(Error::denied(refused));
                }
                method = method.after(answer.status);
                if !method.has_body() {
                    body.clear();
                    headers.retain(|(name, _)| !is_among(OF_BODY, name));
                }
                if !next.same_origin(&checked.place) {
                    headers.retain(|(name, _)| is_among(HARMLESS, name) || is_among(OF_BODY, name));
                }
                redirects.push(checked.place.url.into());
                place = next;
                continue;
            }

            refuse_type(&answer, accept_types.as_deref(), shown).map_err(hop)?;
            let (status, headers) = (answer.status, answer.headers.clone());
            let body = answer.read(shown, limits).map_err(hop)?;
            return Ok(Response {
                status,
                headers,
                body,
                final_url: checked.place.url.into(),
                address,
                redirects,
            });
        }
    }

    fn limits(&self) -> &Limits {
        &self.inner.policy.limits
    }

    /// Resolves once and checks every address that came back.
    fn admit(&self, place: Place, deadline: Instant) -> std::result::Result<Checked, Box<Stopped>> {
        let policy = &self.inner.policy;
        let shown = &place.shown;
        let host_granted = policy.grants.iter().any(|it| it.permits_host(&place));
        if place.port == 0 {
            let error = Error::denied(format!("`{shown}` has no port"));
            return Err(Stopped::at(Barrier::Port(0), error));
        }
        if !host_granted {
            if let Some(why) = place.name_refused() {
                let error = refused(format!("`{shown}` names {why}"));
                return Err(Stopped::at(Barrier::Name, error));
            }
            if let Some(what) = place.port_refused() {
                let port = place.port;
                let why = format!("`{shown}` uses port {port}, which is not a web port ({what})");
                return Err(Stopped::at(Barrier::Port(port), refused(why)));
            }
        }
        let found: Vec<IpAddr> = match &place.host {
            Named::Literal(address) => vec![*address],
            Named::Name(name) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let found = policy.resolver.resolve(name, left);
                found.map_err(|err| {
                    let error = match err.kind() {
                        std::io::ErrorKind::TimedOut => http::timed_out(shown).because(err),
                        _ => Error::unavailable(format!("no address for `{shown}`")).because(err),
                    };
                    Stopped::at(Barrier::NoAddress, error)
                })?
            }
        };
        let mut addresses = Vec::with_capacity(found.len());
        let mut granted = host_granted;
        for address in found.iter().map(IpAddr::to_canonical) {
            if let Some(row) = special(address) {
                let permits = |it: &Grant| it.permits_address(&place, address);
                if !policy.grants.iter().any(permits) {
                    let (why, net) = (row.why, row.net);
                    let error = refused(format!("`{shown}` resolves to {why} ({net})"));
                    return Err(Stopped::at(Barrier::Address(address), error));
                }
                granted = true;
            }
            addresses.push(SocketAddr::new(address, place.port));
        }
        if addresses.is_empty() {
            let error = Error::unavailable(format!("no address for `{shown}`"));
            return Err(Stopped::at(Barrier::NoAddress, error));
        }
        Ok(Checked {
            place,
            addresses,
            granted,
        })
    }

    /// Opens a connection to the first checked address that answers.
    fn connect(&self, checked: &Checked, deadline: Instant) -> Result<(TcpStream, SocketAddr)> {
        let shown = &checked.place.shown;
        let until = deadline.min(Instant::now() + self.limits().connect_timeout);
        let tries = checked.addresses.len().min(TRIES_MAX);
        let mut last = None;
        for (idx, address) in checked.addresses.iter().take(tries).enumerate() {
            // An address that does not answer must leave time for the next ones.
            let share = u32::try_from(tries - idx).unwrap_or(u32::MAX);
            let timeout = until.saturating_duration_since(Instant::now()) / share;
            if timeout.is_zero() {
                return Err(http::timed_out(shown));
            }
            match self.inner.policy.connector.connect(*address, timeout) {
                Ok(stream) => return Ok((stream, *address)),
                Err(err) => last = Some(err),
            }
        }
        Err(match last {
            Some(err) if err.kind() == std::io::ErrorKind::TimedOut => {
                http::timed_out(shown).because(err)
            }
            Some(err) => Error::unavailable(format!("`{shown}` cannot be reached")).because(err),
            None => Error::unavailable(format!("no address for `{shown}`")),
        })
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.policy.fmt(f)
    }
}

fn refused(why: String) -> Error {
    Error::denied(why).hint("the operator can grant a host in the configuration")
}

fn after_redirect(start: &str, mut err: Error) -> Error {
    err.message = format!("after a redirect from `{start}`: {}", err.message);
    err
}

fn is_among(list: &[&str], name: &str) -> bool {
    list.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Before any connection is opened: a header that cannot be sent, or must not be.
fn refuse_headers(headers: &[(String, String)]) -> Result<()> {
    for (name, value) in headers {
        // The value may be a key, and a broken name may be anything: neither is repeated.
        let broken = || Error::invalid("the request has a malformed header");
        let name: HeaderName = name.parse().map_err(|err| broken().because(err))?;
        HeaderValue::from_str(value).map_err(|err| broken().because(err))?;
        if is_among(OF_CONNECTION, name.as_str()) {
            let why = format!("the header `{name}` is set by the connection itself");
            return Err(Error::invalid(why));
        }
    }
    Ok(())
}

/// Checks the type before the body is read, so that an unusable body is not downloaded.
fn refuse_type(answer: &http::Answer, wanted: Option<&[String]>, shown: &str) -> Result<()> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    // An error page may have any type; 204 and 205 have no body.
    if !matches!(answer.status, 200..=299) || matches!(answer.status, 204 | 205) {
        return Ok(());
    }
    let found = answer.header("content-type").unwrap_or_default();
    let found = found.split(';').next().unwrap_or_default().trim();
    let found = found.to_ascii_lowercase();
    if wanted
        .iter()
        .any(|it| found.starts_with(&it.to_ascii_lowercase()))
    {
        return Ok(());
    }
    let found: String = found
        .chars()
        .filter(|c| c.is_ascii_graphic() && *c != '`')
        .take(80)
        .collect();
    let wanted = wanted.join("`, `");
    Err(Error::invalid(format!("`{shown}` is of type `{found}`"))
        .hint(format!("only `{wanted}` is read here")))
}
