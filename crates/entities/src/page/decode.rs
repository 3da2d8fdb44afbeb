//! Decodes the bytes of a page, in the encoding that the page, its server or its bytes declare.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Browsers look for a declaration in this many bytes.
const PRESCAN_BYTES: usize = 1024;

/// The text of a page. A byte order mark decides, then the server's `Content-Type`, then the page's
/// own declaration; without any of them it is UTF-8 if that is valid, otherwise the encoding of old
/// Western pages.
#[must_use]
pub fn decode(bytes: &[u8], content_type: Option<&str>) -> String {
    let told = content_type.and_then(|it| charset(&it.to_ascii_lowercase()));
    let encoding = told.or_else(|| declared(bytes)).unwrap_or_else(|| {
        if std::str::from_utf8(bytes).is_ok() {
            UTF_8
        } else {
            WINDOWS_1252
        }
    });
    // A byte order mark overrides all of it: `decode` looks for one.
    encoding.decode(bytes).0.into_owned()
}

fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..PRESCAN_BYTES).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut tags = head.split('<').filter(|it| it.starts_with("meta"));
    let declared = tags.find_map(|tag| charset(tag.split('>').next().unwrap_or(tag)));
    // A declaration that could be read as ASCII cannot mean UTF-16.
    declared.map(|encoding| {
        if encoding.is_ascii_compatible() {
            encoding
        } else {
            UTF_8
        }
    })
}

/// What follows `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, after) = text.split_once("charset")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start();
    let after = after.trim_start_matches(['"', '\'']);
    let end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '>');
    Encoding::for_label(after.split(end).next()?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_the_encoding_that_is_told() {
        for (bytes, content_type, expected) in [
            (&b"caf\xc3\xa9"[..], None, "café"),
            (b"caf\xe9", None, "café"),
            (b"caf\xe9", Some("text/html; charset=ISO-8859-1"), "café"),
            (b"\xef\xbb\xbfx", Some("text/html; charset=utf-16"), "x"),
            (
                b"<meta charset=\"windows-1251\">\xe4\xe0",
                None,
                "<meta charset=\"windows-1251\">да",
            ),
            (
                b"\x93\xfa\x96{",
                Some("text/html;charset=\"Shift_JIS\""),
                "日本",
            ),
            (
                b"<META CONTENT='text/html; charset = euc-kr'>\xc7\xd1",
                None,
                "<META CONTENT='text/html; charset = euc-kr'>한",
            ),
            (
                b"<meta charset=utf-16>\xc3\xa9",
                None,
                "<meta charset=utf-16>é",
            ),
            (b"x", Some("text/html; charset=nonsense"), "x"),
            (b"", None, ""),
        ] {
            assert_eq!(decode(bytes, content_type), expected, "{bytes:?}");
        }
    }
}
