//! Errors of queries.

use std::fmt;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in the text of a query, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

impl Position {
    /// The place of a byte of a text.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |it| it.chars().count())
            + 1;
        let narrow = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        Self {
            line: narrow(line),
            column: narrow(column),
        }
    }
}

/// The classes of errors, as openCypher names them, and three of our own for queries that end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The text is not a query, or has no meaning.
    Syntax,
    /// A value has a type that its use does not allow.
    Type,
    /// A value is outside what a function takes.
    Argument,
    /// An arithmetic result has no value: division by zero, overflow.
    Arithmetic,
    /// A parameter was not given.
    ParameterMissing,
    /// A node or relationship does not exist any more.
    EntityNotFound,
    /// A procedure is unknown or was called wrongly.
    Procedure,
    /// A budget was used up: rows, steps, memory or time.
    Limit,
    /// The caller has gone or has cancelled the query.
    Cancelled,
    /// The graph could not be read.
    Graph,
}

impl Class {
    /// The name, as in the conformance kit of openCypher.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "SyntaxError",
            Self::Type => "TypeError",
            Self::Argument => "ArgumentError",
            Self::Arithmetic => "ArithmeticError",
            Self::ParameterMissing => "ParameterMissing",
            Self::EntityNotFound => "EntityNotFound",
            Self::Procedure => "ProcedureError",
            Self::Limit => "LimitExceeded",
            Self::Cancelled => "Cancelled",
            Self::Graph => "GraphError",
        }
    }
}

/// When an error was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before anything was read from the graph.
    Compile,
    /// While rows were computed.
    Run,
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    class: Class,
    detail: &'static str,
    phase: Phase,
    message: String,
    at: Option<Position>,
}

impl Error {
    /// An error that was found while rows were computed.
    pub fn run(class: Class, detail: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            class,
            detail,
            phase: Phase::Run,
            message: message.into(),
            at: None,
        }))
    }

    /// An error in the text of the query.
    pub(crate) fn syntax(detail: &'static str, at: Position, message: impl Into<String>) -> Self {
        Self::compile(Class::Syntax, detail, at, message)
    }

    pub(crate) fn compile(
        class: Class,
        detail: &'static str,
        at: Position,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            class,
            detail,
            phase: Phase::Compile,
            message: message.into(),
            at: Some(at),
        }))
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::run(Class::Type, "InvalidArgumentType", message)
    }

    pub(crate) fn value_error(message: impl Into<String>) -> Self {
        Self::run(Class::Type, "InvalidArgumentValue", message)
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::run(Class::Argument, "InvalidArgumentValue", message)
    }

    pub(crate) fn overflow(message: impl Into<String>) -> Self {
        Self::run(Class::Arithmetic, "IntegerOverflow", message)
    }

    pub(crate) fn limit(detail: &'static str, message: impl Into<String>) -> Self {
        Self::run(Class::Limit, detail, message)
    }

    /// The graph could not be read; `message` says why.
    pub fn graph(message: impl Into<String>) -> Self {
        Self::run(Class::Graph, "GraphUnreadable", message)
    }

    /// Adds the place, if the error has none yet.
    pub(crate) fn at(mut self, at: Position) -> Self {
        self.0.at.get_or_insert(at);
        self
    }

    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// What exactly is wrong, as one word of the conformance kit.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        self.0.detail
    }

    /// When it was found.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.0.phase
    }

    /// Where in the text, if it is about a place.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.at
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.message)?;
        if let Some(Position { line, column }) = self.0.at {
            write!(out, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
