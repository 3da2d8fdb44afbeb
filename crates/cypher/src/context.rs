//! What a query runs with, and what it holds of its budget.

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::{Graph, Procedures};
use crate::temporal::{Moment, Zone};
use crate::value::{Value, too_large};
use memchr::memmem::Finder;
use regex::Regex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a query runs with.
pub(crate) struct Context<'a> {
    pub(crate) graph: &'a dyn Graph,
    pub(crate) procedures: &'a dyn Procedures,
    pub(crate) now: Moment,
    pub(crate) zone: Zone,
    pub(crate) budget: &'a Budget<'a>,
    pub(crate) random: Cell<u64>,
    /// Rows by operator, under `PROFILE`.
    pub(crate) counts: Option<RefCell<Vec<u64>>>,
    pub(crate) regex: RefCell<Option<(Arc<str>, Regex)>>,
    pub(crate) finder: RefCell<Option<(Arc<str>, Option<Finder<'static>>)>>,
}

/// Bytes that are given back when the holder is done.
pub(crate) struct Held<'a> {
    budget: &'a Budget<'a>,
    n_bytes: u64,
}

impl Held<'_> {
    pub(crate) fn add(&mut self, n_bytes: u64) -> Result<()> {
        self.budget.hold(n_bytes)?;
        self.n_bytes += n_bytes;
        Ok(())
    }

    pub(crate) fn replace(&mut self, n_bytes: u64) -> Result<()> {
        self.budget.release(self.n_bytes);
        self.n_bytes = 0;
        self.add(n_bytes)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.budget.release(self.n_bytes);
    }
}

/// A list that is checked while it grows.
pub(crate) struct ListBuilder<'a> {
    context: &'a Context<'a>,
    items: Vec<Value>,
    n_bytes: u64,
}

impl ListBuilder<'_> {
    pub(crate) fn push(&mut self, item: Value) -> Result<()> {
        self.n_bytes = self.n_bytes.saturating_add(item.n_bytes());
        self.context.check_size(self.n_bytes)?;
        self.context.steps(1)?;
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Value> {
        self.context.list(self.items)
    }
}

impl<'a> Context<'a> {
    pub(crate) fn hold(&self) -> Held<'a> {
        Held {
            budget: self.budget,
            n_bytes: 0,
        }
    }

    pub(crate) fn steps(&self, n: u64) -> Result<()> {
        self.budget.take_steps(n)
    }

    /// The steps that it takes to read a value as a whole, as comparing and hashing do.
    pub(crate) fn steps_to_read(&self, value: &Value) -> Result<()> {
        self.steps(value.n_bytes() >> 8)
    }

    pub(crate) fn check_size(&self, n_bytes: u64) -> Result<()> {
        if n_bytes > self.budget.value.bytes_max {
            return Err(too_large(self.budget.value));
        }
        Ok(())
    }

    pub(crate) fn list(&self, items: Vec<Value>) -> Result<Value> {
        self.steps(items.len() as u64 / 16)?;
        Value::list_within(items, self.budget.value)
    }

    pub(crate) fn map(&self, entries: BTreeMap<Arc<str>, Value>) -> Result<Value> {
        self.steps(entries.len() as u64 / 16)?;
        Value::map_within(entries, self.budget.value)
    }

    pub(crate) fn list_builder(&self) -> ListBuilder<'_> {
        ListBuilder {
            context: self,
            items: Vec::new(),
            n_bytes: 0,
        }
    }

    /// From 0 up to 1: the next of a row that the seed decides.
    pub(crate) fn random(&self) -> f64 {
        let mixed = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(mixed);
        let mut it = mixed;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^= it >> 31;
        (it >> 11) as f64 / (1u64 << 53) as f64
    }
}
