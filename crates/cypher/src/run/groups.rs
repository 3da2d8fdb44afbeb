//! Operators that must see all rows: grouping, sorting, and which rows are new.

use super::{Context, Flow, Held, Next, Row};
use crate::error::Result;
use crate::functions::State;
use crate::plan::{Aggregation, Op, Slot, Sort, X};
use crate::value::{Key, Value};
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// A row that waits to be sorted.
struct Waiting {
    keys: Vec<Value>,
    values: Vec<Value>,
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
        let mut places: HashMap<Vec<Key>, usize> = HashMap::new();
        let mut groups: Vec<Vec<State>> = Vec::new();
        let mut held = self.hold();
        let fresh = || -> Vec<State> {
            let states = aggregations.iter();
            states
                .map(|state| State::new(state.function, state.distinct))
                .collect()
        };
        if keys.is_empty() {
            groups.push(fresh());
        }
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let place = if keys.is_empty() {
                0
            } else {
                let mut key = Vec::with_capacity(keys.len());
                for (_, it) in keys {
                    key.push(Key(self.eval(it, row)?));
                }
                match places.entry(key) {
                    Entry::Occupied(it) => *it.get(),
                    Entry::Vacant(it) => {
                        let n_bytes: u64 = it.key().iter().map(|it| it.0.n_bytes()).sum();
                        held.add(n_bytes + 64 + 160 * aggregations.len() as u64)?;
                        groups.push(fresh());
                        *it.insert(groups.len() - 1)
                    }
                }
            };
            let Some(states) = groups.get_mut(place) else {
                return Ok(Flow::Continue);
            };
            for (aggregation, state) in aggregations.iter().zip(states) {
                let Some(argument) = &aggregation.argument else {
                    state.add_row();
                    continue;
                };
                let value = self.eval(argument, row)?;
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
        let mut ordered: Vec<Option<Vec<Key>>> = groups.iter().map(|_| None).collect();
        for (key, place) in places {
            if let Some(it) = ordered.get_mut(place) {
                *it = Some(key);
            }
        }
        for (key, states) in ordered.into_iter().zip(groups) {
            self.steps(1)?;
            for ((slot, _), value) in keys.iter().zip(key.unwrap_or_default()) {
                row[*slot] = value.0;
            }
            for (aggregation, state) in aggregations.iter().zip(states) {
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
        seen: &mut HashSet<Vec<Key>>,
        held: &mut Held<'_>,
        slots: &[Slot],
        row: &Row,
    ) -> Result<bool> {
        self.steps(1)?;
        let key: Vec<Key> = slots.iter().map(|it| Key(row[*it].clone())).collect();
        let n_bytes: u64 = key.iter().map(|it| it.0.n_bytes()).sum();
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
        let mut seen = HashSet::new();
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
        let compare = |a: &Waiting, b: &Waiting| -> Ordering {
            for ((a, b), (_, descending)) in a.keys.iter().zip(&b.keys).zip(&sort.keys) {
                let order = a.order(b);
                if order.is_ne() {
                    return if *descending { order.reverse() } else { order };
                }
            }
            Ordering::Equal
        };
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut held = self.hold();
        let mut is_cut = false;
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let mut keys = Vec::with_capacity(sort.keys.len());
            for (key, _) in &sort.keys {
                keys.push(self.eval(key, row)?);
            }
            let it = Waiting {
                keys,
                values: sort.slots.iter().map(|it| row[*it].clone()).collect(),
            };
            let values = it.keys.iter().chain(&it.values);
            let own = 48 + values.map(Value::n_bytes).sum::<u64>();
            // After the first cut, the last that is kept stands at its place: what comes after it is not wanted.
            if let (true, Some(wanted)) = (is_cut, wanted) {
                let last = wanted.checked_sub(1).and_then(|it| waiting.get(it));
                if last.is_some_and(|last| compare(&it, last).is_ge()) {
                    return Ok(Flow::Continue);
                }
            }
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
