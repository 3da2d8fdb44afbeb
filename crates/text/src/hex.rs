//! Bytes as hexadecimal digits. Written in lower case; read in either case, and nothing but digits.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// Bytes that are printed as hexadecimal digits.
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Two digits for each byte.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|it| [it >> 4, it & 15]);
    let digit = |it: u8| char::from_digit(u32::from(it), 16).unwrap_or('0');
    digits.map(digit).collect()
}

/// The bytes that a text of digits stands for; `None` if it has anything else, or half a byte.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|it| byte(*it));
    rest.is_empty().then(|| bytes.collect())?
}

/// As [`decode`], for exactly so many bytes.
#[must_use]
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut out = [0; N];
    for (to, pair) in out.iter_mut().zip(pairs) {
        *to = byte(*pair)?;
    }
    Some(out)
}

/// The byte that two digits stand for.
#[must_use]
pub fn byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|it| char::from(it).to_digit(16));
    u8::try_from(16 * high? + low?).ok()
}

/// The SHA-256 of these bytes as 64 digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    encode(&Sha256::digest(bytes))
}

/// Whether a text is a SHA-256 as [`sha256`] writes it: 64 digits, none of them a capital letter.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_nothing_else_is_read() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(Hex(&bytes).to_string(), text);
        assert_eq!(decode(&text), Some(bytes.clone()));
        assert_eq!(decode(&text.to_uppercase()), Some(bytes));
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(decode_array("0aFF"), Some([10, 255]));
        for bad in ["0", "zz", "+1", "-1", " 1", "0x", "é", "00é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        for bad in ["", "00", "000", "000000", "+1+1", "éé"] {
            assert_eq!(decode_array::<2>(bad), None, "{bad}");
        }
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((sha256(b""), sha256(b"abc")), (empty.into(), abc.into()));
        assert!(is_sha256(abc));
        for bad in [&abc[1..], &abc.to_uppercase(), &format!("{abc}0"), ""] {
            assert!(!is_sha256(bad), "{bad}");
        }
    }
}
