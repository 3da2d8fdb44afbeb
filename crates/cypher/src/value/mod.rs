//! The values of the language.
//!
//! Lists and maps know how large and how deep they are, counted as if nothing in them were shared, so that
//! a query cannot build in a few steps what takes forever to compare, print or drop: see [`Limits`].

mod compare;
mod fast;
mod print;

pub use compare::{Comparison, Key};
pub(crate) use fast::Fast;
pub(crate) use print::float as float_text;

use crate::element::{NodeId, Rel};
use crate::error::{Error, Result};
use crate::temporal::{Date, DateTime, Duration, LocalDateTime, LocalTime, Moment, Time, Zone};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How large one value may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes, counted as if nothing were shared.
    pub bytes_max: u64,
    /// How deep lists and maps may be in one another.
    pub depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            depth_max: 64,
        }
    }
}

/// A value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing is known.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// Values in order.
    List(Arc<List>),
    /// Values by name.
    Map(Arc<Map>),
    /// A node of the graph.
    Node(NodeId),
    /// A relationship of the graph.
    Rel(Rel),
    /// Nodes and the relationships between them.
    Path(Arc<Path>),
    /// A day.
    Date(Date),
    /// A time of day.
    LocalTime(LocalTime),
    /// A time of day with an offset from UTC.
    Time(Time),
    /// A day and a time.
    LocalDateTime(LocalDateTime),
    /// A day and a time in a zone.
    DateTime(Arc<DateTime>),
    /// Months, days and seconds.
    Duration(Duration),
}

/// Values in order.
#[derive(Debug, Default)]
pub struct List {
    items: Vec<Value>,
    size: Size,
}

/// Values by name.
#[derive(Debug, Default)]
pub struct Map {
    entries: BTreeMap<Arc<str>, Value>,
    size: Size,
}

#[derive(Clone, Copy, Debug, Default)]
struct Size {
    bytes: u64,
    depth: u32,
}

/// Nodes and the relationships between them: always one node more than relationships.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The nodes, in order.
    pub nodes: Vec<NodeId>,
    /// The relationships, in order; each leads between its two neighbors, in either direction.
    pub rels: Vec<Rel>,
}

/// What a value takes beside its contents.
const VALUE_BYTES: u64 = std::mem::size_of::<Value>() as u64;

impl Size {
    fn add(&mut self, value: &Value) {
        self.bytes = self.bytes.saturating_add(value.n_bytes());
        self.depth = self.depth.max(value.depth() + 1);
    }

    fn check(self, limits: Limits) -> Result<()> {
        if self.bytes > limits.bytes_max {
            return Err(too_large(limits));
        }
        if self.depth > limits.depth_max {
            let message = format!(
                "lists and maps are nested deeper than {} levels",
                limits.depth_max
            );
            return Err(Error::limit("ValueTooDeep", message));
        }
        Ok(())
    }
}

/// The error for a value that is over its limit.
pub(crate) fn too_large(limits: Limits) -> Error {
    let message = format!("a value is larger than {} bytes", limits.bytes_max);
    Error::limit("ValueTooLarge", message)
}

impl List {
    /// The values.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    /// The values with their names, by name.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.entries
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)
    }
}

impl Value {
    /// A text.
    #[must_use]
    pub fn str(text: impl AsRef<str>) -> Self {
        Self::Str(Arc::from(text.as_ref()))
    }

    /// A moment, as a day and a time in UTC.
    #[must_use]
    pub fn moment(moment: Moment) -> Self {
        let utc = DateTime::at(moment.seconds, i64::from(moment.nanos), Zone::UTC);
        Self::DateTime(Arc::new(utc))
    }

    /// A list of any size and depth within the default limits.
    ///
    /// # Errors
    ///
    /// The list is larger or deeper than a value may be.
    pub fn list(items: Vec<Self>) -> Result<Self> {
        Self::list_within(items, Limits::default())
    }

    /// A list within limits.
    ///
    /// # Errors
    ///
    /// The list is larger or deeper than the limits allow.
    pub fn list_within(items: Vec<Self>, limits: Limits) -> Result<Self> {
        let mut size = Size { bytes: 0, depth: 1 };
        for item in &items {
            size.add(item);
        }
        size.check(limits)?;
        Ok(Self::List(Arc::new(List { items, size })))
    }

    /// A map within the default limits.
    ///
    /// # Errors
    ///
    /// The map is larger or deeper than a value may be.
    pub fn map(entries: BTreeMap<Arc<str>, Self>) -> Result<Self> {
        Self::map_within(entries, Limits::default())
    }

    /// A map within limits.
    ///
    /// # Errors
    ///
    /// The map is larger or deeper than the limits allow.
    pub fn map_within(entries: BTreeMap<Arc<str>, Self>, limits: Limits) -> Result<Self> {
        let mut size = Size { bytes: 0, depth: 1 };
        for (name, item) in &entries {
            size.bytes = size.bytes.saturating_add(name.len() as u64 + VALUE_BYTES);
            size.add(item);
        }
        size.check(limits)?;
        Ok(Self::Map(Arc::new(Map { entries, size })))
    }

    /// What it takes, counted as if nothing were shared.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        let own = match self {
            Self::Str(it) => it.len() as u64,
            Self::List(it) => it.size.bytes,
            Self::Map(it) => it.size.bytes,
            Self::Path(it) => (it.nodes.len() * 8 + it.rels.len() * 32) as u64,
            Self::DateTime(_) => 48,
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Node(_)
            | Self::Rel(_)
            | Self::Date(_)
            | Self::LocalTime(_)
            | Self::Time(_)
            | Self::LocalDateTime(_)
            | Self::Duration(_) => 0,
        };
        own.saturating_add(VALUE_BYTES)
    }

    fn depth(&self) -> u32 {
        match self {
            Self::List(it) => it.size.depth,
            Self::Map(it) => it.size.depth,
            _ => 0,
        }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The name of its type, as error messages say it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "Null",
            Self::Bool(_) => "Boolean",
            Self::Int(_) => "Integer",
            Self::Float(_) => "Float",
            Self::Str(_) => "String",
            Self::List(_) => "List",
            Self::Map(_) => "Map",
            Self::Node(_) => "Node",
            Self::Rel(_) => "Relationship",
            Self::Path(_) => "Path",
            Self::Date(_) => "Date",
            Self::LocalTime(_) => "LocalTime",
            Self::Time(_) => "Time",
            Self::LocalDateTime(_) => "LocalDateTime",
            Self::DateTime(_) => "DateTime",
            Self::Duration(_) => "Duration",
        }
    }
}

impl From<bool> for Value {
    fn from(it: bool) -> Self {
        Self::Bool(it)
    }
}

impl From<i64> for Value {
    fn from(it: i64) -> Self {
        Self::Int(it)
    }
}

impl From<f64> for Value {
    fn from(it: f64) -> Self {
        Self::Float(it)
    }
}

impl From<&str> for Value {
    fn from(it: &str) -> Self {
        Self::str(it)
    }
}

impl From<Option<bool>> for Value {
    fn from(it: Option<bool>) -> Self {
        it.map_or(Self::Null, Self::Bool)
    }
}
