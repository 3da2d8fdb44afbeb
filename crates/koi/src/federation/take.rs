//! Takes events of a peer: profiles and subscriptions at once, everything else into the inbox, where it is
//! durable before the peer is answered.

use super::peers::{Own, forget_node, is_accepted, know_node, take_edge};
use super::records::{
    EDGES, INBOX, InboxRow, PEERS, PUBLISHED, PeerRow, next_number, note_status, seen,
};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Error, Result};
use kenning_federation::rid::{EDGE_TYPE, NODE_TYPE};
use kenning_federation::{Event, EventType};
use serde_json::json;

/// At most so many messages wait in the inbox, over all peers.
const INBOX_MAX: usize = 2_000;

/// What became of the events of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether the very message had been taken before.
    pub(super) is_copy: bool,
    pub(super) n_taken: u64,
    pub(super) n_refused: u64,
}

/// A message whose signature was checked.
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
        let taken = self
            .kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                if let Some(fingerprint) = &arrived.fingerprint {
                    let seen = seen(&arrived.peer);
                    if seen.has(&**tx, fingerprint)? {
                        return Ok(Taken {
                            is_copy: true,
                            ..Taken::default()
                        });
                    }
                    seen.set(tx, fingerprint, &own.now_ms)?;
                }
                take(tx, &own, &arrived)
            })?;
        self.federation.wake();
        Ok(taken)
    }
}

fn take(tx: &mut Tx<'_>, own: &Own, arrived: &Arrived) -> Result<Taken> {
    let (mut taken, mut knowledge) = (Taken::default(), Vec::new());
    let mut fault = None;
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
    if !knowledge.is_empty() {
        if INBOX.keys(&**tx)?.len() >= INBOX_MAX {
            return Err(
                Error::limited("the inbox of this node is full").hint("send it again later")
            );
        }
        let n_events = knowledge.len();
        let row = InboxRow {
            peer: arrived.peer.clone(),
            signature: arrived.signature.clone(),
            at_ms: own.now_ms,
            events: knowledge,
            n_tries: 0,
        };
        let number = next_number(tx)?;
        INBOX.set(tx, &number, &row)?;
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
    use kenning_core::Code;
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
        (_, Some(bundle)) => know_node(tx, own, &bundle, from).map(|()| true),
    }
}

fn take_edge_event(tx: &mut Tx<'_>, own: &Own, from: &str, event: &Event) -> Result<bool> {
    let Some(peer) = PEERS.get(&**tx, from)? else {
        return Ok(false);
    };
    if event.event_type == EventType::Forget {
        let edge = EDGES.get(&**tx, event.rid.as_str())?;
        let is_theirs = edge.is_some_and(|it| it.source == from || it.target == from);
        if is_theirs {
            EDGES.unset(tx, event.rid.as_str())?;
            let data = json!({ "edge": event.rid.as_str(), "by": from });
            tx.record("FederationEdgeForgotten", data)?;
        }
        return Ok(is_theirs);
    }
    match &event.contents {
        Some(contents) => take_edge(tx, own, &peer, contents).map(|()| true),
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
