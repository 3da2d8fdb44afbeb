//! Asks other nodes, and believes only what their keys signed.

use super::carrier::{ANSWER_BYTES_MAX, Carrier, Destination};
use super::node::Me;
use super::records::PeerRow;
use crate::Koi;
use kenning_core::{Error, Result};
use kenning_federation::{
    Bundle, Envelope, Event, Json, Limits, NodeProfile, NodeRid, Payload, PublicKey, Query, Refused,
};

/// Why a node did not do what it was asked.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It refused, in the words of the network.
    Refused(Refused),
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Failed(error) => error,
            Trouble::Refused(refused) => {
                let hint = match refused {
                    Refused::UnknownNode => {
                        "it does not know this node: `kenning federation connect` greets it again"
                    }
                    Refused::InvalidTarget => "another node answers at its address: check the RID",
                    _ => "it has another key of this node than this node has",
                };
                Error::denied(format!("the node refused: {}", refused.as_str())).hint(hint)
            }
        }
    }
}

pub(super) fn destination(peer: &PeerRow) -> Result<Destination> {
    let base_url = peer.base_url.clone().ok_or_else(|| {
        Error::invalid(format!("`{}` has no address", peer.rid)).hint("it calls this node")
    })?;
    let is_granted = peer.is_granted;
    Ok(Destination {
        base_url,
        is_granted,
    })
}

fn limits() -> Limits {
    Limits {
        bytes_max: usize::try_from(ANSWER_BYTES_MAX).unwrap_or(usize::MAX),
        ..Limits::default()
    }
}

fn path_of(query: &Query) -> &'static str {
    match query {
        Query::PollEvents { .. } => "/events/poll",
        Query::FetchRids { .. } => "/rids/fetch",
        Query::FetchManifests { .. } => "/manifests/fetch",
        Query::FetchBundles { .. } => "/bundles/fetch",
        Query::ConfirmEvents { .. } => "/events/confirm",
    }
}

/// What a status other than success means.
fn refusal(peer: &str, status: u16, body: &[u8]) -> Trouble {
    let value = Json::parse(body, limits()).unwrap_or(Json::Null);
    let said = value.get("error").and_then(Json::as_str);
    if let Some(refused) = said.and_then(Refused::parse) {
        return Trouble::Refused(refused);
    }
    let message = format!("`{peer}` answered with status {status}");
    Trouble::Failed(match status {
        413 => Error::too_large(message),
        429 => Error::limited(message),
        500.. => Error::unavailable(message),
        _ => Error::denied(message),
    })
}

impl Koi {
    /// Sends a message; gives the answer as it came.
    fn carry(
        &self,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        path: &str,
        body: &str,
    ) -> Result<Vec<u8>, Trouble> {
        let carried = carrier.carry(&destination(peer)?, path, Some(body))?;
        match carried.status {
            200..=299 => Ok(carried.body),
            status => Err(refusal(&peer.rid, status, &carried.body)),
        }
    }

    /// Tells a node what happened.
    pub(super) fn send_events(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        events: Vec<Event>,
    ) -> Result<(), Trouble> {
        let body = me.seal(self, &Payload::Events(events), &peer.rid);
        self.carry(carrier, peer, "/events/broadcast", &body)
            .map(drop)
    }

    /// Asks a node whose key is known.
    pub(super) fn ask_node(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        query: Query,
    ) -> Result<(Payload, String), Trouble> {
        let key = peer
            .key()
            .ok_or_else(|| Error::denied(format!("the key of `{}` is not known yet", peer.rid)))?;
        let path = path_of(&query);
        let body = me.seal(self, &Payload::Query(query), &peer.rid);
        let answer = self.carry(carrier, peer, path, &body)?;
        let envelope = self.read_answer(peer, &answer)?;
        check(&envelope, &key, me, peer)?;
        let payload = Payload::from_json(&envelope.payload)?;
        Ok((payload, envelope.signature))
    }

    fn read_answer(&self, peer: &PeerRow, answer: &[u8]) -> Result<Envelope> {
        let envelope = Envelope::read(answer, limits()).map_err(|cause| {
            Error::denied(format!(
                "the answer of `{}` is not a signed message",
                peer.rid
            ))
            .because(cause)
        })?;
        match envelope.source.as_str() == peer.rid {
            true => Ok(envelope),
            false => Err(Error::denied(format!(
                "the answer of `{}` is by another node",
                peer.rid
            ))),
        }
    }

    /// Asks a node for its own profile. The key that signs the answer is the one in the profile, and must be
    /// the one in its name.
    pub(super) fn ask_for_profile(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
    ) -> Result<Bundle, Trouble> {
        let query = Query::FetchBundles {
            rids: vec![peer.rid.clone()],
        };
        let body = me.seal(self, &Payload::Query(query), &peer.rid);
        let answer = self.carry(carrier, peer, "/bundles/fetch", &body)?;
        let envelope = self.read_answer(peer, &answer)?;
        let payload = Payload::from_json(&envelope.payload)?;
        let found = match payload {
            Payload::Bundles { bundles, .. } => bundles,
            _ => Vec::new(),
        };
        let found = found
            .into_iter()
            .find(|it| it.manifest.rid.as_str() == peer.rid);
        let found = found.ok_or_else(|| {
            Error::unavailable(format!("`{}` does not tell its own profile", peer.rid))
        })?;
        let profile = NodeProfile::from_json(&found.contents)?;
        let key = PublicKey::parse(&profile.public_key)?;
        if !NodeRid::parse(&peer.rid)?.is_of(&key) {
            return Err(Trouble::Refused(Refused::InvalidKey));
        }
        check(&envelope, &key, me, peer)?;
        Ok(found)
    }
}

fn check(envelope: &Envelope, key: &PublicKey, me: &Me, peer: &PeerRow) -> Result<()> {
    envelope.check(key, &me.rid).map_err(|refused| {
        Error::denied(format!(
            "the answer of `{}` is refused: {}",
            peer.rid,
            refused.as_str()
        ))
    })
}
