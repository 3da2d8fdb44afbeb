//! Answers a peer that calls.

use super::files::Held;
use crate::Kernel;
use kenning_core::{Did, Error, Result};
use kenning_peers::seal::{self, RequestSeal};
use kenning_peers::{Peer, Request, Response, answer, pack, unpack};
use kenning_text::hex;
use serde_json::{Value, json};

/// A message of another node, as it came over HTTP.
#[derive(Clone, Debug, Default)]
pub struct PeerMessage {
    /// `/sync` or `/events`.
    pub path: String,
    /// The header `kenning-peer`.
    pub peer: Option<String>,
    /// The header `kenning-challenge`.
    pub challenge: Option<String>,
    /// The header `kenning-number`.
    pub number: Option<String>,
    /// The header `kenning-signature`.
    pub signature: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What it is answered.
#[derive(Clone, Debug)]
pub enum PeerAnswer {
    /// Who we are, and a challenge for the next message.
    Greeting(Value),
    /// A signed answer.
    Signed {
        /// The body.
        body: Vec<u8>,
        /// The header `kenning-signature`.
        signature: String,
    },
}

impl Kernel {
    /// Answers a message of another node. One without a challenge gets one; every other must be signed
    /// by a node that is known here.
    ///
    /// # Errors
    /// Unauthenticated or denied for everybody else; invalid for what is malformed.
    pub fn answer_peer(&self, message: &PeerMessage) -> Result<PeerAnswer> {
        let now = self.log().clock().now_ms();
        let Some(challenge) = &message.challenge else {
            let mut random = [0; 16];
            self.log().random().fill(&mut random);
            let challenge = self.exchanges.challenges.issue(now, random);
            return Ok(PeerAnswer::Greeting(json!({
                "provider": self.log().signer().did().as_str(), "challenge": challenge,
            })));
        };
        let refuse = |what: &str| {
            Error::unauthenticated(format!(
                "the header `kenning-{what}` is missing or malformed"
            ))
        };
        let peer = message.peer.as_ref().and_then(|it| it.parse::<Did>().ok());
        let from = peer.ok_or_else(|| refuse("peer"))?;
        let number = message.number.as_ref().and_then(|it| it.parse().ok());
        let signature = message.signature.as_ref().filter(|it| it.len() == 128);
        let signature = signature.and_then(|it| hex::decode(it));
        let seal = RequestSeal {
            from,
            challenge: challenge.clone(),
            number: number.ok_or_else(|| refuse("number"))?,
            signature: signature.ok_or_else(|| refuse("signature"))?,
        };
        let Some(peer) = self.peer_by_did(&seal.from)? else {
            return Err(
                Error::denied(format!("{} is not a peer of this node", seal.from)).hint(format!(
                    "on this node: `kenning peer add --did {}`",
                    seal.from
                )),
            );
        };
        let signer = self.log().signer();
        if !seal.is_signed(signer.did(), &message.path, &message.body) {
            return Err(Error::unauthenticated("the signature does not match")
                .hint("was the message meant for this node?"));
        }
        // Only after the signature: a stranger must not use up somebody's numbers.
        self.exchanges
            .challenges
            .accept(challenge, seal.number, now)?;
        self.writable()?;
        let _answering = self.exchanges.begin_answer(peer.did.as_str())?;
        let response = match self.answer_known(&peer, message, now) {
            Ok(response) => response,
            Err(error) => {
                let said = error.message.clone();
                self.count(&peer, move |counts| {
                    counts.errors += 1;
                    counts.last_error = Some(said);
                })?;
                return Err(error);
            }
        };
        let body = pack(&response.to_json())?;
        let signature = hex::encode(&seal::sign_answer(signer, &seal, &body));
        Ok(PeerAnswer::Signed { body, signature })
    }

    /// Answers a peer whose signature was checked.
    fn answer_known(&self, peer: &Peer, message: &PeerMessage, now: u64) -> Result<Response> {
        let request = Request::from_json(&message.path, &unpack(&message.body)?)?;
        let space = request.space().clone();
        if peer.has_space(&space) {
            self.settle_rewritten(&space)?;
        }
        let page = match &request {
            Request::Push { page, .. } if peer.has_space(&space) => Some(page),
            _ => None,
        };
        let held = Held::of_page(self, &space, page)?;
        let around = held.around(self);
        let (response, done) = answer(self.log(), peer, self.sync_rules(), request, around)?;
        held.finish(self, &space)?;
        if let Some(evidence) = done.forked {
            let cut_off = self.cut_off(peer, evidence)?;
            return Err(Error::denied(cut_off.message));
        }
        self.take_cosignatures(&space, peer, &done.cosignatures)?;
        self.count(peer, move |it| {
            it.add(&done);
            it.note_sizes(&space, &done);
            it.keep_answer(now, &done);
            // A time a minute is enough to know that it is there.
            let is_old = |last: u64| now.abs_diff(last) > 60_000;
            if it.last_sync_ms.is_none_or(is_old) || done.n_received + done.n_sent > 0 {
                it.last_sync_ms = Some(now);
            }
        })?;
        Ok(response)
    }
}
