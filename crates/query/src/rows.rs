//! What a node of the store is in the graph: its labels, its properties and its tags.

use kenning_core::Kind;
use kenning_cypher::{Moment, Value};
use kenning_store::Node;
use serde_json::Value as Json;

/// Texts longer than this are not kept in memory, and are read from their rows when a query asks for them.
pub(crate) const TEXT_BYTES_MAX: usize = 512;

/// Lists and objects whose JSON is longer than this are not kept in memory either.
const NESTED_ITEMS_MAX: usize = 32;

/// The property that is the whole text of a node.
pub(crate) const TEXT: &str = "text";

/// A property.
#[derive(Clone, Debug)]
pub(crate) enum Property {
    /// Kept in memory.
    Here(Value),
    /// A moment, in milliseconds since 1970.
    Moment(u64),
    /// Too long for that: it is in the row.
    InRow,
}

/// The labels of a node, the most general first. Of code these are the ones of the contract; what it calls
/// otherwise than we do (a method is a `Function` there) has both.
pub(crate) fn labels(node: &Node) -> Vec<String> {
    let word = |name: &str| node.props.get(name).and_then(Json::as_str);
    let pair = |general: &str, special: Option<&str>| {
        let special = special.map(pascal).filter(|it| !it.is_empty());
        let special = special.filter(|it| it != general);
        [general.to_owned()].into_iter().chain(special).collect()
    };
    match node.kind {
        Kind::Symbol => match word("label").or_else(|| word("entity_type")).map(pascal) {
            Some(label) if !label.is_empty() => match general_label(&label) {
                Some(general) => vec![general.to_owned(), label],
                None => vec![label],
            },
            _ => vec!["Symbol".to_owned()],
        },
        Kind::Document if word("label") == Some("File") => pair("File", None),
        Kind::Entity => pair("Entity", word("type")),
        Kind::Memory if word("memory_type") == Some("belief") => pair("Memory", Some("Belief")),
        Kind::Memory => pair("Memory", None),
        Kind::Item => pair("Item", word("type")),
        Kind::Document => pair("Document", None),
        Kind::Page => pair("Page", None),
        Kind::Workflow => pair("Workflow", None),
        Kind::Agent => pair("Agent", None),
        Kind::Trajectory => pair("Trajectory", None),
        Kind::Tool => pair("Tool", None),
        Kind::Vector => pair("Vector", None),
    }
}

/// What the contract's graph calls such a symbol.
fn general_label(label: &str) -> Option<&'static str> {
    match label {
        "Method" => Some("Function"),
        "Struct" | "Enum" => Some("Class"),
        "Trait" => Some("Interface"),
        _ => None,
    }
}

/// `case_study` and `case study` become `CaseStudy`; what is written so already stays.
fn pascal(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let parts = word.split(|it: char| !it.is_alphanumeric());
    for part in parts.filter(|it| !it.is_empty()).take(8) {
        let mut chars = part.chars();
        out.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        out.push_str(chars.as_str());
    }
    out.truncate(out.char_indices().nth(64).map_or(out.len(), |it| it.0));
    out
}

/// The name of a relationship in queries: `depends_on` is `DEPENDS_ON`.
pub(crate) fn rel_type(relation: &str) -> String {
    let upper = |it: char| {
        if it.is_alphanumeric() {
            it.to_uppercase().collect::<String>()
        } else {
            "_".to_owned()
        }
    };
    relation.chars().map(upper).collect()
}

/// The properties of a node: its own, and those that every row has where it has none of that name.
pub(crate) fn properties(node: &Node) -> Vec<(String, Property)> {
    let mut found: Vec<(String, Property)> = Vec::with_capacity(node.props.len() + 8);
    for (name, value) in &node.props {
        if let Some(property) = property(value) {
            found.push((name.clone(), property));
        }
    }
    let mut add = |name: &str, value: Property| {
        if !found.iter().any(|it| it.0 == name) {
            found.push((name.to_owned(), value));
        }
    };
    let text = |it: &str| match it.len() <= TEXT_BYTES_MAX {
        true => Property::Here(Value::str(it)),
        false => Property::InRow,
    };
    add("id", Property::Here(Value::str(node.id.to_string())));
    add("kind", Property::Here(Value::str(node.kind.as_str())));
    add("key", text(&node.key));
    if !node.title.is_empty() {
        add("name", text(&node.title));
        add("title", text(&node.title));
    }
    if !node.project.is_empty() {
        add("project", text(&node.project));
    }
    if !node.body.is_empty() {
        add(TEXT, Property::InRow);
    }
    add("created_at", Property::Moment(node.created_ms()));
    add("updated_at", Property::Moment(node.updated.ms()));
    found
}

/// One property of a row, with its whole text.
pub(crate) fn property_in_row(node: &Node, name: &str) -> Value {
    let own = node.props.get(name);
    match (own, name) {
        (Some(value), _) => Value::from_json(value).unwrap_or_default(),
        (None, TEXT) => Value::str(&node.body),
        (None, "key") => Value::str(&node.key),
        (None, "name" | "title") => Value::str(&node.title),
        (None, "project") => Value::str(&node.project),
        (None, _) => Value::Null,
    }
}

/// A JSON property: null is no property, and neither is what is nested too deep.
pub(crate) fn property(json: &Json) -> Option<Property> {
    let is_long = match json {
        Json::Null => return None,
        Json::Bool(_) | Json::Number(_) => false,
        Json::String(it) => it.len() > TEXT_BYTES_MAX,
        Json::Array(_) | Json::Object(_) => !is_small(json, &mut 0),
    };
    if is_long {
        return Some(Property::InRow);
    }
    Value::from_json(json).ok().map(Property::Here)
}

fn is_small(json: &Json, n_items: &mut usize) -> bool {
    *n_items += 1;
    *n_items <= NESTED_ITEMS_MAX
        && match json {
            Json::String(it) => it.len() <= TEXT_BYTES_MAX,
            Json::Array(items) => items.iter().all(|it| is_small(it, n_items)),
            Json::Object(entries) => entries.values().all(|it| is_small(it, n_items)),
            Json::Null | Json::Bool(_) | Json::Number(_) => true,
        }
}

/// A moment, in milliseconds since 1970.
pub(crate) fn moment(ms: u64) -> Value {
    Value::moment(Moment {
        seconds: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        nanos: u32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000,
    })
}

/// The tags of a node.
pub(crate) fn tags(node: &Node) -> Vec<&str> {
    let tags = node.props.get("tags").and_then(Json::as_array);
    let mut tags: Vec<&str> = tags
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .filter(|it| !it.is_empty() && it.len() <= TEXT_BYTES_MAX)
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_labels_and_types() {
        for (word, label) in [
            ("person", "Person"),
            ("Person", "Person"),
            ("case_study", "CaseStudy"),
            ("CaseStudy", "CaseStudy"),
            ("", ""),
            ("--", ""),
        ] {
            assert_eq!(pascal(word), label, "{word}");
        }
        assert_eq!(pascal(&"x".repeat(1_000)).len(), 64);
        assert_eq!(rel_type("depends-on"), "DEPENDS_ON");
        assert_eq!(rel_type("CALLS"), "CALLS");
    }
}
