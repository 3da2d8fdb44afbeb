//! Percent signs in addresses: `a b` is `a%20b`.

use crate::hex;

/// What becomes of a percent sign that two hexadecimal digits do not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// It stands for itself: people write links by hand, and servers take what they send.
    Keep,
    /// The whole text is refused: the address is one that we wrote.
    Refuse,
}

/// A text as a part of an address. Letters, digits and `-_.~` stay, and so do the characters of `plain`.
#[must_use]
pub fn encoded(text: &str, plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric()
            || b"-_.~".contains(&byte)
            || byte.is_ascii() && plain.as_bytes().contains(&byte);
        if is_plain {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// What was encoded; `None` if it is no text, or if a stray sign is refused.
#[must_use]
pub fn decoded(text: &str, stray: Stray) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after.first_chunk::<2>().filter(|_| *first == b'%');
        rest = after;
        match pair.and_then(|it| hex::byte(*it)) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None if *first == b'%' && stray == Stray::Refuse => return None,
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for text in ["", "a b/c", "é%\u{0}日", "%41", "~-_.", "a+b&c=d"] {
            for plain in ["", "/"] {
                let encoded = encoded(text, plain);
                assert_eq!(decoded(&encoded, Stray::Refuse).as_deref(), Some(text));
                assert_eq!(decoded(&encoded, Stray::Keep).as_deref(), Some(text));
            }
        }
        assert_eq!(encoded("a b/é", ""), "a%20b%2F%C3%A9");
        assert_eq!(encoded("a b/é", "/"), "a%20b/%C3%A9");
    }

    #[test]
    fn a_stray_sign_is_kept_or_refused() {
        for (text, kept) in [
            ("100%", "100%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%+1", "%+1"),
            ("%%41", "%A"),
            ("%é", "%é"),
        ] {
            assert_eq!(decoded(text, Stray::Keep).as_deref(), Some(kept), "{text}");
            assert_eq!(decoded(text, Stray::Refuse), None, "{text}");
        }
        assert_eq!(decoded("%ff", Stray::Keep), None, "no text");
    }
}
