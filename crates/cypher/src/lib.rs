//! Read-only openCypher over any graph.
//!
//! [`Statement::parse`] reads a query, [`Statement::run`] plans it for a [`Graph`] and runs it within a
//! [`Budget`]. The crate knows no store, opens no file and reads no clock: the graph, the moment, the time
//! zone and the seed of `rand()` come with the call, and the same arguments give the same answer. (The
//! history of named time zones is the system's.)
//!
//! Its one invariant: a query never changes the graph, and always ends: texts, nesting, values, rows, steps
//! and memory have limits, and the caller is asked now and then whether to go on.
//!
//! How to read it: [`parse`] makes [`ast`], [`compile`] makes [`plan`], [`run`] runs it; [`value`] and
//! [`temporal`] are the values, [`moments`] and [`json`] what is made of them, [`functions`] the functions,
//! [`memory`] a graph for tests. Modules name only those below them: values know no graph, functions no plan.

#![deny(missing_docs)]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the head says how to read the code"
)]

mod ast;
mod budget;
mod compile;
mod context;
mod element;
mod error;
mod functions;
mod graph;
mod json;
mod memory;
mod moments;
mod parse;
mod plan;
mod run;
mod temporal;
mod types;
mod value;

pub use budget::{Budget, Stop};
pub use compile::Unknown;
pub use element::{Direction, NodeId, Rel, RelId, Token};
pub use error::{Class, Error, Phase, Position, Result};
pub use graph::{Graph, NoProcedures, Procedures, Signature};
pub use memory::MemoryGraph;
pub use plan::Step;
pub use temporal::{Date, DateTime, Duration, LocalDateTime, LocalTime, Moment, Time, Zone};
pub use value::{Comparison, Key, Limits, List, Map, Path, Value};

use ast::Mode;
use context::Context;
use run::Flow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A parsed query.
#[derive(Debug)]
pub struct Statement {
    text: String,
    query: ast::Query,
}

/// What a query needs in addition to the graph.
pub struct Run<'a> {
    /// The values of `$name`.
    pub parameters: &'a BTreeMap<String, Value>,
    /// The procedures for `CALL`.
    pub procedures: &'a dyn Procedures,
    /// The result of `datetime()` and the like.
    pub now: Moment,
    /// The default time zone.
    pub zone: Zone,
    /// The seed of `rand()`.
    pub seed: u64,
    /// The limits of the query.
    pub budget: &'a Budget<'a>,
}

/// The result of a query.
#[derive(Debug)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// One value a column for each row. Under `EXPLAIN` there are none.
    pub rows: Vec<Vec<Value>>,
    /// The plan, under `EXPLAIN` and `PROFILE`.
    pub plan: Option<Vec<Step>>,
    /// Names that nothing in the graph has: what often explains an empty answer.
    pub unknown: Vec<Unknown>,
}

impl Statement {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// The text is not a query, or it writes; or it is too long or nested too deep.
    pub fn parse(text: &str) -> Result<Self> {
        let query = parse::parse(text)?;
        Ok(Self {
            text: text.to_owned(),
            query,
        })
    }

    /// The names in the query that nothing in a graph has, without running it.
    ///
    /// # Errors
    ///
    /// The query has no meaning (see [`Phase::Compile`]).
    pub fn unknown(
        &self,
        graph: &dyn Graph,
        procedures: &dyn Procedures,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Vec<Unknown>> {
        let compiled = compile::compile(&self.text, &self.query, graph, procedures, parameters)?;
        Ok(compiled.unknown)
    }

    /// Plans and runs the query.
    ///
    /// # Errors
    ///
    /// The query has no meaning (see [`Phase::Compile`]), a value has a wrong type or is out of
    /// range, a limit was reached, or the graph could not be read.
    pub fn run(&self, graph: &dyn Graph, run: &Run<'_>) -> Result<Answer> {
        let (procedures, parameters) = (run.procedures, run.parameters);
        let compiled = compile::compile(&self.text, &self.query, graph, procedures, parameters)?;
        let columns = compiled.columns.iter().map(|it| it.0.clone()).collect();
        if self.query.mode == Mode::Explain {
            return Ok(Answer {
                columns,
                rows: Vec::new(),
                unknown: compiled.unknown,
                plan: Some(plan::describe(&compiled.op, &compiled.names, None)),
            });
        }
        let profile = self.query.mode == Mode::Profile;
        let context = Context {
            graph,
            procedures: run.procedures,
            now: run.now,
            zone: run.zone.clone(),
            budget: run.budget,
            random: Cell::new(run.seed),
            counts: profile.then(|| RefCell::new(vec![0; compiled.n_ops])),
            regex: RefCell::new(None),
            finder: RefCell::new(None),
        };
        run.budget.check_stop()?;
        let mut row = vec![Value::Null; compiled.n_slots];
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let mut held = context.hold();
        context.run(&compiled.op, &mut row, &mut |row| {
            if rows.len() as u64 >= run.budget.rows_max {
                let message = format!(
                    "the answer has more than {} rows: add `LIMIT`, or aggregate",
                    run.budget.rows_max
                );
                return Err(Error::limit("RowsExceeded", message));
            }
            let slots = compiled.columns.iter().map(|it| row[it.1].clone());
            let values: Vec<Value> = slots.collect();
            held.add(24 + values.iter().map(Value::n_bytes).sum::<u64>())?;
            context.steps(1)?;
            rows.push(values);
            Ok(Flow::Continue)
        })?;
        let counts = context.counts.as_ref().map(|it| it.borrow().clone());
        let plan = counts.map(|it| plan::describe(&compiled.op, &compiled.names, Some(&it)));
        Ok(Answer {
            columns,
            rows,
            plan,
            unknown: compiled.unknown,
        })
    }
}
