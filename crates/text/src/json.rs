//! JSON with one spelling: the same value always gives the same bytes, of which hashes and signatures are
//! made.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How JSON is spelled. Keys are sorted in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// Without white space, characters as they are. So the log has it.
    Plain,
    /// Without white space, ASCII only, as Python's
    /// `json.dumps(value, sort_keys=True, separators=(",", ":"))` writes it.
    Ascii,
    /// ASCII only, with a space after each comma and colon, as Python's `json.dumps(value, sort_keys=True)`
    /// writes it.
    AsciiSpaced,
}

/// A value in one spelling.
#[must_use]
pub fn canonical(value: &Value, spelling: Spelling) -> String {
    let mut out = String::new();
    spelling.write(value, &mut out);
    out
}

/// The members of an object in one spelling.
#[must_use]
pub fn canonical_object(members: &Map<String, Value>, spelling: Spelling) -> String {
    let mut out = String::new();
    spelling.write_object(members, &mut out);
    out
}

impl Spelling {
    const fn space(self) -> &'static str {
        match self {
            Self::Plain | Self::Ascii => "",
            Self::AsciiSpaced => " ",
        }
    }

    fn write(self, value: &Value, out: &mut String) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
            Value::String(text) => self.write_text(text, out),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    self.write_comma(i, out);
                    self.write(item, out);
                }
                out.push(']');
            }
            Value::Object(members) => self.write_object(members, out),
        }
    }

    fn write_object(self, members: &Map<String, Value>, out: &mut String) {
        let mut members: Vec<_> = members.iter().collect();
        members.sort_unstable_by_key(|it| it.0);
        out.push('{');
        for (i, (key, value)) in members.into_iter().enumerate() {
            self.write_comma(i, out);
            self.write_text(key, out);
            out.push(':');
            out.push_str(self.space());
            self.write(value, out);
        }
        out.push('}');
    }

    fn write_comma(self, n_before: usize, out: &mut String) {
        if n_before > 0 {
            out.push(',');
            out.push_str(self.space());
        }
    }

    fn write_text(self, text: &str, out: &mut String) {
        let quoted = Value::from(text).to_string();
        if self == Self::Plain {
            out.push_str(&quoted);
            return;
        }
        for it in quoted.chars() {
            if matches!(it, ' '..='~') {
                out.push(it);
            } else {
                for unit in it.encode_utf16(&mut [0; 2]) {
                    // Writing to a text cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_spelled_as_the_other_side_spells_it() {
        let value = json!({"b": [1, 1.5, null, true], "a": "é\u{7f}😀\n\u{8}\u{1}\"\\/", "A": {}});
        for (style, expected) in [
            (
                Spelling::Plain,
                "{\"A\":{},\"a\":\"é\u{7f}😀\\n\\b\\u0001\\\"\\\\/\",\"b\":[1,1.5,null,true]}",
            ),
            (
                Spelling::Ascii,
                r#"{"A":{},"a":"\u00e9\u007f\ud83d\ude00\n\b\u0001\"\\/","b":[1,1.5,null,true]}"#,
            ),
            (
                Spelling::AsciiSpaced,
                r#"{"A": {}, "a": "\u00e9\u007f\ud83d\ude00\n\b\u0001\"\\/", "b": [1, 1.5, null, true]}"#,
            ),
        ] {
            assert_eq!(canonical(&value, style), expected);
            let members = value.as_object().unwrap();
            assert_eq!(canonical_object(members, style), expected);
        }
    }
}
