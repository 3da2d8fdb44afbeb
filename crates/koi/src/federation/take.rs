//! Takes events of a peer: profiles and subscriptions at once, everything else into the inbox, where it is
//! durable before the peer is answered.

use super::carrier::Carrier;
use super::node::Me;
use super::peers::{
    Introduction, Own, forget_edge, forget_node, is_accepted, know_node, take_edge,
};
use super::records::{
    InboxRow, PEERS, PUBLISHED, PeerRow, note_status, put_into_inbox, remember_message,
};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result};
use kenning_federation::rid::{EDGE_TYPE, NODE_TYPE};
use kenning_federation::{Event, EventType};
use serde_json::json;

/// What became of the events of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether the very message had been taken before.
    pub(super) is_copy: bool,
    pub(super) n_taken: u64,
    pub(super) n_refused: u64,
}

/// A message whose signature was checked.
#[derive(Clone)]
pub(super) struct Arrived {
    pub(super) peer: String,
    pub(super) signature: String,
    /// Of messages that somebody could send again.
    pub(super) fingerprint: Option<String>,
    pub(super) events: Vec<Event>,
}

impl Koi {
    /// Takes the events of a message, in one transaction.
    pub(super) fn take_events(&self, own: Own, arrived: Arrived) -> Result<Taken> {
        self.kernel.writable()?;
        let (peer, is_pushed) = (arrived.peer.clone(), arrived.fingerprint.is_some());
        let taken = self
            .kernel
            .log()
            .write(&self.federated_space(), move |tx| take(tx, &own, &arrived));
        match taken {
            Err(error) if error.code == Code::Limited && is_pushed => {
                self.note_flood(&peer, &error)?;
                Err(error)
            }
            taken => {
                self.federation.wake();
                taken
            }
        }
    }

    /// Takes what a peer answered. If there is no room for it, room is made: whoever asks has time.
    pub(super) fn take_answer(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        arrived: Arrived,
    ) -> Result<Taken> {
        match self.take_events(self.own(me), arrived.clone()) {
            Err(error) if error.code == Code::Limited => {
                self.digest_inbox(me, carrier)?;
                self.take_events(self.own(me), arrived)
            }
            taken => taken,
        }
    }

    /// A peer sends more than this node takes in: the status says so, and whoever goes on is cut off.
    fn note_flood(&self, peer: &str, error: &Error) -> Result<()> {
        let flood = self.federation.count_flood(peer, self.federation_now());
        let Some(flood) = flood else {
            return Ok(());
        };
        let (peer, said) = (peer.to_owned(), error.message.clone());
        self.kernel.log().write(&self.federated_space(), move |tx| {
            note_status(tx, &peer, |it| {
                it.n_refused += flood.n_new;
                it.last_error = Some(said);
            })?;
            match flood.is_too_much {
                true => cut_off(
                    tx,
                    &peer,
                    &format!(
                        "it flooded this node: {} messages more than it takes in",
                        flood.n
                    ),
                ),
                false => Ok(()),
            }
        })
    }
}

/// Nothing is exchanged with a node any more.
pub(super) fn cut_off(tx: &mut Tx<'_>, peer: &str, why: &str) -> Result<()> {
    let Some(mut row) = PEERS.get(&**tx, peer)? else {
        return Ok(());
    };
    row.cut_off = Some(why.to_owned());
    PEERS.set(tx, peer, &row)?;
    tx.record("FederationNodeCutOff", json!({ "node": peer, "why": why }))
        .map(drop)
}

fn take(tx: &mut Tx<'_>, own: &Own, arrived: &Arrived) -> Result<Taken> {
    let (mut taken, mut knowledge) = (Taken::default(), Vec::new());
    let mut fault = None;
    if let Some(fingerprint) = &arrived.fingerprint
        && super::records::seen(&arrived.peer).has(&**tx, fingerprint)?
    {
        taken.is_copy = true;
        return Ok(taken);
    }
    for event in &arrived.events {
        let done = match event.rid.rid_type() {
            NODE_TYPE => take_node(tx, own, &arrived.peer, event),
            EDGE_TYPE => take_edge_event(tx, own, &arrived.peer, event),
            _ => take_knowledge(tx, &arrived.peer, event).inspect(|is_taken| {
                if *is_taken {
                    knowledge.push(event.to_json().to_text());
                }
            }),
        };
        match done {
            Ok(true) => taken.n_taken += 1,
            Ok(false) => taken.n_refused += 1,
            Err(error) if is_theirs(&error) => {
                taken.n_refused += 1;
                fault = Some(error.message);
            }
            Err(error) => return Err(error),
        }
    }
    // Of a node that is not known after all, nothing is kept.
    let Some(peer) = PEERS.get_readable(&**tx, &arrived.peer)? else {
        return Ok(taken);
    };
    if let Some(fingerprint) = &arrived.fingerprint {
        remember_message(tx, &peer, fingerprint, own.now_ms)?;
    }
    if !knowledge.is_empty() {
        let n_events = knowledge.len();
        let row = InboxRow {
            peer: arrived.peer.clone(),
            signature: arrived.signature.clone(),
            at_ms: own.now_ms,
            events: knowledge,
            n_tries: 0,
        };
        put_into_inbox(tx, &row)?;
        let data = json!({ "node": arrived.peer, "events": n_events, "signature": row.signature });
        tx.record("FederationReceived", data)?;
    }
    note_status(tx, &arrived.peer, |it| {
        it.last_seen_ms = Some(own.now_ms);
        it.n_received += taken.n_taken;
        it.n_refused += taken.n_refused;
        if fault.is_some() {
            it.last_error = fault;
        }
    })?;
    Ok(taken)
}

/// Whether an error is about what was sent: then the rest of the message still counts.
fn is_theirs(error: &Error) -> bool {
    matches!(
        error.code,
        Code::InvalidInput | Code::Denied | Code::Limited | Code::TooLarge
    )
}

fn take_node(tx: &mut Tx<'_>, own: &Own, from: &str, event: &Event) -> Result<bool> {
    let rid = event.rid.as_str();
    if rid == own.rid {
        return Ok(false);
    }
    match (event.event_type, event.bundle()) {
        // Nobody is forgotten because another says so.
        (EventType::Forget, _) if rid == from => forget_node(tx, rid).map(|()| true),
        (EventType::Forget, _) | (_, None) => Ok(false),
        (_, Some(bundle)) => {
            let introduction = Introduction {
                bundle: &bundle,
                from,
                is_octo: false,
            };
            know_node(tx, own, &introduction).map(|()| true)
        }
    }
}

fn take_edge_event(tx: &mut Tx<'_>, own: &Own, from: &str, event: &Event) -> Result<bool> {
    let Some(peer) = PEERS.get(&**tx, from)? else {
        return Ok(false);
    };
    if event.event_type == EventType::Forget {
        return forget_edge(tx, own, from, event.rid.as_str());
    }
    let dated = event.manifest.as_ref().map(|it| it.timestamp.as_str());
    match &event.contents {
        Some(contents) => take_edge(tx, own, &peer, contents, dated).map(|()| true),
        None => Ok(false),
    }
}

/// Whether something is taken: only of a peer that was approved, of a type that is accepted, and not what
/// this node itself had sent.
fn take_knowledge(tx: &mut Tx<'_>, from: &str, event: &Event) -> Result<bool> {
    let peer: Option<PeerRow> = PEERS.get(&**tx, from)?;
    if !peer.is_some_and(|it| is_accepted(&it, event.rid.rid_type())) {
        return Ok(false);
    }
    let own = PUBLISHED.get_readable(&**tx, event.rid.as_str())?;
    let hash = event.manifest.as_ref().map(|it| it.sha256_hash.as_str());
    Ok(!own.zip(hash).is_some_and(|(own, hash)| own.is_echo(hash)))
}
