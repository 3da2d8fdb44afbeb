//! Validates a value against a JSON Schema, for the keywords that our own schemas use.
//!
//! An unknown keyword fails the test: nothing counts as valid because it was not checked. The clients' own
//! validators check the same answers in `.ci/sdk-clients`.

use serde_json::Value;

/// Keywords that do not restrict values.
const NOTES: [&str; 6] = [
    "description",
    "title",
    "default",
    "examples",
    "format",
    "$defs",
];

/// Where a value violates its schema, and why; empty if it is valid.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    look(schema, schema, value, "", &mut faults);
    faults
}

fn look(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let words = match schema {
        Value::Bool(true) => return,
        Value::Object(words) => words,
        _ => return faults.push(format!("{at}: nothing fits here")),
    };
    let fits = |schema: &Value| {
        let mut inner = Vec::new();
        look(root, schema, value, at, &mut inner);
        inner.is_empty()
    };
    for (word, rule) in words {
        let number = || (value.as_f64(), rule.as_f64());
        let holds = match word.as_str() {
            word if NOTES.contains(&word) => true,
            // Checked with `properties`.
            "additionalProperties" | "required" | "items" => true,
            "type" => kinds(rule).any(|kind| is_of(kind, value)),
            "enum" => rule.as_array().unwrap().contains(value),
            "const" => rule == value,
            "minimum" => !matches!(number(), (Some(value), Some(least)) if value < least),
            "maximum" => !matches!(number(), (Some(value), Some(most)) if value > most),
            "minItems" => value
                .as_array()
                .is_none_or(|it| it.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value
                .as_array()
                .is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap()),
            "anyOf" => rule.as_array().unwrap().iter().any(fits),
            "oneOf" => {
                rule.as_array()
                    .unwrap()
                    .iter()
                    .filter(|it| fits(it))
                    .count()
                    == 1
            }
            "allOf" => rule.as_array().unwrap().iter().all(fits),
            "$ref" => {
                let path = rule.as_str().unwrap().strip_prefix('#').unwrap();
                fits(root.pointer(path).unwrap())
            }
            "properties" => true,
            other => {
                panic!("`{other}` in a schema is not known to the tests: add it to `schema.rs`")
            }
        };
        if !holds {
            faults.push(format!(
                "{at}: `{word}`: {rule} does not hold of {value:.200}"
            ));
        }
    }
    if let Value::Object(fields) = value {
        look_at_fields(root, schema, fields, at, faults);
    }
    if let (Value::Array(items), Some(schema)) = (value, words.get("items")) {
        for (n, item) in items.iter().enumerate() {
            look(root, schema, item, &format!("{at}/{n}"), faults);
        }
    }
}

fn look_at_fields(
    root: &Value,
    schema: &Value,
    fields: &serde_json::Map<String, Value>,
    at: &str,
    faults: &mut Vec<String>,
) {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            faults.push(format!("{at}: `{name}` is required and missing"));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, value) in fields {
        let at = format!("{at}/{name}");
        match known.and_then(|it| it.get(name)) {
            Some(schema) => look(root, schema, value, &at, faults),
            None => {
                if let Some(schema) = schema.get("additionalProperties") {
                    look(root, schema, value, &at, faults);
                }
            }
        }
    }
}

fn kinds(rule: &Value) -> impl Iterator<Item = &str> {
    let many = rule.as_array().into_iter().flatten();
    many.chain(std::iter::once(rule)).filter_map(Value::as_str)
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        other => panic!("`type`: `{other}` is no type of JSON Schema"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_found() {
        let schema = json!({
            "type": "object",
            "properties": {
                "rows": { "type": "array", "items": { "$ref": "#/$defs/row" }, "maxItems": 2 },
                "kind": { "enum": ["a", "b"] },
                "share": { "type": ["number", "null"], "minimum": 0, "maximum": 1 },
                "of": { "anyOf": [{ "type": "string" }, { "const": 1 }] },
            },
            "required": ["rows"],
            "additionalProperties": { "type": "integer" },
            "$defs": { "row": { "type": "object", "required": ["uri"] } },
        });
        for (value, n_faults) in [
            (
                json!({ "rows": [{ "uri": 1 }], "kind": "a", "share": null, "of": 1, "n": 2 }),
                0,
            ),
            (json!({}), 1),
            (json!([]), 1),
            (json!({ "rows": [{}] }), 1),
            (json!({ "rows": [{ "uri": 1 }, {}, 5] }), 3),
            (
                json!({ "rows": [], "kind": "c", "share": 1.5, "of": 2, "n": 2.5 }),
                4,
            ),
        ] {
            let found = faults(&schema, &value);
            assert_eq!(found.len(), n_faults, "{value}: {found:#?}");
        }
    }
}
