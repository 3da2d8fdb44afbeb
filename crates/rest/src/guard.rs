//! The one layer around every route.
//!
//! A web page that somebody visits can send requests to this machine. What stops it: the `Host` must
//! be a name of ours (else a name of theirs was pointed at our address), and an `Origin` must be one
//! of ours (else a page of theirs is asking). Both are checked on every route before anything else.

use crate::answer;
use crate::rate::Rate;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, Uri, header};
use axum::middleware::Next;
use http_body_util::Limited;
use kenning_core::{Error, Result, Space};
use kenning_engine::{Engine, Principal, Scope};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest request.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest time until an answer begins.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Names under which this server may be called.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Beside the loopback names: what `--allow-host` named, and the addresses we listen on.
    pub extra: Vec<String>,
}

impl Hosts {
    /// Whether `authority` (`name`, `name:port`, `[::1]:port`) is one of ours.
    pub fn allows(&self, authority: &str) -> bool {
        let Some(name) = host_of(authority) else {
            return false;
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        if self.extra.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            return true;
        }
        let bare = name
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(name);
        bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    }

    /// Whether `origin` (`http://name:port`) is one of ours.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|authority| self.allows(authority))
    }
}

/// The name in an authority; `None` unless it is exactly a name and perhaps a port.
fn host_of(authority: &str) -> Option<&str> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')? + 2;
            (&authority[..end], &authority[end..])
        }
        None => match authority.find(':') {
            Some(at) => (&authority[..at], &authority[at..]),
            None => (authority, ""),
        },
    };
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    let port_ok = port.is_empty()
        || port.strip_prefix(':').is_some_and(|it| {
            it.bytes().all(|b| b.is_ascii_digit()) && it.parse::<u16>().is_ok_and(|it| it > 0)
        });
    (!name.is_empty() && name.chars().all(plain) && port_ok).then_some(name)
}

/// What the layer knows.
pub struct Guard {
    engine: Arc<Engine>,
    hosts: Hosts,
    require_token: bool,
    fixed_token: Option<String>,
    owner_space: Space,
    rate: Rate,
}

impl Guard {
    /// `fixed_token` is a token with every scope that the operator gave on the command line.
    pub fn new(
        engine: Arc<Engine>,
        hosts: Hosts,
        require_token: bool,
        fixed_token: Option<String>,
        calls_per_minute: u32,
    ) -> Self {
        let rate = Rate::new(calls_per_minute);
        let owner_space = Space::default();
        Self {
            engine,
            hosts,
            require_token,
            fixed_token,
            owner_space,
            rate,
        }
    }

    fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let refuse = |what: &str, value: &str| {
            Error::denied(format!("{what} `{}` is not served here", shown(value)))
                .hint("`--allow-host NAME` permits a name")
        };
        let one = |name: header::HeaderName| -> Result<Option<&str>> {
            let mut values = headers.get_all(&name).iter();
            let first = values.next();
            if values.next().is_some() {
                return Err(Error::denied(format!("the header `{name}` stands twice")));
            }
            let text = first.map(|it| it.to_str()).transpose();
            text.map_err(|_| Error::denied(format!("the header `{name}` is not plain text")))
        };
        let host = one(header::HOST)?;
        // An absolute request line names the host a second time; both must be ours.
        for name in [host, uri.authority().map(|it| it.as_str())]
            .into_iter()
            .flatten()
        {
            if !self.hosts.allows(name) {
                return Err(refuse("host", name));
            }
        }
        if host.is_none() && uri.authority().is_none() {
            return Err(Error::denied("the header `host` is missing"));
        }
        match one(header::ORIGIN)? {
            Some(origin) if !self.hosts.allows_origin(origin) => Err(refuse("origin", origin)),
            _ => Ok(()),
        }
    }

    /// Who is calling, and whether the rate limit binds them.
    async fn principal(&self, peer: IpAddr, headers: &HeaderMap) -> Result<(Principal, bool)> {
        // Behind a proxy the peer is the proxy, and says nothing about who is calling.
        let proxied = headers.contains_key("x-forwarded-for") || headers.contains_key("forwarded");
        let local = peer.is_loopback() && !proxied;
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            if local && !self.require_token {
                return Ok((Principal::owner(self.owner_space.clone()), true));
            }
            return Err(Error::unauthenticated("this server needs a token")
                .hint("send `Authorization: Bearer TOKEN`; `kenning token create` makes one"));
        };
        let bearer = value.to_str().ok().and_then(|it| it.split_once(' '));
        let token = bearer
            .filter(|it| it.0.eq_ignore_ascii_case("bearer"))
            .map(|it| it.1.trim());
        let token = token.ok_or_else(|| {
            Error::unauthenticated("the header `authorization` is not `Bearer TOKEN`")
        })?;
        if let Some(fixed) = &self.fixed_token
            && same(fixed, token)
        {
            let scopes = Scope::ALL.to_vec();
            let space = self.owner_space.clone();
            return Ok((
                Principal {
                    name: "token".to_owned(),
                    space,
                    scopes,
                },
                local,
            ));
        }
        let (engine, token) = (self.engine.clone(), token.to_owned());
        let found = tokio::task::spawn_blocking(move || engine.authenticate(&token)).await;
        let found = found.map_err(|cause| Error::internal("authentication").because(cause))?;
        Ok((found?, local))
    }
}

/// Compares the hashes, so that the time taken tells nothing about the texts.
fn same(a: &str, b: &str) -> bool {
    let hash = |text: &str| kenning_core::Hash::of(text.as_bytes()).0;
    let differing = hash(a)
        .iter()
        .zip(hash(b))
        .fold(0, |sum, (x, y)| sum | (x ^ y));
    differing == 0
}

/// A caller's value in a message: short, one line.
fn shown(value: &str) -> String {
    value
        .chars()
        .take(100)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// The layer itself.
pub(crate) async fn layer(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    match admit(&guard, &mut request).await {
        Err(error) => answer::error(&error),
        Ok(()) => {
            let request = request.map(|body| Body::new(Limited::new(body, BODY_BYTES_MAX)));
            match tokio::time::timeout(ANSWER_TIME_MAX, next.run(request)).await {
                Ok(response) => response,
                Err(_) => answer::error(&Error::timeout("the request took too long")),
            }
        }
    }
}

async fn admit(guard: &Guard, request: &mut Request) -> Result<()> {
    guard.check_names(request.uri(), request.headers())?;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|it| it > BODY_BYTES_MAX as u64) {
        return Err(Error::too_large(format!(
            "the request body is over {BODY_BYTES_MAX} bytes"
        )));
    }
    // Absent only in tests that call the router without a connection: then nobody is trusted.
    let peer = request
        .extensions()
        .get::<Peer>()
        .map_or(IpAddr::from([0, 0, 0, 0]), |it| it.0.ip());
    let (principal, free) = guard.principal(peer, request.headers()).await?;
    if !free
        && !guard
            .rate
            .take(&format!("{peer} {}", principal.name), Instant::now())
    {
        return Err(Error::limited("the rate limit was reached").hint("wait, then call again"));
    }
    request.extensions_mut().insert(principal);
    Ok(())
}

/// Who is at the other end of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);
