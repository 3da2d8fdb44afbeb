//! The one layer around every route.
//!
//! A web page that somebody visits can send requests to this machine. What stops it: the `Host` must
//! be a name of ours (else a name of theirs was pointed at our address), and an `Origin` must be the one
//! that was called (else a page of somebody else's is asking, if only of another port of this machine).
//! Both are checked on every route before anything else.
//! Some requests of pages carry no `Origin` (images, scripts, frames, links); browsers say of those from which
//! site they come, and they are refused too. A link may lead to what is there for people to look at
//! ([`LINKED`]), and not to what works when it is asked.
//!
//! Pages of the origins that the operator named are let in, and told so in the headers that browsers ask for.

mod refusal;

use self::refusal::{too_many_failures, too_often};
use crate::answer;
use crate::body::{self, Capped, Fault};
use crate::cors::{self, Origin};
use crate::failures::{self, Failures};
use crate::federation;
use crate::hosts::Hosts;
use crate::peers;
use crate::places::Place;
use crate::project::named_project;
use crate::rate::Rate;
use crate::refusals::Refusals;
use crate::requests;
pub use crate::server::Peer;
use crate::server::{Limits, Terms};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use axum::middleware::Next;
use kenning_core::{Code, Error, Result, Space};
use kenning_engine::{Engine, LOCAL_TOKEN_PREFIX, Principal, Scope, Waited};
use kenning_tools::slots::bodies::{FREE_BYTES, Held};
use kenning_tools::slots::{Expected, Slots};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// What a proxy adds. Any of them means that the peer is not the caller.
const PROXY_HEADERS: [&str; 6] = [
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "forwarded",
    "via",
];

/// Where a link of another page may lead: nothing is searched, run or written there.
const LINKED: [&str; 7] = [
    "/",
    "/health",
    "/health/ready",
    "/healthz",
    "/openapi.json",
    "/readyz",
    "/tools",
];

/// The route of MCP.
const MCP: &str = "/mcp";

/// Where anybody may ask whether the server is alive, and whether it can work. They are told nothing else.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Where clients of the memory contract put their token.
const API_KEY: &str = "x-api-key";

/// What the layer knows.
pub struct Guard {
    engine: Arc<Engine>,
    hosts: Hosts,
    require_token: bool,
    fixed_token: Option<String>,
    owner_space: Space,
    rate: Rate,
    failures: Failures,
    origins: Vec<Origin>,
    slots: Arc<Slots>,
    refusals: Arc<Refusals>,
}

impl Guard {
    /// `fixed_token` is a token with every scope that the operator gave on the command line. Whoever gives one
    /// wants it asked for, so with it even callers on this machine need a token.
    pub fn new(
        engine: Arc<Engine>,
        hosts: Hosts,
        require_token: bool,
        fixed_token: Option<String>,
        calls_per_minute: u32,
    ) -> Self {
        let rate = Rate::new(calls_per_minute);
        let owner_space = Space::default();
        // An empty variable is no token, and must not become one that anybody can send.
        let fixed_token = fixed_token
            .map(|it| it.trim().to_owned())
            .filter(|it| !it.is_empty());
        Self {
            engine,
            hosts,
            require_token: require_token || fixed_token.is_some(),
            fixed_token,
            owner_space,
            rate,
            failures: Failures::new(failures::OF_ONE_MAX, Instant::now()),
            refusals: Arc::default(),
            origins: Vec::new(),
            slots: Arc::default(),
        }
    }

    /// The slots of the calls behind this layer.
    #[must_use]
    pub(crate) fn with_slots(mut self, slots: Arc<Slots>) -> Self {
        self.slots = slots;
        self
    }

    /// How long refusals took.
    pub(crate) fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// Refuses a body, before it is read, whose call would be refused, and one that is not held beside those
    /// that are.
    fn begin_body(&self, request: &Request) -> Result<Held> {
        let who = request.extensions().get::<Principal>();
        let who = who.ok_or_else(needs_token)?;
        if will_stand_in_line(request) {
            self.slots.check_room(who)?;
        }
        self.slots.bodies().begin(who, length_of(request))
    }

    /// Refuses a call, before its token is looked up, whose caller has as many in line already as may wait:
    /// looking up takes a thread, for which many wait when many call. A token that was right before tells whose
    /// line it is.
    fn expect(&self, request: &Request, token: Option<&str>) -> Result<Option<Expected>> {
        if !will_stand_in_line(request) {
            return Ok(None);
        }
        let who = token.and_then(|it| self.failures.whose(it));
        who.map(|it| self.slots.expect(&it)).transpose()
    }

    /// How many wrong tokens a minute one address may send, if not 30; all together twenty times that.
    #[must_use]
    pub fn with_wrong_tokens_per_minute(mut self, n: u32) -> Self {
        self.failures = Failures::new(n, Instant::now());
        self
    }

    /// Whose pages may call, beside those of this machine.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<Origin>) -> Self {
        self.origins = origins;
        self
    }

    /// The space that a caller from this machine sees, and the token of the command line.
    #[must_use]
    pub fn with_space(mut self, space: Space) -> Self {
        self.owner_space = space;
        self
    }

    fn check_names(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let refuse = |what: &str, value: &str, hint: &'static str| {
            Error::denied(format!("{what} `{}` is not served here", shown(value))).hint(hint)
        };
        let host = one(headers, &header::HOST)?
            .ok_or_else(|| Error::denied("the header `host` is missing"))?;
        // An absolute request line names the host a second time; both must be ours.
        let authority = uri.authority().map(Authority::as_str);
        for name in [Some(host), authority].into_iter().flatten() {
            if !self.hosts.allows(name) {
                return Err(refuse("host", name, "`--allow-host NAME` permits a name"));
            }
        }
        match one(headers, &header::ORIGIN)? {
            Some(origin) if self.hosts.is_own_origin(origin, host) || self.shares(origin) => Ok(()),
            Some(origin) => {
                let hint = "`--allow-origin ORIGIN` permits the pages of an origin";
                Err(refuse("origin", origin, hint))
            }
            None => self.check_page(method, uri, host, headers),
        }
    }

    /// Refuses what a page of somebody else's loads without an `Origin`.
    fn check_page(
        &self,
        method: &Method,
        uri: &Uri,
        host: &str,
        headers: &HeaderMap,
    ) -> Result<()> {
        let says = |name: &str, values: &[&str]| {
            let mut said = headers.get_all(name).iter();
            said.any(|it| values.iter().any(|value| it.as_bytes() == value.as_bytes()))
        };
        let followed = *method == Method::GET
            && says("sec-fetch-mode", &["navigate"])
            && says("sec-fetch-dest", &["document"])
            && LINKED.contains(&uri.path());
        // Another port of this machine is the same site and yet another server.
        let foreign = if headers.contains_key("sec-fetch-site") {
            !says("sec-fetch-site", &["same-origin", "none"])
        } else {
            // Browsers that do not say it may say which page it was.
            let page = headers
                .get(header::REFERER)
                .map(|it| origin_of(it.as_bytes()));
            page.is_some_and(|it| {
                let ours = |it: &str| self.hosts.is_own_origin(it, host) || self.shares(it);
                !it.is_some_and(ours) && !LINKED.contains(&uri.path())
            })
        };
        if foreign && !followed {
            return Err(Error::denied("cross-site request refused")
                .hint("open the address itself, or call it from a program"));
        }
        Ok(())
    }

    fn shares(&self, origin: &str) -> bool {
        self.origins.iter().any(|it| it.is(origin))
    }

    /// The origin of a page that the operator lets in.
    fn shared_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        self.shares(origin.to_str().ok()?).then(|| origin.clone())
    }

    /// Whether a call comes from this machine, and not through a proxy.
    fn is_local(peer: IpAddr, headers: &HeaderMap) -> bool {
        // Behind a proxy the peer is the proxy, and says nothing about who is calling.
        let proxied = PROXY_HEADERS.iter().any(|it| headers.contains_key(*it));
        // A socket for both versions shows an address of version 4 in the form of version 6.
        peer.to_canonical().is_loopback() && !proxied
    }

    /// Whether a caller without a token would be refused.
    fn needs_token(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        self.require_token || !Self::is_local(peer, headers)
    }

    /// A node of KOI-net: whether it is who it says it is, its message tells.
    fn federated(&self, peer: IpAddr, headers: &HeaderMap) -> Admitted {
        Admitted {
            local: Self::is_local(peer, headers),
            ..Admitted::node("koi-net")
        }
    }

    /// Who is calling.
    async fn principal(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Admitted> {
        let local = Self::is_local(peer, headers);
        let Some(token) = credential(headers)? else {
            if local && !self.require_token {
                return Ok(Admitted {
                    principal: Principal::owner(self.owner_space.clone()),
                    token: None,
                    local,
                });
            }
            return Err(needs_token());
        };
        // It is a file of this machine: whoever has it elsewhere has taken it away.
        if token.starts_with(LOCAL_TOKEN_PREFIX) && !peer.to_canonical().is_loopback() {
            return Err(needs_token());
        }
        if let Some(fixed) = &self.fixed_token
            && same(fixed, token)
        {
            let principal = Principal {
                name: "token".to_owned(),
                space: self.owner_space.clone(),
                scopes: Scope::ALL.to_vec(),
                token: None,
                project: None,
            };
            return Ok(Admitted {
                principal,
                token: None,
                local,
            });
        }
        let (engine, token) = (self.engine.clone(), Arc::<str>::from(token));
        let secret = token.clone();
        let found = tokio::task::spawn_blocking(move || engine.authenticate(&secret)).await;
        let found = found.map_err(|cause| Error::internal("authentication").because(cause))?;
        Ok(Admitted {
            principal: found?,
            token: Some(token),
            local,
        })
    }
}

impl Guard {
    /// Another node: it has no token. Its signature covers the body, which is only read if the node that it
    /// names is known here.
    async fn node(&self, headers: &HeaderMap) -> Result<Admitted> {
        if !peers::is_sealed(headers) {
            return Ok(Admitted::node("node"));
        }
        let peer = headers.get(peers::PEER).and_then(|it| it.to_str().ok());
        let (engine, peer) = (self.engine.clone(), peer.map(str::to_owned));
        let found = tokio::task::spawn_blocking(move || engine.check_peer(peer.as_deref())).await;
        let found = found.map_err(|cause| Error::internal("a message of a peer").because(cause))?;
        found.map(|did| Admitted::node(did.as_str()))
    }
}

fn needs_token() -> Error {
    Error::unauthenticated("this server needs a token").hint(
        "send `Authorization: Bearer TOKEN`; `kenning token show` prints the token of whoever started the \
         server on this machine, and `kenning token create` makes others",
    )
}

/// The one token that a request carries, as `Authorization: Bearer TOKEN` or as `X-API-Key: TOKEN`.
fn credential(headers: &HeaderMap) -> Result<Option<&str>> {
    let bad = || Error::unauthenticated("the header `authorization` is not one `Bearer TOKEN`");
    let bearer = headers.get_all(header::AUTHORIZATION).iter();
    let key = headers.get_all(API_KEY).iter();
    let mut values = bearer.map(|it| (it, true)).chain(key.map(|it| (it, false)));
    let Some((value, is_bearer)) = values.next() else {
        return Ok(None);
    };
    // Two credentials could be two callers; which one a proxy has checked is not known.
    if values.next().is_some() {
        return Err(bad());
    }
    let text = value.to_str().ok();
    if !is_bearer {
        let key = text.map(str::trim).filter(|it| !it.is_empty());
        let bad = || Error::unauthenticated("the header `x-api-key` is not a token");
        return key.map(Some).ok_or_else(bad);
    }
    text.and_then(|it| it.split_once(' '))
        .filter(|it| it.0.eq_ignore_ascii_case("bearer"))
        .map(|it| Some(it.1.trim()))
        .ok_or_else(bad)
}

/// Who was let in.
struct Admitted {
    principal: Principal,
    /// The token, if it is one that can be revoked.
    token: Option<Arc<str>>,
    /// Whether the call comes from this machine, where the rate limit binds nobody.
    local: bool,
}

impl Admitted {
    /// Another node: it has no token and no rights; its messages are checked by their signatures.
    fn node(name: &str) -> Self {
        let principal = Principal {
            name: name.to_owned(),
            space: Space::default(),
            scopes: Vec::new(),
            token: None,
            project: None,
        };
        Self {
            principal,
            token: None,
            local: false,
        }
    }
}

/// The token of a request, for answers that go on for so long that it may be revoked meanwhile. It
/// has no `Debug`, so that it is in no log.
#[derive(Clone)]
pub(crate) struct Pass(pub(crate) Option<Arc<str>>);

/// The value of a header that may stand once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Error::denied(format!("the header `{name}` stands twice")));
    }
    let text = first.map(HeaderValue::to_str).transpose();
    text.map_err(|_| Error::denied(format!("the header `{name}` is not plain text")))
}

/// `https://name:port` of an address that begins with it.
fn origin_of(address: &[u8]) -> Option<&str> {
    let address = std::str::from_utf8(address).ok()?;
    let start = address.find("://")? + 3;
    let rest = address.get(start..)?;
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    address.get(..start + length)
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
    let began = Instant::now();
    let asked = requests::Asked::of(&request);
    let origin = guard.shared_origin(request.headers());
    let admitted = match cors::preflight(origin.as_ref(), &request) {
        Some(answer) => {
            let named = guard.check_names(request.method(), request.uri(), request.headers());
            Err(named.map_or_else(|error| answer::error(&error), |()| answer))
        }
        None => admit(&guard, &mut request).await,
    };
    let admitted = match admitted {
        // Until here it was expected in line; from here on it stands there, or is refused.
        Ok(_expected) => guard
            .begin_body(&request)
            .map_err(|error| answer::error(&error)),
        Err(refused) => Err(refused),
    };
    let who = request.extensions().get::<Principal>();
    let who = who.map(|it| it.name.clone());
    let mut response = match admitted {
        Err(refused) => {
            if let Some(place) = request.extensions().get::<Place>() {
                place.refuse();
            }
            // A client that waits for permission to send has not sent anything yet.
            if !request.headers().contains_key(header::EXPECT) {
                body::drain(request.into_body()).await;
            }
            refused
        }
        Ok(held) => {
            let terms = request.extensions().get::<Terms>();
            let limits = terms.map_or_else(Arc::<Limits>::default, |it| it.limits.clone());
            let fault = Fault::default();
            let held = Arc::new(held);
            let bytes_max = bytes_max(&request);
            let time_max = limits.body_time_max;
            let capped = |body| Capped::new(body, bytes_max, time_max, held.clone(), fault.clone());
            let request = request.map(|body| Body::new(capped(body)));
            let response = tokio::time::timeout(limits.answer_time_max, next.run(request)).await;
            // Until here the body may have waited in line.
            drop(held);
            match (fault.error(), response) {
                (Some(error), _) => answer::error(error),
                (None, Ok(response)) => response,
                (None, Err(_)) => answer::error(&Error::timeout("the request took too long")),
            }
        }
    };
    if let Some(origin) = origin {
        cors::share(origin, response.headers_mut());
    }
    // What is here belongs to whoever asked: no cache keeps it, no other page embeds it, and no
    // browser takes it for something that it is not.
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        guard.refusals.add(began.elapsed());
    }
    asked.log(response.status(), who.as_deref(), began.elapsed());
    response
}

/// Whether a request has a body whose call needs a slot.
fn will_stand_in_line(request: &Request) -> bool {
    let length = length_of(request);
    let is_sent = length.is_some_and(|it| it > 0)
        || request.headers().contains_key(header::TRANSFER_ENCODING);
    // A message of MCP may take back a call that waits in line: short ones are read to see.
    let is_short = length.is_some_and(|it| it <= FREE_BYTES as u64);
    is_sent && !(is_short && request.uri().path() == MCP)
}

/// The length of the body, if the client says it.
fn length_of(request: &Request) -> Option<u64> {
    let length = request.headers().get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// The largest body of this request.
fn bytes_max(request: &Request) -> usize {
    if peers::is_message(request.method(), request.uri()) {
        return peers::bytes_max(request.headers());
    }
    if federation::is_message(request.method(), request.uri()) {
        return federation::BYTES_MAX;
    }
    body::BODY_BYTES_MAX
}

async fn admit(guard: &Guard, request: &mut Request) -> Result<Option<Expected>, Response<Body>> {
    let refuse = |error: Error| answer::error(&error);
    guard
        .check_names(request.method(), request.uri(), request.headers())
        .map_err(refuse)?;
    let bytes_max = bytes_max(request);
    if length_of(request).is_some_and(|it| it > bytes_max as u64) {
        return Err(answer::error(&body::over(bytes_max)));
    }
    // Absent only in tests that call the router without a connection: then nobody is trusted.
    let peer = request
        .extensions()
        .get::<Peer>()
        .map_or(IpAddr::from([0, 0, 0, 0]), |it| it.0.ip());
    let before = Instant::now();
    let token = credential(request.headers()).ok().flatten();
    // Everybody on this machine has one address, so others' failures must not keep the owner out. The token of
    // the owner's file is too long to be guessed.
    let is_owners =
        |it: &str| it.starts_with(LOCAL_TOKEN_PREFIX) && peer.to_canonical().is_loopback();
    if let Some(token) = token.filter(|it| !is_owners(it)) {
        let may_try = guard.failures.may_try(peer, token, before);
        may_try.map_err(too_many_failures)?;
    }
    let expected = guard.expect(request, token).map_err(refuse)?;
    let is_anonymous = token.is_none() && guard.needs_token(peer, request.headers());
    let (method, uri) = (request.method(), request.uri());
    let is_federated =
        federation::is_message(method, uri) || is_anonymous && federation::is_visit(method, uri);
    let is_probe = is_anonymous && *method == Method::GET && PROBES.contains(&uri.path());
    let admitted = if is_probe {
        Ok(Admitted::node("probe"))
    } else if peers::is_message(method, uri) {
        guard.node(request.headers()).await
    } else if is_federated {
        Ok(guard.federated(peer, request.headers()))
    } else {
        guard.principal(peer, request.headers()).await
    };
    match (&admitted, token) {
        (Ok(it), Some(token)) => guard.failures.succeeded(token, &it.principal),
        (Err(error), Some(token)) if error.code == Code::Unauthenticated => {
            guard.failures.failed(peer, token);
        }
        _ => {}
    }
    let waited = before.elapsed();
    let Admitted {
        principal,
        token,
        local,
    } = admitted.map_err(refuse)?;
    if !local {
        let caller = format!("{peer} {} {}", principal.space, principal.name);
        let taken = guard.rate.take(&caller, Instant::now());
        taken.map_err(|seconds| too_often(&guard.rate, seconds))?;
    }
    let project = named_project(request.headers()).map_err(refuse)?;
    request.extensions_mut().insert(federation::IsLocal(local));
    request
        .extensions_mut()
        .insert(principal.in_project(project));
    request.extensions_mut().insert(Waited(waited));
    request.extensions_mut().insert(Pass(token));
    Ok(expected)
}
