//! JSON Schemas for clients, without words that cost tokens and help nobody.

use kenning_text::line::one_line;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of a type for reading.
fn generate<T: JsonSchema>() -> Map<String, Value> {
    generate_with::<T>(SchemaSettings::draft2020_12())
}

fn generate_with<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let generator = settings
        .with(|it| it.inline_subschemas = true)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    drop_number_formats(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// `uint32` and the like are not formats of JSON Schema: validators of clients warn about each.
fn drop_number_formats(schema: &mut Value) {
    const FORMATS: [&str; 4] = ["uint", "int", "double", "float"];
    match schema {
        Value::Object(fields) => {
            let format = fields.get("format").and_then(Value::as_str);
            let is_of_number = |it: &str| FORMATS.iter().any(|kind| it.starts_with(kind));
            if format.is_some_and(is_of_number) {
                fields.remove("format");
            }
            fields.values_mut().for_each(drop_number_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_number_formats),
        _ => {}
    }
}

/// The doc comment of a type, on one line per paragraph.
pub(crate) fn description<T: JsonSchema>() -> String {
    let schema = generate::<T>();
    let text = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let paragraphs = text.split("\n\n").map(one_line);
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The schema of arguments. The description is kept separately.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>();
    for name in ["$schema", "title", "description"] {
        schema.remove(name);
    }
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let mut schema = Value::Object(schema);
    drop_null(&mut schema);
    schema
}

/// The schema of arguments as it is listed to a model, which pays for every word: without what holds for all tools,
/// and without descriptions that repeat a name. Fields that are not named are refused, and the instructions of the
/// server say what a cursor is. The whole schema is in the reference and in the OpenAPI document.
pub fn lean(mut schema: Value) -> Value {
    fn trim(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                if fields
                    .get("additionalProperties")
                    .is_some_and(Value::is_boolean)
                {
                    fields.remove("additionalProperties");
                }
                if let Some(Value::Object(items)) = fields.get_mut("items") {
                    items.remove("description");
                }
                if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                    for (name, property) in properties {
                        let said = property.get("description").and_then(Value::as_str);
                        if said.is_some_and(|it| name == "cursor" || plain(it) == plain(name))
                            && let Value::Object(property) = property
                        {
                            property.remove("description");
                        }
                    }
                }
                fields.values_mut().for_each(trim);
            }
            Value::Array(items) => items.iter_mut().for_each(trim),
            _ => {}
        }
    }
    trim(&mut schema);
    schema
}

/// Letters and digits alone, so that `workflowId` and `Workflow ID` are the same.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|it| it.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// The schema of an HTTP request, which distinguishes null from absent.
pub(crate) fn of_request<T: JsonSchema>() -> Value {
    Value::Object(generate::<T>())
}

/// A field that may be absent may also be null; saying so costs tokens and tells a model nothing.
fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [one] = kinds.as_slice() {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            fields.values_mut().for_each(drop_null);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        _ => {}
    }
}

/// The schema of a reply, if it is an object: a field that is left out when empty is not required, so
/// that clients that validate accept the reply.
pub(crate) fn of_output<T: JsonSchema>() -> Option<Value> {
    let mut schema = generate_with::<T>(SchemaSettings::draft2020_12().for_serialize());
    schema.remove("$schema");
    schema.remove("title");
    // One of several objects is an object too, and clients expect to be told.
    let is_object = |it: &Value| it.get("type").is_some_and(|it| it == "object");
    let choices = schema.get("anyOf").and_then(Value::as_array);
    if choices.is_some_and(|it| !it.is_empty() && it.iter().all(is_object)) {
        schema.insert("type".to_owned(), "object".into());
    }
    (schema.get("type")? == "object").then_some(Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_listed_schema_says_everything_once() {
        let whole = json!({
            "type": "object", "additionalProperties": false, "required": ["workflowId"],
            "properties": {
                "workflowId": { "type": "string", "description": "Workflow ID" },
                "force": { "type": "boolean", "description": "Even if it is up to date", "default": false },
                "parts": { "type": "array", "items": { "type": "string", "description": "A part." } },
                "cursor": { "type": "string", "description": "Of a cut answer" },
            },
        });
        let listed = json!({
            "type": "object", "required": ["workflowId"],
            "properties": {
                "workflowId": { "type": "string" },
                "force": { "type": "boolean", "description": "Even if it is up to date", "default": false },
                "parts": { "type": "array", "items": { "type": "string" } },
                "cursor": { "type": "string" },
            },
        });
        assert_eq!(lean(whole), listed);
    }
}
