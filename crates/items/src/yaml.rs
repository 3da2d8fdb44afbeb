//! YAML, bounded: a whole file, or the block between `---` lines at the head of a Markdown text.

use crate::Faults;
use serde_json::{Map, Value};

const DEPTH_MAX: usize = 32;
const NODES_MAX: usize = 20_000;
const ALIASES_MAX: usize = 64;
/// The longest text that is looked at.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The fields of a YAML text. A text without any has none.
pub(crate) fn fields(what: &str, text: &str) -> Result<Map<String, Value>, Faults> {
    let broken =
        |message: String| Faults::one(what, message, "write `key: value` lines of valid YAML");
    if text.len() > TEXT_BYTES_MAX {
        return Err(broken(format!("is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_aliases: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
        },
    };
    match serde_saphyr::from_str_with_options::<Option<Value>>(text, options) {
        Ok(None | Some(Value::Null)) => Ok(Map::new()),
        Ok(Some(Value::Object(fields))) => Ok(fields),
        Ok(Some(_)) => Err(broken("holds no fields".to_owned())),
        Err(error) => {
            let message = error.to_string();
            let line = message.lines().next().unwrap_or_default();
            Err(broken(format!(
                "is not YAML ({})",
                line.chars().take(160).collect::<String>()
            )))
        }
    }
}

/// The block at the head of a Markdown text, and the text after it. `None` if there is no block.
pub(crate) fn frontmatter(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.trim_start_matches(['\r', '\n']);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// A field as text: what a person writes without quotes is a number or a boolean to YAML.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The text of the first of these fields that is there and not empty.
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
    fn a_block_ends_where_its_line_says() {
        for (text, found) in [
            ("---\na: 1\n---\nb\n", Some(("a: 1\n", "b\n"))),
            ("\u{feff}---\r\na: 1\r\n---\r\nb", Some(("a: 1\r\n", "b"))),
            ("\n---\na: 1\n---", Some(("a: 1\n", ""))),
            ("---\na: 1\n", None),
            ("# b", None),
            ("", None),
        ] {
            assert_eq!(frontmatter(text), found, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_map_or_too_much_is_a_fault() {
        let deep = format!("a: {}", "[".repeat(5_000));
        for bad in ["- a", "prose", "a: [", "a: 1\na: 2", deep.as_str()] {
            assert!(fields("frontmatter", bad).is_err(), "{bad:.20}");
        }
        assert_eq!(fields("x", "").unwrap(), Map::new());
    }
}
