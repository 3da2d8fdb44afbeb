//! One property of all nodes, by the numbers of nodes: what a query that looks at many nodes reads in place of their
//! contents. It is made once enough nodes were asked.

use crate::rows::{self, Property};
use kenning_cypher::{Key, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A node that does not have the property.
const NONE: u32 = 0;

/// A node whose value is in its row.
const IN_ROW: u32 = 1;

/// The place of the first value.
const FIRST: u32 = 2;

/// One property of all nodes. Equal values are kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    codes: Vec<u32>,
    values: Vec<Value>,
    places: HashMap<Key, u32>,
}

impl Column {
    pub(crate) fn set(&mut self, slot: u32, property: Option<&Property>) {
        let at = slot as usize;
        if self.codes.len() <= at {
            self.codes.resize(at + 1, NONE);
        }
        let code = match property {
            None => NONE,
            Some(Property::InRow) => IN_ROW,
            Some(Property::Here(value)) => self.code(value.clone()),
            Some(Property::Moment(ms)) => self.code(rows::moment(*ms)),
        };
        if let Some(it) = self.codes.get_mut(at) {
            *it = code;
        }
    }

    fn code(&mut self, value: Value) -> u32 {
        // Numbers of both kinds are equal as keys and print otherwise.
        if matches!(value, Value::Float(_)) {
            return self.push(value);
        }
        let key = Key(value);
        if let Some(code) = self.places.get(&key) {
            return *code;
        }
        let code = self.push(key.0.clone());
        self.places.insert(key, code);
        code
    }

    fn push(&mut self, value: Value) -> u32 {
        self.values.push(value);
        u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX - FIRST) + FIRST
    }

    /// Whether more values were left behind than are in use.
    pub(crate) fn is_mostly_gaps(&self) -> bool {
        self.values.len() > 2 * self.codes.len() + 1_000
    }

    /// The value of a node; none if it is in its row.
    pub(crate) fn get(&self, slot: u32) -> Option<&Value> {
        match self.codes.get(slot as usize).copied().unwrap_or(NONE) {
            NONE => Some(&Value::Null),
            IN_ROW => None,
            code => self.values.get((code - FIRST) as usize),
        }
    }
}

/// A column that is made when it is worth it.
#[derive(Debug, Default)]
pub(crate) struct Lazy {
    n_asked: AtomicU64,
    pub(crate) column: OnceLock<Arc<Column>>,
}

impl Lazy {
    /// The column, if it is there or enough nodes were asked to make it.
    pub(crate) fn get(&self, n_nodes: u64, make: impl FnOnce() -> Column) -> Option<&Column> {
        if let Some(column) = self.column.get() {
            return Some(column);
        }
        let n_asked = self.n_asked.fetch_add(1, Ordering::Relaxed);
        (n_asked > n_nodes / 4 + 256).then(|| &**self.column.get_or_init(|| Arc::new(make())))
    }
}

impl Clone for Lazy {
    fn clone(&self) -> Self {
        Self {
            n_asked: AtomicU64::new(self.n_asked.load(Ordering::Relaxed)),
            column: self.column.clone(),
        }
    }
}
