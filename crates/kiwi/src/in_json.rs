//! Bytes in JSON: text as it is, anything else in hexadecimal.

use std::fmt::Write as _;

const TEXT: &str = "t:";
const HEX: &str = "x:";

pub(crate) fn to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{TEXT}{text}"),
        Err(_) => {
            let mut out = HEX.to_owned();
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out
        }
    }
}

pub(crate) fn to_bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(text) = text.strip_prefix(TEXT) {
        return Some(text.as_bytes().to_vec());
    }
    let hex = text.strip_prefix(HEX)?;
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}
