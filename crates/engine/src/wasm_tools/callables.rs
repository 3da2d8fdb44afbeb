//! What can be called of the tools of a space, by every name that it has.

use super::record::{Record, ToolFunction};
use std::collections::HashMap;
use std::sync::Arc;

/// Something that can be called.
pub(super) struct Callable {
    pub(super) record: Arc<Record>,
    pub(super) function: ToolFunction,
}

/// All of them.
pub(super) struct Callables {
    all: Vec<Callable>,
    by_name: HashMap<String, usize>,
    /// Names without dots; two tools that differ in dots only are called by their own names.
    by_plain_name: HashMap<String, Option<usize>>,
}

impl Callables {
    pub(super) fn of(tools: &[Arc<Record>]) -> Self {
        let callables = tools.iter().flat_map(|record| {
            let functions = record.functions().into_iter();
            functions.map(move |function| Callable {
                record: Arc::clone(record),
                function,
            })
        });
        let all: Vec<Callable> = callables.collect();
        let (mut by_name, mut by_plain_name) = (HashMap::new(), HashMap::new());
        for (n, callable) in all.iter().enumerate() {
            let name = &callable.function.name;
            by_name.entry(name.clone()).or_insert(n);
            by_plain_name
                .entry(plain_tool_name(name))
                .and_modify(|it| *it = None)
                .or_insert(Some(n));
        }
        // Long names stand behind all others.
        for (n, callable) in all.iter().enumerate() {
            if let Some(function) = &callable.function.function
                && callable.function.name != callable.record.id
            {
                let long = callable.record.long_name(function);
                by_name.entry(long).or_insert(n);
            }
        }
        Self {
            all,
            by_name,
            by_plain_name,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Callable> {
        self.all.iter()
    }

    /// By its own name, or by the one for clients that take no dots.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let plain = || self.by_plain_name.get(name).copied().flatten();
        self.by_name.get(name).copied().or_else(plain)
    }

    pub(super) fn at(&self, place: usize) -> Option<&Callable> {
        self.all.get(place)
    }
}

/// A name without dots, for clients that take none.
pub fn plain_tool_name(name: &str) -> String {
    name.replace('.', "_")
}
