//! The three ways to compare: equality with unknowns (`=`), comparability (`<`), and the total order of
//! `ORDER BY`, with the equivalence of `DISTINCT` and grouping.

use super::{List, Map, Value};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What `<` and its like know about two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They stand in this order.
    Ordered(Ordering),
    /// One of them is not a number: every comparison is false.
    Unordered,
    /// They cannot be compared: every comparison is null.
    Unknown,
}

impl Value {
    /// Whether two values are equal; none if it is not known.
    #[must_use]
    pub fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => None,
            (Self::List(a), Self::List(b)) => lists_equal(a, b),
            (Self::Map(a), Self::Map(b)) => maps_equal(a, b),
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => {
                Some(int_float(*a, *b) == Some(Ordering::Equal))
            }
            (Self::Float(a), Self::Float(b)) => Some(a == b),
            _ => Some(self.equivalent(other)),
        }
    }

    /// What `<`, `<=`, `>` and `>=` know.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Comparison {
        use Comparison::{Ordered, Unknown, Unordered};
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Ordered(a.cmp(b)),
            (Self::Int(a), Self::Float(b)) => int_float(*a, *b).map_or(Unordered, Ordered),
            (Self::Float(a), Self::Int(b)) => {
                int_float(*b, *a).map_or(Unordered, |it| Ordered(it.reverse()))
            }
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).map_or(Unordered, Ordered),
            (Self::Str(a), Self::Str(b)) => Ordered(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Ordered(a.cmp(b)),
            (Self::List(a), Self::List(b)) => compare_lists(a, b),
            (Self::Date(_), Self::Date(_))
            | (Self::LocalTime(_), Self::LocalTime(_))
            | (Self::Time(_), Self::Time(_))
            | (Self::LocalDateTime(_), Self::LocalDateTime(_))
            | (Self::DateTime(_), Self::DateTime(_)) => Ordered(self.order(other)),
            _ => Unknown,
        }
    }

    /// The order of `ORDER BY`: total, across all types, null last.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => order_floats(*a, *b),
            (Self::Int(a), Self::Float(b)) => int_float(*a, *b).unwrap_or(Ordering::Less),
            (Self::Float(a), Self::Int(b)) => {
                int_float(*b, *a).map_or(Ordering::Greater, Ordering::reverse)
            }
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => {
                let mut pairs = a.items.iter().zip(&b.items).map(|(a, b)| a.order(b));
                pairs
                    .find(|it| it.is_ne())
                    .unwrap_or_else(|| a.items.len().cmp(&b.items.len()))
            }
            (Self::Map(a), Self::Map(b)) => {
                let pairs = a.entries.iter().zip(&b.entries);
                let mut pairs = pairs.map(|(a, b)| a.0.cmp(b.0).then_with(|| a.1.order(b.1)));
                let by_length = a.entries.len().cmp(&b.entries.len());
                by_length.then_with(|| pairs.find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
            }
            (Self::Node(a), Self::Node(b)) => a.cmp(b),
            (Self::Rel(a), Self::Rel(b)) => a.id.cmp(&b.id),
            (Self::Path(a), Self::Path(b)) => {
                let ids = |path: &super::Path| path.rels.iter().map(|it| it.id).collect::<Vec<_>>();
                let by_nodes = a.nodes.cmp(&b.nodes);
                by_nodes.then_with(|| ids(a).cmp(&ids(b)))
            }
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::LocalTime(a), Self::LocalTime(b)) => a.cmp(b),
            (Self::Time(a), Self::Time(b)) => a.order(b),
            (Self::LocalDateTime(a), Self::LocalDateTime(b)) => a.cmp(b),
            (Self::DateTime(a), Self::DateTime(b)) => a.order(b),
            (Self::Duration(a), Self::Duration(b)) => a.order(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Whether two values are the same for `DISTINCT` and grouping: null is null, and not-a-number itself.
    #[must_use]
    pub fn equivalent(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Str(a), Self::Str(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Node(a), Self::Node(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.items.len() == b.items.len()
                    && a.items.iter().zip(&b.items).all(|(a, b)| a.equivalent(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                let mut pairs = a.entries.iter().zip(&b.entries);
                a.entries.len() == b.entries.len()
                    && pairs.all(|(a, b)| a.0 == b.0 && a.1.equivalent(b.1))
            }
            _ => self.order(other).is_eq(),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Map(_) => 0,
            Self::Node(_) => 1,
            Self::Rel(_) => 2,
            Self::List(_) => 3,
            Self::Path(_) => 4,
            Self::DateTime(_) => 5,
            Self::LocalDateTime(_) => 6,
            Self::Date(_) => 7,
            Self::Time(_) => 8,
            Self::LocalTime(_) => 9,
            Self::Duration(_) => 10,
            Self::Str(_) => 11,
            Self::Bool(_) => 12,
            Self::Int(_) | Self::Float(_) => 13,
            Self::Null => 14,
        }
    }
}

/// Not-a-number is the largest number; both zeros are one.
fn order_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Compares without rounding the integer; none if the other is not a number.
fn int_float(a: i64, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    if b >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if b < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = b.trunc();
    let by_whole = a.cmp(&(whole as i64));
    Some(by_whole.then_with(|| 0.0f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal)))
}

fn lists_equal(a: &List, b: &List) -> Option<bool> {
    if a.items.len() != b.items.len() {
        return Some(false);
    }
    all_equal(a.items.iter().zip(&b.items))
}

fn maps_equal(a: &Map, b: &Map) -> Option<bool> {
    if !a.entries.keys().eq(b.entries.keys()) {
        return Some(false);
    }
    all_equal(a.entries.values().zip(b.entries.values()))
}

fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    let mut known = true;
    for (a, b) in pairs {
        match a.equals(b) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => known = false,
        }
    }
    known.then_some(true)
}

fn compare_lists(a: &List, b: &List) -> Comparison {
    for (a, b) in a.items.iter().zip(&b.items) {
        if a.equals(b) == Some(true) {
            continue;
        }
        return a.compare(b);
    }
    Comparison::Ordered(a.items.len().cmp(&b.items.len()))
}

/// A value as a key of a table: equal keys are equivalent values.
#[derive(Clone, Debug)]
pub struct Key(pub Value);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.equivalent(&other.0)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

pub(super) fn hash<H: Hasher>(value: &Value, state: &mut H) {
    state.write_u8(value.rank());
    match value {
        Value::Null => {}
        Value::Bool(it) => it.hash(state),
        // Equal numbers of both kinds have one hash: that of the nearest float.
        Value::Int(it) => hash_float(*it as f64, state),
        Value::Float(it) => hash_float(*it, state),
        Value::Str(it) => it.hash(state),
        Value::List(it) => {
            state.write_usize(it.items.len());
            for item in &it.items {
                hash(item, state);
            }
        }
        Value::Map(it) => {
            for (name, item) in &it.entries {
                name.hash(state);
                hash(item, state);
            }
        }
        Value::Node(it) => it.hash(state),
        Value::Rel(it) => it.id.hash(state),
        Value::Path(it) => it.nodes.hash(state),
        Value::Date(it) => it.hash(state),
        Value::LocalTime(it) => it.hash(state),
        Value::Time(it) => it.hash(state),
        Value::LocalDateTime(it) => it.hash(state),
        Value::DateTime(it) => it.instant().hash(state),
        Value::Duration(it) => it.hash(state),
    }
}

fn hash_float<H: Hasher>(it: f64, state: &mut H) {
    let it = if it == 0.0 { 0.0 } else { it };
    let it = if it.is_nan() { f64::NAN } else { it };
    state.write_u64(it.to_bits());
}
