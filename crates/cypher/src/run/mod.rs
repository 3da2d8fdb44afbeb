//! Running a plan.
//!
//! An operator passes each row on to the next one as soon as it has it, and is told whether to go on: rows
//! are never gathered where they need not be, and `LIMIT` ends what is before it. There is one row of slots,
//! which operators write to in place.

mod endpoints;
mod eval;
mod expand;
mod groups;
mod shortest;
mod texts;

use crate::context::Context;
use crate::element::{NodeId, Rel, Token};
use crate::error::{Class, Error, Result};
use crate::plan::{Op, OpKind, PathStep, Slot, X};
use crate::value::{Fast, Key, Path, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

pub(crate) type Row = [Value];
type Next<'n> = &'n mut dyn FnMut(&mut Row) -> Result<Flow>;

/// How many nodes a scan reads at one time.
const BATCH: usize = 256;

impl Context<'_> {
    /// Passes on the rows of an operator.
    pub(crate) fn run(&self, op: &Op, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        let Some(counts) = &self.counts else {
            return self.operator(op, row, next);
        };
        self.operator(op, row, &mut |row| {
            if let Some(count) = counts.borrow_mut().get_mut(op.id) {
                *count += 1;
            }
            next(row)
        })
    }

    fn operator(&self, op: &Op, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        match &op.kind {
            OpKind::Argument => next(row),
            OpKind::Scan { input, slot, label } => {
                let label = label.as_ref().map(|it| it.1);
                self.scan(input, *slot, label, row, next)
            }
            OpKind::Seek {
                input,
                slot,
                label,
                key,
                value,
            } => {
                let label = label.as_ref().map(|it| it.1);
                self.seek(input, *slot, label, key, value, row, next)
            }
            OpKind::ById { input, slot, value } => self.by_id(input, *slot, value, row, next),
            OpKind::Expand { input, step } => self.expand(input, step, row, next),
            OpKind::Far { input, step } => self.far(input, step, row, next),
            OpKind::Endpoints { input, step } => self.endpoints(input, step, row, next),
            OpKind::Shortest { input, step } => self.shortest(input, step, row, next),
            OpKind::Join {
                input,
                build,
                slot,
                build_key,
                probe_key,
            } => self.join(input, build, *slot, build_key, probe_key, row, next),
            OpKind::Filter { input, condition } => self.filter(input, condition, row, next),
            OpKind::IsNode { input, slot } => self.is_node(input, *slot, row, next),
            OpKind::Optional {
                input,
                inner,
                slots,
            } => self.optional(input, inner, slots, row, next),
            OpKind::BindPath {
                input,
                slot,
                start,
                steps,
            } => self.bind_path(input, *slot, *start, steps, row, next),
            OpKind::Unwind { input, list, slot } => self.unwind(input, list, *slot, row, next),
            OpKind::Project { input, items } => self.project(input, items, row, next),
            OpKind::Aggregate {
                input,
                keys,
                aggregations,
            } => self.aggregate(input, keys, aggregations, row, next),
            OpKind::Distinct { input, slots } => self.distinct(input, slots, row, next),
            OpKind::Sort { input, sort } => self.sort(input, sort, row, next),
            OpKind::Skip { input, n } => self.skip(input, n, row, next),
            OpKind::Limit { input, n } => self.limit(input, n, row, next),
            OpKind::Call {
                input,
                procedure,
                arguments,
                columns,
            } => self.call(input, procedure, arguments, columns, row, next),
            OpKind::Union {
                parts,
                slots,
                distinct,
            } => self.union(parts, slots, *distinct, row, next),
            OpKind::CountNodes { label, slots } => {
                let n = match label {
                    Some((_, None)) => 0,
                    Some((_, Some(token))) => self.graph.n_nodes(Some(*token)),
                    None => self.graph.n_nodes(None),
                };
                self.count(n, slots, row, next)
            }
            OpKind::CountRels { types, slots } => {
                let n = if types.names.is_empty() {
                    self.graph.n_rels(None)
                } else {
                    types
                        .tokens
                        .iter()
                        .map(|it| self.graph.n_rels(Some(*it)))
                        .sum()
                };
                self.count(n, slots, row, next)
            }
        }
    }

    fn count(&self, n: u64, slots: &[Slot], row: &mut Row, next: Next<'_>) -> Result<Flow> {
        for slot in slots {
            row[*slot] = Value::Int(n.cast_signed());
        }
        next(row)
    }

    #[inline(never)]
    fn scan(
        &self,
        input: &Op,
        slot: Slot,
        label: Option<Option<Token>>,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let label = match label {
            // A label that no node has.
            Some(None) => return Ok(Flow::Continue),
            Some(it) => it,
            None => None,
        };
        self.run(input, row, &mut |row| {
            let mut after: Option<NodeId> = None;
            let mut batch = Vec::new();
            loop {
                batch.clear();
                self.graph.nodes(label, after, BATCH, &mut batch)?;
                let Some(last) = batch.last() else {
                    return Ok(Flow::Continue);
                };
                after = Some(*last);
                for node in &batch {
                    self.steps(1)?;
                    row[slot] = Value::Node(*node);
                    if next(row)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
        })
    }

    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the fields of one operator")]
    fn seek(
        &self,
        input: &Op,
        slot: Slot,
        label: Option<Token>,
        key: &Arc<str>,
        value: &X,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let value = self.eval(value, row)?;
            // Nothing equals null, and not-a-number not even itself.
            if value.equals(&value) != Some(true) {
                return Ok(Flow::Continue);
            }
            let mut found = Vec::new();
            self.graph
                .nodes_by_property(label, key, &value, &mut found)?;
            for node in found {
                self.steps(1)?;
                row[slot] = Value::Node(node);
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }

    #[inline(never)]
    fn by_id(
        &self,
        input: &Op,
        slot: Slot,
        value: &X,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let node = match self.eval(value, row)? {
                Value::Int(it) => NodeId(it.cast_unsigned()),
                Value::Float(it) if it.fract() == 0.0 && (0.0..9e15).contains(&it) => {
                    NodeId(it as u64)
                }
                _ => return Ok(Flow::Continue),
            };
            if !self.graph.has_node(node)? {
                return Ok(Flow::Continue);
            }
            row[slot] = Value::Node(node);
            next(row)
        })
    }

    #[inline(never)]
    fn filter(&self, input: &Op, condition: &X, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            if self.holds(condition, row)? {
                return next(row);
            }
            Ok(Flow::Continue)
        })
    }

    /// Whether a condition is true; null is not.
    fn holds(&self, condition: &X, row: &mut Row) -> Result<bool> {
        Ok(self.truth(condition, row)? == Some(true))
    }

    #[inline(never)]
    fn is_node(&self, input: &Op, slot: Slot, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            if self.node(&row[slot])?.is_some() {
                return next(row);
            }
            Ok(Flow::Continue)
        })
    }

    /// The node that a slot has; none for null.
    fn node(&self, value: &Value) -> Result<Option<NodeId>> {
        match value {
            Value::Node(it) => Ok(Some(*it)),
            Value::Null => Ok(None),
            other => {
                let message = format!("expected a Node, found {}", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn optional(
        &self,
        input: &Op,
        inner: &Op,
        slots: &[Slot],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let mut found = false;
            let flow = self.run(inner, row, &mut |row| {
                found = true;
                next(row)
            })?;
            if found || flow == Flow::Stop {
                return Ok(flow);
            }
            for slot in slots {
                row[*slot] = Value::Null;
            }
            next(row)
        })
    }

    #[inline(never)]
    fn bind_path(
        &self,
        input: &Op,
        slot: Slot,
        start: Slot,
        steps: &[PathStep],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let Some(mut node) = self.node(&row[start])? else {
                return Ok(Flow::Continue);
            };
            let mut path = Path {
                nodes: vec![node],
                rels: Vec::new(),
            };
            for step in steps {
                let rels: Vec<Rel> = match &row[step.rel] {
                    Value::Rel(it) => vec![*it],
                    Value::List(it) => it
                        .items()
                        .iter()
                        .filter_map(|it| match it {
                            Value::Rel(it) => Some(*it),
                            _ => None,
                        })
                        .collect(),
                    _ => Vec::new(),
                };
                for rel in rels {
                    node = if rel.start == node {
                        rel.end
                    } else {
                        rel.start
                    };
                    path.nodes.push(node);
                    path.rels.push(rel);
                }
            }
            self.steps(path.rels.len() as u64)?;
            row[slot] = Value::Path(Arc::new(path));
            next(row)
        })
    }

    #[inline(never)]
    fn unwind(
        &self,
        input: &Op,
        list: &X,
        slot: Slot,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let list = self.eval(list, row)?;
            let mut held = self.hold();
            held.add(list.n_bytes())?;
            let items = match &list {
                Value::Null => return Ok(Flow::Continue),
                Value::List(it) => it.items(),
                one => std::slice::from_ref(one),
            };
            for item in items {
                self.steps(1)?;
                row[slot] = item.clone();
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }

    #[inline(never)]
    fn project(
        &self,
        input: &Op,
        items: &[(Slot, X)],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut held = self.hold();
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let mut n_bytes = 0u64;
            for (slot, item) in items {
                let value = self.eval(item, row)?;
                n_bytes = n_bytes.saturating_add(value.n_bytes());
                row[*slot] = value;
            }
            held.replace(n_bytes)?;
            next(row)
        })
    }

    fn row_count(&self, n: &X, row: &mut Row, word: &str) -> Result<u64> {
        let fail = |detail, message| Err(Error::run(Class::Syntax, detail, message));
        match self.eval(n, row)? {
            Value::Int(n) => match u64::try_from(n) {
                Ok(n) => Ok(n),
                Err(_) => {
                    let message = format!("`{word}` is {n}: it cannot be negative");
                    fail("NegativeIntegerArgument", message)
                }
            },
            other => {
                let message = format!("`{word}` needs an Integer, found {}", other.type_name());
                fail("InvalidArgumentType", message)
            }
        }
    }

    #[inline(never)]
    fn skip(&self, input: &Op, n: &X, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        let mut left = self.row_count(n, row, "SKIP")?;
        self.run(input, row, &mut |row| {
            if left > 0 {
                left -= 1;
                return Ok(Flow::Continue);
            }
            next(row)
        })
    }

    #[inline(never)]
    fn limit(&self, input: &Op, n: &X, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        let mut left = self.row_count(n, row, "LIMIT")?;
        if left == 0 {
            return Ok(Flow::Continue);
        }
        self.run(input, row, &mut |row| {
            left -= 1;
            let flow = next(row)?;
            Ok(if left == 0 { Flow::Stop } else { flow })
        })
    }

    #[inline(never)]
    fn call(
        &self,
        input: &Op,
        procedure: &str,
        arguments: &[X],
        columns: &[(usize, Slot)],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let arguments = arguments.iter().map(|it| self.eval(it, row));
            let arguments = arguments.collect::<Result<Vec<Value>>>()?;
            self.budget.check_stop()?;
            let n_max = usize::try_from(self.budget.rows_max).unwrap_or(usize::MAX);
            let found = self.procedures.call(procedure, &arguments, n_max)?;
            for values in found {
                self.steps(1)?;
                for (place, slot) in columns {
                    row[*slot] = values.get(*place).cloned().unwrap_or_default();
                }
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }

    #[inline(never)]
    fn union(
        &self,
        parts: &[(Op, Vec<Slot>)],
        slots: &[Slot],
        distinct: bool,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut seen: HashSet<Vec<Key>, Fast> = HashSet::default();
        let mut held = self.hold();
        let mut stopped = false;
        for (op, from) in parts {
            self.run(op, row, &mut |row| {
                for (slot, from) in slots.iter().zip(from) {
                    row[*slot] = row[*from].clone();
                }
                if distinct && !self.is_new(&mut seen, &mut held, slots, row)? {
                    return Ok(Flow::Continue);
                }
                let flow = next(row)?;
                stopped = flow == Flow::Stop;
                Ok(flow)
            })?;
            // A limit of one part does not end the others.
            if stopped {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the fields of one operator")]
    fn join(
        &self,
        input: &Op,
        build: &Op,
        slot: Slot,
        build_key: &X,
        probe_key: &X,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut table: Option<HashMap<Key, Vec<NodeId>, Fast>> = None;
        let mut held = self.hold();
        self.run(input, row, &mut |row| {
            if table.is_none() {
                let mut built: HashMap<Key, Vec<NodeId>, Fast> = HashMap::default();
                self.run(build, row, &mut |row| {
                    let key = self.eval(build_key, row)?;
                    if let (Value::Node(node), false) = (&row[slot], key.is_null()) {
                        held.add(key.n_bytes() + 32)?;
                        built.entry(Key(key)).or_default().push(*node);
                    }
                    Ok(Flow::Continue)
                })?;
                table = Some(built);
            }
            let key = self.eval(probe_key, row)?;
            let found = table.as_ref().and_then(|it| it.get(&Key(key.clone())));
            let Some(found) = found else {
                return Ok(Flow::Continue);
            };
            // Keys of one place in the table are equivalent; equal is less, as null and not-a-number show.
            if key.equals(&key) != Some(true) {
                return Ok(Flow::Continue);
            }
            for node in found {
                self.steps(1)?;
                row[slot] = Value::Node(*node);
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }
}
