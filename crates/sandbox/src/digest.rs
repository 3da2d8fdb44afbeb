//! The SHA-256 of a component's bytes: the identity of a tool, independent of its name.

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
