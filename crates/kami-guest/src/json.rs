//! From the JSON text of the arguments to a value, and from a value to the JSON text of an answer.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// The arguments as a value of the type that you want.
///
/// # Errors
///
/// A sentence that names what is missing or of another type, ready to be returned by the handler.
pub fn parse_input<T: DeserializeOwned>(input: &str) -> Result<T, String> {
    serde_json::from_str(input).map_err(|err| format!("invalid input: {}", in_plain_words(&err)))
}

/// What is wrong, with numbers called as somebody knows them who knows JSON and not Rust.
fn in_plain_words(error: &serde_json::Error) -> String {
    const UNSIGNED: [&str; 6] = ["u8", "u16", "u32", "u64", "u128", "usize"];
    const SIGNED: [&str; 6] = ["i8", "i16", "i32", "i64", "i128", "isize"];
    const FLOATS: [&str; 2] = ["f32", "f64"];
    let said = error.to_string();
    let Some((before, rest)) = said.split_once("expected ") else {
        return said;
    };
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
    let (kind, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let plain = match kind {
        _ if UNSIGNED.contains(&kind) => "a whole number from 0 on",
        _ if SIGNED.contains(&kind) => "a whole number",
        _ if FLOATS.contains(&kind) => "a number",
        _ => return said,
    };
    format!("{before}expected {plain}{behind}")
}

/// The JSON text of an answer.
///
/// # Errors
///
/// When the value has no JSON text, such as a map whose keys are no texts.
pub fn to_output<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|err| format!("the output has no JSON text: {err}"))
}

/// An answer that is one text: `{"text": "…"}`.
///
/// # Errors
///
/// None. It is a `Result` so that it can be a handler's last line.
pub fn text_result(text: &str) -> Result<String, String> {
    Ok(json!({ "text": text }).to_string())
}

/// The JSON text `{"error": "…"}`, for callers that take an error apart. It is a text, not yet an
/// error: return `Err(error_result("…"))`.
pub fn error_result(message: &str) -> String {
    json!({ "error": message }).to_string()
}

/// What `describe` answers.
#[doc(hidden)]
pub fn metadata(name: &str, version: &str, description: &str) -> String {
    json!({ "name": name, "version": version, "description": description }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Arguments {
        url: String,
        count: u32,
    }

    #[test]
    fn arguments_become_the_type_that_is_asked_for() {
        let parsed = parse_input(r#"{"url": "https://example.com", "count": 3, "more": null}"#);
        let url = "https://example.com".to_owned();
        assert_eq!(parsed, Ok(Arguments { url, count: 3 }));
    }

    #[test]
    fn what_is_wrong_with_the_arguments_is_named() {
        for (input, named) in [
            (r#"{"url": "x"}"#, "missing field `count`"),
            (r#"{"url": 1, "count": 3}"#, "expected a string"),
            (
                r#"{"url": "x", "count": -1}"#,
                "expected a whole number from 0 on at",
            ),
            ("not json", "line 1 column 2"),
            ("", "EOF"),
        ] {
            let refused = parse_input::<Arguments>(input).unwrap_err();
            assert!(refused.starts_with("invalid input: "), "{input}: {refused}");
            assert!(refused.contains(named), "{input}: {refused}");
        }
    }

    #[test]
    fn an_answer_is_json() {
        assert_eq!(
            to_output(&json!({ "a": [1, "b"] })),
            Ok(r#"{"a":[1,"b"]}"#.into())
        );
        assert_eq!(
            text_result("a \"b\"\n"),
            Ok(r#"{"text":"a \"b\"\n"}"#.into())
        );
        assert_eq!(error_result("no"), r#"{"error":"no"}"#);
    }

    #[test]
    fn a_value_without_json_is_refused_with_the_reason() {
        let refused = to_output(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert!(refused.contains("key must be a string"), "{refused}");
    }
}
