//! Answers other nodes.

use super::admit::Denial;
use super::carrier::Carrier;
use super::node::Me;
use super::operate::backlog;
use super::peers::{Introduction, checked_profile, know_node, subscribe_octo};
use super::queue::{event_of, may_send};
use super::records::{
    Dialect, EDGES, PEERS, PUBLISHED, PeerRow, QueueRow, STATUS, StoredBundle, note_status, queue,
    rid_type, shared_with,
};
use super::take::Arrived;
use crate::Koi;
use kenning_core::{Code, Error, Result};
use kenning_federation::rid::{EDGE_TYPE, NODE_TYPE, is_type_named};
use kenning_federation::{
    Bundle, Envelope, Event, EventType, Json, Limits, NodeRid, Payload, Query, Refused, Rid,
};
use kenning_store::ReadTx;

/// The largest message that is read.
pub const FEDERATION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An answer with more bundles than this has the rest as `deferred`.
const ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// At most so many events are handed out at once.
const POLLED_MAX: usize = 1_000;
/// Whoever only asks is told again after so long who answers: nodes of the reference forget whom they could not
/// reach four times, say nothing of it, and ask again.
const TOLD_MS: u64 = 4_000;
/// What another run of the program handed out is handed out again, so often.
const HANDED_AGAIN_MAX: u32 = 3;
/// Who introduced a node whose handshake nobody signed.
const UNSIGNED: &str = "unsigned handshake";

/// The endpoints, below `/koi-net`.
pub const FEDERATION_PATHS: [&str; 7] = [
    "/events/broadcast",
    "/events/poll",
    "/events/confirm",
    "/rids/fetch",
    "/manifests/fetch",
    "/bundles/fetch",
    "/handshake",
];

/// What a node is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body: JSON.
    pub body: String,
}

impl FederationAnswer {
    fn of(status: u16, body: &Json) -> Self {
        let body = body.to_text();
        Self { status, body }
    }

    fn refused(refused: Refused) -> Self {
        Self::of(400, &refused.to_json())
    }

    /// As Octo nodes refuse.
    fn refused_octo(refused: Refused, source: &str) -> Self {
        let status = match refused {
            Refused::InvalidSignature => 401,
            _ => 400,
        };
        Self::of(status, &refused.to_octo_json(source))
    }

    /// As the reference refuses what it cannot read.
    fn malformed(error: &Error) -> Self {
        let message = match &error.hint {
            Some(hint) => format!("{} ({hint})", error.message),
            None => error.message.clone(),
        };
        let detail = Json::object([
            ("type", Json::text("value_error")),
            ("loc", Json::texts(["body"])),
            ("msg", Json::Text(message)),
        ]);
        Self::of(422, &Json::object([("detail", Json::List(vec![detail]))]))
    }

    fn failed(error: &Error) -> Self {
        let status = error.code.row().http;
        let shown = match error.code {
            Code::Internal | Code::Corrupt => "the message could not be answered",
            _ => &error.message,
        };
        let body = Json::object([
            ("type", Json::text("error_response")),
            ("error", Json::text(error.code.row().name)),
            ("message", Json::text(shown)),
        ]);
        Self::of(status, &body)
    }
}

impl Koi {
    /// Answers a message of another node. `path` is one of [`FEDERATION_PATHS`].
    pub fn answer_federation(
        &self,
        carrier: &dyn Carrier,
        path: &str,
        body: &[u8],
        is_local: bool,
    ) -> FederationAnswer {
        let _answering = match self.federation.begin_answer() {
            Ok(it) => it,
            Err(error) => return FederationAnswer::failed(&error),
        };
        match self.answer_message(carrier, path, body, is_local) {
            Ok(answer) => answer,
            Err(Denial::Refused(refused)) => FederationAnswer::refused(refused),
            Err(Denial::RefusedOcto(refused, source)) => {
                FederationAnswer::refused_octo(refused, &source)
            }
            Err(Denial::Malformed(error)) => FederationAnswer::malformed(&error),
            Err(Denial::Failed(error)) => FederationAnswer::failed(&error),
        }
    }

    fn answer_message(
        &self,
        carrier: &dyn Carrier,
        path: &str,
        body: &[u8],
        is_local: bool,
    ) -> Result<FederationAnswer, Denial> {
        let Some(me) = self.me()? else {
            let off = Json::object([("detail", Json::text("KOI-net is not enabled"))]);
            return Ok(FederationAnswer::of(404, &off));
        };
        let limits = Limits {
            bytes_max: FEDERATION_BYTES_MAX,
            ..Limits::default()
        };
        let value = Json::parse(body, limits).map_err(Denial::Malformed)?;
        if path == "/handshake" {
            return self.answer_handshake(&me, &value);
        }
        if value.get("signature").is_none() {
            return self.answer_unsigned(&me, path, &value, is_local);
        }
        let envelope = Envelope::from_json(&value).map_err(Denial::Malformed)?;
        let payload = self.admit_envelope(&me, carrier, &envelope)?;
        let source = envelope.source.as_str().to_owned();
        match (path, payload) {
            ("/events/broadcast", Payload::Events(events)) => {
                let n_events = events.len();
                let taken = self.take_events(
                    self.own(&me),
                    Arrived {
                        peer: source.clone(),
                        signature: envelope.signature.clone(),
                        fingerprint: Some(envelope.fingerprint()),
                        events,
                    },
                )?;
                if taken.is_copy {
                    return Err(Denial::Refused(Refused::InvalidSignature));
                }
                let dialect = self.peer_by_rid(&source)?.map(|it| it.dialect);
                Ok(match dialect {
                    Some(Dialect::Octo) => FederationAnswer::of(
                        200,
                        &Json::object([
                            ("status", Json::text("ok")),
                            ("queued", Json::count(n_events as u64)),
                        ]),
                    ),
                    _ => FederationAnswer::of(200, &Json::Null),
                })
            }
            (path, Payload::Query(query)) if is_path_of(path, &query) => {
                let peer = self.peer_by_rid(&source)?;
                if let Some(peer) = &peer {
                    self.admit_once(&envelope, peer)?;
                }
                let payload = self.answer_query(&me, peer.as_ref(), query)?;
                let body = me.seal(self, &payload, &source);
                Ok(FederationAnswer { status: 200, body })
            }
            _ => Err(Denial::Malformed(Error::invalid(
                "`payload.type` does not belong to this path",
            ))),
        }
    }

    /// Unsigned questions are answered as a stranger's, and only where the operator allows it: they tell no
    /// more than who this node is.
    fn answer_unsigned(
        &self,
        me: &Me,
        path: &str,
        value: &Json,
        is_local: bool,
    ) -> Result<FederationAnswer, Denial> {
        let missing = || {
            Denial::Malformed(
                Error::invalid("`signature` is missing").hint("this node answers signed messages"),
            )
        };
        let is_allowed = path != "/events/broadcast" && (is_local || !me.row.is_strict);
        if !is_allowed || value.get("type").is_none() {
            return Err(missing());
        }
        match Payload::from_json(value).map_err(Denial::Malformed)? {
            Payload::Query(query) if is_path_of(path, &query) => {
                let payload = self.answer_query(me, None, query)?;
                Ok(FederationAnswer::of(200, &payload.to_json()))
            }
            _ => Err(missing()),
        }
    }

    /// Octo's handshake: who a node is, in one message. It proves nothing but that the name fits the key, so
    /// nothing is shared because of it.
    fn answer_handshake(&self, me: &Me, value: &Json) -> Result<FederationAnswer, Denial> {
        let envelope = value.get("signature").map(|_| Envelope::from_json(value));
        let envelope = envelope.transpose().map_err(Denial::Malformed)?;
        let payload = envelope.as_ref().map_or(value, |it| &it.payload);
        let profile = payload.get("profile").filter(|it| it.members().is_some());
        let profile = profile.ok_or_else(|| {
            Denial::Malformed(Error::invalid("`profile` is missing or not an object"))
        })?;
        let rid = profile
            .get("node_rid")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let rid = NodeRid::parse(rid).map_err(Denial::Malformed)?;
        let invalid = |_| Denial::Refused(Refused::InvalidKey);
        let rid = Rid::parse(rid.as_str())?;
        let bundle = Bundle::of(&rid, profile.clone(), self.federation_now())?;
        let (_, key) = checked_profile(&bundle).map_err(invalid)?;
        if let Some(envelope) = &envelope {
            envelope.check(&key, &me.rid).map_err(Denial::Refused)?;
        }
        self.kernel.writable()?;
        let own = self.own(me);
        let is_signed = envelope.is_some();
        let known = self.kernel.log().write(&self.federated_space(), move |tx| {
            let rid = bundle.manifest.rid.to_string();
            let is_known = PEERS.get(&**tx, &rid)?.is_some();
            let introduction = Introduction {
                bundle: &bundle,
                from: if is_signed { &rid } else { UNSIGNED },
                is_octo: true,
            };
            know_node(tx, &own, &introduction)?;
            if is_known && !is_signed {
                // Anybody can have sent it.
                return Ok(());
            }
            note_status(tx, &rid, |it| it.last_seen_ms = Some(own.now_ms))
        });
        known.map_err(|error| match error.code {
            Code::Denied => Denial::Refused(Refused::InvalidKey),
            _ => Denial::Failed(error),
        })?;
        self.federation.wake();
        let answer = Json::object([
            ("type", Json::text("handshake_response")),
            ("profile", me.octo_profile()),
            ("accepted", Json::Bool(true)),
        ]);
        Ok(match envelope {
            None => FederationAnswer::of(200, &answer),
            Some(envelope) => FederationAnswer {
                status: 200,
                body: me.seal_json(self, &answer, envelope.source.as_str()),
            },
        })
    }

    /// Answers a question as far as the policy allows this peer to know.
    fn answer_query(&self, me: &Me, peer: Option<&PeerRow>, query: Query) -> Result<Payload> {
        let space = self.federated_space();
        match query {
            Query::PollEvents { limit } => self.poll(me, peer, limit),
            Query::ConfirmEvents { event_ids } => self.confirm(peer, event_ids),
            Query::FetchRids { rid_types } => self.kernel.log().read(&space, |tx| {
                Ok(Payload::Rids(View { me, peer, tx }.rids(&rid_types)?))
            }),
            Query::FetchManifests { rid_types, rids } => self.kernel.log().read(&space, |tx| {
                let view = View { me, peer, tx };
                let rids = if rids.is_empty() {
                    view.rids(&rid_types)?
                } else {
                    rids
                };
                let (mut manifests, mut not_found) = (Vec::new(), Vec::new());
                for rid in rids {
                    match view.stored(&rid)? {
                        Some(stored) => manifests.push(stored.manifest(&rid)?),
                        None => not_found.push(rid),
                    }
                }
                Ok(Payload::Manifests {
                    manifests,
                    not_found,
                })
            }),
            Query::FetchBundles { rids } => self.kernel.log().read(&space, |tx| {
                let view = View { me, peer, tx };
                let (mut bundles, mut not_found, mut deferred) =
                    (Vec::new(), Vec::new(), Vec::new());
                let mut n_bytes = 0;
                for rid in rids {
                    match view.stored(&rid)? {
                        None => not_found.push(rid),
                        Some(_) if n_bytes > ANSWER_BYTES => deferred.push(rid),
                        Some(stored) => {
                            n_bytes += stored.contents.len();
                            bundles.push(stored.bundle(&rid)?);
                        }
                    }
                }
                Ok(Payload::Bundles {
                    bundles,
                    not_found,
                    deferred,
                })
            }),
        }
    }

    /// Hands out what waits for a peer. Whoever polls again got the last answer, unless the program ended meanwhile;
    /// an Octo node confirms what it got.
    fn poll(&self, me: &Me, peer: Option<&PeerRow>, limit: u64) -> Result<Payload> {
        let node = me.row.clone();
        let Some(peer) = peer.cloned() else {
            return Ok(Payload::Events(Vec::new()));
        };
        let limit = match usize::try_from(limit).unwrap_or(usize::MAX) {
            0 => POLLED_MAX,
            limit => limit.min(POLLED_MAX),
        };
        let profile = me.bundle()?;
        let profile_ms = me.row.profile_ms;
        let (own, now) = (self.own(me), self.federation_now());
        let run = self.federation.run(self.kernel.log().random());
        self.kernel.writable()?;
        self.kernel.log().write(&self.federated_space(), move |tx| {
            if peer.dialect == Dialect::Octo && subscribe_octo(tx, &own, &peer)? {
                backlog(tx, &own, &peer, shared_with(&own.row, &peer))?;
            }
            let (mut events, is_octo) = (Vec::new(), peer.dialect == Dialect::Octo);
            let status = STATUS.get_readable(&**tx, &peer.rid)?.unwrap_or_default();
            // Whoever only asks learns here who answers.
            let is_told = status.greeted_profile_ms == profile_ms
                && now.saturating_sub(status.greeted_ms) < TOLD_MS;
            if !is_told && !is_octo {
                events.push(Event::of(EventType::New, profile));
            }
            let (queue, mut n_bytes) = (queue(&peer.rid), 0);
            for (number, mut row) in queue.list(&**tx)? {
                let is_left = is_octo || settle_handed(&mut row, &run);
                if !is_left {
                    queue.unset(tx, &number)?;
                    continue;
                }
                let mut n_handed = 0;
                for (i, queued) in row.events.iter().enumerate() {
                    if events.len() >= limit || n_bytes > ANSWER_BYTES {
                        break;
                    }
                    n_handed += 1;
                    if !may_send(&**tx, &node, &peer, &row, queued)? {
                        continue;
                    }
                    let current = |rid: &str| Ok(PUBLISHED.get(&**tx, rid)?.map(|it| it.bundle));
                    if let Some(mut event) = event_of(queued, current)? {
                        event.event_id = is_octo.then(|| format!("{number}-{i}"));
                        n_bytes += event.contents.as_ref().map_or(0, |it| it.to_text().len());
                        events.push(event);
                    }
                }
                if !is_octo {
                    row.handed = Some((n_handed, run.clone()));
                    queue.set(tx, &number, &row)?;
                }
            }
            let n_sent = events.len() as u64;
            note_status(tx, &peer.rid, |it| {
                it.last_seen_ms = Some(now);
                if !is_told {
                    (it.greeted_ms, it.greeted_profile_ms) = (now, profile_ms);
                }
                it.n_sent += n_sent;
            })?;
            Ok(Payload::Events(events))
        })
    }

    fn confirm(&self, peer: Option<&PeerRow>, event_ids: Vec<String>) -> Result<Payload> {
        let Some(peer) = peer.cloned() else {
            return Ok(Payload::Confirmed(0));
        };
        self.kernel.writable()?;
        self.kernel.log().write(&self.federated_space(), move |tx| {
            let (queue, mut n_confirmed) = (queue(&peer.rid), 0);
            for (number, row) in queue.list(&**tx)? {
                let is_confirmed = |i: usize| event_ids.contains(&format!("{number}-{i}"));
                let n_before = row.events.len();
                let left = row.events.iter().enumerate();
                let left = left
                    .filter(|(i, _)| !is_confirmed(*i))
                    .map(|it| it.1.clone());
                let left: Vec<_> = left.collect();
                n_confirmed += (n_before - left.len()) as u64;
                match left.len() {
                    0 => queue.unset(tx, &number)?,
                    n if n == n_before => {}
                    // The others get new numbers: these were of a row that is no more.
                    _ => {
                        queue.unset(tx, &number)?;
                        super::queue::enqueue(tx, &peer.rid, &left, row.since_ms, row.is_control)?;
                    }
                }
            }
            Ok(Payload::Confirmed(n_confirmed))
        })
    }
}

/// Removes the events that a peer got when it last polled; false if none are left.
fn settle_handed(row: &mut QueueRow, run: &str) -> bool {
    let Some((n_handed, by)) = row.handed.take() else {
        return true;
    };
    // Several servers may answer in turn: then it is given again a few times, and no more.
    row.n_tries += u32::from(by != run);
    if by == run || row.n_tries > HANDED_AGAIN_MAX {
        row.events.drain(..n_handed.min(row.events.len()));
        row.n_tries = 0;
    }
    !row.events.is_empty()
}

fn is_path_of(path: &str, query: &Query) -> bool {
    let own = match query {
        Query::PollEvents { .. } => "/events/poll",
        Query::ConfirmEvents { .. } => "/events/confirm",
        Query::FetchRids { .. } => "/rids/fetch",
        Query::FetchManifests { .. } => "/manifests/fetch",
        Query::FetchBundles { .. } => "/bundles/fetch",
    };
    own == path
}

/// What one peer may know.
struct View<'a> {
    me: &'a Me,
    peer: Option<&'a PeerRow>,
    tx: &'a dyn ReadTx,
}

impl View<'_> {
    fn may_get(&self, kind: &str) -> bool {
        let peer = self.peer;
        peer.is_some_and(|it| shared_with(&self.me.row, it).iter().any(|it| it == kind))
    }

    /// The names of what it may know: this node, subscriptions between the two, and what the policy names.
    fn rids(&self, types: &[String]) -> Result<Vec<String>> {
        let is_asked =
            |rid_type: &str| types.is_empty() || types.iter().any(|it| is_type_named(rid_type, it));
        let mut rids = Vec::new();
        if is_asked(NODE_TYPE) {
            rids.push(self.me.rid.to_string());
        }
        let Some(peer) = self.peer else {
            return Ok(rids);
        };
        if is_asked(EDGE_TYPE) {
            let edges = EDGES.list_readable(self.tx)?.into_iter();
            let own = edges.filter(|it| it.1.source == peer.rid || it.1.target == peer.rid);
            let own = own.filter(|it| !it.1.is_withdrawn);
            rids.extend(own.map(|it| it.0));
        }
        let shared = shared_with(&self.me.row, peer);
        if shared.iter().any(|it| is_asked(&rid_type(it))) {
            for (rid, row) in PUBLISHED.list_readable(self.tx)? {
                if self.may_get(&row.kind) && is_asked(&rid_type(&row.kind)) {
                    rids.push(rid);
                }
            }
        }
        Ok(rids)
    }

    fn stored(&self, rid: &str) -> Result<Option<StoredBundle>> {
        if rid == self.me.rid.as_str() {
            return Ok(Some(StoredBundle::of(&self.me.bundle()?)));
        }
        let Some(peer) = self.peer else {
            return Ok(None);
        };
        if let Some(edge) = EDGES.get(self.tx, rid)?.filter(|it| !it.is_withdrawn) {
            let is_own = edge.source == peer.rid || edge.target == peer.rid;
            return Ok(is_own.then_some(edge.bundle));
        }
        let row = PUBLISHED.get(self.tx, rid)?;
        Ok(row.filter(|it| self.may_get(&it.kind)).map(|it| it.bundle))
    }
}
