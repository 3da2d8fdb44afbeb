//! Cypher over a graph that has nothing in it yet.
//!
//! A query is read to its end and checked as if there were a graph: words, patterns, expressions, names.
//! Then it is answered by the rules of the language: a `MATCH` finds no rows, an `OPTIONAL MATCH` finds one
//! of nulls, what needs no graph is computed. Nothing is guessed: what is not understood is refused, with
//! the place. The code graph will answer in place of [`answer`]; what is read here stays the same.

mod budget;
mod eval;
mod parse;
mod token;

use kenning_core::{Error, Result as CoreResult};
use serde_json::{Map, Value};

/// Why a query is refused, in one sentence with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

/// Why a query has no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// It cannot be answered.
    Fault(Fault),
    /// The call has ended before the query did.
    Ended(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a query answers.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// The names of the columns, in order.
    pub(super) columns: Vec<String>,
    /// One object a row, with these names.
    pub(super) rows: Vec<Map<String, Value>>,
}

/// Answers a query from an empty graph. `check` says whether the call still goes on.
pub(super) fn answer(text: &str, check: &dyn Fn() -> CoreResult<()>) -> Result<Answer, Stop> {
    let tokens = token::tokens(text)?;
    let query = parse::query(text, &tokens)?;
    eval::run(text, &query, &budget::Budget::new(check))
}

#[cfg(test)]
mod tests;
