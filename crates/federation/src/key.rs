//! ECDSA on P-256 with SHA-256: how nodes of KOI-net sign.
//!
//! A signature is `r` and `s`, 32 bytes each, in base64; the DER form, which other libraries produce by
//! default, is verified too. A public key is the base64 of its SPKI DER form, and that text is what is hashed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_core::{Error, Result};
use kenning_text::hex;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// What precedes the point in the SPKI DER form of a key of this curve.
const SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// What precedes the secret in the PKCS#8 DER form of a key of this curve.
const PKCS8: [u8; 36] = [
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02,
    0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02,
    0x01, 0x01, 0x04, 0x20,
];

/// The key of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
    text: String,
}

impl PublicKey {
    /// Reads a key as profiles have it.
    ///
    /// # Errors
    /// Invalid if it is not the base64 of a P-256 key in SPKI DER form.
    pub fn parse(text: &str) -> Result<Self> {
        let read = || {
            let der = STANDARD.decode(text).ok()?;
            let point = der.strip_prefix(&SPKI[..]).filter(|it| it.len() == 65)?;
            // Its name is made of the text, so there must be one text for each key.
            (STANDARD.encode(&der) == text).then(|| VerifyingKey::from_sec1_bytes(point).ok())?
        };
        let key = read().ok_or_else(|| {
            Error::invalid("`public_key` is not a P-256 key in base64 of its DER form")
        })?;
        let text = text.to_owned();
        Ok(Self { key, text })
    }

    /// The key as profiles have it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash that is part of the name of its node.
    pub fn hash(&self) -> String {
        hex::sha256(self.text.as_bytes())
    }

    /// The hash that some Octo nodes have in their names instead: that of the DER form itself.
    pub fn hash_of_der(&self) -> String {
        hex::sha256(&STANDARD.decode(&self.text).unwrap_or_default())
    }

    /// Whether the key signed a message.
    pub fn is_signed(&self, message: &[u8], signature: &str) -> bool {
        let check = || {
            let bytes = STANDARD.decode(signature).ok()?;
            let signature = match bytes.len() {
                64 => Signature::from_slice(&bytes).ok()?,
                _ => Signature::from_der(&bytes).ok()?,
            };
            let hash = Sha256::digest(message);
            self.key.verify_prehash(&hash, &signature).ok()
        };
        check().is_some()
    }
}

/// The key of this node. It is not printed, and wiped when dropped.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of these 32 secret bytes; `None` for the few that are none.
    pub fn from_secret(secret: &[u8; 32]) -> Option<Self> {
        SigningKey::from_slice(secret).ok().map(Self)
    }

    /// Reads an unencrypted PKCS#8 PEM file, as the reference writes it without a password.
    ///
    /// # Errors
    /// Invalid if it is encrypted, or something else.
    pub fn from_pem(pem: &str) -> Result<Self> {
        if pem.contains("ENCRYPTED") {
            return Err(Error::invalid("the key is encrypted")
                .hint("decrypt it first: `openssl pkcs8 -in KEY.pem -out PLAIN.pem`"));
        }
        let lines = pem
            .lines()
            .map(str::trim)
            .filter(|it| !it.starts_with("-----"));
        let text = Zeroizing::new(lines.collect::<String>());
        let der = Zeroizing::new(STANDARD.decode(text.as_bytes()).unwrap_or_default());
        let secret = der
            .strip_prefix(&PKCS8[..])
            .and_then(|it| it.first_chunk::<32>());
        secret.and_then(Self::from_secret).ok_or_else(|| {
            Error::invalid("the file is not a P-256 key in PKCS#8 PEM form").hint(
                "make one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`",
            )
        })
    }

    /// The secret, for the key file.
    pub fn secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes().into())
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let key = *self.0.verifying_key();
        let mut der = SPKI.to_vec();
        der.extend_from_slice(key.to_sec1_point(false).as_bytes());
        let text = STANDARD.encode(der);
        PublicKey { key, text }
    }

    /// Signs a message. `salt` makes two signatures of one message differ, so that a message that is sent
    /// again on purpose is not taken for a copy; the nonce stays safe whatever it is (RFC 6979, 3.6).
    pub fn sign(&self, message: &[u8], salt: &[u8; 32]) -> String {
        let hash = Sha256::digest(message);
        let signed = ecdsa::hazmat::sign_prehashed_rfc6979::<p256::NistP256, Sha256>(
            self.0.as_nonzero_scalar(),
            &hash,
            salt,
        );
        STANDARD.encode(signed.0.to_bytes())
    }
}

/// The half of a signature that stays what it is when somebody negates the other: for recognizing copies.
pub fn nonce_of(signature: &str) -> Option<String> {
    let bytes = STANDARD.decode(signature).ok()?;
    let signature = match bytes.len() {
        64 => Signature::from_slice(&bytes).ok()?,
        _ => Signature::from_der(&bytes).ok()?,
    };
    signature
        .to_bytes()
        .first_chunk::<32>()
        .map(|it| hex::encode(it))
}
