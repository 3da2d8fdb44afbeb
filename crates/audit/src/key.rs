//! The node's key.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use kenning_core::{Did, Hash, Random};

/// Signs events. The secret never leaves it, is not printed and is wiped when dropped.
pub struct Signer {
    key: SigningKey,
    did: Did,
}

impl Signer {
    /// A new key.
    pub fn generate(random: &dyn Random) -> Self {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Self::from_secret(&secret)
    }

    /// The key of these 32 secret bytes.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(secret);
        let did = Did::of_key(&key.verifying_key().to_bytes());
        Self { key, did }
    }

    /// The secret, for the key file.
    pub fn secret(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// The signing key.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// Signs a hash.
    pub fn sign(&self, hash: &Hash) -> Vec<u8> {
        self.key.sign(&hash.0).to_bytes().to_vec()
    }

    /// Signs a text. It begins with its purpose, and is longer than a hash, so that it
    /// cannot be confused with anything else that this key signs.
    pub fn sign_text(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }
}

/// Whether `author` signed `hash`. Strict: one message has one signature.
pub fn is_signed_by(author: &Did, hash: &Hash, signature: &[u8]) -> bool {
    is_text_signed_by(author, &hash.0, signature)
}

/// Whether `author` signed a text: see [`Signer::sign_text`].
pub fn is_text_signed_by(author: &Did, text: &[u8], signature: &[u8]) -> bool {
    let check = || {
        let key = VerifyingKey::from_bytes(&author.public_key()?).ok()?;
        let signature = Signature::from_slice(signature).ok()?;
        key.verify_strict(text, &signature).ok()
    };
    check().is_some()
}
