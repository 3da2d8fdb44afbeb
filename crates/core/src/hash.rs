//! A BLAKE3 hash.

use kenning_text::hex::{self, Hex};
use std::fmt;

/// 32 bytes of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The hash of these bytes one after another, without a copy of them.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// A hash that needs a secret: without it, the hashed text cannot be guessed by
    /// trying. `purpose` keeps the uses of one secret apart.
    pub fn keyed(purpose: &'static str, secret: &[u8; 32], bytes: &[u8]) -> Self {
        let key = blake3::derive_key(purpose, secret);
        Self(*blake3::keyed_hash(&key, bytes).as_bytes())
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode_array(text).map(Self)
    }
}

impl TryFrom<&[u8]> for Hash {
    type Error = std::array::TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyed_hash_depends_on_purpose_secret_and_text() {
        let hash = Hash::keyed("a test", &[1; 32], b"text");
        assert_eq!(hash, Hash::keyed("a test", &[1; 32], b"text"));
        for other in [
            Hash::keyed("another test", &[1; 32], b"text"),
            Hash::keyed("a test", &[2; 32], b"text"),
            Hash::keyed("a test", &[1; 32], b"texT"),
            Hash::of(b"text"),
        ] {
            assert_ne!(hash, other);
        }
    }

    #[test]
    fn hex_reads_back_what_it_printed_and_nothing_else() {
        let hash = Hash::of(b"kenning");
        assert_eq!(Hash::from_hex(&hash.to_string()), Some(hash));
        let long = format!("{hash}0");
        let plus = format!("+{}", &hash.to_string()[1..]);
        for bad in ["", "zz", long.as_str(), plus.as_str(), &"é".repeat(32)] {
            assert_eq!(Hash::from_hex(bad), None, "{bad}");
        }
    }
}
