//! Makes answers of another KOI server match our output schemas.
//!
//! The original server leaves out what it does not have, writes some objects as JSON text and some
//! lists as null. MCP clients validate against the schema that we declared, and refuse a whole answer
//! for one such field. What can be converted is converted; unknown fields stay; anything else is an
//! error that names the field.

use kenning_core::{Error, Result};
use serde_json::{Map, Value, json};

/// An answer that matches the schema, or an error that says where it does not.
pub(crate) fn conform(tool: &str, schema: Option<&Value>, mut answer: Value) -> Result<Value> {
    if let Some(schema) = schema {
        let fitted = fit(schema, &mut answer, "");
        fitted.map_err(|fault| {
            Error::unavailable(format!(
                "the KOI server that KOI_API_ENDPOINT names answers `{tool}` with something else than the contract says: {fault}"
            ))
            .hint("check that a KOI server is at that URL, or unset KOI_API_ENDPOINT to answer from here")
        })?;
    }
    Ok(answer)
}

/// Makes a value match its schema where nothing is lost. `at` is its path in the answer.
fn fit(schema: &Value, value: &mut Value, at: &str) -> std::result::Result<(), String> {
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let mut faults = Vec::new();
        for choice in choices {
            let mut tried = value.clone();
            match fit(choice, &mut tried, at) {
                Ok(()) => {
                    *value = tried;
                    return Ok(());
                }
                Err(fault) => faults.push(fault),
            }
        }
        return Err(faults.pop().unwrap_or_default());
    }
    let kinds = kinds(schema);
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind, value)) {
        let read = match value {
            Value::String(text) => serde_json::from_str(text).ok(),
            Value::Null if kinds.contains(&"array") => Some(json!([])),
            Value::Null if kinds.contains(&"object") => Some(json!({})),
            Value::Null if kinds.contains(&"string") => Some(json!("")),
            _ => None,
        };
        match read.filter(|read| kinds.iter().any(|kind| is_of(kind, read))) {
            Some(read) => *value = read,
            None => {
                let (at, kinds) = (if at.is_empty() { "it" } else { at }, kinds.join(" or "));
                return Err(format!("`{at}` is not of type {kinds}"));
            }
        }
    }
    match value {
        Value::Object(fields) => fit_fields(schema, fields, at),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return Ok(());
            };
            for (n, item) in items.iter_mut().enumerate() {
                fit(schema, item, &format!("{at}[{n}]"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn fit_fields(
    schema: &Value,
    fields: &mut Map<String, Value>,
    at: &str,
) -> std::result::Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, schema) in known.into_iter().flatten() {
        let at = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        let is_required = required.contains(&name.as_str());
        match fields.get_mut(name) {
            // An optional field may be null in the other server's answer.
            Some(Value::Null) if !is_required && !allows_null(schema) => {
                fields.remove(name);
            }
            Some(value) => fit(schema, value, &at)?,
            None if !is_required => {}
            None if allows_null(schema) => {
                fields.insert(name.clone(), Value::Null);
            }
            None => return Err(format!("`{at}` is missing")),
        }
    }
    Ok(())
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn allows_null(schema: &Value) -> bool {
    let choices = schema.get("anyOf").and_then(Value::as_array);
    kinds(schema).contains(&"null")
        || choices.is_some_and(|it| it.iter().any(allows_null))
        || (kinds(schema).is_empty() && choices.is_none())
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            let whole = |it: f64| it.fract() == 0.0;
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(whole)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "rows": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "metadata": { "type": "object" },
                        "score": { "type": ["number", "null"] },
                        "count": { "type": "integer" },
                        "node": { "anyOf": [{ "type": "object" }, { "type": "null" }] },
                    },
                    "required": ["metadata", "score", "node"],
                } },
            },
            "required": ["rows"],
        })
    }

    #[test]
    fn what_an_original_server_leaves_out_or_writes_as_text_is_put_right() {
        let answer = json!({ "rows": [{ "metadata": "{\"a\": 1}", "count": null, "own": 1 }] });
        let fitted = conform("x", Some(&schema()), answer).unwrap();
        let row = json!({ "metadata": { "a": 1 }, "score": null, "node": null, "own": 1 });
        assert_eq!(fitted, json!({ "rows": [row] }));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_field() {
        for (answer, expected) in [
            (json!({}), "`rows` is missing"),
            (json!({ "rows": 5 }), "`rows` is not of type array"),
            (
                json!({ "rows": [{ "metadata": "[1" }] }),
                "`rows[0].metadata` is not of type object",
            ),
            (
                json!({ "rows": [{ "metadata": {}, "count": 1.5 }] }),
                "`rows[0].count` is not of type integer",
            ),
        ] {
            let error = conform("x", Some(&schema()), answer).unwrap_err();
            assert!(error.message.ends_with(expected), "{error}");
        }
    }
}
