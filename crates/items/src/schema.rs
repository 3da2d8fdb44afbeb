//! The part of JSON Schema that items use.
//!
//! A keyword that is not implemented is refused, never skipped: a schema that seems to forbid
//! something and does not is worse than none. `format` is only an annotation, as in the standard.

use crate::Faults;
use crate::kind::shown;
use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Keywords that describe a schema and do not restrict values.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];
const TYPES: &[&str] = &[
    "null", "boolean", "integer", "number", "string", "array", "object",
];
/// More would not help the reader.
const ISSUES_MAX: usize = 50;
const DEPTH_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A place where a value does not match, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The path in the value, such as `headers.accept` or `args[2]`; empty for the whole.
    pub path: String,
    /// Why it does not match.
    pub message: String,
}

impl std::fmt::Display for Issue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Checks that every keyword of a schema is implemented and well formed.
pub fn check(schema: &Value) -> Result<(), Faults> {
    let mut faults = Faults::default();
    check_at(&mut faults, schema, "schema", 0);
    faults.or(())
}

/// Checks a value against a schema. No value matches a schema that [`check`] refuses.
pub fn validate(schema: &Value, value: &Value) -> Result<(), Vec<Issue>> {
    if let Err(faults) = check(schema) {
        let issue = |fault: crate::Fault| Issue {
            path: String::new(),
            message: format!("the schema cannot be used: {fault}"),
        };
        return Err(faults.0.into_iter().map(issue).collect());
    }
    let mut issues = Vec::new();
    look(&mut issues, schema, value, "");
    issues.truncate(ISSUES_MAX);
    if issues.is_empty() {
        Ok(())
    } else {
        Err(issues)
    }
}

fn check_at(faults: &mut Faults, schema: &Value, at: &str, depth: usize) {
    if depth > DEPTH_MAX {
        faults.add(at, "is nested too deep", "make it flatter");
        return;
    }
    let keywords = match schema {
        Value::Bool(_) => return,
        Value::Object(keywords) => keywords,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            faults.add(at, "is not a JSON Schema", "write an object with `type`");
            return;
        }
    };
    for (name, value) in keywords {
        let at = format!("{at}.{name}");
        check_keyword(faults, name, value, &at, depth);
    }
}

fn check_keyword(faults: &mut Faults, name: &str, value: &Value, at: &str, depth: usize) {
    let is_good = match name {
        "type" => is_type(value),
        "enum" => value.is_array(),
        "const" => true,
        "required" => texts(value).is_some(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|it| it > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "uniqueItems" => value.is_boolean(),
        "pattern" => value.as_str().is_some_and(|it| pattern(it).is_some()),
        "items" | "additionalProperties" | "not" => {
            check_at(faults, value, at, depth + 1);
            true
        }
        "properties" => match value {
            Value::Object(properties) => {
                for (key, schema) in properties {
                    check_at(faults, schema, &format!("{at}.{key}"), depth + 1);
                }
                true
            }
            _ => false,
        },
        "oneOf" | "anyOf" | "allOf" => match value {
            Value::Array(schemas) if !schemas.is_empty() => {
                for (i, schema) in schemas.iter().enumerate() {
                    check_at(faults, schema, &format!("{at}[{i}]"), depth + 1);
                }
                true
            }
            _ => false,
        },
        _ if ANNOTATIONS.contains(&name) => true,
        _ => {
            let message = format!("`{}` is not a supported keyword", shown(name));
            let remedy = "use type, properties, required, additionalProperties, items, enum, const, \
                          pattern, minimum, maximum, lengths, oneOf, anyOf, allOf or not";
            faults.add(at, message, remedy);
            true
        }
    };
    if !is_good {
        let message = format!(
            "`{}` is not a valid value of this keyword",
            shown(&value.to_string())
        );
        faults.add(
            at,
            message,
            "see the JSON Schema reference for this keyword",
        );
    }
}

fn is_type(value: &Value) -> bool {
    match value {
        Value::String(name) => TYPES.contains(&name.as_str()),
        Value::Array(names) => {
            !names.is_empty()
                && names
                    .iter()
                    .all(|name| name.as_str().is_some_and(|it| TYPES.contains(&it)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn pattern(text: &str) -> Option<regex::Regex> {
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .ok()
}

fn look(issues: &mut Vec<Issue>, schema: &Value, value: &Value, path: &str) {
    if issues.len() >= ISSUES_MAX {
        return;
    }
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(true) => return,
        _ => return issue(issues, path, "is not allowed"),
    };
    if let Some(types) = keywords.get("type")
        && !has_type(types, value)
    {
        let message = format!("`{}` is not of type {}", brief(value), words(types));
        return issue(issues, path, &message);
    }
    look_at_choices(issues, keywords, value, path);
    match value {
        Value::Number(_) => look_at_number(issues, keywords, value, path),
        Value::String(text) => look_at_text(issues, keywords, text, path),
        Value::Array(items) => look_at_items(issues, keywords, items, path),
        Value::Object(fields) => look_at_fields(issues, keywords, fields, path),
        Value::Null | Value::Bool(_) => {}
    }
}

fn issue(issues: &mut Vec<Issue>, path: &str, message: &str) {
    issues.push(Issue {
        path: path.to_owned(),
        message: message.to_owned(),
    });
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    }
}

fn words(types: &Value) -> String {
    match types {
        Value::String(name) => name.clone(),
        other => texts(other).unwrap_or_default().join(" or "),
    }
}

fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        // 1.0 is an integer to JSON Schema.
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match types {
        Value::String(name) => is(name),
        other => texts(other).unwrap_or_default().into_iter().any(is),
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

/// Equal as JSON Schema means it: 1 and 1.0 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let found = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(found)
        }
        _ => a == b,
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    let mut issues = Vec::new();
    look(&mut issues, schema, value, "");
    issues.is_empty()
}

fn look_at_choices(
    issues: &mut Vec<Issue>,
    keywords: &Map<String, Value>,
    value: &Value,
    path: &str,
) {
    let list = |name: &str| keywords.get(name).and_then(Value::as_array);
    if let Some(choices) = list("enum")
        && !choices.iter().any(|it| same(it, value))
    {
        let choices: Vec<String> = choices.iter().map(brief).collect();
        let message = format!("`{}` is not one of {}", brief(value), choices.join(", "));
        issue(issues, path, &message);
    }
    if let Some(only) = keywords.get("const")
        && !same(only, value)
    {
        let message = format!("`{}` is not `{}`", brief(value), brief(only));
        issue(issues, path, &message);
    }
    for schema in list("allOf").into_iter().flatten() {
        look(issues, schema, value, path);
    }
    if let Some(schemas) = list("anyOf")
        && !schemas.iter().any(|it| fits(it, value))
    {
        issue(issues, path, "matches none of the schemas in `anyOf`");
    }
    if let Some(schemas) = list("oneOf") {
        let n_fitting = schemas.iter().filter(|it| fits(it, value)).count();
        if n_fitting != 1 {
            let message = format!("matches {n_fitting} of the schemas in `oneOf`, not exactly one");
            issue(issues, path, &message);
        }
    }
    if let Some(schema) = keywords.get("not")
        && fits(schema, value)
    {
        issue(issues, path, "matches the schema in `not`");
    }
}

fn look_at_number(
    issues: &mut Vec<Issue>,
    keywords: &Map<String, Value>,
    value: &Value,
    path: &str,
) {
    let Some(number) = value.as_f64() else { return };
    let limit = |name: &str| keywords.get(name).and_then(Value::as_f64);
    for (name, is_out, words) in [
        (
            "minimum",
            (|n, l| n < l) as fn(f64, f64) -> bool,
            "less than",
        ),
        ("maximum", |n, l| n > l, "more than"),
        ("exclusiveMinimum", |n, l| n <= l, "not more than"),
        ("exclusiveMaximum", |n, l| n >= l, "not less than"),
        ("multipleOf", |n, l| !is_whole(n / l), "not a multiple of"),
    ] {
        if let Some(limit) = limit(name).filter(|limit| is_out(number, *limit)) {
            issue(issues, path, &format!("`{value}` is {words} {limit}"));
        }
    }
}

/// Adds an issue if a count is outside its two limits.
fn look_at_count(
    issues: &mut Vec<Issue>,
    keywords: &Map<String, Value>,
    (min, max): (&str, &str),
    (count, unit): (usize, &str),
    path: &str,
) {
    let limit = |name: &str| keywords.get(name).and_then(Value::as_u64);
    let count = count as u64;
    if let Some(min) = limit(min).filter(|min| count < *min) {
        issue(
            issues,
            path,
            &format!("has {count} {unit}, fewer than {min}"),
        );
    }
    if let Some(max) = limit(max).filter(|max| count > *max) {
        issue(
            issues,
            path,
            &format!("has {count} {unit}, more than {max}"),
        );
    }
}

fn look_at_text(issues: &mut Vec<Issue>, keywords: &Map<String, Value>, text: &str, path: &str) {
    let count = (text.chars().count(), "characters");
    look_at_count(issues, keywords, ("minLength", "maxLength"), count, path);
    let wanted = keywords.get("pattern").and_then(Value::as_str);
    if let Some(wanted) = wanted
        && !pattern(wanted).is_some_and(|it| it.is_match(text))
    {
        let message = format!("`{}` does not match `{wanted}`", shown(text));
        issue(issues, path, &message);
    }
}

fn look_at_items(
    issues: &mut Vec<Issue>,
    keywords: &Map<String, Value>,
    items: &[Value],
    path: &str,
) {
    let count = (items.len(), "items");
    look_at_count(issues, keywords, ("minItems", "maxItems"), count, path);
    if let Some(schema) = keywords.get("items") {
        for (i, item) in items.iter().enumerate() {
            look(issues, schema, item, &format!("{path}[{i}]"));
        }
    }
    let must_differ = keywords.get("uniqueItems") == Some(&Value::Bool(true));
    let occurs_before = |(i, item): (usize, &Value)| items[..i].iter().any(|it| same(it, item));
    if must_differ && items.iter().enumerate().any(occurs_before) {
        issue(issues, path, "contains the same item twice");
    }
}

fn look_at_fields(
    issues: &mut Vec<Issue>,
    keywords: &Map<String, Value>,
    fields: &Map<String, Value>,
    path: &str,
) {
    let below = |key: &str| match path {
        "" => shown(key),
        path => format!("{path}.{}", shown(key)),
    };
    let count = (fields.len(), "fields");
    look_at_count(
        issues,
        keywords,
        ("minProperties", "maxProperties"),
        count,
        path,
    );
    let required = keywords.get("required").and_then(texts).unwrap_or_default();
    for key in required {
        if !fields.contains_key(key) {
            issue(issues, &below(key), "is missing");
        }
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    for (key, value) in fields {
        if let Some(schema) = properties.and_then(|it| it.get(key)) {
            look(issues, schema, value, &below(key));
        } else if let Some(schema) = keywords.get("additionalProperties") {
            if schema == &Value::Bool(false) {
                issue(issues, &below(key), "is not a known field");
            } else {
                look(issues, schema, value, &below(key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(schema: &Value, value: &Value) -> Vec<String> {
        let issues = validate(schema, value).err().unwrap_or_default();
        issues.iter().map(Issue::to_string).collect()
    }

    #[test]
    fn each_keyword_admits_one_value_and_refuses_another() {
        for (schema, good, bad) in [
            (json!({"type": "string"}), json!("a"), json!(1)),
            (json!({"type": "integer"}), json!(1.0), json!(1.5)),
            (json!({"type": "number"}), json!(1.5), json!("1.5")),
            (
                json!({"type": ["string", "null"]}),
                json!(null),
                json!(true),
            ),
            (json!({"type": "boolean"}), json!(true), json!("true")),
            (json!({"enum": ["a", 1]}), json!(1.0), json!("b")),
            (json!({"const": {"a": 1}}), json!({"a": 1}), json!({"a": 2})),
            (json!({"minimum": 1, "maximum": 2}), json!(2), json!(2.5)),
            (json!({"minimum": 1}), json!(1), json!(0)),
            (json!({"exclusiveMinimum": 1}), json!(1.1), json!(1)),
            (json!({"exclusiveMaximum": 1}), json!(0), json!(1)),
            (json!({"multipleOf": 5}), json!(10), json!(11)),
            (json!({"minLength": 2}), json!("éé"), json!("é")),
            (json!({"maxLength": 2}), json!("éé"), json!("ééé")),
            (json!({"pattern": "^[a-z]+$"}), json!("ab"), json!("aB")),
            (
                json!({"pattern": "(?i)^\\p{L}+é$"}),
                json!("LÀÉ"),
                json!("l1é"),
            ),
            (
                json!({"items": {"type": "string"}}),
                json!(["a"]),
                json!(["a", 1]),
            ),
            (json!({"minItems": 1}), json!([0]), json!([])),
            (json!({"maxItems": 1}), json!([0]), json!([0, 1])),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1.0])),
            (
                json!({"required": ["a"]}),
                json!({"a": null}),
                json!({"b": 1}),
            ),
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!({"b": 1}),
                json!({"a": 1}),
            ),
            (
                json!({"properties": {"a": true}, "additionalProperties": false}),
                json!({"a": 1}),
                json!({"b": 1}),
            ),
            (
                json!({"additionalProperties": {"type": "string"}}),
                json!({"a": ""}),
                json!({"a": 1}),
            ),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
            (
                json!({"anyOf": [{"type": "null"}, {"minimum": 3}]}),
                json!(3),
                json!(1),
            ),
            (
                json!({"oneOf": [{"minimum": 3}, {"minimum": 5}]}),
                json!(4),
                json!(6),
            ),
            (
                json!({"allOf": [{"minimum": 3}, {"maximum": 5}]}),
                json!(4),
                json!(6),
            ),
            (json!({"not": {"type": "null"}}), json!(1), json!(null)),
            (json!(true), json!(1), json!(null)),
        ] {
            assert_eq!(problems(&schema, &good), Vec::<String>::new(), "{schema}");
            if schema != json!(true) {
                assert_eq!(problems(&schema, &bad).len(), 1, "{schema}: {bad}");
            }
        }
        assert_eq!(problems(&json!(false), &json!(1)).len(), 1);
    }

    #[test]
    fn a_problem_names_its_place_and_value() {
        let schema = json!({
            "type": "object",
            "properties": {
                "args": {"type": "array", "items": {"type": "string"}},
                "timeout": {"type": "number", "minimum": 0},
            },
            "required": ["command"],
        });
        let value = json!({"args": ["a", 7], "timeout": -1});
        assert_eq!(
            problems(&schema, &value),
            [
                "command: is missing",
                "args[1]: `7` is not of type string",
                "timeout: `-1` is less than 0"
            ]
        );
    }

    #[test]
    fn what_is_not_checked_is_refused_loudly() {
        for schema in [
            json!({"$ref": "#/definitions/a"}),
            json!({"properties": {"a": {"patternProperties": {}}}}),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"pattern": "(?=lookahead)"}),
            json!({"pattern": "(a{1000}){1000}"}),
            json!({"minLength": -1}),
            json!({"required": "a"}),
            json!({"anyOf": []}),
            json!({"items": [{}]}),
            json!("string"),
        ] {
            assert!(check(&schema).is_err(), "{schema}");
            assert!(validate(&schema, &json!({})).is_err(), "{schema}");
        }
    }
}
