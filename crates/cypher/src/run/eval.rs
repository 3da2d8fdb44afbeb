//! Expressions over a row.

use super::{Flow, Row};
use crate::ast::{Arith, Compare, Junction, Quantifier};
use crate::context::Context;
use crate::element::Token;
use crate::error::{Class, Error, Result};
use crate::moments;
use crate::plan::{Case, Key, ListComprehension, MapEntry, Op, Reduce, X};
use crate::value::{Comparison, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// From this size on, comparing a value with many others takes time.
const LONG_BYTES: u64 = 256;

#[inline(never)]
fn parameter(name: &str, value: Option<&Value>) -> Result<Value> {
    value.cloned().ok_or_else(|| {
        let message = format!("the parameter `${name}` is not given");
        Error::run(Class::ParameterMissing, "MissingParameter", message)
    })
}

impl Context<'_> {
    /// The value of an expression. Small cases stand here, so that the stack of deep expressions stays small.
    pub(crate) fn eval(&self, it: &X, row: &mut Row) -> Result<Value> {
        match it {
            X::Const(value) => Ok(value.clone()),
            X::Slot(slot) => Ok(row[*slot].clone()),
            X::Param(name, value) => parameter(name, value.as_ref()),
            X::Property(of, key) => self.property(of, key, row),
            X::Compare(first, rest) => self.comparisons(first, rest, row),
            X::HasLabels(of, labels) => self.has_labels(of, labels, row),
            X::Junction(kind, operands) => Ok(self.junction(*kind, operands, row)?.into()),
            X::Not(of) => self.not(of, row),
            X::IsNull(of, negated) => Ok(Value::Bool(self.eval(of, row)?.is_null() != *negated)),
            X::Arith(first, rest) => self.arithmetic(first, rest, row),
            X::Call(function, arguments) => {
                let arguments = self.eval_all(arguments, row)?;
                function.call(self, &arguments)
            }
            X::List(items) => {
                let items = self.eval_all(items, row)?;
                self.list(items)
            }
            X::Map(entries) => self.eval_map(entries, row),
            X::Index(of, index) => self.index(of, index, row),
            X::Slice(of, from, to) => self.slice(of, from.as_deref(), to.as_deref(), row),
            X::MapProjection(of, entries) => self.map_projection(of, entries, row),
            X::Negate(of) => self.negate(of, row),
            X::In(item, list) => self.is_in(item, list, row),
            X::TextTest(test, left, right) => self.text_test(*test, left, right, row),
            X::Case(case) => self.case(case, row),
            X::ListComprehension(it) => self.list_comprehension(it, row),
            X::Quantifier(kind, it) => self.quantifier(*kind, it, row),
            X::Reduce(it) => self.reduce(it, row),
            X::Collect(op, map) => self.collect(op, map, row),
            X::First(op, map) => self.first(op, map, row),
            X::Exists(op) => self.exists(op, row),
            X::Count(op) => self.count_rows(op, row),
        }
    }

    fn eval_all(&self, items: &[X], row: &mut Row) -> Result<Vec<Value>> {
        items.iter().map(|it| self.eval(it, row)).collect()
    }

    #[inline(never)]
    fn eval_map(&self, entries: &[(Arc<str>, X)], row: &mut Row) -> Result<Value> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            map.insert(Arc::clone(key), self.eval(value, row)?);
        }
        self.map(map)
    }

    #[inline(never)]
    fn property(&self, of: &X, key: &Key, row: &mut Row) -> Result<Value> {
        // A node is not copied to look at it.
        if let X::Slot(slot) = of {
            let of = &row[*slot];
            if let (Value::Node(node), Some(number)) = (of, key.number)
                && let Some(value) = self.graph.node_value(*node, number)
            {
                return Ok(value.clone());
            }
            return self.property_of(of, &key.name);
        }
        let of = self.eval(of, row)?;
        self.property_of(&of, &key.name)
    }

    /// The value of a simple expression where it lies, so that looking at it copies nothing.
    fn peek<'r>(&'r self, it: &'r X, row: &'r Row) -> Option<&'r Value> {
        match it {
            X::Const(value) => Some(value),
            X::Slot(slot) => Some(&row[*slot]),
            X::Param(_, value) => value.as_ref(),
            X::Property(of, key) => {
                let X::Slot(slot) = **of else { return None };
                match (&row[slot], key.number) {
                    (Value::Node(node), Some(number)) => self.graph.node_value(*node, number),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn property_of(&self, of: &Value, key: &str) -> Result<Value> {
        match of {
            Value::Node(it) => self.graph.node_property(*it, key),
            Value::Rel(it) => self.graph.rel_property(it, key),
            Value::Map(it) => Ok(it.get(key).cloned().unwrap_or_default()),
            Value::Null => Ok(Value::Null),
            Value::Date(_)
            | Value::LocalTime(_)
            | Value::Time(_)
            | Value::LocalDateTime(_)
            | Value::DateTime(_)
            | Value::Duration(_) => {
                let name = camel(key);
                moments::component(of, key)
                    .or_else(|| moments::component(of, &name))
                    .ok_or_else(|| {
                        let message = format!("{} has no field `{key}`", of.type_name());
                        Error::type_error(message)
                    })
            }
            other => {
                let message = format!("{} has no properties, so no `{key}`", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn has_labels(
        &self,
        of: &X,
        labels: &[(Arc<str>, Option<Token>)],
        row: &mut Row,
    ) -> Result<Value> {
        let node = match of {
            X::Slot(slot) => row[*slot].clone(),
            other => self.eval(other, row)?,
        };
        match node {
            Value::Null => Ok(Value::Null),
            Value::Node(node) => {
                for (_, token) in labels {
                    let has = match token {
                        Some(token) => self.graph.has_label(node, *token)?,
                        None => false,
                    };
                    if !has {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            Value::Rel(rel) => {
                let name = self.graph.type_name(rel.kind);
                Ok(Value::Bool(labels.iter().all(|it| it.0 == name)))
            }
            other => {
                let message = format!("{} has no labels", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    /// Whether a condition is true; none if that is not known.
    pub(super) fn truth(&self, it: &X, row: &mut Row) -> Result<Option<bool>> {
        let value = match it {
            X::Compare(first, rest) => {
                if let [(sign, second)] = &rest[..]
                    && let (Some(left), Some(right)) =
                        (self.peek(first, row), self.peek(second, row))
                {
                    self.steps((left.n_bytes() + right.n_bytes()) >> 8)?;
                    return Ok(compare(*sign, left, right));
                }
                self.comparisons(first, rest, row)?
            }
            X::TextTest(test, left, right) => {
                let (left, right) = (self.peek(left, row), self.peek(right, row));
                match (left, right) {
                    (Some(left), Some(right)) => self.test_text(*test, left, right)?,
                    _ => self.eval(it, row)?,
                }
            }
            X::Junction(kind, operands) => return self.junction(*kind, operands, row),
            other => self.eval(other, row)?,
        };
        match value {
            Value::Bool(it) => Ok(Some(it)),
            Value::Null => Ok(None),
            other => {
                let message = format!("expected a Boolean, found {}", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn not(&self, of: &X, row: &mut Row) -> Result<Value> {
        Ok(self.truth(of, row)?.map(|it| !it).into())
    }

    #[inline(never)]
    fn junction(&self, kind: Junction, operands: &[X], row: &mut Row) -> Result<Option<bool>> {
        let mut all = Some(kind == Junction::And);
        for (idx, operand) in operands.iter().enumerate() {
            let it = self.truth(operand, row)?;
            all = match kind {
                Junction::And if it == Some(false) => return Ok(Some(false)),
                Junction::Or if it == Some(true) => return Ok(Some(true)),
                Junction::Xor if idx == 0 => it,
                Junction::Xor => all.zip(it).map(|(a, b)| a != b),
                Junction::And | Junction::Or => all.zip(it).map(|(all, _)| all),
            };
        }
        Ok(all)
    }

    #[inline(never)]
    fn comparisons(&self, first: &X, rest: &[(Compare, X)], row: &mut Row) -> Result<Value> {
        let mut left = self.eval(first, row)?;
        let mut known = Some(true);
        for (sign, operand) in rest {
            let right = self.eval(operand, row)?;
            self.steps((left.n_bytes() + right.n_bytes()) >> 8)?;
            match compare(*sign, &left, &right) {
                Some(true) => {}
                Some(false) => return Ok(Value::Bool(false)),
                None => known = None,
            }
            left = right;
        }
        Ok(known.into())
    }

    #[inline(never)]
    fn is_in(&self, item: &X, list: &X, row: &mut Row) -> Result<Value> {
        let item = self.eval(item, row)?;
        let list = self.eval(list, row)?;
        let items = match &list {
            Value::Null => return Ok(Value::Null),
            Value::List(it) => it.items(),
            other => {
                let message = format!("`IN` needs a list, found {}", other.type_name());
                return Err(Error::type_error(message));
            }
        };
        self.steps(items.len() as u64 / 16)?;
        if item.n_bytes() >= LONG_BYTES {
            self.steps_to_read(&list)?;
        }
        let mut known = true;
        for it in items {
            match item.equals(it) {
                Some(true) => return Ok(Value::Bool(true)),
                Some(false) => {}
                None => known = false,
            }
        }
        Ok(if known {
            Value::Bool(false)
        } else {
            Value::Null
        })
    }

    #[inline(never)]
    fn negate(&self, of: &X, row: &mut Row) -> Result<Value> {
        match self.eval(of, row)? {
            Value::Null => Ok(Value::Null),
            Value::Int(it) => it
                .checked_neg()
                .map(Value::Int)
                .ok_or_else(|| Error::overflow(format!("-({it}) does not fit into 64 bits"))),
            Value::Float(it) => Ok(Value::Float(-it)),
            Value::Duration(it) => Ok(Value::Duration(it.negated()?)),
            other => {
                let message = format!("{} has no negative", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn arithmetic(&self, first: &X, rest: &[(Arith, X)], row: &mut Row) -> Result<Value> {
        let mut left = self.eval(first, row)?;
        for (sign, operand) in rest {
            let right = self.eval(operand, row)?;
            left = self.operate(*sign, left, right)?;
        }
        Ok(left)
    }

    fn operate(&self, sign: Arith, left: Value, right: Value) -> Result<Value> {
        match (sign, &left, &right) {
            (_, Value::Int(a), Value::Int(b)) => int_operation(sign, *a, *b),
            (_, Value::Int(a), Value::Float(b)) => Ok(float_operation(sign, *a as f64, *b)),
            (_, Value::Float(a), Value::Int(b)) => Ok(float_operation(sign, *a, *b as f64)),
            (_, Value::Float(a), Value::Float(b)) => Ok(float_operation(sign, *a, *b)),
            (Arith::Add, Value::List(a), Value::List(b)) => {
                self.check_size(left.n_bytes().saturating_add(right.n_bytes()))?;
                self.list(a.items().iter().chain(b.items()).cloned().collect())
            }
            (_, Value::Null, _) | (_, _, Value::Null) => Ok(Value::Null),
            (Arith::Add, Value::List(a), _) => {
                let mut items = a.items().to_vec();
                items.push(right);
                self.list(items)
            }
            (Arith::Add, _, Value::List(b)) => {
                let mut items = vec![left];
                items.extend_from_slice(b.items());
                self.list(items)
            }
            (Arith::Add, Value::Str(a), Value::Str(b)) => self.concat(a, b),
            (Arith::Add, Value::Str(a), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                self.concat(a, &right.to_string())
            }
            (Arith::Add, Value::Int(_) | Value::Float(_) | Value::Bool(_), Value::Str(b)) => {
                self.concat(&left.to_string(), b)
            }
            _ => temporal_operation(sign, &left, &right)?.ok_or_else(|| {
                let message = format!(
                    "{} and {} cannot be calculated with `{}`",
                    left.type_name(),
                    right.type_name(),
                    sign.sign()
                );
                Error::type_error(message)
            }),
        }
    }

    fn concat(&self, a: &str, b: &str) -> Result<Value> {
        let length = (a.len() + b.len()) as u64;
        self.check_size(length)?;
        self.steps(length >> 8)?;
        let mut text = String::with_capacity(a.len() + b.len());
        text.push_str(a);
        text.push_str(b);
        Ok(Value::Str(Arc::from(text)))
    }

    #[inline(never)]
    fn index(&self, of: &X, index: &X, row: &mut Row) -> Result<Value> {
        let of = self.eval(of, row)?;
        let index = self.eval(index, row)?;
        match (&of, &index) {
            (Value::Null, _) => Ok(Value::Null),
            (Value::List(_) | Value::Map(_) | Value::Node(_) | Value::Rel(_), Value::Null) => {
                Ok(Value::Null)
            }
            (Value::List(list), Value::Int(at)) => {
                let n = list.items().len() as i64;
                let at = if *at < 0 { at.saturating_add(n) } else { *at };
                let item = usize::try_from(at).ok().and_then(|at| list.items().get(at));
                Ok(item.cloned().unwrap_or_default())
            }
            (Value::List(_), other) => {
                let message = format!(
                    "the index of a list is an Integer, found {}",
                    other.type_name()
                );
                Err(Error::type_error(message))
            }
            (Value::Map(_) | Value::Node(_) | Value::Rel(_), Value::Str(key)) => {
                self.property_of(&of, key)
            }
            (Value::Map(_) | Value::Node(_) | Value::Rel(_), other) => {
                let message = format!("a key is a String, found {}", other.type_name());
                Err(Error::run(
                    Class::Type,
                    "MapElementAccessByNonString",
                    message,
                ))
            }
            (other, _) => {
                let message = format!("{} has no elements", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn slice(&self, of: &X, from: Option<&X>, to: Option<&X>, row: &mut Row) -> Result<Value> {
        let of = self.eval(of, row)?;
        let list = match &of {
            Value::Null => return Ok(Value::Null),
            Value::List(it) => it.items(),
            other => {
                let message = format!("only a List has a range, found {}", other.type_name());
                return Err(Error::type_error(message));
            }
        };
        let n = list.len() as i64;
        let mut bound = |it: Option<&X>, default: i64| -> Result<Option<usize>> {
            let at = match it.map(|it| self.eval(it, row)).transpose()? {
                None => default,
                Some(Value::Null) => return Ok(None),
                Some(Value::Int(it)) if it < 0 => it.saturating_add(n),
                Some(Value::Int(it)) => it,
                Some(other) => {
                    let message = format!(
                        "the bounds of a range are Integers, found {}",
                        other.type_name()
                    );
                    return Err(Error::type_error(message));
                }
            };
            Ok(usize::try_from(at.clamp(0, n)).ok())
        };
        let (Some(from), Some(to)) = (bound(from, 0)?, bound(to, n)?) else {
            return Ok(Value::Null);
        };
        let items = list.get(from..to.max(from)).unwrap_or_default();
        self.list(items.to_vec())
    }

    #[inline(never)]
    fn map_projection(&self, of: &X, entries: &[MapEntry], row: &mut Row) -> Result<Value> {
        let of = self.eval(of, row)?;
        if of.is_null() {
            return Ok(Value::Null);
        }
        let mut map = BTreeMap::new();
        for entry in entries {
            match entry {
                MapEntry::Property(key) => {
                    map.insert(Arc::clone(key), self.property_of(&of, key)?);
                }
                MapEntry::Entry(key, value) => {
                    map.insert(Arc::clone(key), self.eval(value, row)?);
                }
                MapEntry::Everything => match &of {
                    Value::Node(it) => map.extend(self.graph.node_properties(*it)?),
                    Value::Rel(it) => map.extend(self.graph.rel_properties(it)?),
                    Value::Map(it) => {
                        map.extend(
                            it.entries()
                                .iter()
                                .map(|entry| (Arc::clone(entry.0), entry.1.clone())),
                        );
                    }
                    other => {
                        let message = format!("{} has no properties", other.type_name());
                        return Err(Error::type_error(message));
                    }
                },
            }
        }
        self.map(map)
    }

    #[inline(never)]
    fn case(&self, case: &Case, row: &mut Row) -> Result<Value> {
        let subject = match &case.subject {
            Some(it) => Some(self.eval(it, row)?),
            None => None,
        };
        for (when, then) in &case.arms {
            let chosen = match &subject {
                Some(subject) => {
                    let when = self.eval(when, row)?;
                    subject.equals(&when) == Some(true)
                }
                None => self.truth(when, row)? == Some(true),
            };
            if chosen {
                return self.eval(then, row);
            }
        }
        match &case.otherwise {
            Some(it) => self.eval(it, row),
            None => Ok(Value::Null),
        }
    }

    /// The items of a list; none for null.
    fn items(&self, list: &X, row: &mut Row) -> Result<Option<Value>> {
        match self.eval(list, row)? {
            Value::Null => Ok(None),
            it @ Value::List(_) => Ok(Some(it)),
            other => {
                let message = format!("expected a List, found {}", other.type_name());
                Err(Error::type_error(message))
            }
        }
    }

    #[inline(never)]
    fn list_comprehension(&self, it: &ListComprehension, row: &mut Row) -> Result<Value> {
        let Some(Value::List(list)) = self.items(&it.list, row)? else {
            return Ok(Value::Null);
        };
        let mut built = self.list_builder();
        for item in list.items() {
            self.steps(1)?;
            row[it.slot] = item.clone();
            if let Some(filter) = &it.filter
                && self.truth(filter, row)? != Some(true)
            {
                continue;
            }
            built.push(match &it.map {
                Some(map) => self.eval(map, row)?,
                None => item.clone(),
            })?;
        }
        built.finish()
    }

    #[inline(never)]
    fn quantifier(&self, kind: Quantifier, it: &ListComprehension, row: &mut Row) -> Result<Value> {
        let Some(Value::List(list)) = self.items(&it.list, row)? else {
            return Ok(Value::Null);
        };
        let (mut n_true, mut n_false, mut n_unknown) = (0u64, 0u64, 0u64);
        for item in list.items() {
            self.steps(1)?;
            row[it.slot] = item.clone();
            let holds = match &it.filter {
                Some(filter) => self.truth(filter, row)?,
                None => Some(true),
            };
            match holds {
                Some(true) => n_true += 1,
                Some(false) => n_false += 1,
                None => n_unknown += 1,
            }
            // What is known now stays so.
            let decided = match kind {
                Quantifier::Any | Quantifier::None => n_true > 0,
                Quantifier::All => n_false > 0,
                Quantifier::Single => n_true > 1,
            };
            if decided {
                break;
            }
        }
        let known = match kind {
            Quantifier::Any if n_true > 0 => Some(true),
            Quantifier::None if n_true > 0 => Some(false),
            Quantifier::All if n_false > 0 => Some(false),
            Quantifier::Single if n_true > 1 => Some(false),
            _ if n_unknown > 0 => None,
            Quantifier::Any => Some(false),
            Quantifier::None | Quantifier::All => Some(true),
            Quantifier::Single => Some(n_true == 1),
        };
        Ok(known.into())
    }

    #[inline(never)]
    fn reduce(&self, it: &Reduce, row: &mut Row) -> Result<Value> {
        let start = self.eval(&it.start, row)?;
        let Some(Value::List(list)) = self.items(&it.list, row)? else {
            return Ok(Value::Null);
        };
        row[it.sum] = start;
        for item in list.items() {
            self.steps(1)?;
            row[it.slot] = item.clone();
            let sum = self.eval(&it.step, row)?;
            row[it.sum] = sum;
        }
        Ok(std::mem::take(&mut row[it.sum]))
    }

    #[inline(never)]
    fn collect(&self, op: &Op, map: &X, row: &mut Row) -> Result<Value> {
        let mut built = self.list_builder();
        self.run(op, row, &mut |row| {
            built.push(self.eval(map, row)?)?;
            Ok(Flow::Continue)
        })?;
        built.finish()
    }

    #[inline(never)]
    fn first(&self, op: &Op, map: &X, row: &mut Row) -> Result<Value> {
        let mut found = Value::Null;
        self.run(op, row, &mut |row| {
            found = self.eval(map, row)?;
            Ok(Flow::Stop)
        })?;
        Ok(found)
    }

    #[inline(never)]
    fn exists(&self, op: &Op, row: &mut Row) -> Result<Value> {
        let mut found = false;
        self.run(op, row, &mut |_| {
            found = true;
            Ok(Flow::Stop)
        })?;
        Ok(Value::Bool(found))
    }

    #[inline(never)]
    fn count_rows(&self, op: &Op, row: &mut Row) -> Result<Value> {
        let mut n = 0i64;
        self.run(op, row, &mut |_| {
            n += 1;
            Ok(Flow::Continue)
        })?;
        Ok(Value::Int(n))
    }
}

pub(crate) fn compare(sign: Compare, left: &Value, right: &Value) -> Option<bool> {
    let wanted: fn(Ordering) -> bool = match sign {
        Compare::Equal => return left.equals(right),
        Compare::NotEqual => return left.equals(right).map(|it| !it),
        Compare::Less => Ordering::is_lt,
        Compare::LessEqual => Ordering::is_le,
        Compare::Greater => Ordering::is_gt,
        Compare::GreaterEqual => Ordering::is_ge,
    };
    match left.compare(right) {
        Comparison::Ordered(it) => Some(wanted(it)),
        Comparison::Unordered => Some(false),
        Comparison::Unknown => None,
    }
}

fn int_operation(sign: Arith, a: i64, b: i64) -> Result<Value> {
    let by_zero = || {
        let message = format!("{a} {} 0 has no value", sign.sign());
        Error::run(Class::Arithmetic, "DivisionByZero", message)
    };
    let value = match sign {
        Arith::Add => a.checked_add(b),
        Arith::Subtract => a.checked_sub(b),
        Arith::Multiply => a.checked_mul(b),
        Arith::Divide | Arith::Modulo if b == 0 => return Err(by_zero()),
        Arith::Divide => a.checked_div(b),
        Arith::Modulo => Some(a.wrapping_rem(b)),
        Arith::Power => return Ok(float_operation(sign, a as f64, b as f64)),
    };
    value.map(Value::Int).ok_or_else(|| {
        let message = format!("{a} {} {b} does not fit into 64 bits", sign.sign());
        Error::overflow(message)
    })
}

fn float_operation(sign: Arith, a: f64, b: f64) -> Value {
    Value::Float(match sign {
        Arith::Add => a + b,
        Arith::Subtract => a - b,
        Arith::Multiply => a * b,
        Arith::Divide => a / b,
        Arith::Modulo => a % b,
        Arith::Power => a.powf(b),
    })
}

fn temporal_operation(sign: Arith, left: &Value, right: &Value) -> Result<Option<Value>> {
    let factor = |it: &Value| match it {
        Value::Int(it) => Some(*it as f64),
        Value::Float(it) => Some(*it),
        _ => None,
    };
    match (sign, left, right) {
        (Arith::Add, it, Value::Duration(by)) | (Arith::Add, Value::Duration(by), it) => {
            moments::add(it, *by)
        }
        (Arith::Subtract, it, Value::Duration(by)) => moments::add(it, by.negated()?),
        (Arith::Multiply, Value::Duration(it), by) | (Arith::Multiply, by, Value::Duration(it)) => {
            factor(by)
                .map(|by| it.scaled(by).map(Value::Duration))
                .transpose()
        }
        (Arith::Divide, Value::Duration(it), by) => match factor(by) {
            Some(0.0) => Err(Error::run(
                Class::Arithmetic,
                "DivisionByZero",
                "a duration cannot be divided by 0",
            )),
            Some(by) => Ok(Some(Value::Duration(it.scaled(1.0 / by)?))),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Names of fields have no case: `dayofweek` is `dayOfWeek`.
fn camel(key: &str) -> String {
    const NAMES: &[&str] = &[
        "weekYear",
        "dayOfQuarter",
        "quarterDay",
        "ordinalDay",
        "dayOfWeek",
        "weekDay",
        "offsetMinutes",
        "offsetSeconds",
        "epochSeconds",
        "epochMillis",
        "quartersOfYear",
        "monthsOfQuarter",
        "monthsOfYear",
        "daysOfWeek",
        "minutesOfHour",
        "secondsOfMinute",
        "millisecondsOfSecond",
        "microsecondsOfSecond",
        "nanosecondsOfSecond",
    ];
    let name = NAMES.iter().find(|it| it.eq_ignore_ascii_case(key));
    name.map_or_else(|| key.to_lowercase(), |it| (*it).to_owned())
}
