//! A query as it runs: operators that pass rows on, and expressions over the slots of a row.
//!
//! A query has one row of slots. Each slot is written by one operator, and a variable is a slot: `WITH`
//! changes which names there are, and copies nothing.

mod describe;

pub use describe::Step;
pub(crate) use describe::describe;

use crate::ast::{Arith, Compare, Junction, Quantifier, TextTest};
use crate::element::{Direction, Token};
use crate::functions::{Aggregate, Function};
use crate::value::Value;
use std::sync::Arc;

/// A place in the row.
pub(crate) type Slot = usize;

/// The name of a property.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: Arc<str>,
    /// Its number, if the graph has one.
    pub(crate) number: Option<Token>,
}

/// An expression.
#[derive(Debug)]
pub(crate) enum X {
    Const(Value),
    /// A parameter, and its value if it is given.
    Param(Arc<str>, Option<Value>),
    Slot(Slot),
    Property(Box<X>, Key),
    Index(Box<X>, Box<X>),
    Slice(Box<X>, Option<Box<X>>, Option<Box<X>>),
    /// A label that no node has is none.
    HasLabels(Box<X>, Vec<(Arc<str>, Option<Token>)>),
    List(Vec<X>),
    Map(Vec<(Arc<str>, X)>),
    MapProjection(Box<X>, Vec<MapEntry>),
    Call(Function, Vec<X>),
    Not(Box<X>),
    Negate(Box<X>),
    Junction(Junction, Vec<X>),
    Arith(Box<X>, Vec<(Arith, X)>),
    Compare(Box<X>, Vec<(Compare, X)>),
    In(Box<X>, Box<X>),
    TextTest(TextTest, Box<X>, Box<X>),
    IsNull(Box<X>, bool),
    Case(Box<Case>),
    ListComprehension(Box<ListComprehension>),
    Quantifier(Quantifier, Box<ListComprehension>),
    Reduce(Box<Reduce>),
    /// The values of an expression over the rows of a pattern.
    Collect(Box<Op>, Box<X>),
    /// The value of the first row, or null.
    First(Box<Op>, Box<X>),
    Exists(Box<Op>),
    Count(Box<Op>),
}

#[derive(Debug)]
pub(crate) enum MapEntry {
    Property(Arc<str>),
    Everything,
    Entry(Arc<str>, X),
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) subject: Option<X>,
    pub(crate) arms: Vec<(X, X)>,
    pub(crate) otherwise: Option<X>,
}

#[derive(Debug)]
pub(crate) struct ListComprehension {
    pub(crate) slot: Slot,
    pub(crate) list: X,
    pub(crate) filter: Option<X>,
    pub(crate) map: Option<X>,
}

#[derive(Debug)]
pub(crate) struct Reduce {
    pub(crate) sum: Slot,
    pub(crate) start: X,
    pub(crate) slot: Slot,
    pub(crate) list: X,
    pub(crate) step: X,
}

/// One step of a plan.
#[derive(Debug)]
pub(crate) struct Op {
    /// Its number, for the counts of `PROFILE`.
    pub(crate) id: usize,
    /// The estimated number of rows.
    pub(crate) estimate: f64,
    pub(crate) kind: OpKind,
}

/// The relationships that a step may follow.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    pub(crate) names: Vec<Arc<str>>,
    /// Those of them that the graph has.
    pub(crate) tokens: Vec<Token>,
}

impl Types {
    /// Whether types are named and the graph has none of them.
    pub(crate) fn is_impossible(&self) -> bool {
        !self.names.is_empty() && self.tokens.is_empty()
    }

    pub(crate) fn allows(&self, kind: Token) -> bool {
        self.names.is_empty() || self.tokens.contains(&kind)
    }

    /// Whether no relationship can be of both.
    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        !self.names.is_empty()
            && !other.names.is_empty()
            && !self.tokens.iter().any(|it| other.tokens.contains(it))
    }
}

/// A step along one relationship.
#[derive(Debug)]
pub(crate) struct Expand {
    pub(crate) from: Slot,
    pub(crate) rel: Slot,
    pub(crate) to: Slot,
    /// Seen from `from`.
    pub(crate) direction: Direction,
    pub(crate) types: Types,
    /// Whether `to` has a value already.
    pub(crate) into: bool,
    /// Relationships, and lists of them, that this one must not be.
    pub(crate) unique: Vec<Slot>,
}

/// A step along several relationships.
#[derive(Debug)]
pub(crate) struct Far {
    pub(crate) step: Expand,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Whether the pattern reads from `to` to `from`.
    pub(crate) reversed: bool,
    /// What each relationship must be, and the slot that it is seen in.
    pub(crate) filter: Option<(Slot, X)>,
}

/// A relationship, or a list of them, that is known before its pattern is read.
#[derive(Debug)]
pub(crate) struct Endpoints {
    pub(crate) from: Slot,
    pub(crate) rel: Slot,
    pub(crate) to: Slot,
    pub(crate) direction: Direction,
    pub(crate) types: Types,
    pub(crate) from_known: bool,
    pub(crate) to_known: bool,
    /// Least and most, if it is a list.
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) filter: Option<(Slot, X)>,
    pub(crate) unique: Vec<Slot>,
}

#[derive(Debug)]
pub(crate) struct Shortest {
    pub(crate) far: Far,
    pub(crate) path: Slot,
    pub(crate) all: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PathStep {
    pub(crate) rel: Slot,
    pub(crate) node: Slot,
}

#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) slot: Slot,
    pub(crate) function: Aggregate,
    pub(crate) distinct: bool,
    /// None is `count(*)`.
    pub(crate) argument: Option<X>,
    /// The second argument of percentiles.
    pub(crate) second: Option<X>,
}

#[derive(Debug)]
pub(crate) struct Sort {
    pub(crate) keys: Vec<(X, bool)>,
    /// What is kept of each row.
    pub(crate) slots: Vec<Slot>,
    /// `SKIP` and `LIMIT`: only so many rows are kept at all.
    pub(crate) top: Option<(Option<X>, X)>,
}

#[derive(Debug)]
pub(crate) enum OpKind {
    /// The row as it comes.
    Argument,
    Scan {
        input: Box<Op>,
        slot: Slot,
        /// None is all nodes; a label that no node has is an inner none.
        label: Option<(Arc<str>, Option<Token>)>,
    },
    Seek {
        input: Box<Op>,
        slot: Slot,
        label: Option<(Arc<str>, Token)>,
        key: Arc<str>,
        value: X,
    },
    ById {
        input: Box<Op>,
        slot: Slot,
        value: X,
    },
    Expand {
        input: Box<Op>,
        step: Expand,
    },
    Far {
        input: Box<Op>,
        step: Box<Far>,
    },
    Endpoints {
        input: Box<Op>,
        step: Box<Endpoints>,
    },
    Shortest {
        input: Box<Op>,
        step: Box<Shortest>,
    },
    Join {
        input: Box<Op>,
        build: Box<Op>,
        slot: Slot,
        build_key: X,
        probe_key: X,
    },
    Filter {
        input: Box<Op>,
        condition: X,
    },
    /// Only rows where these are nodes.
    IsNode {
        input: Box<Op>,
        slot: Slot,
    },
    Optional {
        input: Box<Op>,
        inner: Box<Op>,
        slots: Vec<Slot>,
    },
    BindPath {
        input: Box<Op>,
        slot: Slot,
        start: Slot,
        steps: Vec<PathStep>,
    },
    Unwind {
        input: Box<Op>,
        list: X,
        slot: Slot,
    },
    Project {
        input: Box<Op>,
        items: Vec<(Slot, X)>,
    },
    Aggregate {
        input: Box<Op>,
        keys: Vec<(Slot, X)>,
        aggregations: Vec<Aggregation>,
    },
    Distinct {
        input: Box<Op>,
        slots: Vec<Slot>,
    },
    Sort {
        input: Box<Op>,
        sort: Box<Sort>,
    },
    Skip {
        input: Box<Op>,
        n: X,
    },
    Limit {
        input: Box<Op>,
        n: X,
    },
    Call {
        input: Box<Op>,
        procedure: String,
        arguments: Vec<X>,
        columns: Vec<(usize, Slot)>,
    },
    Union {
        parts: Vec<(Op, Vec<Slot>)>,
        slots: Vec<Slot>,
        distinct: bool,
    },
    CountNodes {
        label: Option<(Arc<str>, Option<Token>)>,
        slots: Vec<Slot>,
    },
    CountRels {
        types: Types,
        slots: Vec<Slot>,
    },
}
