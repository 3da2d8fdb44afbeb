//! Bytes in JSON: text as it is, anything else in hexadecimal.

use crate::hex::{self, Hex};

const TEXT: &str = "t:";
const HEX: &str = "x:";

/// Bytes as a text that a JSON string can hold.
pub fn to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{TEXT}{text}"),
        Err(_) => format!("{HEX}{}", Hex(bytes)),
    }
}

/// The bytes of such a text; `None` if it is malformed.
pub fn to_bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(text) = text.strip_prefix(TEXT) {
        return Some(text.as_bytes().to_vec());
    }
    hex::decode(text.strip_prefix(HEX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_they_are() {
        for bytes in [&b""[..], b"a text", b"t:", b"x:00", &[0xff, 0x00, 0x74]] {
            assert_eq!(to_bytes(&to_text(bytes)).unwrap(), bytes);
        }
        assert_eq!(to_bytes("neither"), None);
        assert_eq!(to_bytes("x:0"), None);
    }
}
