//! Calls a peer and exchanges everything that is new.

use super::files::Held;
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

/// A connection to one peer.
struct Link<'a> {
    kernel: &'a Kernel,
    egress: Egress,
    endpoint: &'a str,
    did: Option<&'a Did>,
    challenge: String,
    number: u64,
    latency: Duration,
}

impl<'a> Link<'a> {
    fn new(kernel: &'a Kernel, endpoint: &'a str, did: Option<&'a Did>) -> Result<Self> {
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
        Ok(Self {
            kernel,
            egress: Egress::new(policy),
            endpoint,
            did,
            challenge: String::new(),
            number: 0,
            latency: Duration::ZERO,
        })
    }

    /// Asks for a challenge. Returns the key of whoever answers.
    fn greet(&mut self) -> Result<Did> {
        let me = self.kernel.log().signer().did().to_string();
        let response = self.egress.fetch(HttpRequest {
            method: Method::Post,
            url: format!("{}/sync", self.endpoint),
            headers: vec![("kenning-peer".to_owned(), me)],
            ..HttpRequest::default()
        })?;
        let value = serde_json::from_slice::<serde_json::Value>(&response.body);
        let value = value.ok().filter(|_| response.status == 200);
        let bad = || {
            Error::unavailable(format!(
                "`{}` did not answer as a node of Kenning (status {})",
                self.endpoint, response.status
            ))
            .hint("the other node must run `kenning serve`, of a version that knows peers")
        };
        let value = value.ok_or_else(bad)?;
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
                    let is_passing = matches!(
                        error.code,
                        Code::Unavailable | Code::Timeout | Code::Unauthenticated | Code::Limited
                    );
                    if !is_passing || n_tries > RETRIES_MAX {
                        return Err(error);
                    }
                    if error.code == Code::Unauthenticated {
                        self.challenge.clear();
                    } else {
                        std::thread::sleep(pause(self.kernel, FIRST_PAUSE, n_tries));
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
            return Err(Error::internal("a message to nobody"));
        };
        self.number += 1;
        let signer = self.kernel.log().signer();
        let seal = RequestSeal::sign(signer, did, path, &self.challenge, self.number, body);
        let header = |name: &str, value: String| (name.to_owned(), value);
        let before = Instant::now();
        let response = self.egress.fetch(HttpRequest {
            method: Method::Post,
            url: format!("{}{path}", self.endpoint),
            headers: vec![
                header("content-type", "application/octet-stream".to_owned()),
                header("kenning-peer", seal.from.to_string()),
                header("kenning-challenge", seal.challenge.clone()),
                header("kenning-number", seal.number.to_string()),
                header("kenning-signature", hex::encode(&seal.signature)),
            ],
            body: body.to_vec(),
            ..HttpRequest::default()
        })?;
        self.latency = before.elapsed();
        if response.status != 200 {
            return Err(refusal(self.endpoint, response.status, &response.body));
        }
        let signature = response.header("kenning-signature").and_then(hex::decode);
        let is_theirs =
            signature.is_some_and(|it| seal::is_answer(did, &seal, &response.body, &it));
        if !is_theirs {
            return Err(Error::denied(format!(
                "the answer of `{}` is not signed by {did}",
                self.endpoint
            )));
        }
        Response::from_json(&unpack(&response.body)?)
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
        Link::new(self, endpoint, None)?.greet()
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
        self.writable()?;
        if peer.cut_off.is_some() {
            return Err(Error::denied(format!(
                "`{}` showed two histories of its log; nothing is exchanged with it",
                peer.id
            ))
            .hint("`kenning peer add` begins anew with it"));
        }
        if peer.endpoint.is_empty() {
            return Err(Error::invalid(format!("`{}` has no endpoint", peer.id))
                .hint("it calls this node; start the exchange there"));
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
        let exchanged = self.exchange_all(peer, &mut latency);
        let now = self.log().clock().now_ms();
        let latency = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        match exchanged {
            Ok(done) => {
                let counted = done.clone();
                self.count(peer, move |it| {
                    it.failures = 0;
                    it.last_error = None;
                    it.last_sync_ms = Some(now);
                    it.last_try_ms = Some(now);
                    it.latency_ms = Some(latency);
                    it.add(&counted);
                })?;
                Ok(done)
            }
            Err(error) => {
                let said = error.message.clone();
                self.count(peer, move |it| {
                    it.failures += 1;
                    it.errors += 1;
                    it.last_try_ms = Some(now);
                    it.last_error = Some(said);
                })?;
                Err(error)
            }
        }
    }

    fn exchange_all(&self, peer: &Peer, latency: &mut Duration) -> Result<Done> {
        let mut link = Link::new(self, &peer.endpoint, Some(&peer.did))?;
        let mut all = Done::default();
        for space in &peer.policy.spaces {
            let began = self.log().clock().now_ms();
            let mut session = Session::new(self.log(), space, peer, self.sync_rules());
            let exchanged = self.exchange_space(space, peer, &mut link, &mut session);
            *latency = link.latency;
            let done = session.done().clone();
            self.note_exchange(space, peer, &done, began)?;
            if let Some(evidence) = done.forked {
                return Err(self.cut_off(peer, evidence)?);
            }
            exchanged?;
            all.n_received += done.n_received;
            all.n_sent += done.n_sent;
            all.n_refused_there += done.n_refused_there;
            all.refused.extend(done.refused);
            all.conflicts.extend(done.conflicts);
            all.their_size = all.their_size.max(done.their_size);
        }
        Ok(all)
    }

    fn exchange_space(
        &self,
        space: &Space,
        peer: &Peer,
        link: &mut Link<'_>,
        session: &mut Session,
    ) -> Result<()> {
        let mut request = session.begin()?;
        let mut is_first = true;
        while let Some(asked) = request {
            let response = link.send(&asked)?;
            let page = match &response {
                Response::Page { page, .. } => page.as_ref(),
                Response::Pushed { .. } => None,
            };
            let has_events = page.is_some_and(|it| it.entries.iter().any(|it| it.event.is_some()));
            let mut held = Held::of_page(self, space, page)?;
            if has_events && std::mem::take(&mut is_first) {
                held.announce(json!({ "peerId": peer.id, "direction": "both" }));
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
