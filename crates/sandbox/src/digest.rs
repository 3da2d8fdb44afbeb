//! The SHA-256 of a component's bytes, which is the identity of a tool, independent of its name; and the hash of
//! what it was compiled to.

use kenning_core::Hash;
use kenning_text::hex::{self, Hex};
use sha2::Digest as _;
use std::fmt;

/// 32 bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode_array(text).map(Self)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A component and what it was compiled to, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The hash of the component.
    pub sha256: Sha256,
    /// The compiled code.
    pub artifact: Artifact,
}

/// Compiled code: for which engine, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub(crate) key: String,
    pub(crate) hash: Hash,
}

impl Digest {
    pub(crate) fn file(&self) -> String {
        format!("{}-{}.cwasm", self.sha256, self.artifact.key)
    }
}

impl Artifact {
    /// Reads what it prints.
    pub fn parse(text: &str) -> Option<Self> {
        let (key, hash) = text.split_once(':')?;
        let plain = key.len() == 16 && key.bytes().all(|it| it.is_ascii_hexdigit());
        let hash = Hash::from_hex(hash).filter(|_| plain)?;
        let key = key.to_owned();
        Some(Self { key, hash })
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_reads_back_what_it_printed_and_nothing_else() {
        let digest = Sha256::of(b"abc");
        let text = digest.to_string();
        assert!(text.starts_with("ba7816bf"));
        assert_eq!(Sha256::from_hex(&text), Some(digest));
        for bad in ["", "zz", &format!("{text}0"), &format!("+{}", &text[1..])] {
            assert_eq!(Sha256::from_hex(bad), None, "{bad}");
        }
    }
}
