//! The SHA-256 of a component's bytes: what a tool is, whatever it is called.

use sha2::Digest as _;
use std::fmt;

/// 32 bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        from_hex(text).map(Self)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    // `from_str_radix` takes a leading `+`; a hash does not.
    if text.len() != 2 * N || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
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
