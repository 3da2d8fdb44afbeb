//! Read-only Cypher over everything that a space holds.
//!
//! A space is a graph in memory ([`graph`]), made of rows when it is first asked and following the log from
//! then on ([`follow`]), so that a query sees what any process wrote. [`rows`] says what a row is in it: kinds
//! and types are labels, relations are types of relationships, properties are properties, tags are nodes.
//! The language itself is the crate `cypher`; this one gives it a graph ([`view`]), `CALL` ([`procedures`])
//! and limits, and writes values as JSON or as the contract's original did ([`agtype`]).

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the head says how to read the code"
)]

mod agtype;
mod asked;
mod by_value;
mod column;
mod events;
mod follow;
#[cfg(test)]
mod following;
mod graph;
mod label_sets;
mod names;
mod notes;
mod procedures;
mod rows;
mod view;

pub use asked::{is_statement, names_code};

use follow::Graphs;
use graph::{EVENT, Graph};
use kenning_core::{Error, Hlc, NodeId, Result, Space};
use kenning_cypher::Graph as LanguageGraph;
use kenning_cypher::{
    Budget, Class, Moment, Phase, Run, Statement, Step, Stop, Unknown, Value, Zone,
};
use kenning_kernel::{Caller, Kernel, Scope};
use kenning_store::{Edge, EdgeFilter, Node, When};
use procedures::Called;
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use view::{Rows, View};

/// Rows of an answer, unless the caller asks for fewer.
pub const ROWS_MAX: u64 = 10_000;

/// What one query may hold in memory.
const MEMORY_BYTES_MAX: u64 = 128 << 20;

/// How large one value may be.
const VALUE_BYTES_MAX: u64 = 32 << 20;

/// What an answer may weigh as JSON, before it is cut into pages.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// A query, and what it is asked with.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// In Cypher.
    pub text: String,
    /// The values of `$name`.
    pub parameters: Map<String, Json>,
    /// The past moment to answer from, in milliseconds since 1970.
    pub as_of_ms: Option<u64>,
    /// How values are written.
    pub form: Form,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As JSON, under the names of the columns.
    #[default]
    Json,
    /// As texts under `c1`, `c2` …, as Apache AGE writes them: what the first KOI server answers.
    Agtype,
}

/// What a query answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// One value a column for each row.
    pub rows: Vec<Vec<Json>>,
    /// What may explain the rows: names in the query that nothing has, and which were perhaps meant.
    pub notes: Vec<String>,
}

impl Found {
    /// The rows as objects, by the names of the columns.
    pub fn objects(self) -> Vec<Map<String, Json>> {
        let Self { columns, rows, .. } = self;
        let named = |row: Vec<Json>| columns.iter().cloned().zip(row).collect();
        rows.into_iter().map(named).collect()
    }
}

/// Answers queries.
pub struct Queries {
    kernel: Arc<Kernel>,
    graphs: Graphs,
}

impl Queries {
    /// Over a kernel.
    pub fn new(kernel: Arc<Kernel>) -> Self {
        let graphs = Graphs::new(Arc::clone(kernel.continuity()));
        Self { kernel, graphs }
    }

    /// Answers a query from the caller's space.
    ///
    /// # Errors
    ///
    /// The caller may not read, the query is malformed or writes, or it needs more than it may use.
    pub fn answer(&self, caller: &Caller, question: &Question) -> Result<Found> {
        caller.principal.require(Scope::Read)?;
        let statement = Statement::parse(&question.text).map_err(refused)?;
        let parameters = parameters(&question.parameters)?;
        let space = &caller.principal.space;
        let check = || caller.check();
        let when = match question.as_of_ms {
            None => When::Now,
            Some(ms) => When::At(Hlc::end_of_ms(ms)),
        };
        let mut graph = self.kernel.log().read(space, |tx| match when {
            When::Now => self.graphs.now(space, tx, &check),
            When::At(moment) => follow::at(tx, moment, &check).map(Arc::new),
        })?;
        let rows = StoredRows {
            kernel: &self.kernel,
            space,
            when,
        };
        let now_ms = self.kernel.log().clock().now_ms();
        // Most queries do not even have the word.
        if asked::names_label(&question.text, EVENT) {
            let view = View::new(&graph, &rows);
            let called = Called {
                kernel: &self.kernel,
                caller,
                graph: &graph,
                view: &view,
                now_ms,
                when,
            };
            let unknown = statement.unknown(&view, &called, &parameters);
            let is_event = |it: &Unknown| matches!(it, Unknown::Label(name) if name.eq_ignore_ascii_case(EVENT));
            if unknown.map_err(refused)?.iter().any(is_event) {
                graph = Arc::new(events::with_events(&graph, &self.kernel, space, when)?);
            }
        }
        let view = View::new(&graph, &rows);
        let ended: RefCell<Option<Error>> = RefCell::new(None);
        let stop = || {
            let error = caller.check().err()?;
            *ended.borrow_mut() = Some(error);
            Some(Stop::TimedOut)
        };
        let mut budget = Budget::new(&stop);
        budget.rows_max = ROWS_MAX;
        budget.memory_bytes_max = MEMORY_BYTES_MAX;
        budget.value.bytes_max = VALUE_BYTES_MAX;
        let called = Called {
            kernel: &self.kernel,
            caller,
            graph: &graph,
            view: &view,
            now_ms,
            when,
        };
        let run = Run {
            parameters: &parameters,
            procedures: &called,
            now: moment(now_ms),
            zone: Zone::Offset(0),
            seed: now_ms,
            budget: &budget,
        };
        let answer = statement
            .run(&view, &run)
            .map_err(|error| match ended.take() {
                Some(ended) if error.class() == Class::Limit => ended,
                _ => refused(error),
            })?;
        let mut found = match answer.plan {
            Some(plan) => planned(&plan),
            None => written(&view, answer.columns, &answer.rows, question.form, caller)?,
        };
        if !answer.unknown.is_empty() {
            found.notes = notes::notes(&graph, &answer.unknown);
        }
        Ok(found)
    }

    /// Looks at the graph that queries are answered from: for tests, which run the language over it with limits
    /// of their own.
    ///
    /// # Errors
    ///
    /// The caller may not read, or the store could not be read.
    pub fn look<T>(
        &self,
        caller: &Caller,
        look: impl FnOnce(&dyn LanguageGraph) -> T,
    ) -> Result<T> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let check = || caller.check();
        let now = |tx: &dyn kenning_store::ReadTx| self.graphs.now(space, tx, &check);
        let graph = self.kernel.log().read(space, now)?;
        let rows = StoredRows {
            kernel: &self.kernel,
            space,
            when: When::Now,
        };
        Ok(look(&View::new(&graph, &rows)))
    }

    /// What lies in memory, for `doctor` and metrics: graphs, their nodes and relationships.
    pub fn sizes(&self) -> (usize, u64, u64) {
        self.graphs.sizes()
    }
}

/// Single rows, each read in a transaction of its own.
struct StoredRows<'a> {
    kernel: &'a Kernel,
    space: &'a Space,
    when: When,
}

impl Rows for StoredRows<'_> {
    fn node(&self, id: NodeId) -> Result<Option<Node>> {
        self.kernel
            .log()
            .read(self.space, |tx| tx.node(id, self.when))
    }

    fn edge(&self, src: NodeId, relation: &str, dst: NodeId) -> Result<Option<Edge>> {
        let filter = EdgeFilter {
            src: Some(src),
            rel: Some(relation.to_owned()),
            dst: Some(dst),
        };
        let read = |tx: &dyn kenning_store::ReadTx| tx.edges(&filter, self.when, 1);
        Ok(self.kernel.log().read(self.space, read)?.pop())
    }
}

fn moment(ms: u64) -> Moment {
    Moment {
        seconds: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        nanos: u32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000,
    }
}

fn parameters(given: &Map<String, Json>) -> Result<BTreeMap<String, Value>> {
    let read = given.iter().map(|(name, json)| {
        let value = Value::from_json(json);
        let value = value.map_err(|error| {
            Error::invalid(format!("`parameters.{name}`: {error}"))
                .hint("parameters are JSON: numbers, texts, lists, objects")
        })?;
        Ok((name.clone(), value))
    });
    read.collect()
}

/// The same error, as every tool gives it.
#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn refused(error: kenning_cypher::Error) -> Error {
    let text = error.to_string();
    match error.class() {
        Class::Limit => Error::too_large(text).hint("add `LIMIT`, labels or shorter paths"),
        Class::ParameterMissing => Error::invalid(text).hint(
            "give its value in `parameters`, as in `{\"name\": 1}`; on the command line with `--param name=1`",
        ),
        Class::Cancelled => Error::timeout(text),
        Class::Graph => Error::unavailable(text).hint("call again"),
        _ if text.contains("is refused: queries only read") => Error::invalid(text).hint(
            "to write, call `vault_write_note`, `memory_store`, `ingest_url` or `kg_vector_upsert`",
        ),
        _ if error.phase() == Phase::Compile => {
            Error::invalid(text).hint("queries are Cypher that only reads")
        }
        _ => Error::invalid(text).hint("see docs/guides/cypher.md for what each function takes"),
    }
}

/// A plan as rows.
fn planned(plan: &[Step]) -> Found {
    let columns = ["operator", "detail", "estimated_rows", "rows"];
    let rows = plan.iter().map(|step| {
        vec![
            format!("{}{}", "  ".repeat(step.depth), step.operator).into(),
            step.detail.clone().into(),
            step.estimated_rows.round().into(),
            step.rows.map_or(Json::Null, Into::into),
        ]
    });
    Found {
        rows: rows.collect(),
        columns: columns.map(ToOwned::to_owned).to_vec(),
        notes: Vec::new(),
    }
}

/// The rows of an answer.
fn written(
    view: &View<'_>,
    columns: Vec<String>,
    rows: &[Vec<Value>],
    form: Form,
    caller: &Caller,
) -> Result<Found> {
    let mut found = Found {
        columns: match form {
            Form::Json => columns,
            Form::Agtype => (1..=columns.len()).map(|it| format!("c{it}")).collect(),
        },
        rows: Vec::with_capacity(rows.len()),
        notes: Vec::new(),
    };
    let mut n_bytes = 0;
    for (n, row) in rows.iter().enumerate() {
        if n.is_multiple_of(64) {
            caller.check()?;
        }
        let values = row.iter().map(|value| match form {
            Form::Json => value.to_json(view),
            Form::Agtype => agtype::text(view, value),
        });
        let values: Vec<Json> = values
            .collect::<kenning_cypher::Result<_>>()
            .map_err(refused)?;
        n_bytes += values.iter().map(json_bytes).sum::<usize>();
        if n_bytes > ANSWER_BYTES_MAX {
            let why = format!("the answer is larger than {ANSWER_BYTES_MAX} bytes");
            let hint = "return single properties in place of nodes, or add `LIMIT`";
            return Err(Error::too_large(why).hint(hint));
        }
        found.rows.push(values);
    }
    Ok(found)
}

/// About how long a value is when it is written.
fn json_bytes(json: &Json) -> usize {
    match json {
        Json::Null | Json::Bool(_) => 5,
        Json::Number(_) => 20,
        Json::String(it) => it.len() + 3,
        Json::Array(items) => 2 + items.iter().map(json_bytes).sum::<usize>(),
        Json::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(name, it)| name.len() + 4 + json_bytes(it));
            2 + entries.sum::<usize>()
        }
    }
}

/// Labels and types that a graph has, with how many of each.
fn counts(graph: &Graph) -> [Vec<(Arc<str>, u64)>; 2] {
    let labels = graph.labels.all().iter().zip(0..);
    let labels = labels.map(|(name, it)| {
        let label = kenning_cypher::Token(it);
        (Arc::clone(name), graph.n_nodes(Some(label)))
    });
    let types = graph.types.all().iter().zip(0..);
    let types = types.map(|(name, it)| {
        let kind = kenning_cypher::Token(it);
        (Arc::clone(name), graph.n_rels(Some(kind)))
    });
    let some = |it: &(Arc<str>, u64)| it.1 > 0;
    [labels.filter(some).collect(), types.filter(some).collect()]
}
