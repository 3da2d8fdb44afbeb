//! Parses the request of a KOI route, with validation errors in the format of the original: a list of
//! `{type, loc, msg, input}`.
//!
//! Numbers and flags may be texts, as in a query; everything else must have its type. Unknown fields
//! are ignored.

use serde_json::{Map, Value, json};

/// The original's page that explains a kind of problem.
const MANUAL: &str = "https://errors.pydantic.dev/2.14/v/";

/// The kind of a value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A text that is not empty.
    Name,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// An object with any fields.
    Map,
    /// Several of one kind.
    List(Box<Kind>),
    /// These fields.
    Record(Vec<Field>),
}

/// Whether a field may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It must be present.
    Required,
    /// It has a default, and is never null.
    Default,
    /// It may be absent or null.
    Optional,
}

/// A field of a body, or a parameter of a query.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Its name in the API.
    pub(super) name: String,
    /// What it is.
    pub(super) kind: Kind,
    /// Whether it may be left out.
    pub(super) need: Need,
}

impl Kind {
    /// The kind that a request's schema describes.
    pub(super) fn of(schema: &Value) -> Self {
        match kind_name(schema) {
            "string" if schema["minLength"].as_u64().is_some_and(|it| it > 0) => Self::Name,
            "string" => Self::Text,
            "integer" => Self::Whole,
            "number" => Self::Number,
            "boolean" => Self::Flag,
            "array" => Self::List(Box::new(Self::of(&schema["items"]))),
            _ => match schema["properties"].as_object() {
                None => Self::Map,
                Some(properties) => {
                    let required = schema["required"].as_array();
                    let is_required = |name: &str| {
                        required.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)))
                    };
                    let fields = properties.iter().map(|(name, schema)| {
                        let (schema, is_nullable) = without_null(schema);
                        Field {
                            kind: Self::of(schema),
                            need: match (is_required(name), is_nullable) {
                                (true, _) => Need::Required,
                                (false, true) => Need::Optional,
                                (false, false) => Need::Default,
                            },
                            name: name.clone(),
                        }
                    });
                    Self::Record(fields.collect())
                }
            },
        }
    }

    /// Whether it can be given in a query, which has only texts.
    pub(super) fn fits_a_query(&self) -> bool {
        matches!(
            self,
            Self::Text | Self::Name | Self::Whole | Self::Number | Self::Flag
        )
    }
}

/// The first type of a schema besides null.
fn kind_name(schema: &Value) -> &str {
    let named = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|it| *it != "null"),
        kind => Some(kind),
    };
    named.and_then(Value::as_str).unwrap_or_default()
}

/// The schema without null, and whether null is allowed.
fn without_null(schema: &Value) -> (&Value, bool) {
    if let Some(choices) = schema["anyOf"].as_array() {
        let is_null = |it: &&Value| it["type"] == "null";
        let other = choices.iter().find(|it| !is_null(it));
        return (
            other.unwrap_or(schema),
            choices.iter().any(|it| is_null(&it)),
        );
    }
    let kinds = schema["type"].as_array();
    (
        schema,
        kinds.is_some_and(|it| it.iter().any(|it| it == "null")),
    )
}

/// Everything that is wrong with a request, in the format of the response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Problems(pub(super) Vec<Value>);

impl Problems {
    fn add(&mut self, what: &str, place: &[Value], message: &str, input: Value) {
        self.0.push(json!({
            "type": what, "loc": place, "msg": message, "input": input,
            "url": format!("{MANUAL}{what}"),
        }));
    }

    /// A missing body.
    pub(super) fn no_body() -> Self {
        let mut problems = Self::default();
        problems.add("missing", &["body".into()], "Field required", Value::Null);
        problems
    }

    /// A body that is not JSON: at which byte, and why.
    pub(super) fn not_json(at: usize, message: &str) -> Self {
        Self(vec![json!({
            "type": "json_invalid", "loc": ["body", at], "msg": "JSON decode error", "input": {},
            "ctx": { "error": message },
        })])
    }
}

/// Parses the value of a body or of a part of it.
pub(super) fn read(kind: &Kind, value: Value, place: &[Value]) -> Result<Value, Problems> {
    let mut problems = Problems::default();
    let read = read_into(kind, value, place, &mut problems);
    match read {
        Some(value) if problems.0.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// The parameters of a query; if one occurs twice, the last counts.
pub(super) fn read_query(
    fields: &[Field],
    query: Vec<(String, String)>,
) -> Result<Value, Problems> {
    let given: Map<String, Value> = query
        .into_iter()
        .map(|(name, text)| (name, Value::String(text)))
        .collect();
    let mut problems = Problems::default();
    let read = record(fields, given, &["query".into()], None, &mut problems);
    if problems.0.is_empty() {
        Ok(read)
    } else {
        Err(problems)
    }
}

/// `missing_input` is the value in which a field is missing.
fn record(
    fields: &[Field],
    mut given: Map<String, Value>,
    place: &[Value],
    missing_input: Option<&Value>,
    problems: &mut Problems,
) -> Value {
    let mut read = Map::new();
    for field in fields {
        let mut place = place.to_vec();
        place.push(field.name.as_str().into());
        match (given.remove(&field.name), field.need) {
            (None, Need::Required) => {
                let input = missing_input.cloned().unwrap_or_default();
                problems.add("missing", &place, "Field required", input);
            }
            (None, _) | (Some(Value::Null), Need::Optional) => (),
            (Some(value), _) => {
                let value = read_into(&field.kind, value, &place, problems);
                read.extend(value.map(|it| (field.name.clone(), it)));
            }
        }
    }
    Value::Object(read)
}

fn read_into(kind: &Kind, value: Value, place: &[Value], problems: &mut Problems) -> Option<Value> {
    match (kind, value) {
        (Kind::Text, value @ Value::String(_)) | (Kind::Map, value @ Value::Object(_)) => {
            Some(value)
        }
        (Kind::Name, Value::String(text)) if text.is_empty() => {
            let message = "String should have at least 1 character";
            problems.add("string_too_short", place, message, text.into());
            if let Some(last) = problems.0.last_mut() {
                last["ctx"] = json!({ "min_length": 1 });
            }
            None
        }
        (Kind::Name, value @ Value::String(_)) => Some(value),
        (Kind::Text | Kind::Name, other) => {
            problems.add(
                "string_type",
                place,
                "Input should be a valid string",
                other,
            );
            None
        }
        (Kind::Map, other) => {
            problems.add(
                "dict_type",
                place,
                "Input should be a valid dictionary",
                other,
            );
            None
        }
        (Kind::Whole, value) => taken(whole(&value), value, place, problems),
        (Kind::Number, value) => taken(number(&value), value, place, problems),
        (Kind::Flag, value) => taken(flag(&value), value, place, problems),
        (Kind::List(kind), Value::Array(values)) => {
            let mut read = Vec::new();
            for (n, value) in values.into_iter().enumerate() {
                let mut place = place.to_vec();
                place.push(n.into());
                read.extend(read_into(kind, value, &place, problems));
            }
            Some(Value::Array(read))
        }
        (Kind::List(_), other) => {
            problems.add("list_type", place, "Input should be a valid list", other);
            None
        }
        (Kind::Record(fields), Value::Object(given)) => {
            let whole = Value::Object(given.clone());
            Some(record(fields, given, place, Some(&whole), problems))
        }
        (Kind::Record(_), other) => {
            let message = "Input should be a valid dictionary or object to extract fields from";
            problems.add("model_attributes_type", place, message, other);
            None
        }
    }
}

/// A problem by its type and its message.
type Problem = (&'static str, &'static str);

fn taken(
    read: Result<Value, Problem>,
    value: Value,
    place: &[Value],
    problems: &mut Problems,
) -> Option<Value> {
    read.map_err(|(what, message)| problems.add(what, place, message, value))
        .ok()
}

fn whole(value: &Value) -> Result<Value, Problem> {
    // Larger numbers are clamped: whoever uses them has other bounds.
    let bounded = |it: f64| json!(it as i64);
    match value {
        Value::Bool(it) => Ok(json!(i64::from(*it))),
        Value::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(it), _) => Ok(json!(it)),
            (None, Some(it)) if it.fract() == 0.0 => Ok(bounded(it)),
            _ => Err((
                "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
            )),
        },
        Value::String(text) => {
            let text = text.trim();
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let is_whole = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
            let read = text.parse::<i64>().map(|it| json!(it));
            match (read, text.parse::<f64>()) {
                (Ok(read), _) => Ok(read),
                (Err(_), Ok(read)) if is_whole => Ok(bounded(read)),
                _ => Err((
                    "int_parsing",
                    "Input should be a valid integer, unable to parse string as an integer",
                )),
            }
        }
        _ => Err(("int_type", "Input should be a valid integer")),
    }
}

fn number(value: &Value) -> Result<Value, Problem> {
    match value {
        Value::Bool(it) => Ok(json!(f64::from(u8::from(*it)))),
        Value::Number(it) => Ok(json!(it.as_f64())),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(it) if it.is_finite() => Ok(json!(it)),
            _ => Err((
                "float_parsing",
                "Input should be a valid number, unable to parse string as a number",
            )),
        },
        _ => Err(("float_type", "Input should be a valid number")),
    }
}

fn flag(value: &Value) -> Result<Value, Problem> {
    let unreadable = (
        "bool_parsing",
        "Input should be a valid boolean, unable to interpret input",
    );
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Number(it) => match it.as_f64() {
            Some(0.0) => Ok(false.into()),
            Some(1.0) => Ok(true.into()),
            _ => Err(unreadable),
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true.into()),
            "0" | "false" | "f" | "no" | "n" | "off" => Ok(false.into()),
            _ => Err(unreadable),
        },
        _ => Err(("bool_type", "Input should be a valid boolean")),
    }
}

/// The same as a JSON Schema.
pub(super) fn schema(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "minLength": 1 }),
        Kind::Whole => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Map => json!({ "type": "object" }),
        Kind::List(kind) => json!({ "type": "array", "items": schema(kind) }),
        Kind::Record(fields) => {
            let properties: Map<String, Value> = fields
                .iter()
                .map(|it| (it.name.clone(), schema(&it.kind)))
                .collect();
            let required = fields.iter().filter(|it| it.need == Need::Required);
            let required: Vec<&str> = required.map(|it| it.name.as_str()).collect();
            json!({ "type": "object", "properties": properties, "required": required })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with a field of every kind and need.
    fn fields() -> Kind {
        let text = json!({ "type": "string" });
        Kind::of(&json!({
            "type": "object",
            "properties": {
                "label": { "type": "string", "minLength": 1 },
                "hint": { "type": ["string", "null"] },
                "limit": { "type": "integer" },
                "sure": { "type": "number" },
                "all": { "type": "boolean" },
                "tags": { "type": "array", "items": text },
                "context": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": { "people": { "type": "array", "items": text } },
                            "required": ["people"],
                        },
                        { "type": "null" },
                    ],
                },
                "more": { "type": "object", "additionalProperties": true },
            },
            "required": ["label"],
        }))
    }

    fn check(body: Value, expected: Result<Value, &[(&str, Value)]>) {
        let read = read(&fields(), body.clone(), &["body".into()]);
        match (read, expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{body}"),
            (Err(problems), Err(expected)) => {
                let found: Vec<(&str, Value)> = problems
                    .0
                    .iter()
                    .map(|it| (it["type"].as_str().unwrap(), it["loc"].clone()))
                    .collect();
                assert_eq!(found, expected, "{body}");
            }
            (read, expected) => panic!("{body}: {read:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_body_becomes_what_its_fields_say() {
        check(json!({ "label": "a" }), Ok(json!({ "label": "a" })));
        check(
            json!({
                "label": "a", "hint": null, "limit": "7", "sure": "0.5", "all": "off",
                "tags": ["x"], "context": { "people": [] }, "more": { "b": [1] }, "other": 1,
            }),
            Ok(json!({
                "label": "a", "limit": 7, "sure": 0.5, "all": false, "tags": ["x"],
                "context": { "people": [] }, "more": { "b": [1] },
            })),
        );
        check(
            json!({ "label": "a", "limit": 7.0, "all": 1, "sure": true }),
            Ok(json!({ "label": "a", "limit": 7, "all": true, "sure": 1.0 })),
        );
        check(
            json!({ "label": "a", "limit": 1e300 }),
            Ok(json!({ "label": "a", "limit": i64::MAX })),
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_place() {
        let at = |name: &str| json!(["body", name]);
        check(
            json!([]),
            Err(&[("model_attributes_type", json!(["body"]))]),
        );
        check(json!({}), Err(&[("missing", at("label"))]));
        check(
            json!({ "label": "", "hint": 1, "limit": null, "sure": "x", "all": "perhaps" }),
            Err(&[
                ("string_too_short", at("label")),
                ("string_type", at("hint")),
                ("int_type", at("limit")),
                ("float_parsing", at("sure")),
                ("bool_parsing", at("all")),
            ]),
        );
        check(
            json!({ "label": "a", "limit": 1.5, "tags": [1], "context": {}, "more": [] }),
            Err(&[
                ("int_from_float", at("limit")),
                ("string_type", json!(["body", "tags", 0])),
                ("missing", json!(["body", "context", "people"])),
                ("dict_type", at("more")),
            ]),
        );
    }

    #[test]
    fn of_a_parameter_that_stands_twice_the_last_counts() {
        let schema = json!({
            "type": "object",
            "properties": { "query": { "type": "string" }, "limit": { "type": "integer" } },
            "required": ["query"],
        });
        let Kind::Record(fields) = Kind::of(&schema) else {
            panic!("a record");
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let query = vec![pair("query", "a"), pair("limit", "1"), pair("limit", "2")];
        assert_eq!(
            read_query(&fields, query),
            Ok(json!({ "query": "a", "limit": 2 }))
        );
        let problems = read_query(&fields, vec![pair("limit", "abc")]).unwrap_err();
        assert_eq!(problems.0[0]["loc"], json!(["query", "query"]));
        assert_eq!(problems.0[0]["input"], Value::Null);
        assert_eq!(problems.0[1]["type"], "int_parsing");
    }
}
