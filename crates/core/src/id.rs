//! Ids as separate types, so that they cannot be mixed up.

use crate::{Hash, Hlc, Random};
use kenning_text::hex;
use std::fmt;
use std::str::FromStr;

/// The permanent id of a node. Printed and read as a UUID (version 7: sorted by time of creation).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 16]);

impl NodeId {
    /// A new id, made at this moment.
    pub fn new(at: Hlc, random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes[6..]);
        bytes[..6].copy_from_slice(&at.ms().to_be_bytes()[2..]);
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }

    /// The id of something that is the same thing on whichever machine it is made, by everything that names
    /// it (a UUID of version 8). Several machines may make it, so it has no moment of creation: each write
    /// makes it anew.
    pub fn of_name(parts: &[&str]) -> Self {
        Self::of_hash(parts, 0x80)
    }

    /// The same for something that every machine makes for itself (a UUID of version 5).
    pub fn of_own_name(parts: &[&str]) -> Self {
        Self::of_hash(parts, 0x50)
    }

    /// Whether it is from [`NodeId::of_name`].
    pub fn is_of_name(&self) -> bool {
        self.0[6] >> 4 == 8
    }

    fn of_hash(parts: &[&str], version: u8) -> Self {
        let lengths: Vec<[u8; 8]> = parts
            .iter()
            .map(|it| (it.len() as u64).to_be_bytes())
            .collect();
        let bytes = parts.iter().zip(&lengths);
        let bytes = bytes.flat_map(|(part, length)| [length.as_slice(), part.as_bytes()]);
        let hash = Hash::of_parts(std::iter::once(b"kenning node\0".as_slice()).chain(bytes));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.0[..16]);
        bytes[6] = (bytes[6] & 0x0f) | version;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for NodeId {
    type Error = std::array::TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for NodeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a node id (a UUID)");
        let dashes =
            text.len() == 36 && [8, 13, 18, 23].iter().all(|&i| text.as_bytes()[i] == b'-');
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        let bytes = hex::decode_array(&digits).filter(|_| dashes);
        bytes.map(Self).ok_or_else(bad)
    }
}

/// The id of an event: the BLAKE3 hash of its canonical bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub Hash);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who wrote an event: an Ed25519 public key as a decentralized identifier.
///
/// The method is a setting (`did:key`, or the `did:exo` of the graph contract); the key is the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Did(String);

/// The longest identifier: `did:`, a method, and 34 bytes in base 58, which are at most 47 characters. Decoding
/// base 58 takes time with the square of the length, so the length comes first.
const DID_BYTES_MAX: usize = 100;

/// The multicodec prefix of an Ed25519 public key.
const ED25519_PUB: [u8; 2] = [0xed, 0x01];

impl Did {
    /// `did:key:z6Mk…` of a public key.
    pub fn of_key(public_key: &[u8; 32]) -> Self {
        Self::of_key_with_method("key", public_key)
    }

    /// The same with another method name.
    pub fn of_key_with_method(method: &str, public_key: &[u8; 32]) -> Self {
        let mut bytes = ED25519_PUB.to_vec();
        bytes.extend_from_slice(public_key);
        Self(format!(
            "did:{method}:z{}",
            bs58::encode(bytes).into_string()
        ))
    }

    /// The public key that this identifier names.
    pub fn public_key(&self) -> Option<[u8; 32]> {
        if self.0.len() > DID_BYTES_MAX {
            return None;
        }
        let (_, encoded) = self.0.strip_prefix("did:")?.split_once(":z")?;
        let bytes = bs58::decode(encoded).into_vec().ok()?;
        bytes.strip_prefix(&ED25519_PUB)?.try_into().ok()
    }

    /// The same key under another method: what is signed and stored has the method `key`, and what is shown has
    /// the one that the operator set.
    #[must_use]
    pub fn with_method(&self, method: &str) -> Self {
        match self.public_key() {
            Some(key) => Self::of_key_with_method(method, &key),
            None => self.clone(),
        }
    }

    /// The identifier as it is signed and stored, whatever method it was given with.
    #[must_use]
    pub fn as_signed(&self) -> Self {
        self.with_method("key")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Did {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > DID_BYTES_MAX {
            return Err(format!(
                "an identifier of {} bytes is not that of an Ed25519 key, which has at most {DID_BYTES_MAX}",
                text.len()
            ));
        }
        let did = Self(text.to_owned());
        match did.public_key() {
            Some(_) => Ok(did),
            None => Err(format!("`{text}` is not the identifier of an Ed25519 key")),
        }
    }
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededRandom;

    #[test]
    fn a_node_id_reads_back_what_it_printed() {
        let id = NodeId::new(Hlc::from_ms(1_700_000_000_000), &SeededRandom::new(1));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(&id.to_string()[14..15], "7", "version 7");
        for bad in [
            "",
            "x",
            "018bcfe5-6800-7a4f-b1d9",
            "018bcfe5-6800-7a4f-b1d9-zzzzzzzzzzzz",
        ] {
            assert!(bad.parse::<NodeId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let random = SeededRandom::new(7);
        let early = NodeId::new(Hlc::from_ms(1), &random);
        assert!(early < NodeId::new(Hlc::from_ms(2), &random));
    }

    #[test]
    fn a_did_carries_its_key_whatever_its_method() {
        let key = [7; 32];
        let did = Did::of_key(&key);
        assert!(did.as_str().starts_with("did:key:z6Mk"), "{did}");
        assert_eq!(did.public_key(), Some(key));
        let shown = did.with_method("exo");
        assert!(shown.as_str().starts_with("did:exo:z6Mk"), "{shown}");
        assert_eq!(shown.public_key(), Some(key));
        assert_eq!(shown.as_signed(), did);
        assert_eq!(did.as_signed(), did);
        for bad in ["", "did:key:", "did:key:zzzz", "did:web:example.com"] {
            assert!(bad.parse::<Did>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_did_of_megabytes_is_refused_before_it_is_decoded() {
        // Decoding it would take hours, so this test ends only if it is not decoded.
        let long = format!("did:key:z{}", "6".repeat(3_000_000));
        let why = long.parse::<Did>().unwrap_err();
        assert!(why.contains("3000009 bytes") && why.len() < 200, "{why}");
        assert_eq!(Did(long).public_key(), None);
    }
}
