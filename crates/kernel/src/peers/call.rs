//! Calls a peer and exchanges everything that is new.

use super::answer::{PeerAnswer, PeerMessage};
use super::files::Held;
use super::live::Underway;
use super::status::Exchange;
use crate::{Caller, Kernel, Scope};
use kenning_core::{Code, Did, Error, Result, Space};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request as HttpRequest};
use kenning_peers::seal::{self, RequestSeal};
use kenning_peers::{Done, MESSAGE_BYTES_MAX, Peer, Request, Response, Session, pack, unpack};
use kenning_text::hex;
use serde_json::json;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a request is sent again.
const RETRIES_MAX: u32 = 3;

/// Before the first retry; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Whether an endpoint can be called.
pub(super) fn check_endpoint(endpoint: &str) -> Result<()> {
    let (host, _) = kenning_egress::host_of(endpoint).map_err(|cause| {
        Error::invalid(format!("`{endpoint}` is not an address")).because(cause)
    })?;
    let is_plain = endpoint.starts_with("http://");
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_near = match address {
        Ok(address) => address.is_loopback() || kenning_egress::is_special(address),
        Err(_) => host == "localhost",
    };
    if is_plain && !is_near {
        return Err(Error::invalid(format!(
            "`{endpoint}` is not encrypted: what is exchanged could be read on the way"
        ))
        .hint("use `https://`, or an address of the private network or of a tunnel"));
    }
    Ok(())
}

/// What carries messages to a peer.
pub trait Carrier {
    /// Sends a message, and gives its answer.
    ///
    /// # Errors
    /// Those of the network, and what the other node answered if it refused.
    fn post(&mut self, message: &PeerMessage) -> Result<PeerAnswer>;

    /// Waits before a message is sent again.
    fn wait(&mut self, pause: Duration);
}

/// Messages over HTTP.
struct Http<'a> {
    egress: Egress,
    endpoint: &'a str,
}

impl<'a> Http<'a> {
    fn new(endpoint: &'a str) -> Result<Self> {
        let defaults = Limits::default();
        let policy = Policy {
            // The operator named it, wherever it is. A redirect is not what the operator named.
            grants: vec![Grant::parse(endpoint)?],
            limits: Limits {
                total_timeout: TIMEOUT,
                body_bytes_max: MESSAGE_BYTES_MAX,
                redirects_max: 0,
                ..defaults
            },
            ..Policy::default()
        };
        let egress = Egress::new(policy);
        Ok(Self { egress, endpoint })
    }
}

impl Carrier for Http<'_> {
    fn post(&mut self, message: &PeerMessage) -> Result<PeerAnswer> {
        let mut headers = Vec::new();
        let mut header = |name: &str, value: &Option<String>| {
            headers.extend(value.clone().map(|it| (name.to_owned(), it)));
        };
        let octets = "application/octet-stream".to_owned();
        header("content-type", &message.challenge.as_ref().map(|_| octets));
        header("kenning-peer", &message.peer);
        header("kenning-challenge", &message.challenge);
        header("kenning-number", &message.number);
        header("kenning-signature", &message.signature);
        let response = self.egress.fetch(HttpRequest {
            method: Method::Post,
            url: format!("{}{}", self.endpoint, message.path),
            headers,
            body: message.body.clone(),
            ..HttpRequest::default()
        })?;
        let status = response.status;
        if message.challenge.is_none() {
            let value = serde_json::from_slice(&response.body).ok();
            let value = value.filter(|_| status == 200);
            let value = value.ok_or_else(|| not_a_node(self.endpoint, status))?;
            return Ok(PeerAnswer::Greeting(value));
        }
        if status != 200 {
            return Err(refusal(self.endpoint, status, &response.body));
        }
        let signature = response.header("kenning-signature").unwrap_or_default();
        let signature = signature.to_owned();
        let body = response.body;
        Ok(PeerAnswer::Signed { body, signature })
    }

    fn wait(&mut self, pause: Duration) {
        std::thread::sleep(pause);
    }
}

fn not_a_node(endpoint: &str, status: u16) -> Error {
    Error::unavailable(format!(
        "`{endpoint}` did not answer as a node of Kenning (status {status})"
    ))
    .hint("the other node must run `kenning serve`, of a version that knows peers")
}

/// A conversation with one peer.
struct Link<'a> {
    kernel: &'a Kernel,
    carrier: &'a mut dyn Carrier,
    endpoint: &'a str,
    did: Option<&'a Did>,
    challenge: String,
    number: u64,
    latency: Duration,
    has_answered: bool,
}

impl<'a> Link<'a> {
    fn new(
        kernel: &'a Kernel,
        carrier: &'a mut dyn Carrier,
        endpoint: &'a str,
        did: Option<&'a Did>,
    ) -> Self {
        Self {
            kernel,
            carrier,
            endpoint,
            did,
            challenge: String::new(),
            number: 0,
            latency: Duration::ZERO,
            has_answered: false,
        }
    }

    /// Asks for a challenge. Returns the key of whoever answers.
    fn greet(&mut self) -> Result<Did> {
        let me = self.kernel.log().signer().did().to_string();
        let answer = self.carrier.post(&PeerMessage {
            path: "/sync".to_owned(),
            peer: Some(me),
            ..PeerMessage::default()
        })?;
        let bad = || not_a_node(self.endpoint, 200);
        let PeerAnswer::Greeting(value) = answer else {
            return Err(bad());
        };
        let did = value["provider"].as_str().and_then(|it| it.parse().ok());
        let did: Did = did.ok_or_else(bad)?;
        if self.did.is_some_and(|it| *it != did) {
            return Err(Error::denied(format!(
                "`{}` has another key than the one it was added with: {did}",
                self.endpoint
            ))
            .hint("if its key was changed on purpose, `kenning peer remove` and `kenning peer add` it again"));
        }
        self.challenge = value["challenge"].as_str().ok_or_else(bad)?.to_owned();
        self.number = 0;
        self.has_answered = true;
        Ok(did)
    }

    fn send(&mut self, request: &Request) -> Result<Response> {
        let body = pack(&request.to_json())?;
        let mut n_tries = 0;
        loop {
            match self.send_once(request.path(), &body) {
                Ok(response) => return Ok(response),
                Err(error) => {
                    n_tries += 1;
                    // A node that has not answered yet is not there; whoever asked is told at once.
                    let is_passing = match error.code {
                        Code::Unavailable | Code::Timeout => self.has_answered,
                        Code::Unauthenticated | Code::Limited => true,
                        _ => false,
                    };
                    if !is_passing || n_tries > RETRIES_MAX {
                        return Err(error);
                    }
                    if error.code == Code::Unauthenticated {
                        self.challenge.clear();
                    } else {
                        let pause = pause(self.kernel, FIRST_PAUSE, n_tries);
                        self.carrier.wait(pause);
                    }
                }
            }
        }
    }

    fn send_once(&mut self, path: &str, body: &[u8]) -> Result<Response> {
        if self.challenge.is_empty() {
            self.greet()?;
        }
        let Some(did) = self.did else {
            return Err(Error::internal("the peer of a message is unknown"));
        };
        self.number += 1;
        let signer = self.kernel.log().signer();
        let seal = RequestSeal::sign(signer, did, path, &self.challenge, self.number, body);
        let before = Instant::now();
        let answer = self.carrier.post(&PeerMessage {
            path: path.to_owned(),
            peer: Some(seal.from.to_string()),
            challenge: Some(seal.challenge.clone()),
            number: Some(seal.number.to_string()),
            signature: Some(hex::encode(&seal.signature)),
            body: body.to_vec(),
        })?;
        self.latency = before.elapsed();
        let unsigned = || {
            Error::denied(format!(
                "the answer of `{}` is not signed by {did}",
                self.endpoint
            ))
        };
        let PeerAnswer::Signed { body, signature } = answer else {
            return Err(unsigned());
        };
        let signature = hex::decode(&signature).ok_or_else(unsigned)?;
        if !seal::is_answer(did, &seal, &body, &signature) {
            return Err(unsigned());
        }
        Response::from_json(&unpack(&body)?)
    }
}

/// With up to a third more, so that nodes that failed together do not come back together.
pub(super) fn pause(kernel: &Kernel, first: Duration, n_failures: u32) -> Duration {
    let pause = crate::worker::back_off(first, PAUSE_MAX, n_failures);
    let mut byte = [0];
    kernel.log().random().fill(&mut byte);
    pause + pause.mul_f64(0.3 * f64::from(byte[0]) / 255.0)
}

/// What the other node said, as an error of ours.
fn refusal(endpoint: &str, status: u16, body: &[u8]) -> Error {
    let value = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let said = value["error"]["message"].as_str().unwrap_or("no reason");
    let said: String = said
        .chars()
        .filter(|it| !it.is_control())
        .take(300)
        .collect();
    let message = format!("`{endpoint}` refused (status {status}): {said}");
    match status {
        401 => Error::unauthenticated(message),
        413 => Error::too_large(message),
        429 => Error::limited(message),
        500.. => Error::unavailable(message),
        _ => Error::denied(message),
    }
}

/// Takes the peer off the list of those under way.
struct Active<'a>(&'a Kernel, String);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let active = self.0.exchanges.active.lock();
        active
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.1);
    }
}

impl Kernel {
    pub(super) fn ask_for_key(&self, endpoint: &str) -> Result<Did> {
        Link::new(self, &mut Http::new(endpoint)?, endpoint, None).greet()
    }

    /// Exchanges everything that is new with one peer, in every space that is shared.
    ///
    /// # Errors
    /// Denied without the scope `admin`; those of the network; conflict while another exchange with
    /// it is under way.
    pub fn sync_peer(&self, caller: &Caller, name: &str) -> Result<Done> {
        caller.principal.require(Scope::Admin)?;
        let peer = self.find_peer(name)?;
        self.sync_with(&peer)
    }

    pub(crate) fn sync_with(&self, peer: &Peer) -> Result<Done> {
        if peer.endpoint.is_empty() {
            return Err(Error::invalid(format!("`{}` has no endpoint", peer.id))
                .hint("it calls this node; start the exchange there"));
        }
        self.sync_over(peer, &mut Http::new(&peer.endpoint)?)
    }

    /// Exchanges everything that is new with one peer, over any carrier of messages.
    ///
    /// # Errors
    /// As [`Kernel::sync_peer`].
    pub fn sync_over(&self, peer: &Peer, carrier: &mut dyn Carrier) -> Result<Done> {
        self.writable()?;
        if peer.cut_off.is_some() {
            return Err(Error::denied(format!(
                "`{}` showed two histories of its log; nothing is exchanged with it",
                peer.id
            ))
            .hint("`kenning peer add` begins anew with it"));
        }
        let key = peer.did.to_string();
        {
            let active = self.exchanges.active.lock();
            let mut active = active.unwrap_or_else(PoisonError::into_inner);
            if !active.insert(key.clone()) {
                return Err(Error::conflict(format!(
                    "an exchange with `{}` is under way",
                    peer.id
                ))
                .hint("wait for it; `kenning peer status` shows it"));
            }
        }
        let _active = Active(self, key);
        let mut latency = Duration::ZERO;
        let began = self.log().clock().now_ms();
        let mut underway = Underway::new(self, peer);
        let exchanged = self.exchange_all(peer, carrier, &mut latency, &mut underway);
        drop(underway);
        let now = self.log().clock().now_ms();
        let latency = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        match exchanged {
            Ok(done) => {
                let counted = done.clone();
                self.count(peer, move |counts| {
                    counts.failures = 0;
                    counts.last_error = None;
                    counts.last_sync_ms = Some(now);
                    counts.last_try_ms = Some(now);
                    counts.latency_ms = Some(latency);
                    counts.add(&counted);
                    counts.keep(Exchange {
                        at_ms: now,
                        took_ms: now.saturating_sub(began),
                        received: counted.n_received,
                        sent: counted.n_sent,
                        error: None,
                    });
                })?;
                Ok(done)
            }
            Err(error) => {
                let said = error.message.clone();
                self.count(peer, move |counts| {
                    counts.failures += 1;
                    counts.errors += 1;
                    counts.last_try_ms = Some(now);
                    counts.last_error = Some(said.clone());
                    counts.keep(Exchange {
                        at_ms: now,
                        took_ms: now.saturating_sub(began),
                        error: Some(said),
                        ..Exchange::default()
                    });
                })?;
                Err(error)
            }
        }
    }

    fn exchange_all(
        &self,
        peer: &Peer,
        carrier: &mut dyn Carrier,
        latency: &mut Duration,
        underway: &mut Underway<'_>,
    ) -> Result<Done> {
        let mut link = Link::new(self, carrier, &peer.endpoint, Some(&peer.did));
        let mut all = Done::default();
        for space in &peer.policy.spaces {
            let began = self.log().clock().now_ms();
            self.settle_rewritten(space)?;
            let mut session = Session::new(self.log(), space, peer, self.sync_rules());
            let exchanged = self.exchange_space(space, &mut link, &mut session, underway);
            *latency = link.latency;
            let done = session.done().clone();
            self.take_cosignatures(space, peer, &done.cosignatures)?;
            self.note_exchange(space, peer, &done, began)?;
            let (of, sizes) = (space.clone(), done.clone());
            self.count(peer, move |it| it.note_sizes(&of, &sizes))?;
            if let Some(evidence) = done.forked {
                return Err(self.cut_off(peer, evidence)?);
            }
            exchanged?;
            all.n_received += done.n_received;
            all.n_sent += done.n_sent;
            all.n_refused_there += done.n_refused_there;
            all.too_large.extend(done.too_large);
            all.refused.extend(done.refused);
            all.conflicts.extend(done.conflicts);
            all.their_size = all.their_size.max(done.their_size);
        }
        Ok(all)
    }

    fn exchange_space(
        &self,
        space: &Space,
        link: &mut Link<'_>,
        session: &mut Session,
        underway: &mut Underway<'_>,
    ) -> Result<()> {
        let mut request = session.begin()?;
        let mut is_first = true;
        while let Some(asked) = request {
            if matches!(asked, Request::Push { .. }) {
                underway.show()?;
            }
            let response = match link.send(&asked) {
                Err(error) if error.code == Code::TooLarge => {
                    request = session.send_less()?;
                    match request {
                        Some(_) => continue,
                        None => return Err(error),
                    }
                }
                sent => sent?,
            };
            session.took(u64::try_from(link.latency.as_millis()).unwrap_or(u64::MAX));
            let page = match &response {
                Response::Page { page, .. } => page.as_ref(),
                Response::Pushed { .. } => None,
            };
            let has_events = page.is_some_and(|it| it.entries.iter().any(|it| it.event.is_some()));
            let mut held = Held::of_page(self, space, page)?;
            if has_events {
                underway.show()?;
            }
            if has_events && std::mem::take(&mut is_first) {
                held.announce(json!({ "peerId": underway.peer().id, "direction": "both" }));
            }
            request = session.next(response, held.around(self))?;
            held.finish(self, space)?;
        }
        Ok(())
    }

    /// What was exchanged becomes an event; an exchange of nothing does not.
    fn note_exchange(&self, space: &Space, peer: &Peer, done: &Done, began: u64) -> Result<()> {
        if done.n_received + done.n_sent == 0 {
            return Ok(());
        }
        let duration = self.log().clock().now_ms().saturating_sub(began);
        let (id, received, sent) = (peer.id.clone(), done.n_received, done.n_sent);
        self.log().write(space, move |tx| {
            if received == 0 {
                let data = json!({ "peerId": id, "direction": "push" });
                tx.record("SyncStarted", data)?;
            }
            let data = json!({
                "peerId": id, "eventsTransferred": received + sent, "eventsReceived": received,
                "eventsSent": sent, "duration": duration,
            });
            tx.record("SyncCompleted", data).map(drop)
        })
    }
}
