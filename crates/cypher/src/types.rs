//! What is known of a value's type before the query runs.

use crate::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    /// Anything: known only when the query runs.
    Any,
    Null,
    Bool,
    Int,
    Float,
    /// An integer or a float.
    Number,
    Str,
    List(Box<Ty>),
    Map,
    Node,
    Rel,
    Path,
    /// A point in time.
    Temporal,
    Duration,
}

impl Ty {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Int(_) => Self::Int,
            Value::Float(_) => Self::Float,
            Value::Str(_) => Self::Str,
            Value::List(it) => Self::list(it.items().iter().map(Self::of)),
            Value::Map(_) => Self::Map,
            Value::Node(_) => Self::Node,
            Value::Rel(_) => Self::Rel,
            Value::Path(_) => Self::Path,
            Value::Date(_)
            | Value::LocalTime(_)
            | Value::Time(_)
            | Value::LocalDateTime(_)
            | Value::DateTime(_) => Self::Temporal,
            Value::Duration(_) => Self::Duration,
        }
    }

    /// A list of values of these types.
    pub(crate) fn list(items: impl Iterator<Item = Self>) -> Self {
        let joined = items.reduce(Self::join).unwrap_or(Self::Any);
        Self::List(Box::new(joined))
    }

    /// The common type of two values.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Null, it) | (it, Self::Null) => it,
            (Self::Int | Self::Float | Self::Number, Self::Int | Self::Float | Self::Number) => {
                Self::Number
            }
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join(*b))),
            _ => Self::Any,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Any | Self::Null)
    }

    pub(crate) fn may_be_bool(&self) -> bool {
        self.is_unknown() || *self == Self::Bool
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Float | Self::Number)
    }

    pub(crate) fn item(&self) -> Self {
        match self {
            Self::List(item) => (**item).clone(),
            _ => Self::Any,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Any => "Any",
            Self::Null => "Null",
            Self::Bool => "Boolean",
            Self::Int => "Integer",
            Self::Float => "Float",
            Self::Number => "Number",
            Self::Str => "String",
            Self::List(_) => "List",
            Self::Map => "Map",
            Self::Node => "Node",
            Self::Rel => "Relationship",
            Self::Path => "Path",
            Self::Temporal => "a point in time",
            Self::Duration => "Duration",
        }
    }
}
