//! Signatures of tools: Ed25519 over the manifest and the component's hash.
//!
//! A key that comes with a package proves nothing, so a signature counts only if its key is among
//! those that the operator trusts.

use crate::digest::Sha256;
use crate::manifest::Manifest;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use kenning_core::{Error, Result};
use kenning_text::hex;
use std::fmt;

/// The file beside `tool.toml` that holds a [`Signed`].
pub const SIGNATURE_FILE: &str = "tool.sig";

/// The public key of a signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; 32]);

/// A signature and the key that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The signer's key.
    pub key: PublicKey,
    signature: [u8; 64],
}

const FORM: &str = "ed25519";

/// Signs a tool with a secret key of 32 bytes.
pub fn sign(secret: &[u8; 32], manifest: &Manifest, wasm: &Sha256) -> Signed {
    let key = SigningKey::from_bytes(secret);
    Signed {
        key: PublicKey(key.verifying_key().to_bytes()),
        signature: key.sign(&message(manifest, wasm)).to_bytes(),
    }
}

/// Checks that a trusted key signed exactly this manifest and this component.
pub fn verify(
    signed: &Signed,
    manifest: &Manifest,
    wasm: &Sha256,
    trusted: &[PublicKey],
) -> Result<()> {
    let key = signed.key;
    if !trusted.contains(&key) {
        return Err(Error::denied(format!(
            "`{}` is signed with the key `{key}`, which is not trusted",
            manifest.id
        ))
        .hint("add it to the trusted keys if you know its owner"));
    }
    let wrong = || {
        Error::denied(format!(
            "the signature of `{}` does not match its content",
            manifest.id
        ))
        .hint("download the tool again from its publisher")
    };
    let verifying = VerifyingKey::from_bytes(&key.0).map_err(|err| wrong().because(err))?;
    let signature = Signature::from_bytes(&signed.signature);
    let message = message(manifest, wasm);
    // Strict, because a weak key has signatures that match every message.
    let verified = verifying.verify_strict(&message, &signature);
    verified.map_err(|err| wrong().because(err))
}

fn message(manifest: &Manifest, wasm: &Sha256) -> Vec<u8> {
    let manifest = Sha256::of(&manifest.canonical_bytes());
    format!("kami-signature-1\n{manifest}\n{wasm}\n").into_bytes()
}

impl PublicKey {
    /// The public key of a secret key of 32 bytes.
    pub fn of(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret).verifying_key().to_bytes())
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let key = hex::decode_array(text.trim()).map(Self);
        key.ok_or_else(|| Error::invalid("a public key has 64 hexadecimal digits"))
    }
}

impl Signed {
    /// Reads what [`Signed`] prints.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let read = match words[..] {
            [FORM, key, signature] => hex::decode_array(key).zip(hex::decode_array(signature)),
            _ => None,
        };
        let (key, signature) = read.ok_or_else(|| {
            Error::invalid(format!("`{SIGNATURE_FILE}` does not contain a signature")).hint(
                "expected one line: `ed25519`, the public key and the signature, in hexadecimal",
            )
        })?;
        let key = PublicKey(key);
        Ok(Self { key, signature })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM} {} {}", self.key, hex::encode(&self.signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn manifest(fuel: u32) -> Manifest {
        let text = format!(
            "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n[security]\nmax_fuel = {fuel}\n"
        );
        Manifest::parse(&text).unwrap()
    }

    #[test]
    fn a_signature_holds_for_what_was_signed_and_by_whom() {
        let wasm = Sha256::of(b"component");
        let signed = sign(&SECRET, &manifest(5), &wasm);
        let signed = Signed::parse(&signed.to_string()).unwrap();
        let trusted = [PublicKey::of(&[1; 32]), PublicKey::of(&SECRET)];
        verify(&signed, &manifest(5), &wasm, &trusted).unwrap();
        for (manifest, wasm, trusted, expected) in [
            (manifest(6), wasm, &trusted[..], "does not match"),
            (
                manifest(5),
                Sha256::of(b"other"),
                &trusted[..],
                "does not match",
            ),
            (manifest(5), wasm, &trusted[..1], "not trusted"),
            (manifest(5), wasm, &[][..], "not trusted"),
        ] {
            let error = verify(&signed, &manifest, &wasm, trusted).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_key_that_fits_everything_fits_nothing() {
        // The neutral element as key and a signature of zeros satisfy the plain equation.
        let mut weak = [0; 32];
        weak[0] = 1;
        let mut signature = [0; 64];
        signature[0] = 1;
        let key = PublicKey(weak);
        let signed = Signed { key, signature };
        let error = verify(&signed, &manifest(5), &Sha256::of(b"x"), &[key]).unwrap_err();
        assert!(error.message.contains("does not match"), "{error}");
    }

    #[test]
    fn what_is_no_signature_is_not_read() {
        let good = sign(&SECRET, &manifest(5), &Sha256::of(b"x")).to_string();
        for bad in [
            "",
            "ed25519",
            &good[1..],
            &format!("{good} x"),
            &good.replace("ed25519", "rsa"),
        ] {
            assert!(Signed::parse(bad).is_err(), "{bad}");
        }
    }
}
