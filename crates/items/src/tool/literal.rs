//! Python literals as JSON: parsed, never evaluated.
//!
//! Strings, numbers, `True`, `False`, `None`, lists, tuples and dicts of them. A call, a name, an
//! f-string or an operator is refused, and the error names it.

use crate::kind::shown;
use serde_json::{Map, Number, Value};

const DEPTH_MAX: usize = 32;

/// The literal at the start of a text, and what follows it.
pub(super) fn read(text: &str) -> Result<(Value, &str), String> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    Ok((value, reader.rest))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("is nested too deep".to_owned());
        }
        self.skip_blank(depth > 0);
        if starts_text(self.rest) {
            return self.texts(depth).map(Value::String);
        }
        match self.rest.chars().next() {
            Some('[') => self.list(depth),
            Some('(') => self.parenthesized(depth),
            Some('{') => self.dict(depth),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => self.word(),
        }
    }

    /// Spaces and comments; line ends only between brackets.
    fn skip_blank(&mut self, is_inside: bool) {
        loop {
            let blank =
                |c: char| matches!(c, ' ' | '\t') || (is_inside && matches!(c, '\n' | '\r'));
            self.rest = self.rest.trim_start_matches(blank);
            if let Some(after) = self.rest.strip_prefix("\\\n") {
                self.rest = after;
            } else if is_inside && self.rest.starts_with('#') {
                self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
            } else {
                return;
            }
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blank(true);
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            if self.take(']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.take(',') {
                return if self.take(']') {
                    Ok(Value::Array(items))
                } else {
                    Err(self.unexpected())
                };
            }
        }
    }

    /// A tuple, or one value in parentheses. Parsed once: trying both ways at each depth would take
    /// exponential time.
    fn parenthesized(&mut self, depth: usize) -> Result<Value, String> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            if self.take(')') {
                return Ok(Value::Array(items));
            }
            let value = self.value(depth + 1)?;
            if self.take(',') {
                items.push(value);
                continue;
            }
            if !self.take(')') {
                return Err(self.unexpected());
            }
            if items.is_empty() {
                return Ok(value);
            }
            items.push(value);
            return Ok(Value::Array(items));
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Value, String> {
        self.rest = &self.rest[1..];
        let mut fields = Map::new();
        loop {
            if self.take('}') {
                return Ok(Value::Object(fields));
            }
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                other => return Err(format!("the key `{other}` is not a string")),
            };
            if !self.take(':') {
                return Err(self.unexpected());
            }
            let value = self.value(depth + 1)?;
            fields.insert(key, value);
            if !self.take(',') {
                let is_closed = self.take('}');
                return if is_closed {
                    Ok(Value::Object(fields))
                } else {
                    Err(self.unexpected())
                };
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let text = self.rest[..end].replace('_', "");
        let text = text.strip_prefix('+').unwrap_or(&text);
        let number = text
            .parse::<i64>()
            .map(Number::from)
            .ok()
            .or_else(|| Number::from_f64(text.parse::<f64>().ok()?));
        let number = number.ok_or_else(|| self.unexpected())?;
        self.rest = &self.rest[end..];
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Result<Value, String> {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let value = match &self.rest[..end] {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            _ => return Err(self.unexpected()),
        };
        self.rest = &self.rest[end..];
        Ok(value)
    }

    /// Adjacent strings are one.
    fn texts(&mut self, depth: usize) -> Result<String, String> {
        let mut out = String::new();
        while starts_text(self.rest) {
            let (text, length) = read_text(self.rest)?;
            out.push_str(&text);
            self.rest = &self.rest[length..];
            self.skip_blank(depth > 0);
        }
        Ok(out)
    }

    fn unexpected(&self) -> String {
        let word: String = self.rest.chars().take(24).collect();
        let word = word.lines().next().unwrap_or_default();
        format!("`{}` is not part of a literal", shown(word))
    }
}

/// Whether a string begins here, with or without a prefix.
pub(super) fn starts_text(text: &str) -> bool {
    let prefix = text.find(['"', '\'']).unwrap_or(usize::MAX);
    prefix <= 2 && text[..prefix].chars().all(|c| "rRbBuUfF".contains(c))
}

/// The string that begins here, and the length of what it was written as.
pub(super) fn read_text(text: &str) -> Result<(String, usize), String> {
    let (prefix, is_triple, _) = opening(text).ok_or("is not a string")?;
    if prefix.contains(['f', 'F', 'b', 'B']) {
        return Err(format!("`{prefix}` strings are not literals"));
    }
    let length = text_length(text).ok_or("a string does not end")?;
    let n_quotes = if is_triple { 3 } else { 1 };
    let inner = &text[prefix.len() + n_quotes..length - n_quotes];
    let out = if prefix.contains(['r', 'R']) {
        inner.to_owned()
    } else {
        unescaped(inner)?
    };
    Ok((out, length))
}

fn opening(text: &str) -> Option<(&str, bool, char)> {
    let at = text.find(['"', '\''])?;
    let quote = text[at..].chars().next()?;
    let triple: String = [quote; 3].iter().collect();
    Some((&text[..at], text[at..].starts_with(&triple), quote))
}

/// How long the string is that begins here, quotes included. `None` if it does not end.
pub(super) fn text_length(text: &str) -> Option<usize> {
    let (prefix, is_triple, quote) = opening(text)?;
    let close: String = std::iter::repeat_n(quote, if is_triple { 3 } else { 1 }).collect();
    let mut at = prefix.len() + close.len();
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(&close) {
            return Some(at + close.len());
        }
        let mut chars = rest.chars();
        match chars.next()? {
            '\\' => at += 1 + chars.next()?.len_utf8(),
            '\n' if !is_triple => return None,
            c => at += c.len_utf8(),
        }
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = chars.next() else { break };
        let n_digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if n_digits > 0 {
            let digits: String = chars.by_ref().take(n_digits).collect();
            let code = u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32);
            out.push(code.ok_or_else(|| format!("`\\{escape}{digits}` is not a character"))?);
            continue;
        }
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            '\n' => {}
            '\\' | '\'' | '"' => out.push(escape),
            // Python keeps unknown escapes.
            other => out.extend(['\\', other]),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn literals_are_read_as_python_means_them() {
        for (text, value) in [
            ("None", json!(null)),
            ("True", json!(true)),
            ("-1_000", json!(-1000)),
            ("1.5e3", json!(1500.0)),
            ("'a'", json!("a")),
            ("\"a\\n\\x41\\u00e9\\q\"", json!("a\nAé\\q")),
            ("r'a\\n'", json!("a\\n")),
            ("'''a\n'b'c'''", json!("a\n'b'c")),
            ("\"\"\"a\nb\"\"\"", json!("a\nb")),
            ("('a' 'b'\n  'c')", json!("abc")),
            ("[1, 'a', None,]", json!([1, "a", null])),
            ("(1, 2)", json!([1, 2])),
            ("()", json!([])),
            ("(1,)", json!([1])),
            (
                "{\n  'a': {'b': [1]},  # why\n  # more\n  \"c\": '#',\n}",
                json!({"a": {"b": [1]}, "c": "#"}),
            ),
            ("{}", json!({})),
        ] {
            assert_eq!(read(text).unwrap(), (value, ""), "{text}");
        }
    }

    #[test]
    fn what_would_have_to_be_evaluated_is_refused() {
        let deep = "[".repeat(100);
        for bad in [
            "os.environ",
            "f'{x}'",
            "b'x'",
            "__import__('os')",
            "{1: 2}",
            "{'a': b}",
            "[1, x]",
            "{'a' 1}",
            "'unclosed",
            "'''unclosed",
            "0x10",
            "1-",
            "'\\ud800'",
            "",
            "lambda: 1",
            &deep,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
