//! A query as it was written.
//!
//! Places are byte offsets into the text; [`crate::error::Position::of`] turns them into lines.

use crate::element::Direction;
use crate::value::Value;
use std::fmt;

/// What is returned in addition to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Explain,
    Profile,
}

#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) mode: Mode,
    pub(crate) union: Union,
}

/// Queries whose rows are combined.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) parts: Vec<Vec<Clause>>,
    /// Whether equal rows are kept.
    pub(crate) all: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) at: usize,
    pub(crate) kind: ClauseKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ClauseKind {
    Match {
        optional: bool,
        parts: Vec<PatternPart>,
        filter: Option<Expr>,
    },
    Unwind {
        list: Expr,
        name: Name,
    },
    With {
        projection: Projection,
        filter: Option<Expr>,
    },
    Return(Projection),
    Call {
        procedure: String,
        /// None if written without parentheses.
        arguments: Option<Vec<Expr>>,
        /// Column and its new name; none if there is no `YIELD`.
        yields: Option<Yields>,
        filter: Option<Expr>,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Yields {
    Star,
    Columns(Vec<(Name, Option<Name>)>),
}

#[derive(Clone)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) at: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Projection {
    pub(crate) distinct: bool,
    pub(crate) star: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) order: Vec<Sort>,
    pub(crate) skip: Option<Expr>,
    pub(crate) limit: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) expr: Expr,
    pub(crate) alias: Option<Name>,
    /// The expression as it was written, which names the column if nothing else does.
    pub(crate) text: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Sort {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    Plain,
    Shortest,
    AllShortest,
}

#[derive(Clone)]
pub(crate) struct PatternPart {
    pub(crate) at: usize,
    pub(crate) name: Option<Name>,
    pub(crate) kind: PathKind,
    pub(crate) start: NodePattern,
    pub(crate) steps: Vec<(RelPattern, NodePattern)>,
}

#[derive(Clone)]
pub(crate) struct NodePattern {
    pub(crate) at: usize,
    pub(crate) name: Option<Name>,
    pub(crate) labels: Vec<String>,
    pub(crate) properties: Option<Expr>,
}

#[derive(Clone)]
pub(crate) struct RelPattern {
    pub(crate) name: Option<Name>,
    pub(crate) types: Vec<String>,
    pub(crate) properties: Option<Expr>,
    pub(crate) direction: Direction,
    /// Least and most steps of a variable length.
    pub(crate) range: Option<(Option<u64>, Option<u64>)>,
}

#[derive(Clone)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    pub(crate) kind: ExprKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

impl Arith {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "^",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Compare {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Junction {
    And,
    Or,
    Xor,
}

impl Junction {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Xor => "XOR",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
    Matches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    All,
    Any,
    None,
    Single,
}

#[derive(Clone, Debug)]
pub(crate) enum Projected {
    /// `.name`
    Property(String),
    /// `.*`
    Everything,
    /// `name: expression`, or a variable by its own name.
    Entry(String, Expr),
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Value),
    Param(String),
    Var(String),
    Property(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    HasLabels(Box<Expr>, Vec<String>),
    List(Vec<Expr>),
    Map(Vec<(String, Expr)>),
    MapProjection(Box<Expr>, Vec<Projected>),
    Call {
        name: String,
        distinct: bool,
        arguments: Vec<Expr>,
    },
    CountStar,
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// Conditions of one kind, flat, so that long chains are not deep.
    Junction(Junction, Vec<Expr>),
    /// Operations of one precedence from the left.
    Arith(Box<Expr>, Vec<(Arith, Expr)>),
    /// `a < b <= c`
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    In(Box<Expr>, Box<Expr>),
    TextTest(TextTest, Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>, bool),
    Case {
        subject: Option<Box<Expr>>,
        arms: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    ListComprehension {
        name: String,
        list: Box<Expr>,
        filter: Option<Box<Expr>>,
        map: Option<Box<Expr>>,
    },
    PatternComprehension {
        part: Box<PatternPart>,
        filter: Option<Box<Expr>>,
        map: Box<Expr>,
    },
    Quantifier {
        kind: Quantifier,
        name: String,
        list: Box<Expr>,
        filter: Box<Expr>,
    },
    Reduce {
        sum: String,
        start: Box<Expr>,
        name: String,
        list: Box<Expr>,
        step: Box<Expr>,
    },
    /// A pattern as a condition, or `shortestPath(…)` as a value.
    Pattern(Box<PatternPart>),
    /// `EXISTS { … }` or `COUNT { … }`
    Subquery {
        counts: bool,
        body: Box<Union>,
    },
}

// The debug output leaves positions out, so that equal expressions print equally wherever they are.

impl fmt::Debug for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(out)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(out)
    }
}

impl fmt::Debug for PatternPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (&self.name, self.kind, &self.start, &self.steps).fmt(out)
    }
}

impl fmt::Debug for NodePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (&self.name, &self.labels, &self.properties).fmt(out)
    }
}

impl fmt::Debug for RelPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            types,
            properties,
            direction,
            range,
        } = self;
        (name, types, properties, direction, range).fmt(out)
    }
}
