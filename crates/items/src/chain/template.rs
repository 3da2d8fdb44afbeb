//! `${NAME}` and `${NAME:-default}` in a configuration.
//!
//! A text that consists of one placeholder becomes the value itself, whatever its type. Values that
//! are filled in are not expanded again, so a value cannot contain placeholders of its own.

use serde_json::{Map, Value};

/// A variable that is not set and has no default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Where it is used.
    pub path: String,
}

/// Fills in all placeholders of a value.
pub fn fill(value: &Value, variable: &dyn Fn(&str) -> Option<Value>) -> Result<Value, Missing> {
    fill_at(value, variable, "")
}

fn fill_at(
    value: &Value,
    variable: &dyn Fn(&str) -> Option<Value>,
    path: &str,
) -> Result<Value, Missing> {
    match value {
        Value::String(text) => fill_text(text, variable, path),
        Value::Array(items) => {
            let filled = items
                .iter()
                .enumerate()
                .map(|(i, item)| fill_at(item, variable, &format!("{path}[{i}]")));
            filled.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                let value = fill_at(value, variable, &format!("{path}{dot}{key}"))?;
                Ok((key.clone(), value))
            });
            filled.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

fn fill_text(
    text: &str,
    variable: &dyn Fn(&str) -> Option<Value>,
    path: &str,
) -> Result<Value, Missing> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(found) = next(rest) {
        let value = variable(found.name).or_else(|| found.default.map(Value::from));
        let value = value.ok_or_else(|| Missing {
            name: found.name.to_owned(),
            path: path.to_owned(),
        })?;
        if found.start == 0 && found.end == rest.len() && rest.len() == text.len() {
            return Ok(value);
        }
        out.push_str(&rest[..found.start]);
        match value {
            Value::String(value) => out.push_str(&value),
            other => out.push_str(&other.to_string()),
        }
        rest = &rest[found.end..];
    }
    out.push_str(rest);
    Ok(Value::String(out))
}

struct Placeholder<'a> {
    name: &'a str,
    default: Option<&'a str>,
    start: usize,
    end: usize,
}

/// The first placeholder. A `${` that does not begin one is plain text.
fn next(text: &str) -> Option<Placeholder<'_>> {
    text.match_indices("${").find_map(|(start, _)| {
        let length = text[start..].find('}')?;
        let inner = &text[start + 2..start + length];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        crate::grants::is_variable(name).then_some(Placeholder {
            name,
            default,
            start,
            end: start + length + 1,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variable(name: &str) -> Option<Value> {
        match name {
            "N" => Some(json!(5)),
            "LIST" => Some(json!(["a"])),
            "WORD" => Some(json!("w")),
            "SLY" => Some(json!("${WORD}")),
            _ => None,
        }
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        for (text, value) in [
            (json!("${N}"), json!(5)),
            (json!("${LIST}"), json!(["a"])),
            (json!("n=${N}"), json!("n=5")),
            (json!("${WORD}${WORD}"), json!("ww")),
            (json!("${GONE:-x}"), json!("x")),
            (json!("${GONE:-}"), json!("")),
            (json!("${WORD:-x}"), json!("w")),
            (json!("a ${GONE:-b c} d"), json!("a b c d")),
            (json!("${SLY}!"), json!("${WORD}!")),
            (json!("$WORD ${} ${a b} ${"), json!("$WORD ${} ${a b} ${")),
            (
                json!({"a": [{"b": "${N}"}], "c": 1}),
                json!({"a": [{"b": 5}], "c": 1}),
            ),
        ] {
            assert_eq!(fill(&text, &variable), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_missing_one_is_named_with_its_place() {
        let missing = fill(&json!({"a": ["x", "${GONE}"]}), &variable).unwrap_err();
        assert_eq!(
            (missing.name.as_str(), missing.path.as_str()),
            ("GONE", "a[1]")
        );
    }
}
