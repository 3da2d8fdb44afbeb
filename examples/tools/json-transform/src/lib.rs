//! Reshapes JSON: picks values by their path, renames keys, flattens what is nested.
//!
//! The steps are taken in that order, each only if it was asked for. A path is keys and indexes joined
//! by dots, such as `user.emails.0`.

use kami_guest::{kami_tool, parse_input, to_output};
use serde::Deserialize;
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

kami_tool! {
    name: "dev.example.json-transform",
    version: env!("CARGO_PKG_VERSION"),
    description: "Picks values out of JSON by path, renames keys and flattens what is nested",
    handler: transform,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    data: Map<String, Value>,
    #[serde(default)]
    pick: BTreeMap<String, String>,
    #[serde(default)]
    rename: BTreeMap<String, String>,
    #[serde(default)]
    flatten: bool,
}

fn transform(input: &str) -> Result<String, String> {
    let input: Input = parse_input(input)?;
    let mut data = input.data;
    if !input.pick.is_empty() {
        data = pick(data, &input.pick)?;
    }
    if !input.rename.is_empty() {
        data = rename(data, &input.rename)?;
    }
    if input.flatten {
        data = flatten(data)?;
    }
    to_output(&data)
}

/// The values at the paths, under new names.
fn pick(
    data: Map<String, Value>,
    paths: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, String> {
    let data = Value::Object(data);
    let picked = paths.iter().map(|(name, path)| {
        let value = at(&data, path).map_err(|why| format!("`pick.{name}`: {why}"))?;
        Ok((name.clone(), value.clone()))
    });
    picked.collect()
}

fn at<'a>(data: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut here = data;
    for (depth, step) in path.split('.').enumerate() {
        let next = match here {
            Value::Object(object) => object.get(step),
            Value::Array(array) => step.parse().ok().and_then(|idx: usize| array.get(idx)),
            _ => None,
        };
        here = next.ok_or_else(|| {
            let before: Vec<&str> = path.split('.').take(depth).collect();
            let place = if before.is_empty() {
                "data".to_owned()
            } else {
                format!("`{}`", before.join("."))
            };
            format!("no `{step}` in {place}, which {}", contents(here))
        })?;
    }
    Ok(here)
}

/// What a value has, for whoever asked for something else.
fn contents(value: &Value) -> String {
    match value {
        Value::Object(object) if object.is_empty() => "is empty".to_owned(),
        Value::Object(object) => {
            let keys: Vec<String> = object
                .keys()
                .take(10)
                .map(|key| format!("`{key}`"))
                .collect();
            let more = if object.len() > keys.len() {
                " and more"
            } else {
                ""
            };
            format!("has {}{more}", keys.join(", "))
        }
        Value::Array(array) => format!("is a list of {}", array.len()),
        Value::String(_) => "is a text".to_owned(),
        Value::Number(_) => "is a number".to_owned(),
        Value::Bool(_) => "is true or false".to_owned(),
        Value::Null => "is null".to_owned(),
    }
}

/// The same values with other keys, all renamed at once: two keys can change places.
fn rename(
    data: Map<String, Value>,
    names: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, String> {
    if let Some(name) = names.keys().find(|name| !data.contains_key(*name)) {
        let contents = contents(&Value::Object(data));
        return Err(format!(
            "`rename`: no key `{name}` in the data, which {contents}"
        ));
    }
    let mut renamed = Map::new();
    for (key, value) in data {
        let name = names.get(&key).unwrap_or(&key);
        insert(&mut renamed, name.clone(), value).map_err(|why| format!("`rename`: {why}"))?;
    }
    Ok(renamed)
}

/// One level, whose keys are paths. What is empty stays as it is, so that nothing is lost.
fn flatten(data: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut flat = Map::new();
    // A list of what is to be done and not recursion: deep input ends in no stack.
    let mut open: Vec<(String, Value)> = data.into_iter().rev().collect();
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let children = object.into_iter().rev();
                open.extend(children.map(|(key, value)| (format!("{path}.{key}"), value)));
            }
            Value::Array(array) if !array.is_empty() => {
                let children = array.into_iter().enumerate().rev();
                open.extend(children.map(|(idx, value)| (format!("{path}.{idx}"), value)));
            }
            leaf => insert(&mut flat, path, leaf).map_err(|why| format!("`flatten`: {why}"))?,
        }
    }
    Ok(flat)
}

fn insert(object: &mut Map<String, Value>, key: String, value: Value) -> Result<(), String> {
    match object.entry(key) {
        Entry::Occupied(taken) => Err(format!("two values would be called `{}`", taken.key())),
        Entry::Vacant(free) => {
            free.insert(value);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: Result<&str, &str>) {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(transform(input), expected, "{input}");
    }

    #[test]
    fn values_are_picked_by_path() {
        check(
            r#"{"data": {"user": {"emails": ["a@x", "b@x"]}, "n": 1},
                "pick": {"mail": "user.emails.1", "all": "user", "n": "n"}}"#,
            Ok(r#"{"all":{"emails":["a@x","b@x"]},"mail":"b@x","n":1}"#),
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_is_named_with_what_is_there() {
        for (path, why) in [
            ("x", "no `x` in data, which has `a`, `e`"),
            ("a.c", "no `c` in `a`, which has `b`"),
            ("a.b.2", "no `2` in `a.b`, which is a list of 2"),
            ("a.b.-1", "no `-1` in `a.b`, which is a list of 2"),
            ("a.b.0.c", "no `c` in `a.b.0`, which is a number"),
            ("e.x", "no `x` in `e`, which is empty"),
            ("", "no `` in data, which has `a`, `e`"),
        ] {
            check(
                &format!(
                    r#"{{"data": {{"a": {{"b": [1, 2]}}, "e": {{}}}}, "pick": {{"it": "{path}"}}}}"#
                ),
                Err(&format!("`pick.it`: {why}")),
            );
        }
    }

    #[test]
    fn keys_are_renamed_all_at_once() {
        check(
            r#"{"data": {"a": 1, "b": 2}, "rename": {"a": "b", "b": "a"}}"#,
            Ok(r#"{"a":2,"b":1}"#),
        );
        check(
            r#"{"data": {"a": 1, "b": 2}, "rename": {"a": "b"}}"#,
            Err("`rename`: two values would be called `b`"),
        );
        check(
            r#"{"data": {"a": 1}, "rename": {"c": "d"}}"#,
            Err("`rename`: no key `c` in the data, which has `a`"),
        );
    }

    #[test]
    fn what_is_nested_becomes_one_level_and_nothing_is_lost() {
        check(
            r#"{"data": {"a": {"b": [1, {"c": null}], "d": {}}, "e": []}, "flatten": true}"#,
            Ok(r#"{"a.b.0":1,"a.b.1.c":null,"a.d":{},"e":[]}"#),
        );
        check(
            r#"{"data": {"a": {"b": 1}, "a.b": 2}, "flatten": true}"#,
            Err("`flatten`: two values would be called `a.b`"),
        );
    }

    #[test]
    fn the_steps_are_taken_in_order() {
        check(
            r#"{"data": {"a": {"b": [7]}}, "pick": {"x": "a"}, "rename": {"x": "y"}, "flatten": true}"#,
            Ok(r#"{"y.b.0":7}"#),
        );
    }

    #[test]
    fn a_misspelt_step_is_refused_and_not_left_out() {
        let refused = transform(r#"{"data": {}, "flaten": true}"#).unwrap_err();
        assert!(refused.contains("unknown field `flaten`"), "{refused}");
    }
}
