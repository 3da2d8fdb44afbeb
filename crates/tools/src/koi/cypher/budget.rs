//! What a query may make before it is stopped.

use super::{Fault, Stop};
use kenning_core::Result as CoreResult;
use serde_json::{Map, Value};
use std::cell::Cell;

/// Bytes of all values that a query makes, those that it drops again included.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a value takes beside its text.
const VALUE_BYTES: usize = 32;
/// How deep lists and maps may be in one another. Answers are read by others, who stop at 128.
const DEPTH_MAX: usize = 64;
/// So much is made between two looks at the deadline.
const LOOK_BYTES: usize = 1024 * 1024;

/// Pays for values, and looks at the deadline now and then.
pub(super) struct Budget<'a> {
    left: Cell<usize>,
    until_look: Cell<usize>,
    check: &'a dyn Fn() -> CoreResult<()>,
}

impl<'a> Budget<'a> {
    pub(super) fn new(check: &'a dyn Fn() -> CoreResult<()>) -> Self {
        Self {
            left: Cell::new(BYTES_MAX),
            until_look: Cell::new(0),
            check,
        }
    }

    /// Looks at the deadline, if it is time to.
    pub(super) fn look(&self) -> Result<(), Stop> {
        self.spend(VALUE_BYTES)
    }

    /// Whether there is room for a text that is about to be made.
    pub(super) fn afford(&self, n_bytes: usize) -> Result<(), Stop> {
        if n_bytes > self.left.get() {
            return Err(over());
        }
        Ok(())
    }

    fn spend(&self, n_bytes: usize) -> Result<(), Stop> {
        let left = self.left.get().checked_sub(n_bytes).ok_or_else(over)?;
        self.left.set(left);
        match self.until_look.get().checked_sub(n_bytes) {
            Some(it) => self.until_look.set(it),
            None => {
                self.until_look.set(LOOK_BYTES);
                (self.check)().map_err(Stop::Ended)?;
            }
        }
        Ok(())
    }

    /// Pays for a value that was made.
    pub(super) fn pay(&self, value: &Value) -> Result<(), Stop> {
        self.pay_at(value, 0)
    }

    fn pay_at(&self, value: &Value, depth: usize) -> Result<(), Stop> {
        if depth > DEPTH_MAX {
            let why = format!("a value is nested too deeply: at most {DEPTH_MAX} lists and maps");
            return Err(Fault(why).into());
        }
        self.spend(VALUE_BYTES)?;
        match value {
            Value::String(text) => self.spend(text.len()),
            Value::Array(all) => all.iter().try_for_each(|it| self.pay_at(it, depth + 1)),
            Value::Object(all) => all.iter().try_for_each(|(name, it)| {
                self.spend(name.len())?;
                self.pay_at(it, depth + 1)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    pub(super) fn pay_text(&self, text: &str) -> Result<(), Stop> {
        self.spend(VALUE_BYTES + text.len())
    }

    /// A copy that is paid for.
    pub(super) fn copy(&self, value: &Value) -> Result<Value, Stop> {
        self.pay(value)?;
        Ok(value.clone())
    }

    /// The same for a row.
    pub(super) fn copy_row(&self, row: &Map<String, Value>) -> Result<Map<String, Value>, Stop> {
        for (name, value) in row {
            self.pay_text(name)?;
            self.pay(value)?;
        }
        Ok(row.clone())
    }

    /// A text that is the same for equal values, and for no others.
    pub(super) fn key_of(&self, value: &Value) -> Result<String, Stop> {
        self.pay(value)?;
        let mut key = String::new();
        write_key(&mut key, value);
        Ok(key)
    }

    pub(super) fn key_of_row(&self, row: &Map<String, Value>) -> Result<String, Stop> {
        let mut key = String::new();
        for value in row.values() {
            key += &self.key_of(value)?;
            key.push('\n');
        }
        Ok(key)
    }
}

fn over() -> Stop {
    let most = BYTES_MAX / (1024 * 1024);
    Fault(format!("the query makes more than {most} MiB of values")).into()
}

/// JSON with sorted names. What was paid for is not deep.
fn write_key(key: &mut String, value: &Value) {
    match value {
        Value::Array(all) => {
            key.push('[');
            for it in all {
                write_key(key, it);
                key.push(',');
            }
            key.push(']');
        }
        Value::Object(all) => {
            let mut all: Vec<_> = all.iter().collect();
            all.sort_unstable_by_key(|it| it.0);
            key.push('{');
            for (name, it) in all {
                *key += &Value::from(name.as_str()).to_string();
                key.push(':');
                write_key(key, it);
                key.push(',');
            }
            key.push('}');
        }
        other => *key += &other.to_string(),
    }
}
