//! Values as text, as the language writes them.

use super::Value;
use std::fmt;

/// A float as the language prints it: always with a point or an exponent.
pub(crate) fn float(it: f64) -> String {
    if it.is_nan() {
        return "NaN".to_owned();
    }
    if it.is_infinite() {
        return if it > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = it.abs();
    if it == 0.0 || (1e-3..1e7).contains(&size) {
        let text = it.to_string();
        return if text.contains('.') {
            text
        } else {
            text + ".0"
        };
    }
    let text = format!("{it:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(it) => write!(out, "{it}"),
            Self::Int(it) => write!(out, "{it}"),
            Self::Float(it) => out.write_str(&float(*it)),
            Self::Str(it) => write!(out, "'{}'", it.replace('\\', "\\\\").replace('\'', "\\'")),
            Self::List(it) => {
                out.write_str("[")?;
                for (idx, item) in it.items().iter().enumerate() {
                    let comma = if idx == 0 { "" } else { ", " };
                    write!(out, "{comma}{item}")?;
                }
                out.write_str("]")
            }
            Self::Map(it) => {
                out.write_str("{")?;
                for (idx, (name, item)) in it.entries().iter().enumerate() {
                    let comma = if idx == 0 { "" } else { ", " };
                    write!(out, "{comma}{name}: {item}")?;
                }
                out.write_str("}")
            }
            Self::Node(it) => write!(out, "(#{})", it.0),
            Self::Rel(it) => write!(out, "[#{}]", it.id.0),
            Self::Path(it) => {
                out.write_str("<")?;
                for (idx, node) in it.nodes.iter().enumerate() {
                    if let Some(rel) = idx.checked_sub(1).and_then(|idx| it.rels.get(idx)) {
                        if rel.end == *node {
                            write!(out, "-[#{}]->", rel.id.0)?;
                        } else {
                            write!(out, "<-[#{}]-", rel.id.0)?;
                        }
                    }
                    write!(out, "(#{})", node.0)?;
                }
                out.write_str(">")
            }
            Self::Date(it) => write!(out, "{it}"),
            Self::LocalTime(it) => write!(out, "{it}"),
            Self::Time(it) => write!(out, "{it}"),
            Self::LocalDateTime(it) => write!(out, "{it}"),
            Self::DateTime(it) => write!(out, "{it}"),
            Self::Duration(it) => write!(out, "{it}"),
        }
    }
}
