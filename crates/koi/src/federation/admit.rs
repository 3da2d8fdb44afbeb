//! Who sent a message, and whether that is true.

use super::ask::Trouble;
use super::carrier::Carrier;
use super::node::Me;
use super::peers::{Introduction, Own, checked_profile, know_node};
use super::records::{Dialect, PEERS, PeerRow, remember_message, seen};
use crate::Koi;
use kenning_core::{Error, Result};
use kenning_federation::{Envelope, Event, EventType, Payload, PublicKey, Refused};

/// Why a message is not answered.
#[derive(Debug)]
pub(super) enum Denial {
    /// In the words of the network.
    Refused(Refused),
    /// The same in those of an Octo node, which is named.
    RefusedOcto(Refused, String),
    /// It is malformed.
    Malformed(Error),
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Denial {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Koi {
    pub(super) fn own(&self, me: &Me) -> Own {
        Own {
            rid: me.rid.to_string(),
            row: me.row.clone(),
            now_ms: self.federation_now(),
        }
    }

    pub(super) fn peer_by_rid(&self, rid: &str) -> Result<Option<PeerRow>> {
        let space = self.federated_space();
        self.kernel.log().read(&space, |tx| PEERS.get(tx, rid))
    }

    /// Checks an envelope. Gives its payload; why it is refused is said in the words of whoever sent it.
    pub(super) fn admit_envelope(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        envelope: &Envelope,
    ) -> Result<Payload, Denial> {
        let known = self.peer_by_rid(envelope.source.as_str())?;
        let is_octo = match &known {
            Some(known) => known.dialect == Dialect::Octo,
            None => envelope.source.has_short_hash(),
        };
        self.check_envelope(me, carrier, envelope, known)
            .map_err(|denial| match denial {
                Denial::Refused(refused) if is_octo => {
                    Denial::RefusedOcto(refused, envelope.source.to_string())
                }
                denial => denial,
            })
    }

    /// Refuses a question that was answered before: whoever overheard it must not get the answer too.
    pub(super) fn admit_once(&self, envelope: &Envelope, peer: &PeerRow) -> Result<(), Denial> {
        // A server that only reads cannot note what it answered.
        if self.kernel.writable().is_err() {
            return Ok(());
        }
        let (fingerprint, peer) = (envelope.fingerprint(), peer.clone());
        let now = self.federation_now();
        let is_first = self
            .kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                let is_first = !seen(&peer.rid).has(&**tx, &fingerprint)?;
                if is_first {
                    remember_message(tx, &peer, &fingerprint, now)?;
                }
                Ok(is_first)
            })?;
        match is_first {
            true => Ok(()),
            false => Err(Denial::Refused(Refused::InvalidSignature)),
        }
    }

    /// In the order of the reference.
    fn check_envelope(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        envelope: &Envelope,
        known: Option<PeerRow>,
    ) -> Result<Payload, Denial> {
        let payload = Payload::from_json(&envelope.payload).map_err(Denial::Malformed)?;
        let pinned = known.as_ref().and_then(PeerRow::key);
        let is_cut_off = known.as_ref().is_some_and(|it| it.cut_off.is_some());
        let key = match (pinned, introduced(&payload, envelope)) {
            (Some(key), _) => key,
            (None, Some(Ok(key))) => key,
            (None, Some(Err(_))) => return Err(Denial::Refused(Refused::InvalidKey)),
            (None, None) => self.pull_key(me, carrier, known)?,
        };
        envelope.check(&key, &me.rid).map_err(Denial::Refused)?;
        if is_cut_off {
            let why = "this node exchanges nothing with yours any more";
            return Err(Denial::Failed(
                Error::denied(why).hint("its operator can say why"),
            ));
        }
        Ok(payload)
    }

    /// A peer that the operator named may ask before it has said who it is: it is asked for its profile at the
    /// address that is known, so that it gets its answer and does not give up.
    fn pull_key(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        known: Option<PeerRow>,
    ) -> Result<PublicKey, Denial> {
        let unknown = || Denial::Refused(Refused::UnknownNode);
        let peer = known.filter(|it| it.is_active() && it.base_url.is_some());
        let peer = peer.ok_or_else(unknown)?;
        self.learn_profile(me, carrier, &peer)
            .map_err(|_| unknown())?;
        let known = self.peer_by_rid(&peer.rid)?;
        known.and_then(|it| it.key()).ok_or_else(unknown)
    }

    /// Asks a node who it is, and keeps what it says.
    pub(super) fn learn_profile(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
    ) -> Result<(), Trouble> {
        let is_octo = peer.dialect == Dialect::Octo;
        let bundle = match is_octo {
            true => self.shake_hands(me, carrier, peer)?,
            false => self.ask_for_profile(me, carrier, peer)?,
        };
        let own = self.own(me);
        self.kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                let introduction = Introduction {
                    bundle: &bundle,
                    from: bundle.manifest.rid.as_str(),
                    is_octo,
                };
                know_node(tx, &own, &introduction)
            })?;
        Ok(())
    }
}

/// The key of a sender that introduces itself in the message.
fn introduced(payload: &Payload, envelope: &Envelope) -> Option<Result<PublicKey>> {
    let Payload::Events(events) = payload else {
        return None;
    };
    let is_own = |it: &&Event| {
        it.rid.as_str() == envelope.source.as_str() && it.event_type != EventType::Forget
    };
    let bundle = events.iter().filter(is_own).find_map(Event::bundle)?;
    if envelope.source.has_short_hash() {
        return Some(Err(Error::denied(
            "such names are taken in a handshake only",
        )));
    }
    Some(checked_profile(&bundle).map(|it| it.1))
}
