//! Parses arguments: an error names the field, the value and the remedy.

use crate::schema;
use kenning_core::{Error, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Refuses arguments that are nested deeper than anything that can be stored.
pub(crate) fn check_depth(arguments: &Value) -> Result<()> {
    match arguments {
        Value::Object(fields) => kenning_engine::check_json_depth("the arguments", fields),
        _ => Ok(()),
    }
}

/// Reads the arguments of a tool.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(arguments: Value) -> Result<T> {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::Object(_) => arguments,
        other => {
            return Err(Error::invalid(format!(
                "the arguments are {}, not an object",
                kind_of(&other)
            ))
            .hint(fields::<T>()));
        }
    };
    let given: Vec<String> = arguments
        .as_object()
        .map(|it| it.keys().cloned().collect())
        .unwrap_or_default();
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        if let Some(name) = missing::<T>(&given) {
            return Error::missing(format!("missing field `{name}`")).hint(fields::<T>());
        }
        let path = error.path().to_string();
        let inner = in_plain_words(error.into_inner().to_string());
        let message = if path == "." || inner.contains(&format!("`{path}`")) {
            inner
        } else {
            format!("`{path}`: {inner}")
        };
        Error::invalid(message).hint(fields::<T>())
    })
}

/// Replaces Rust types in messages by common words.
fn in_plain_words(message: String) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message;
    };
    let word = match expected {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ => return message,
    };
    format!("{before}expected {word}")
}

/// The first required argument that is missing, unless an unknown one was given.
fn missing<T: JsonSchema>(given: &[String]) -> Option<String> {
    let schema = schema::of_input::<T>();
    if given
        .iter()
        .any(|it| schema["properties"].get(it).is_none())
    {
        return None;
    }
    let mut required = schema["required"].as_array()?.iter();
    let missing = required.find(|it| !given.iter().any(|name| *it == name))?;
    missing.as_str().map(ToOwned::to_owned)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// ``takes `path` (string, required), `limit` (integer)``: the correct arguments.
fn fields<T: JsonSchema>() -> String {
    let schema = schema::of_input::<T>();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let fields: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let kind = match &property["type"] {
                Value::String(kind) => kind.clone(),
                Value::Array(kinds) => kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|it| *it != "null")
                    .collect(),
                _ => "value".to_owned(),
            };
            let must = if required.contains(&name.as_str()) {
                ", required"
            } else {
                ""
            };
            format!("`{name}` ({kind}{must})")
        })
        .collect();
    if fields.is_empty() {
        return "takes no arguments".to_owned();
    }
    format!("takes {}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Bounded, Code};
    use serde::Deserialize;
    use serde_json::json;

    /// An example.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsed")]
    struct Input {
        /// A name.
        name: String,
        /// A number.
        count: Option<Bounded<1, 9>>,
    }

    fn check(arguments: Value, expected: &str) {
        let error = parse::<Input>(arguments).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        let fields = "takes `name` (string, required), `count` (integer)";
        assert_eq!(error.to_string(), format!("{expected} ({fields})"));
    }

    #[test]
    fn a_refusal_names_the_field_the_value_and_the_remedy() {
        check(json!({}), "missing field `name`");
        check(
            json!({"name": 5}),
            "`name`: invalid type: integer `5`, expected a string",
        );
        check(
            json!({"nam": "x"}),
            "unknown field `nam`, expected `name` or `count`",
        );
        check(
            json!({"name": "x", "count": 10}),
            "`count`: `10` is not between 1 and 9",
        );
        check(
            json!({"name": "x", "count": "5"}),
            "`count`: invalid type: string \"5\", expected a whole number",
        );
        check(json!([1]), "the arguments are an array, not an object");
    }
}
