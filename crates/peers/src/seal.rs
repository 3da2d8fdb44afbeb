//! How messages are signed.
//!
//! Whoever is called hands out a challenge, which is a time and a keyed hash of it, so that nothing
//! has to be remembered, and no two clocks have to agree. The caller signs each request together with
//! the challenge and a number that grows; the answer is signed together with the request's signature.
//! So neither side can be impersonated, and nothing that was overheard can be sent again.

use kenning_audit::{Signer, is_signed_by};
use kenning_core::{Did, Error, Hash, Result};
use kenning_text::hex;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How long a challenge can be used.
pub const CHALLENGE_MS: u64 = 5 * 60 * 1000;

/// The most challenges whose numbers are remembered.
const SESSIONS_MAX: usize = 4_096;

/// Hands out challenges, and remembers which numbers were used with them.
pub struct Challenges {
    secret: [u8; 32],
    used: Mutex<BTreeMap<String, u64>>,
}

impl Challenges {
    /// With a secret of this process.
    pub fn new(secret: [u8; 32]) -> Self {
        let used = Mutex::default();
        Self { secret, used }
    }

    /// A challenge for this moment: the time, 16 random bytes, and a keyed hash of both.
    pub fn issue(&self, now_ms: u64, random: [u8; 16]) -> String {
        let text = format!("{now_ms:016x}{}", hex::encode(&random));
        let mac = self.mac(&text);
        format!("{text}{}", &mac.to_string()[..32])
    }

    fn mac(&self, text: &str) -> Hash {
        Hash::keyed("kenning sync challenge", &self.secret, text.as_bytes())
    }

    /// Whether a challenge is ours and young, and the number is greater than all before it.
    pub fn accept(&self, challenge: &str, number: u64, now_ms: u64) -> Result<()> {
        let refuse = || Error::unauthenticated("the challenge is unknown, used or too old");
        let is_plain = challenge.len() == 80 && challenge.is_ascii();
        let (text, mac) = challenge
            .split_at_checked(48)
            .filter(|_| is_plain)
            .ok_or_else(refuse)?;
        if !self.mac(text).to_string().starts_with(mac) {
            return Err(refuse());
        }
        let issued = text
            .get(..16)
            .and_then(|it| u64::from_str_radix(it, 16).ok());
        let issued = issued.ok_or_else(refuse)?;
        if now_ms.abs_diff(issued) > CHALLENGE_MS {
            return Err(refuse());
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // Names begin with the time, so the oldest are the first.
        while used.len() >= SESSIONS_MAX {
            used.pop_first();
        }
        let last = used.entry(challenge.to_owned()).or_default();
        if number <= *last {
            return Err(refuse());
        }
        *last = number;
        Ok(())
    }
}

/// What a request is signed with.
#[derive(Clone, Debug)]
pub struct RequestSeal {
    /// Who asks.
    pub from: Did,
    /// The challenge of whoever is asked.
    pub challenge: String,
    /// Greater than that of every earlier request with this challenge.
    pub number: u64,
    /// The Ed25519 signature.
    pub signature: Vec<u8>,
}

fn request_hash(to: &Did, from: &Did, path: &str, challenge: &str, n: u64, body: &[u8]) -> Hash {
    Hash::of_parts([
        b"kenning sync request\0".as_slice(),
        to.as_str().as_bytes(),
        b"\0",
        from.as_str().as_bytes(),
        b"\0",
        path.as_bytes(),
        b"\0",
        challenge.as_bytes(),
        b"\0",
        &n.to_be_bytes(),
        &Hash::of(body).0,
    ])
}

fn answer_hash(from: &Did, request: &[u8], body: &[u8]) -> Hash {
    Hash::of_parts([
        b"kenning sync answer\0".as_slice(),
        from.as_str().as_bytes(),
        b"\0",
        &Hash::of(request).0,
        &Hash::of(body).0,
    ])
}

impl RequestSeal {
    /// Signs a request.
    pub fn sign(
        signer: &Signer,
        to: &Did,
        path: &str,
        challenge: &str,
        n: u64,
        body: &[u8],
    ) -> Self {
        let from = signer.did().clone();
        let hash = request_hash(to, &from, path, challenge, n, body);
        Self {
            challenge: challenge.to_owned(),
            number: n,
            signature: signer.sign(&hash),
            from,
        }
    }

    /// Whether it is of whom it says, and meant for `me`.
    pub fn is_signed(&self, me: &Did, path: &str, body: &[u8]) -> bool {
        let hash = request_hash(me, &self.from, path, &self.challenge, self.number, body);
        is_signed_by(&self.from, &hash, &self.signature)
    }
}

/// Signs an answer to a request.
pub fn sign_answer(signer: &Signer, request: &RequestSeal, body: &[u8]) -> Vec<u8> {
    signer.sign(&answer_hash(signer.did(), &request.signature, body))
}

/// Whether `from` signed this answer to this request.
pub fn is_answer(from: &Did, request: &RequestSeal, body: &[u8], signature: &[u8]) -> bool {
    let hash = answer_hash(from, &request.signature, body);
    is_signed_by(from, &hash, signature)
}
