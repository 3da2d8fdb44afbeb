//! JSON in canonical form, and how deep it may be nested.
//!
//! serde_json reads 127 levels and writes any number, so what is stored must stay well below: whatever
//! wraps a stored value (a backup's line, an event, an answer) adds levels of its own. Older programs
//! stored more. Their rows and backups are read by [`parse_json`], which uses a list
//! instead of recursion.

use kenning_core::{Error, Result};
use kenning_text::json::{self, Spelling};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The most levels of arrays and objects in anything that is stored.
pub const JSON_DEPTH_MAX: usize = 64;

/// The most levels that are read back. Older programs stored what serde_json can read, wrapped in a
/// few more levels.
const READ_DEPTH_MAX: usize = 512;

/// How many arrays and objects are around the innermost value: 0 for a number, 1 for `{}`.
pub fn json_depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut todo = vec![(value, 1)];
    while let Some((value, depth)) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(map) => todo.extend(map.values().map(|it| (it, depth + 1))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Refuses a value that is nested too deep to be stored. `what` names it.
pub fn check_json_depth<'a>(
    what: &str,
    values: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> Result<()> {
    for (name, value) in values {
        let depth = json_depth(value);
        if depth >= JSON_DEPTH_MAX {
            return Err(Error::invalid(format!(
                "`{name}` of {what} is nested {depth} levels deep; at most {} are accepted",
                JSON_DEPTH_MAX - 1
            ))
            .hint("use fewer levels, or store the value as a string of JSON"));
        }
    }
    Ok(())
}

/// Reads JSON that an older program may have stored: deeper than serde_json reads by itself.
pub fn parse_json(text: &str) -> std::result::Result<Value, serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => parse_deep(text).ok_or(error),
    }
}

/// Reads JSON in which no object has the same name twice: of two values, one reader takes the first and
/// another the last, so what is signed must not be read from such a text.
pub fn parse_json_once(text: &str) -> std::result::Result<Value, serde_json::Error> {
    serde_json::from_str(text).map(|Once(value)| value)
}

/// The same for a text of several values.
pub fn parse_jsons_once(
    text: &str,
) -> impl Iterator<Item = std::result::Result<Value, serde_json::Error>> + '_ {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Once>();
    values.map(|it| it.map(|Once(value)| value))
}

/// A value without repeated names.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Self)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E>(self, it: f64) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_str<E>(self, it: &str) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E>(self, it: String) -> std::result::Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Once(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let Once(value) = map.next_value()?;
            if members.contains_key(&name) {
                let name = name.escape_debug();
                return Err(de::Error::custom(format!("`{name}` is there twice")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

/// An array or object that is not complete yet.
enum Open {
    Array(Vec<Value>),
    /// With the name of the member that is being read.
    Object(Map<String, Value>, String),
}

/// `None` if it is not JSON, or deeper than anything that was ever stored.
fn parse_deep(text: &str) -> Option<Value> {
    let mut rest = text.trim_ascii();
    let mut open: Vec<Open> = Vec::new();
    loop {
        // A value begins here.
        let first = *rest.as_bytes().first()?;
        let mut value = match first {
            b'[' | b'{' => {
                if open.len() == READ_DEPTH_MAX {
                    return None;
                }
                rest = rest.get(1..)?.trim_ascii_start();
                if first == b'[' {
                    if !rest.starts_with(']') {
                        open.push(Open::Array(Vec::new()));
                        continue;
                    }
                    rest = rest.get(1..)?;
                    Value::Array(Vec::new())
                } else {
                    if !rest.starts_with('}') {
                        let name = member(&mut rest)?;
                        open.push(Open::Object(Map::new(), name));
                        continue;
                    }
                    rest = rest.get(1..)?;
                    Value::Object(Map::new())
                }
            }
            _ => scalar(&mut rest)?,
        };
        // A value ended here, and perhaps the array or object around it.
        loop {
            rest = rest.trim_ascii_start();
            let Some(inner) = open.pop() else {
                return rest.is_empty().then_some(value);
            };
            let next = *rest.as_bytes().first()?;
            rest = rest.get(1..)?.trim_ascii_start();
            match (inner, next) {
                (Open::Array(mut items), b',') => {
                    items.push(value);
                    open.push(Open::Array(items));
                    break;
                }
                (Open::Array(mut items), b']') => {
                    items.push(value);
                    value = Value::Array(items);
                }
                (Open::Object(mut map, name), b',') => {
                    map.insert(name, value);
                    let name = member(&mut rest)?;
                    open.push(Open::Object(map, name));
                    break;
                }
                (Open::Object(mut map, name), b'}') => {
                    map.insert(name, value);
                    value = Value::Object(map);
                }
                _ => return None,
            }
        }
    }
}

/// The name of a member with its colon; leaves what follows.
fn member(rest: &mut &str) -> Option<String> {
    let Value::String(name) = scalar(rest)? else {
        return None;
    };
    let after = rest.trim_ascii_start().strip_prefix(':')?;
    *rest = after.trim_ascii_start();
    Some(name)
}

/// A string, a number, a boolean or null; leaves what follows.
fn scalar(rest: &mut &str) -> Option<Value> {
    let bytes = rest.as_bytes();
    let end = if bytes.first() == Some(&b'"') {
        let mut at = 1;
        loop {
            match bytes.get(at)? {
                b'"' => break at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    } else {
        let ends = |it: &u8| matches!(it, b',' | b']' | b'}') || it.is_ascii_whitespace();
        bytes.iter().position(ends).unwrap_or(bytes.len())
    };
    let value = serde_json::from_str(rest.get(..end)?).ok()?;
    *rest = rest.get(end..)?;
    Some(value)
}

/// JSON with sorted keys and no white space: the same value always gives the same bytes.
pub fn canonical_json(value: &Value) -> String {
    json::canonical(value, Spelling::Plain)
}

/// The same for the members of an object.
pub fn canonical_object(members: &Map<String, Value>) -> String {
    json::canonical_object(members, Spelling::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"b":[1,{"y":2,"x":1}],"a":"ä\n"}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":"ä\n","b":[1,{"x":1,"y":2}]}"#).unwrap();
        assert_eq!(canonical_json(&one), canonical_json(&two));
        assert_eq!(canonical_json(&one), r#"{"a":"ä\n","b":[1,{"x":1,"y":2}]}"#);
    }

    fn nested(depth: usize) -> String {
        let (open, close) = (r#"{"a": [true, "#.repeat(depth / 2), "]}".repeat(depth / 2));
        format!("{open}null{close}")
    }

    #[test]
    fn depth_is_counted_and_refused_by_name() {
        for (text, depth) in [("1", 0), ("[]", 1), ("[1,{}]", 2), (r#"{"a":[{}]}"#, 3)] {
            assert_eq!(json_depth(&serde_json::from_str(text).unwrap()), depth);
        }
        let props = |depth| Map::from_iter([("m".to_owned(), parse_json(&nested(depth)).unwrap())]);
        check_json_depth("a node", &props(JSON_DEPTH_MAX - 2)).unwrap();
        let error = check_json_depth("a node", &props(JSON_DEPTH_MAX)).unwrap_err();
        assert_eq!(
            error.message,
            "`m` of a node is nested 64 levels deep; at most 63 are accepted"
        );
    }

    #[test]
    fn what_older_programs_stored_is_read_however_deep() {
        for depth in [2, 126, 128, 200, READ_DEPTH_MAX] {
            let value = parse_json(&nested(depth)).unwrap();
            assert_eq!(json_depth(&value), depth);
            assert_eq!(parse_json(&canonical_json(&value)).unwrap(), value);
        }
        assert!(parse_json(&nested(READ_DEPTH_MAX + 2)).is_err());
        assert!(parse_json(&nested(1_000_000)).is_err());
    }

    #[test]
    fn both_parsers_agree() {
        let cases = [
            "",
            " ",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[]]",
            "[] []",
            "{",
            "{}",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1 "b":2}"#,
            r#"{a:1}"#,
            r#"{1:1}"#,
            "[1}",
            "[1 2]",
            r#" { "a\u0041\"\\" : [ 1.5e300 , -0 , true , null , "x,]}" ] } "#,
            r#"["\"]"#,
            "[01]",
            "[+1]",
            "nul",
            "[\"a\nb\"]",
            "\u{a0}[]",
            "[]\u{a0}",
            r#"{"a":1,"a":2}"#,
            "[[],{}]",
            "[18446744073709551615,1e999]",
        ];
        for text in cases {
            let expected = serde_json::from_str::<Value>(text).ok();
            assert_eq!(parse_deep(text), expected, "{text}");
        }
    }
}
