//! Who sent a message, and whether that is true.

use super::carrier::Carrier;
use super::node::Me;
use super::peers::{Own, checked_profile, know_node};
use super::records::{PEERS, PeerRow};
use crate::Koi;
use kenning_core::{Error, Result};
use kenning_federation::{Envelope, Event, EventType, Payload, PublicKey, Refused};

/// Why a message is not answered.
#[derive(Debug)]
pub(super) enum Denial {
    /// In the words of the network.
    Refused(Refused),
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

    /// Checks an envelope in the order of the reference. Gives its payload.
    pub(super) fn admit_envelope(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        envelope: &Envelope,
    ) -> Result<Payload, Denial> {
        let payload = Payload::from_json(&envelope.payload).map_err(Denial::Malformed)?;
        let known = self.peer_by_rid(envelope.source.as_str())?;
        let pinned = known.as_ref().and_then(PeerRow::key);
        let key = match (pinned, introduced(&payload, envelope)) {
            (Some(key), _) => key,
            (None, Some(Ok(key))) => key,
            (None, Some(Err(_))) => return Err(Denial::Refused(Refused::InvalidKey)),
            (None, None) => self.pull_key(me, carrier, known)?,
        };
        envelope.check(&key, &me.rid).map_err(Denial::Refused)?;
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
        let bundle = self
            .ask_for_profile(me, carrier, &peer)
            .map_err(|_| unknown())?;
        let (_, key) =
            checked_profile(&bundle).map_err(|_| Denial::Refused(Refused::InvalidKey))?;
        let own = self.own(me);
        self.kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                know_node(tx, &own, &bundle, bundle.manifest.rid.as_str())
            })?;
        Ok(key)
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
    Some(checked_profile(&bundle).map(|it| it.1))
}
