//! Operators that must see all rows: grouping, sorting, and which rows are new.

use super::{Flow, Next, Row};
use crate::context::{Context, Held};
use crate::element::NodeId;
use crate::error::Result;
use crate::functions::State;
use crate::plan::{Aggregation, Op, Slot, Sort, X};
use crate::value::{Fast, Key, Value};
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// A row that waits to be sorted.
struct Waiting {
    keys: Vec<Value>,
    values: Vec<Value>,
}

/// The one slot that all keys are about, if they are it or its properties.
fn subject(keys: &[(Slot, X)]) -> Option<Slot> {
    let slot = |it: &X| match it {
        X::Slot(slot) => Some(*slot),
        X::Property(of, _) => match **of {
            X::Slot(slot) => Some(slot),
            _ => None,
        },
        _ => None,
    };
    let mut slots = keys.iter().map(|it| slot(&it.1));
    let first = slots.next()??;
    slots.all(|it| it == Some(first)).then_some(first)
}

/// Groups by their keys, in the order in which they were first seen.
struct Groups {
    n_keys: usize,
    hash: Fast,
    /// The first group of a hash.
    places: HashMap<u64, usize, Fast>,
    /// For each group the next one of the same hash.
    others: Vec<Option<usize>>,
    /// The keys of all groups, one after another.
    keys: Vec<Value>,
    /// The group that was asked for last: rows of one group often follow one another.
    last: usize,
}

impl Groups {
    fn keys_of(&self, group: usize) -> &[Value] {
        let first = group * self.n_keys;
        self.keys
            .get(first..first + self.n_keys)
            .unwrap_or_default()
    }

    fn is(&self, group: usize, keys: &[Value]) -> bool {
        let own = self.keys_of(group).iter();
        own.zip(keys).all(|(own, it)| own.equivalent(it))
    }

    /// The group of these keys, and whether it is a new one.
    fn find(&mut self, keys: &[Value]) -> (usize, bool) {
        if self.last < self.others.len() && self.is(self.last, keys) {
            return (self.last, false);
        }
        let hash = self.hash.of(keys);
        let new = self.others.len();
        let mut at = match self.places.entry(hash) {
            Entry::Occupied(it) => *it.get(),
            Entry::Vacant(it) => *it.insert(new),
        };
        while at != new {
            if self.is(at, keys) {
                self.last = at;
                return (at, false);
            }
            at = match self.others.get_mut(at) {
                Some(Some(next)) => *next,
                Some(none) => *none.insert(new),
                None => new,
            };
        }
        self.others.push(None);
        self.keys.extend_from_slice(keys);
        self.last = new;
        (new, true)
    }
}

impl Context<'_> {
    #[inline(never)]
    pub(super) fn aggregate(
        &self,
        input: &Op,
        keys: &[(Slot, X)],
        aggregations: &[Aggregation],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut groups = Groups {
            n_keys: keys.len(),
            hash: Fast::default(),
            places: HashMap::default(),
            others: Vec::new(),
            keys: Vec::new(),
            last: 0,
        };
        let n_states = aggregations.len();
        let mut states: Vec<State> = Vec::new();
        let mut held = self.hold();
        let fresh = || {
            let states = aggregations.iter();
            states.map(|state| State::new(state.function, state.distinct))
        };
        if keys.is_empty() {
            states.extend(fresh());
        }
        let mut key: Vec<Value> = Vec::with_capacity(keys.len());
        // Rows of one node follow one another, and keys that are only about it are the same for all of them.
        let subject = subject(keys);
        let mut last: Option<(NodeId, usize)> = None;
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let mut place = 0;
            let node = subject.and_then(|it| match &row[it] {
                Value::Node(node) => Some(*node),
                _ => None,
            });
            if let (Some((known, group)), Some(node)) = (last, node)
                && known == node
            {
                place = group * n_states;
            } else if !keys.is_empty() {
                key.clear();
                for (_, it) in keys {
                    let value = self.eval(it, row)?;
                    self.steps_to_read(&value)?;
                    key.push(value);
                }
                let (found, is_new) = groups.find(&key);
                if is_new {
                    let n_bytes: u64 = key.iter().map(Value::n_bytes).sum();
                    held.add(n_bytes + 64 + 160 * n_states as u64)?;
                    states.extend(fresh());
                }
                place = found * n_states;
                last = node.map(|it| (it, found));
            }
            let states = states.get_mut(place..).unwrap_or_default();
            for (aggregation, state) in aggregations.iter().zip(states) {
                let argument = match &aggregation.argument {
                    None => {
                        state.add_row();
                        continue;
                    }
                    Some(X::Slot(slot)) if state.is_plain_count() => {
                        if !row[*slot].is_null() {
                            state.add_row();
                        }
                        continue;
                    }
                    Some(argument) => argument,
                };
                let value = self.eval(argument, row)?;
                self.steps_to_read(&value)?;
                let second = match &aggregation.second {
                    Some(it) => Some(self.eval(it, row)?),
                    None => None,
                };
                if !value.is_null() {
                    state.add(value, second, &mut held)?;
                }
            }
            Ok(Flow::Continue)
        })?;
        let n_groups = if keys.is_empty() {
            1
        } else {
            groups.others.len()
        };
        let mut states = states.into_iter();
        for group in 0..n_groups {
            self.steps(1)?;
            for ((slot, _), value) in keys.iter().zip(groups.keys_of(group)) {
                row[*slot] = value.clone();
            }
            for (aggregation, state) in aggregations.iter().zip(states.by_ref().take(n_states)) {
                row[aggregation.slot] = state.finish(self)?;
            }
            if next(row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    pub(super) fn is_new(
        &self,
        seen: &mut HashSet<Vec<Key>, Fast>,
        held: &mut Held<'_>,
        slots: &[Slot],
        row: &Row,
    ) -> Result<bool> {
        self.steps(1)?;
        let key: Vec<Key> = slots.iter().map(|it| Key(row[*it].clone())).collect();
        let n_bytes: u64 = key.iter().map(|it| it.0.n_bytes()).sum();
        self.steps(n_bytes >> 8)?;
        if !seen.insert(key) {
            return Ok(false);
        }
        held.add(n_bytes + 48)?;
        Ok(true)
    }

    #[inline(never)]
    pub(super) fn distinct(
        &self,
        input: &Op,
        slots: &[Slot],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut seen = HashSet::default();
        let mut held = self.hold();
        self.run(input, row, &mut |row| {
            if self.is_new(&mut seen, &mut held, slots, row)? {
                return next(row);
            }
            Ok(Flow::Continue)
        })
    }

    #[inline(never)]
    pub(super) fn sort(
        &self,
        input: &Op,
        sort: &Sort,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let wanted = match &sort.top {
            None => None,
            Some((skip, limit)) => {
                let skip = match skip {
                    Some(skip) => self.row_count(skip, row, "SKIP")?,
                    None => 0,
                };
                let n = self.row_count(limit, row, "LIMIT")?.saturating_add(skip);
                Some(usize::try_from(n).unwrap_or(usize::MAX))
            }
        };
        if wanted == Some(0) {
            return Ok(Flow::Continue);
        }
        let compare_keys = |a: &[Value], b: &[Value]| -> Ordering {
            for ((a, b), (_, descending)) in a.iter().zip(b).zip(&sort.keys) {
                let order = a.order(b);
                if order.is_ne() {
                    return if *descending { order.reverse() } else { order };
                }
            }
            Ordering::Equal
        };
        let compare = |a: &Waiting, b: &Waiting| compare_keys(&a.keys, &b.keys);
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut held = self.hold();
        let mut is_cut = false;
        let mut keys: Vec<Value> = Vec::with_capacity(sort.keys.len());
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            keys.clear();
            for (key, _) in &sort.keys {
                let value = self.eval(key, row)?;
                self.steps_to_read(&value)?;
                keys.push(value);
            }
            // After the first cut, the last that is kept stands at its place: what comes after it is not wanted.
            if let (true, Some(wanted)) = (is_cut, wanted) {
                let last = wanted.checked_sub(1).and_then(|it| waiting.get(it));
                if last.is_some_and(|last| compare_keys(&keys, &last.keys).is_ge()) {
                    return Ok(Flow::Continue);
                }
            }
            let it = Waiting {
                keys: std::mem::replace(&mut keys, Vec::with_capacity(sort.keys.len())),
                values: sort.slots.iter().map(|it| row[*it].clone()).collect(),
            };
            let values = it.keys.iter().chain(&it.values);
            let own = 48 + values.map(Value::n_bytes).sum::<u64>();
            held.add(own)?;
            waiting.push(it);
            if let Some(wanted) = wanted
                && waiting.len() >= wanted.saturating_mul(2).max(wanted.saturating_add(64))
            {
                waiting.sort_by(compare);
                waiting.truncate(wanted);
                let kept = waiting
                    .iter()
                    .flat_map(|it| it.keys.iter().chain(&it.values));
                let n_bytes = kept.map(Value::n_bytes).sum::<u64>() + 48 * waiting.len() as u64;
                held.replace(n_bytes)?;
                is_cut = true;
            }
            Ok(Flow::Continue)
        })?;
        self.steps(waiting.len() as u64)?;
        waiting.sort_by(compare);
        if let Some(wanted) = wanted {
            waiting.truncate(wanted);
        }
        for it in waiting {
            for (slot, value) in sort.slots.iter().zip(it.values) {
                row[*slot] = value;
            }
            if next(row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}
