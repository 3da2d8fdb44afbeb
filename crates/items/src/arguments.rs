//! Turns parameters into the arguments of a process.
//!
//! Every value is one argument, whatever it contains: nothing is split, quoted or passed through a
//! shell. A value that begins with `-` is joined to its key, so that no program takes it for an
//! option.

use crate::kind::shown;
use kenning_core::{Error, Result};
use serde_json::{Map, Value};

/// At most this many bytes of one value: the operating system does not pass more.
const VALUE_BYTES_MAX: usize = 120 * 1024;
const TOTAL_BYTES_MAX: usize = 1024 * 1024;

/// The arguments of these parameters, in their order.
pub fn of(parameters: &Map<String, Value>) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for (key, value) in parameters {
        check_key(key)?;
        let flag = if key == "_project_path" {
            "--project-path".to_owned()
        } else {
            format!("--{key}")
        };
        let text = match value {
            Value::Null | Value::Bool(false) => continue,
            Value::Bool(true) => {
                out.push(flag);
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        check_value(key, &text)?;
        if text.starts_with('-') {
            out.push(format!("{flag}={text}"));
        } else {
            out.extend([flag, text]);
        }
    }
    let n_bytes: usize = out.iter().map(|it| it.len() + 1).sum();
    if n_bytes > TOTAL_BYTES_MAX {
        return Err(Error::too_large(format!(
            "parameters: {n_bytes} bytes are more than {TOTAL_BYTES_MAX}"
        ))
        .hint("give large values in a file"));
    }
    Ok(out)
}

fn check_key(key: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_good = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(good);
    if is_good || key == "_project_path" {
        return Ok(());
    }
    Err(
        Error::invalid(format!("parameters: `{}` is not a valid name", shown(key)))
            .hint("use letters, digits, `_` and `-`, beginning with a letter"),
    )
}

fn check_value(key: &str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(format!(
            "parameters.{key}: `{}` contains a NUL byte",
            shown(text)
        ))
        .hint("remove it: arguments of a process cannot contain one"));
    }
    if text.len() > VALUE_BYTES_MAX {
        return Err(Error::too_large(format!(
            "parameters.{key}: {} bytes are more than {VALUE_BYTES_MAX}",
            text.len()
        ))
        .hint("give large values in a file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(parameters: Value) -> Result<Vec<String>> {
        of(parameters.as_object().unwrap())
    }

    #[test]
    fn each_kind_of_value_has_its_form() {
        for (parameters, expected) in [
            (json!({}), vec![]),
            (
                json!({"a": "b c; rm -rf / $(x) `y` \"z\""}),
                vec!["--a", "b c; rm -rf / $(x) `y` \"z\""],
            ),
            (json!({"a": ""}), vec!["--a", ""]),
            (json!({"n": 3, "f": 1.5}), vec!["--n", "3", "--f", "1.5"]),
            (json!({"v": true, "w": false, "x": null}), vec!["--v"]),
            (
                json!({"o": {"b": [1, "é"]}}),
                vec!["--o", "{\"b\":[1,\"é\"]}"],
            ),
            (json!({"l": [1, 2]}), vec!["--l", "[1,2]"]),
            (json!({"x": "--evil"}), vec!["--x=--evil"]),
            (json!({"x": "-"}), vec!["--x=-"]),
            (json!({"n": -5}), vec!["--n=-5"]),
            (json!({"a_b-c": "\n"}), vec!["--a_b-c", "\n"]),
            (json!({"_project_path": "p"}), vec!["--project-path", "p"]),
            (json!({"b": 1, "a": 2}), vec!["--b", "1", "--a", "2"]),
        ] {
            assert_eq!(
                arguments(parameters.clone()).unwrap(),
                expected,
                "{parameters}"
            );
        }
    }

    #[test]
    fn a_key_is_a_plain_word_and_a_value_can_be_given() {
        for bad in [
            "", "-x", "--x", "_x", "1x", "a b", "a=b", "a;b", "a\nb", "a\0", "é", "a/b", "$a",
            "a.b",
        ] {
            let mut parameters = Map::new();
            parameters.insert(bad.to_owned(), json!("v"));
            assert!(of(&parameters).is_err(), "{bad:?}");
            // Not even if it would be dropped.
            parameters.insert(bad.to_owned(), Value::Null);
            assert!(of(&parameters).is_err(), "{bad:?}");
        }
        assert!(arguments(json!({"a": "x\0y"})).is_err());
        assert!(arguments(json!({"a": "x".repeat(VALUE_BYTES_MAX + 1)})).is_err());
        let many: Map<String, Value> = (0..20)
            .map(|i| (format!("k{i}"), json!("x".repeat(VALUE_BYTES_MAX))))
            .collect();
        assert!(of(&many).is_err());
    }
}
