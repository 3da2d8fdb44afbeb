//! The fields of a YAML block that does not parse as a whole.
//!
//! One unquoted colon must not cost a note its other fields. Each entry (a key at the beginning of a
//! line, with the lines that belong to it) is read by itself. In a broken entry, a value on one line
//! is taken as text, and a list item by item. Other broken entries are left out.

use super::read_yaml;
use serde_json::{Map, Value};

/// At most this many entries are read: the parser is started for each.
const ENTRIES_MAX: usize = 500;
/// Items of one broken list.
const ITEMS_MAX: usize = 500;

/// The fields that can be read. If a key occurs twice, the first counts.
pub(super) fn fields(block: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    for entry in entries(block).into_iter().take(ENTRIES_MAX) {
        if let Some((key, value)) = read(&entry)
            && !fields.contains_key(&key)
        {
            fields.insert(key, value);
        }
    }
    fields
}

/// Runs of lines, each of which begins with a key in the first column.
fn entries(block: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in block.lines() {
        let is_key = !line.starts_with([' ', '\t', '-', '#', ']', '}']) && key_of(line).is_some();
        match entries.last_mut() {
            _ if is_key => entries.push(format!("{line}\n")),
            Some(entry) => {
                entry.push_str(line);
                entry.push('\n');
            }
            None => {}
        }
    }
    entries
}

/// The key of a line and what follows its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end();
    let (key, value) = match line.split_once(": ") {
        Some((key, value)) => (key, value.trim()),
        None => (line.strip_suffix(':')?, ""),
    };
    let key = unquoted(key.trim());
    (!key.is_empty()).then_some((key, value))
}

fn read(entry: &str) -> Option<(String, Value)> {
    if let Ok(Value::Object(fields)) = read_yaml(entry) {
        return fields.into_iter().next();
    }
    let (first, rest) = entry.split_once('\n').unwrap_or((entry, ""));
    let (key, value) = key_of(first)?;
    let is_text = |text: &str| !text.is_empty() && !text.starts_with(['|', '>', '&', '*', '{']);
    // A comment after the value is not part of it.
    let value = value.split(" #").next().unwrap_or(value).trim();
    let rest: Vec<&str> = rest.lines().filter(|it| !it.trim().is_empty()).collect();
    if rest.is_empty() {
        let value = match value.strip_prefix('[') {
            Some(list) if !list.starts_with('[') => list_of(list)?,
            _ => is_text(value).then(|| unquoted(value).into())?,
        };
        return Some((key.to_owned(), value));
    }
    let items: Option<Vec<Value>> = rest.iter().take(ITEMS_MAX).map(|it| item(it)).collect();
    Some((
        key.to_owned(),
        Value::Array(items.filter(|_| value.is_empty())?),
    ))
}

/// The items of a list that is not closed or contains something unquoted.
fn list_of(text: &str) -> Option<Value> {
    let text = text.trim_end().trim_end_matches(']');
    let items = text.split(',').map(|it| unquoted(it.trim()));
    let items: Vec<Value> = items.filter(|it| !it.is_empty()).map(Value::from).collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

/// The text or number of a line `- item`.
fn item(line: &str) -> Option<Value> {
    let item = line.trim_start_matches(' ').strip_prefix("- ")?.trim();
    match read_yaml(item) {
        Ok(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => Some(value),
        // `[[a]]` is a link; `a: b` is a text without its quotes.
        Ok(value @ Value::Array(_)) => Some(value),
        Ok(Value::Null) => None,
        Ok(Value::Object(_)) | Err(_) => Some(unquoted(item).into()),
    }
}

/// Without the quotes around the whole of it.
fn unquoted(text: &str) -> &str {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_can_be_read_of_a_broken_block_is_kept() {
        for (block, expected) in [
            (
                "title: Kelp: a study\naliases: [KS, Kelp Study]\n",
                json!({ "title": "Kelp: a study", "aliases": ["KS", "Kelp Study"] }),
            ),
            (
                "aliases:\n  - Kelp: the study: two\n  - KS\ntype: Person\n",
                json!({ "aliases": ["Kelp: the study: two", "KS"], "type": "Person" }),
            ),
            (
                "r: [[a]], [[b]]\nup: \"[[Home]]\"\n",
                json!({ "r": "[[a]], [[b]]", "up": "[[Home]]" }),
            ),
            ("a: 1\na: 2\nb: 3\n", json!({ "a": 1, "b": 3 })),
            ("a:\n\tb: 1\nc: d\n", json!({ "c": "d" })),
            (
                "a: [\nb: |\n  text: x\n  more\n",
                json!({ "b": "text: x\nmore\n" }),
            ),
            (
                "note: he said \"no: never\nb: 1",
                json!({ "note": "he said \"no: never", "b": 1 }),
            ),
            ("a: x: y # why\n", json!({ "a": "x: y" })),
            ("a: &x [1\nb: *x\n", json!({})),
            (
                "tags: [x, \"y z\"\nb: 1\n",
                json!({ "tags": ["x", "y z"], "b": 1 }),
            ),
            ("prose\n: x\n", json!({})),
        ] {
            assert_eq!(Value::Object(fields(block)), expected, "{block:?}");
        }
    }
}
