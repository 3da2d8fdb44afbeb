//! Data that a page carries for search engines: JSON-LD.

use super::dom::{Dom, Id};
use serde_json::Value;

/// Larger blocks are catalogs, not what the page says of itself.
const BYTES_MAX: usize = 256 * 1024;

/// The first value of each field over all blocks.
#[derive(Debug, Default)]
pub(super) struct Linked {
    pub(super) title: Option<String>,
    pub(super) author: Option<String>,
    pub(super) published: Option<String>,
}

pub(super) fn of(dom: &Dom, all: &[Id]) -> Linked {
    let mut out = Linked::default();
    for &id in all {
        let kind = dom.attribute(id, "type").unwrap_or_default();
        if dom.name(id) != "script" || !kind.eq_ignore_ascii_case("application/ld+json") {
            continue;
        }
        let texts = dom.children(id).iter().filter_map(|it| dom.text(*it));
        let text: String = texts.collect();
        if text.len() > BYTES_MAX {
            continue;
        }
        // A block that is not JSON is ignored.
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            continue;
        };
        for item in items(&value) {
            out.title = out.title.or_else(|| text_of(&item["headline"]));
            out.author = out.author.or_else(|| person(&item["author"]));
            out.published = out.published.or_else(|| text_of(&item["datePublished"]));
        }
    }
    out
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        _ => match value["@graph"].as_array() {
            Some(values) => values.iter().collect(),
            None => vec![value],
        },
    }
}

fn text_of(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn person(value: &Value) -> Option<String> {
    match value {
        Value::Array(values) => values.first().and_then(person),
        Value::Object(_) => text_of(&value["name"]),
        _ => text_of(value),
    }
}
