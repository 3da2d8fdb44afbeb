//! What is due with one peer: say who this node is, subscribe, compare, poll, and send what waits.

use super::ask::{Trouble, destination};
use super::carrier::Carrier;
use super::node::Me;
use super::peers::edge_of;
use super::queue::{control, enqueue};
use super::records::{Dialect, EDGES, EdgeRow, PeerRow, STATUS, StatusRow, note_status};
use super::take::Arrived;
use crate::Koi;
use kenning_core::{Error, Result};
use kenning_federation::rid::{NODE_TYPE, edge_rid};
use kenning_federation::{
    Bundle, EdgeProfile, EdgeStatus, EdgeType, Event, EventType, Json, Limits, NodeRid, Payload,
    Query, Refused, Rid,
};
use kenning_kernel::worker::back_off;
use serde_json::json;
use std::time::Duration;

/// After a first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// How often everything is compared.
const CATCH_UP_MS: u64 = 3_600_000;
/// A proposal that nobody answered is made again after so long.
const PROPOSE_AGAIN_MS: u64 = 60_000;
/// How often a peer is polled, unless the operator says otherwise (`KENNING_FEDERATION_POLL_MS`).
const POLL_MS: u64 = 60_000;
/// A greeting that another process began takes no longer.
const GREETING_MS: u64 = 25_000;
/// While a peer has more, it is asked again at once, so often.
const POLLS_MAX: usize = 20;
const POLL_VARIABLE: &str = "KENNING_FEDERATION_POLL_MS";

impl Koi {
    /// Does what is due with a peer; what fails is tried again later, and later each time.
    pub(super) fn tend(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &str,
        is_asked: bool,
    ) -> Result<()> {
        let status = self.status_of(peer)?;
        if !is_asked && status.next_ms > self.federation_now() {
            return Ok(());
        }
        let mut done = self.tend_once(me, carrier, peer);
        if let Err(Trouble::Refused(Refused::UnknownNode)) = done {
            // It has forgotten this node.
            self.federation.forget_greeting(peer);
            let rid = peer.to_owned();
            self.kernel
                .log()
                .write(&self.federated_space(), move |tx| {
                    note_status(tx, &rid, |it| it.greeted_ms = 0)
                })?;
            done = self.tend_once(me, carrier, peer);
        }
        let (rid, now) = (peer.to_owned(), self.federation_now());
        let mut byte = [0];
        self.kernel.log().random().fill(&mut byte);
        match done {
            Ok(()) if status.n_failures == 0 => Ok(()),
            Ok(()) => self.kernel.log().write(&self.federated_space(), move |tx| {
                note_status(tx, &rid, |it| {
                    (it.n_failures, it.next_ms, it.last_error) = (0, 0, None);
                })
            }),
            Err(trouble) => {
                let error = Error::from(trouble);
                let said = error.message.clone();
                self.kernel
                    .log()
                    .write(&self.federated_space(), move |tx| {
                        note_status(tx, &rid, |it| {
                            it.n_failures = it.n_failures.saturating_add(1);
                            let pause = back_off(FIRST_PAUSE, PAUSE_MAX, it.n_failures);
                            // So that nodes that failed together do not come back together.
                            let pause = pause + pause.mul_f64(0.3 * f64::from(byte[0]) / 255.0);
                            it.next_ms = now + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                            it.last_error = Some(said);
                            // What was missed meanwhile is looked for.
                            it.caught_up_ms = 0;
                        })
                    })?;
                self.federation.forget_greeting(peer);
                Err(error)
            }
        }
    }

    fn status_of(&self, peer: &str) -> Result<StatusRow> {
        let space = self.federated_space();
        let status = self
            .kernel
            .log()
            .read(&space, |tx| STATUS.get_readable(tx, peer))?;
        Ok(status.unwrap_or_default())
    }

    fn active_peer(&self, rid: &str) -> Result<Option<PeerRow>> {
        Ok(self.peer_by_rid(rid)?.filter(PeerRow::is_active))
    }

    fn tend_once(&self, me: &Me, carrier: &dyn Carrier, rid: &str) -> Result<(), Trouble> {
        let Some(peer) = self.active_peer(rid)? else {
            return Ok(());
        };
        if peer.base_url.is_none() {
            // It cannot be called: what it is asked waits until it asks.
            return self.subscribe(me, carrier, &peer);
        }
        self.greet(me, carrier, &peer)?;
        let Some(peer) = self.active_peer(rid)? else {
            return Ok(());
        };
        if peer.public_key.is_empty() || peer.profile.is_none() {
            self.learn_profile(me, carrier, &peer)?;
        }
        let Some(peer) = self.active_peer(rid)? else {
            return Ok(());
        };
        self.subscribe(me, carrier, &peer)?;
        let now = self.federation_now();
        if now.saturating_sub(self.status_of(rid)?.caught_up_ms) > CATCH_UP_MS {
            self.catch_up_with(me, carrier, &peer)?;
            self.subscribe(me, carrier, &peer)?;
        }
        self.poll_peer(me, carrier, &peer)?;
        self.deliver(me, carrier, &peer)?;
        Ok(())
    }

    /// Says who this node is: at first, after a start, and when that changed.
    fn greet(&self, me: &Me, carrier: &dyn Carrier, peer: &PeerRow) -> Result<(), Trouble> {
        let status = self.status_of(&peer.rid)?;
        let is_told = status.greeted_profile_ms == me.row.profile_ms;
        let is_first = status.greeted_ms == 0;
        if !self.federation.begin_greeting(&peer.rid) && is_told && !is_first {
            return Ok(());
        }
        if is_first && !self.claim_greeting(&peer.rid)? {
            return Ok(());
        }
        let bundle = me.bundle()?;
        let greeted = if peer.dialect == Dialect::Octo {
            self.learn_profile(me, carrier, peer)
        } else {
            let own = Rid::parse(me.rid.as_str())?;
            // Whoever forgot this node takes its key from a NEW only.
            let new = Event::of(EventType::New, bundle);
            let events = match is_first {
                true => vec![Event::forget(own), new],
                false => vec![new],
            };
            self.send_events(me, carrier, peer, events)
        };
        if let Err(trouble) = greeted {
            self.federation.forget_greeting(&peer.rid);
            let rid = peer.rid.clone();
            self.kernel
                .log()
                .write(&self.federated_space(), move |tx| {
                    note_status(tx, &rid, |it| it.greeting_ms = 0)
                })?;
            return Err(trouble);
        }
        let (rid, now, told) = (peer.rid.clone(), self.federation_now(), me.row.profile_ms);
        self.kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                note_status(tx, &rid, |it| {
                    (it.greeted_ms, it.greeted_profile_ms) = (now, told);
                    it.greeting_ms = 0;
                    it.last_seen_ms = Some(now);
                })
            })?;
        Ok(())
    }

    /// Whether this process is the one that greets a peer for the first time. A command and a server may both want
    /// to; two greetings at once make the reference forget the edge that it proposes after the first.
    fn claim_greeting(&self, peer: &str) -> Result<bool> {
        let (peer, now) = (peer.to_owned(), self.federation_now());
        self.kernel.log().write(&self.federated_space(), move |tx| {
            let status = STATUS.get_readable(&**tx, &peer)?.unwrap_or_default();
            let is_free =
                status.greeted_ms == 0 && now.saturating_sub(status.greeting_ms) > GREETING_MS;
            if is_free {
                note_status(tx, &peer, |it| it.greeting_ms = now)?;
            }
            Ok(is_free)
        })
    }

    /// Octo's handshake: each says who it is. The answer is signed by nobody, but its key must be the one in the
    /// name that the operator connected.
    pub(super) fn shake_hands(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
    ) -> Result<Bundle, Trouble> {
        let payload = Json::object([
            ("type", Json::text("handshake")),
            ("profile", me.octo_profile()),
        ]);
        let carried = carrier.carry(&destination(peer)?, "/handshake", Some(&payload.to_text()))?;
        let refused = |why: String| Error::denied(format!("`{}` {why}", peer.rid));
        if !(200..=299).contains(&carried.status) {
            let why = format!("refused the handshake (status {})", carried.status);
            return Err(refused(why).into());
        }
        let answer = Json::parse(&carried.body, Limits::default()).unwrap_or(Json::Null);
        let answer = answer.get("payload").unwrap_or(&answer);
        let profile = answer
            .get("profile")
            .filter(|it| it.get("node_rid").and_then(Json::as_str) == Some(peer.rid.as_str()));
        let profile = profile
            .ok_or_else(|| refused("did not say who it is in its handshake".to_owned()))?
            .clone();
        let now = self.federation_now();
        Ok(Bundle::of(&Rid::parse(&peer.rid)?, profile, now)?)
    }

    /// Proposes to be told what the peer provides and this node takes.
    fn subscribe(&self, me: &Me, carrier: &dyn Carrier, peer: &PeerRow) -> Result<(), Trouble> {
        let events = peer.provides_event.iter();
        let wanted = self.types_wanted(peer);
        let mut types: Vec<String> = events.filter(|it| wanted.contains(it)).cloned().collect();
        if types.is_empty() {
            return Ok(());
        }
        if peer.dialect == Dialect::Reference {
            types.push(NODE_TYPE.to_owned());
        }
        let rid = edge_rid(&peer.rid, me.rid.as_str());
        let space = self.federated_space();
        let edge = self
            .kernel
            .log()
            .read(&space, |tx| EDGES.get_readable(tx, &rid))?;
        let now = self.federation_now();
        // What is not later than what the provider has is ignored by it.
        let last_ms = edge.as_ref().map_or(0, EdgeRow::at_ms);
        if let Some(edge) = edge {
            let is_pending = now.saturating_sub(edge.noted_ms) < PROPOSE_AGAIN_MS;
            if edge.rid_types == types && (edge.is_approved || is_pending) {
                return Ok(());
            }
        }
        let is_octo = peer.dialect == Dialect::Octo;
        let profile = EdgeProfile {
            source: NodeRid::parse(&peer.rid)?,
            target: me.rid.clone(),
            edge_type: match me.row.base_url {
                Some(_) if !is_octo => EdgeType::Webhook,
                _ => EdgeType::Poll,
            },
            // An Octo node agrees to nothing: it answers whoever asks.
            status: match is_octo {
                true => EdgeStatus::Approved,
                false => EdgeStatus::Proposed,
            },
            rid_types: types,
        };
        let (rid, row, bundle) = edge_of(&profile, now, last_ms)?;
        // It is kept first: the answer may come before this call returns.
        let (key, provider) = (rid, peer.rid.clone());
        let waits = (peer.base_url.is_none()).then(|| control(EventType::New, &bundle));
        let is_waiting = waits.is_some();
        self.kernel.log().write(&space, move |tx| {
            EDGES.set(tx, &key, &row)?;
            if let Some(waits) = waits {
                enqueue(tx, &provider, &[waits], now, true)?;
            }
            // Whatever was missed until it is agreed to is fetched.
            let data = json!({ "edge": key, "provider": provider, "types": row.rid_types });
            tx.record("FederationEdgeAsked", data).map(drop)
        })?;
        match is_waiting || is_octo {
            true => Ok(()),
            false => self.send_events(me, carrier, peer, vec![Event::of(EventType::New, bundle)]),
        }
    }

    fn poll_peer(&self, me: &Me, carrier: &dyn Carrier, peer: &PeerRow) -> Result<(), Trouble> {
        let rid = edge_rid(&peer.rid, me.rid.as_str());
        let space = self.federated_space();
        let edge = self
            .kernel
            .log()
            .read(&space, |tx| EDGES.get_readable(tx, &rid))?;
        // Whether a proposal was accepted is told to a node without an address only when it asks.
        let is_polled = edge.is_some_and(|it| it.is_poll);
        let now = self.federation_now();
        let interval = (self.kernel.environment())(POLL_VARIABLE);
        let interval = interval
            .and_then(|it| it.trim().parse().ok())
            .unwrap_or(POLL_MS);
        if !is_polled || now.saturating_sub(self.status_of(&peer.rid)?.polled_ms) < interval {
            return Ok(());
        }
        // An Octo node hands out a few events at a time.
        for _ in 0..POLLS_MAX {
            let poll = Query::PollEvents { limit: 0 };
            let (answer, signature) = self.ask_node(me, carrier, peer, poll)?;
            let Payload::Events(events) = answer else {
                return Err(Error::denied("the answer has no events").into());
            };
            let ids: Vec<String> = events.iter().filter_map(|it| it.event_id.clone()).collect();
            if !events.is_empty() {
                let arrived = Arrived {
                    peer: peer.rid.clone(),
                    signature,
                    fingerprint: None,
                    events,
                };
                self.take_answer(me, carrier, arrived)?;
            }
            if ids.is_empty() {
                break;
            }
            self.ask_node(me, carrier, peer, Query::ConfirmEvents { event_ids: ids })?;
        }
        let peer = peer.rid.clone();
        self.kernel.log().write(&space, move |tx| {
            note_status(tx, &peer, |it| {
                (it.polled_ms, it.last_seen_ms) = (now, Some(now));
            })
        })?;
        Ok(())
    }
}
