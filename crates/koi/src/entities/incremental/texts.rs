//! Texts as numbers, so that a graph of many statements is small in memory.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Text(u32);

/// Every text once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Arc<str>, Text>,
    all: Vec<Arc<str>>,
}

impl Texts {
    /// The number of a text, which it gets if it has none yet.
    pub(super) fn number(&mut self, text: &str) -> Text {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = Text(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = text.into();
        self.all.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// The number that a text has.
    pub(super) fn find(&self, text: &str) -> Option<Text> {
        self.numbers.get(text).copied()
    }

    pub(super) fn get(&self, number: Text) -> &str {
        self.all.get(number.0 as usize).map_or("", |it| it)
    }

    pub(super) fn owned(&self, number: Text) -> String {
        self.get(number).to_owned()
    }

    /// How many there are; those that nothing uses any more are counted too.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
