//! Values from and to JSON, for parameters and answers.

use crate::error::Result;
use crate::graph::Graph;
use crate::value::{Limits, Value, float_text};
use serde_json::{Map as Object, Number, Value as Json, json};
use std::sync::Arc;

impl Value {
    /// The value of a parameter that was given as JSON.
    ///
    /// # Errors
    ///
    /// It is larger or deeper than a value may be.
    pub fn from_json(json: &Json) -> Result<Self> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Bool(*it),
            Json::Number(it) => it
                .as_i64()
                .map_or_else(|| Self::Float(it.as_f64().unwrap_or(f64::NAN)), Self::Int),
            Json::String(it) => Self::str(it),
            Json::Array(items) => {
                Self::list(items.iter().map(Self::from_json).collect::<Result<_>>()?)?
            }
            Json::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, it)| Ok((Arc::from(name.as_str()), Self::from_json(it)?)));
                Self::map_within(entries.collect::<Result<_>>()?, Limits::default())?
            }
        })
    }

    /// The value as JSON: nodes and relationships with their labels, types and properties, points in time
    /// and durations as their texts, and floats that JSON has not as texts.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    pub fn to_json(&self, graph: &dyn Graph) -> Result<Json> {
        Ok(match self {
            Self::Null => Json::Null,
            Self::Bool(it) => json!(it),
            Self::Int(it) => json!(it),
            Self::Float(it) => {
                Number::from_f64(*it).map_or_else(|| Json::String(float_text(*it)), Json::Number)
            }
            Self::Str(it) => json!(&**it),
            Self::List(it) => {
                let items = it.items().iter().map(|it| it.to_json(graph));
                Json::Array(items.collect::<Result<_>>()?)
            }
            Self::Map(it) => {
                let entries = it.entries().iter();
                let entries = entries.map(|(name, it)| Ok((name.to_string(), it.to_json(graph)?)));
                Json::Object(entries.collect::<Result<_>>()?)
            }
            Self::Node(it) => {
                let labels = graph.labels(*it)?.into_iter();
                let labels: Vec<Json> = labels.map(|it| json!(&*graph.label_name(it))).collect();
                json!({
                    "id": graph.node_name(*it),
                    "labels": labels,
                    "properties": properties(graph.node_properties(*it)?, graph)?,
                })
            }
            Self::Rel(it) => json!({
                "id": graph.rel_name(it),
                "type": &*graph.type_name(it.kind),
                "start": graph.node_name(it.start),
                "end": graph.node_name(it.end),
                "properties": properties(graph.rel_properties(it)?, graph)?,
            }),
            Self::Path(it) => {
                let nodes = it.nodes.iter().map(|it| Self::Node(*it).to_json(graph));
                let rels = it.rels.iter().map(|it| Self::Rel(*it).to_json(graph));
                json!({
                    "nodes": nodes.collect::<Result<Vec<_>>>()?,
                    "relationships": rels.collect::<Result<Vec<_>>>()?,
                })
            }
            Self::Date(_)
            | Self::LocalTime(_)
            | Self::Time(_)
            | Self::LocalDateTime(_)
            | Self::DateTime(_)
            | Self::Duration(_) => Json::String(self.to_string()),
        })
    }
}

fn properties(of: Vec<(Arc<str>, Value)>, graph: &dyn Graph) -> Result<Object<String, Json>> {
    of.into_iter()
        .map(|(name, it)| Ok((name.to_string(), it.to_json(graph)?)))
        .collect()
}
