//! Nodes by the values of their properties, and properties of many nodes.

use super::Graph;
use crate::by_value::ByValue;
use crate::column::Column;
use crate::rows::{self, Property};
use kenning_cypher::{Key, Value};
use std::sync::{Arc, PoisonError};

impl Graph {
    /// How many nodes have one value of a property, on average.
    pub(crate) fn selectivity(&self, key: &str) -> Option<f64> {
        // Texts are in their rows.
        if key == rows::TEXT {
            return None;
        }
        let index = self.by_value(self.keys.find(key)?);
        Some(index.n_nodes as f64 / index.nodes.len().max(1) as f64)
    }

    /// The nodes that have a value, and those whose value must be looked up in their rows.
    pub(crate) fn nodes_by_value(&self, key: &str, value: &Value) -> (Vec<u32>, Vec<u32>) {
        let Some(key) = self.keys.find(key) else {
            return (Vec::new(), Vec::new());
        };
        let index = self.by_value(key);
        let here = index.nodes.get(&Key(value.clone()));
        let may_be_in_rows = match value {
            Value::Str(it) => it.len() > rows::TEXT_BYTES_MAX,
            Value::List(_) | Value::Map(_) => true,
            _ => false,
        };
        let in_rows = match may_be_in_rows {
            true => index.in_rows.clone(),
            false => Vec::new(),
        };
        (here.cloned().unwrap_or_default(), in_rows)
    }

    /// A property of a node, where it lies in memory as a value: null if the node has none.
    pub(crate) fn value(&self, slot: u32, key: u32) -> Option<&Value> {
        let lazy = self.columns.get(key as usize)?;
        if let Some(column) = lazy.get(self.n_nodes, || self.column(key)) {
            return column.get(slot);
        }
        let properties = self.properties_of(slot);
        match properties.binary_search_by_key(&key, |it| it.0) {
            Err(_) => Some(&Value::Null),
            Ok(at) => match properties.get(at) {
                Some((_, Property::Here(value))) => Some(value),
                _ => None,
            },
        }
    }

    fn column(&self, key: u32) -> Column {
        let mut column = Column::default();
        for (entry, slot) in self.nodes.iter().zip(0_u32..) {
            let found = entry.properties.binary_search_by_key(&key, |it| it.0);
            let property = found.ok().and_then(|it| entry.properties.get(it));
            column.set(slot, property.map(|it| &it.1));
        }
        column
    }

    fn by_value(&self, key: u32) -> Arc<ByValue> {
        let known = self.by_value.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = known.get(&key) {
            return Arc::clone(index);
        }
        drop(known);
        let mut index = ByValue::default();
        for (entry, slot) in self.nodes.iter().zip(0_u32..) {
            // What is not there has no properties.
            if let Some((_, property)) = entry.properties.iter().find(|it| it.0 == key) {
                index.add(slot, property);
            }
        }
        let index = Arc::new(index);
        let mut all = self
            .by_value
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key).or_insert(index))
    }
}
