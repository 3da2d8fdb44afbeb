//! Nodes by the value of one property.

use crate::rows::{self, Property};
use kenning_cypher::Key;
use std::collections::HashMap;

/// The nodes that have a property, by its value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByValue {
    pub(crate) nodes: HashMap<Key, Vec<u32>>,
    /// Nodes whose value is in their row.
    pub(crate) in_rows: Vec<u32>,
    /// How many nodes are in `nodes`.
    pub(crate) n_nodes: u64,
}

impl ByValue {
    pub(crate) fn add(&mut self, slot: u32, property: &Property) {
        let key = key(property);
        let is_here = key.is_some();
        let list = match key {
            Some(key) => self.nodes.entry(key).or_default(),
            None => &mut self.in_rows,
        };
        if let Err(place) = list.binary_search(&slot) {
            list.insert(place, slot);
            self.n_nodes += u64::from(is_here);
        }
    }

    pub(crate) fn remove(&mut self, slot: u32, property: &Property) {
        let key = key(property);
        let list = match &key {
            Some(key) => self.nodes.get_mut(key),
            None => Some(&mut self.in_rows),
        };
        let Some(list) = list else { return };
        if let Ok(place) = list.binary_search(&slot) {
            list.remove(place);
            self.n_nodes -= u64::from(key.is_some());
        }
        if let (Some(key), true) = (key, list.is_empty()) {
            self.nodes.remove(&key);
        }
    }
}

/// What a property is found by; none if it is in its row.
fn key(property: &Property) -> Option<Key> {
    match property {
        Property::Here(value) => Some(Key(value.clone())),
        Property::Moment(ms) => Some(Key(rows::moment(*ms))),
        Property::InRow => None,
    }
}
