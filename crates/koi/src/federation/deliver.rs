//! Sends what waits for a peer.
//!
//! A row of the queue is removed when the peer has answered, in the order of the queue. If the process dies in
//! between, the row is sent again, and the peer, who knows the hash, ignores it.

use super::ask::Trouble;
use super::carrier::Carrier;
use super::node::Me;
use super::queue::{enqueue, event_of, may_send};
use super::records::{
    DeadRow, EDGES, PUBLISHED, PeerRow, QueueRow, dead, next_number, note_status, queue,
};
use crate::Koi;
use kenning_core::{Code, Result};
use kenning_federation::Event;
use kenning_federation::rid::edge_rid;
use serde_json::json;

/// After so long, what could not be delivered is put aside.
const EXPIRED_MS: u64 = 72 * 3_600_000;
/// A message that is refused so often is put aside.
const TRIES_MAX: u32 = 3;

/// How events reach a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Webhook,
    Poll,
    /// It does not subscribe.
    None,
}

impl Koi {
    /// Sends what waits; returns how many events were delivered.
    pub(super) fn deliver(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
    ) -> Result<usize, Trouble> {
        let (space, own) = (self.federated_space(), me.rid.to_string());
        let (rows, way) = self.kernel.log().read(&space, |tx| {
            let edge = EDGES.get_readable(tx, &edge_rid(&own, &peer.rid))?;
            let way = match edge.filter(|it| it.is_approved) {
                Some(edge) if edge.is_poll || peer.is_partial => Way::Poll,
                Some(_) => Way::Webhook,
                None if peer.is_partial => Way::Poll,
                None => Way::None,
            };
            Ok((queue(&peer.rid).list_readable(tx)?, way))
        })?;
        let mut n_delivered = 0;
        for (number, row) in rows {
            let is_old = self.federation_now().saturating_sub(row.since_ms) > EXPIRED_MS;
            if is_old {
                self.put_aside(peer, &number, row, "it waited for three days".to_owned())?;
                continue;
            }
            match way {
                Way::Poll if !row.is_control || peer.is_partial => continue,
                Way::None if !row.is_control => {
                    self.take_off(peer, &number, 0)?;
                    continue;
                }
                _ => {}
            }
            let events = self.kernel.log().read(&space, |tx| {
                let current = |rid: &str| Ok(PUBLISHED.get_readable(tx, rid)?.map(|it| it.bundle));
                let events =
                    row.events
                        .iter()
                        .map(|it| match may_send(tx, &me.row, peer, &row, it)? {
                            true => event_of(it, current),
                            false => Ok(None),
                        });
                events.collect::<Result<Vec<Option<Event>>>>()
            })?;
            let events: Vec<Event> = events.into_iter().flatten().collect();
            let n_events = events.len();
            if n_events == 0 {
                self.take_off(peer, &number, 0)?;
                continue;
            }
            match self.send_events(me, carrier, peer, events) {
                Ok(()) => {
                    n_delivered += n_events;
                    self.take_off(peer, &number, n_events as u64)?;
                }
                Err(Trouble::Failed(error)) if is_about_message(error.code) => {
                    self.refused(peer, &number, row, error.message)?;
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(n_delivered)
    }

    fn take_off(&self, peer: &PeerRow, number: &str, n_sent: u64) -> Result<()> {
        let (peer, number) = (peer.rid.clone(), number.to_owned());
        let now = self.federation_now();
        self.kernel.log().write(&self.federated_space(), move |tx| {
            queue(&peer).unset(tx, &number)?;
            note_status(tx, &peer, |it| {
                it.n_sent += n_sent;
                it.last_seen_ms = Some(now);
            })
        })
    }

    /// The peer does not take a message: one of its events may be the reason, so they are sent one by one.
    fn refused(&self, peer: &PeerRow, number: &str, mut row: QueueRow, why: String) -> Result<()> {
        row.n_tries += 1;
        if row.n_tries < TRIES_MAX {
            let (peer, number) = (peer.rid.clone(), number.to_owned());
            return self.kernel.log().write(&self.federated_space(), move |tx| {
                queue(&peer).set(tx, &number, &row)?;
                note_status(tx, &peer, |it| it.last_error = Some(why))
            });
        }
        if row.events.len() == 1 {
            return self.put_aside(peer, number, row, why);
        }
        let (peer, number) = (peer.rid.clone(), number.to_owned());
        self.kernel.log().write(&self.federated_space(), move |tx| {
            queue(&peer).unset(tx, &number)?;
            for event in &row.events {
                enqueue(
                    tx,
                    &peer,
                    std::slice::from_ref(event),
                    row.since_ms,
                    row.is_control,
                )?;
            }
            Ok(())
        })
    }

    fn put_aside(&self, peer: &PeerRow, number: &str, row: QueueRow, why: String) -> Result<()> {
        let (peer, number, at_ms) = (peer.rid.clone(), number.to_owned(), self.federation_now());
        self.kernel.log().write(&self.federated_space(), move |tx| {
            queue(&peer).unset(tx, &number)?;
            let n_events = row.events.len();
            let data = json!({ "node": peer, "events": n_events, "why": why });
            let letter = DeadRow {
                row,
                why: why.clone(),
                at_ms,
            };
            let number = next_number(tx)?;
            dead(&peer).set(tx, &number, &letter)?;
            note_status(tx, &peer, |it| it.last_error = Some(why))?;
            tx.record("FederationUndelivered", data).map(drop)
        })
    }
}

/// Whether the peer was reached and dislikes this message.
fn is_about_message(code: Code) -> bool {
    matches!(code, Code::Denied | Code::InvalidInput | Code::TooLarge)
}
