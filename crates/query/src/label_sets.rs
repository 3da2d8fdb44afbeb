//! The labels of nodes: few sets of labels for many nodes.

use kenning_cypher::Token;
use std::collections::HashMap;

/// The set of a node that is not there.
const GONE: u32 = u32::MAX;

/// Sets of labels, and which of them each node has.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSets {
    all: Vec<Box<[Token]>>,
    places: HashMap<Box<[Token]>, u32>,
    of: Vec<u32>,
}

impl LabelSets {
    /// One node more, which is not there yet.
    pub(crate) fn add(&mut self) {
        self.of.push(GONE);
    }

    pub(crate) fn set(&mut self, slot: u32, labels: Box<[Token]>) {
        let place = match self.places.get(&labels) {
            Some(place) => *place,
            None => {
                let place = u32::try_from(self.all.len()).unwrap_or(GONE);
                self.all.push(labels.clone());
                self.places.insert(labels, place);
                place
            }
        };
        if let Some(it) = self.of.get_mut(slot as usize) {
            *it = place;
        }
    }

    pub(crate) fn clear(&mut self, slot: u32) {
        if let Some(it) = self.of.get_mut(slot as usize) {
            *it = GONE;
        }
    }

    pub(crate) fn is_there(&self, slot: u32) -> bool {
        self.of.get(slot as usize).is_some_and(|it| *it != GONE)
    }

    pub(crate) fn of(&self, slot: u32) -> &[Token] {
        let place = self.of.get(slot as usize).copied().unwrap_or(GONE);
        self.all.get(place as usize).map_or(&[], |it| it)
    }
}
