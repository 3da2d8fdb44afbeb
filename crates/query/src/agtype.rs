//! Values as Apache AGE writes them: what the first KOI server answers.

use crate::view::View;
use kenning_cypher::{Result, Value};
use serde_json::Value as Json;

/// A value as text; null stays null.
pub(crate) fn text(view: &View<'_>, value: &Value) -> Result<Json> {
    if let Value::Null = value {
        return Ok(Json::Null);
    }
    let mut out = String::new();
    write(view, value, &mut out)?;
    Ok(Json::String(out))
}

fn write(view: &View<'_>, value: &Value, out: &mut String) -> Result<()> {
    match value {
        Value::Node(_) => {
            write_json(&one_label(value.to_json(view)?), out);
            out.push_str("::vertex");
        }
        Value::Rel(_) => {
            write_json(&one_label(value.to_json(view)?), out);
            out.push_str("::edge");
        }
        Value::Path(path) => {
            out.push('[');
            for (n, node) in path.nodes.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write(view, &Value::Node(*node), out)?;
                if let Some(rel) = path.rels.get(n) {
                    out.push_str(", ");
                    write(view, &Value::Rel(*rel), out)?;
                }
            }
            out.push_str("]::path");
        }
        Value::List(list) => {
            out.push('[');
            for (n, item) in list.items().iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write(view, item, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (n, (name, item)) in map.entries().iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write_json(&Json::from(&**name), out);
                out.push_str(": ");
                write(view, item, out)?;
            }
            out.push('}');
        }
        // `1.0` stays a float.
        Value::Float(it) if it.is_finite() => out.push_str(&format!("{it:?}")),
        _ => write_json(&value.to_json(view)?, out),
    }
    Ok(())
}

/// AGE has one label for a node, and names the ends of a relationship otherwise.
fn one_label(json: Json) -> Json {
    let Json::Object(mut fields) = json else {
        return json;
    };
    if let Some(labels) = fields.remove("labels") {
        let last = labels.as_array().and_then(|it| it.last());
        fields.insert("label".to_owned(), last.cloned().unwrap_or_default());
    }
    for (ours, theirs) in [("type", "label"), ("start", "start_id"), ("end", "end_id")] {
        if let Some(value) = fields.remove(ours) {
            fields.insert(theirs.to_owned(), value);
        }
    }
    Json::Object(fields)
}

/// JSON with a space after every comma and colon.
fn write_json(json: &Json, out: &mut String) {
    match json {
        Json::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            out.push('{');
            for (n, (name, item)) in entries.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push_str(": ");
                write_json(item, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}
