//! JSON that keeps the order of members and the digits of numbers.
//!
//! A signature covers the bytes that the sender wrote, in the order of its own fields, so a message is
//! verified over what was received and not over what a type keeps of it.

use crate::number;
use kenning_core::{Error, Result};
use std::fmt::Write as _;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, with the digits that it was written with.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Members, in the order of the text. No name is there twice.
    Object(Vec<(String, Json)>),
}

/// How large and how deep a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its bytes.
    pub bytes_max: usize,
    /// Levels of lists and objects.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 4 * 1024 * 1024,
            depth_max: 40,
        }
    }
}

/// Members of more objects than this are compared by a set, not one by one.
const FEW_MEMBERS: usize = 16;

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// Too large; invalid for what is not JSON, is too deep, or names a member twice.
    pub fn parse(bytes: &[u8], limits: Limits) -> Result<Self> {
        if bytes.len() > limits.bytes_max {
            return Err(Error::too_large(format!(
                "the message has {} bytes; at most {} are read",
                bytes.len(),
                limits.bytes_max
            )));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|cause| Error::invalid("the message is not UTF-8").because(cause))?;
        let mut reader = Reader {
            text,
            at: 0,
            depth_left: limits.depth_max,
        };
        let value = reader.value()?;
        reader.skip_space();
        match reader.at == text.len() {
            true => Ok(value),
            false => Err(reader.fault("text after the value")),
        }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A whole number.
    pub fn count(n: u64) -> Self {
        Self::Number(n.to_string())
    }

    /// A list of texts.
    pub fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts = texts.into_iter().map(|it| Self::text(it.as_ref()));
        Self::List(texts.collect())
    }

    /// An object with these members.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        let members = members.into_iter().map(|(key, it)| (key.to_owned(), it));
        Self::Object(members.collect())
    }

    /// The member of this name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let found = self.members()?.iter().find(|it| it.0 == name);
        found.map(|it| &it.1)
    }

    /// The members of an object.
    pub fn members(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn items(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is whole and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Compact JSON in this order, as pydantic and Python's `json.dumps(ensure_ascii=False)` write it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Appends the compact JSON to a text.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (i, (key, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The canonical form of RFC 8785: sorted names, numbers as ECMAScript prints them.
    ///
    /// # Errors
    /// Invalid for a number that no double can hold.
    pub fn to_canonical(&self) -> Result<String> {
        let mut out = String::new();
        self.write_canonical(&mut out)?;
        Ok(out)
    }

    fn write_canonical(&self, out: &mut String) -> Result<()> {
        match self {
            Self::Number(digits) => {
                let value = digits.parse::<f64>().ok().filter(|it| it.is_finite());
                let value = value.ok_or_else(|| {
                    Error::invalid(format!("the number `{}` is out of range", shown(digits)))
                })?;
                out.push_str(&number::ecmascript(value));
            }
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write_canonical(out)?;
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut sorted: Vec<&(String, Self)> = members.iter().collect();
                sorted.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
                out.push('{');
                for (i, (key, value)) in sorted.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(key, out);
                    out.push(':');
                    value.write_canonical(out)?;
                }
                out.push('}');
            }
            other => other.write(out),
        }
        Ok(())
    }
}

/// A short piece of a stranger's text, for a message.
pub(crate) fn shown(text: &str) -> String {
    let plain = |it: char| if it.is_control() { '?' } else { it };
    text.chars().take(80).map(plain).collect()
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for it in text.chars() {
        match it {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            it if it < ' ' => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(it));
            }
            it => out.push(it),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth_left: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, what: &str) -> Error {
        Error::invalid(format!("not JSON at byte {}: {what}", self.at))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self) -> Result<Json> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => Err(self.fault("the text ends")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json>) -> Result<Json> {
        let Some(left) = self.depth_left.checked_sub(1) else {
            return Err(self.fault("too many levels"));
        };
        self.depth_left = left;
        let value = read(self);
        self.depth_left += 1;
        value
    }

    fn word(&mut self) -> Result<Json> {
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("a value is expected"))
    }

    fn object(&mut self) -> Result<Json> {
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.fault("a name is expected"));
            }
            let key = self.string()?;
            let is_twice = match members.len() < FEW_MEMBERS {
                true => members.iter().any(|it| it.0 == key),
                false => {
                    if names.is_empty() {
                        names.extend(members.iter().map(|it| it.0.clone()));
                    }
                    !names.insert(key.clone())
                }
            };
            // Two readers could see two values in it.
            if is_twice {
                let name = shown(&key);
                return Err(self.fault(&format!("the name `{name}` stands twice")));
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.fault("`:` is expected"));
            }
            let value = self.value()?;
            members.push((key, value));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(self.fault("`,` or `}` is expected"));
            }
        }
    }

    fn list(&mut self) -> Result<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err(self.fault("`,` or `]` is expected"));
            }
        }
    }

    fn number(&mut self) -> Result<Json> {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.fault("a digit is expected")),
        }
        if self.take(b'.') {
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.some_digits()?;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        Ok(Json::Number(digits.to_owned()))
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<()> {
        let before = self.at;
        self.digits();
        match self.at > before {
            true => Ok(()),
            false => Err(self.fault("a digit is expected")),
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|it: char| it == '"' || it == '\\' || it < ' ');
            let plain = plain.ok_or_else(|| self.fault("a text does not end"))?;
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escaped()?);
                }
                _ => return Err(self.fault("a control character in a text")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                let is_pair = (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u");
                let code = if is_pair {
                    self.at += 2;
                    let second = self.unit()?;
                    match (0xdc00..0xe000).contains(&second) {
                        true => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                        false => first,
                    }
                } else {
                    first
                };
                char::from_u32(code).ok_or_else(|| self.fault("half of a character"))?
            }
            _ => return Err(self.fault("an unknown escape")),
        })
    }

    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let unit = digits.and_then(|it| u32::from_str_radix(it, 16).ok());
        let unit = unit.ok_or_else(|| self.fault("four hexadecimal digits are expected"))?;
        self.at += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Json> {
        Json::parse(text.as_bytes(), Limits::default())
    }

    #[test]
    fn order_digits_and_characters_stay_what_they_are() {
        for text in [
            r#"{"b":1,"a":[1.0,1e+16,-0.0,12345678901234567890,null,true]}"#,
            r#"["é\n\"\\","",{},[]]"#,
        ] {
            assert_eq!(parse(text).unwrap().to_text(), text);
        }
        let spaced = parse("{ \"a\" : [ 1 , \"\\u00e9\\/\\ud83d\\ude00\" ] }").unwrap();
        assert_eq!(spaced.to_text(), r#"{"a":[1,"é/😀"]}"#);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,\"a\":2}",
            "01",
            "1.",
            "1e",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "nul",
            "1 2",
            "{a:1}",
            "\"\\u12",
            "\"\\u+123\"",
            "+1",
            "'a'",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = "[".repeat(41) + &"]".repeat(41);
        assert!(parse(&deep).is_err());
        assert!(parse(&deep[1..81]).is_ok());
        let limits = Limits {
            bytes_max: 3,
            ..Limits::default()
        };
        assert_eq!(
            Json::parse(b"[12]", limits).unwrap_err().code,
            kenning_core::Code::TooLarge
        );
        let many: Vec<String> = (0..40).map(|it| format!("\"k{it}\":0")).collect();
        assert!(parse(&format!("{{{}}}", many.join(","))).is_ok());
        assert!(parse(&format!("{{{},\"k3\":1}}", many.join(","))).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_what_it_reads_it_writes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = Json::parse(&bytes, Limits::default()) {
                let text = value.to_text();
                prop_assert_eq!(parse(&text).unwrap(), value);
            }
        }

        #[test]
        fn texts_are_written_as_serde_writes_them(text in ".*") {
            let value = serde_json::Value::from(text.clone());
            prop_assert_eq!(Json::Text(text).to_text(), value.to_string());
        }
    }
}
