//! YAML with size limits: a whole file, or the block between `---` lines at the start of a Markdown
//! text.

use crate::Faults;
use kenning_text::frontmatter::{self, Head};
use kenning_text::line::beginning;
use kenning_text::yaml::{self, Limits};
use serde_json::{Map, Value};

/// The longest text that is read.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
const LIMITS: Limits = Limits {
    bytes_max: TEXT_BYTES_MAX,
    aliases_max: 64,
    ..Limits::FIELDS
};

/// The fields of a YAML text; none if it is empty.
pub(crate) fn fields(what: &str, text: &str) -> Result<Map<String, Value>, Faults> {
    let broken =
        |message: String| Faults::one(what, message, "write `key: value` lines of valid YAML");
    match yaml::read(text, &LIMITS) {
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(broken("is not a mapping".to_owned())),
        Err(yaml::Error::TooLarge(_)) => {
            Err(broken(format!("is longer than {TEXT_BYTES_MAX} bytes")))
        }
        Err(yaml::Error::Syntax { message, .. }) => Err(broken(format!(
            "is not YAML ({})",
            beginning(&message, 160)
        ))),
    }
}

/// The block at the start of a Markdown text, and the text after it. `None` if there is no block.
pub(crate) fn frontmatter(text: &str) -> Option<(&str, &str)> {
    frontmatter::yaml(text, Head::AfterEmptyLines)
}

/// A field as text: values without quotes may be numbers or booleans in YAML.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The text of the first of these fields that exists and is not empty.
pub(crate) fn text_at(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names
        .iter()
        .filter_map(|name| fields.get(*name))
        .find_map(text_of)
        .filter(|text| !text.is_empty())
}

/// A list of texts: a YAML list, or one text with commas.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => {
            let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            Some(parts.map(str::to_owned).collect())
        }
        Value::Array(items) => items.iter().map(text_of).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_map_or_too_much_is_a_fault() {
        let deep = format!("a: {}", "[".repeat(5_000));
        for bad in ["- a", "prose", "a: [", "a: 1\na: 2", deep.as_str()] {
            assert!(fields("frontmatter", bad).is_err(), "{bad:.20}");
        }
        assert_eq!(fields("x", "").unwrap(), Map::new());
    }
}
