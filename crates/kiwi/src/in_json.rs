//! Bytes in JSON: text as it is, anything else in hexadecimal.

use kenning_text::hex::{self, Hex};

const TEXT: &str = "t:";
const HEX: &str = "x:";

pub(crate) fn to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{TEXT}{text}"),
        Err(_) => format!("{HEX}{}", Hex(bytes)),
    }
}

pub(crate) fn to_bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(text) = text.strip_prefix(TEXT) {
        return Some(text.as_bytes().to_vec());
    }
    hex::decode(text.strip_prefix(HEX)?)
}
