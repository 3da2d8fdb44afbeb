//! What `CALL` can name.

use crate::counts;
use crate::events;
use crate::graph::Graph;
use crate::view::View;
use kenning_cypher::{Class, Error, Procedures, Result, Signature, Value};
use kenning_kernel::search::{Search, Wanted, policy};
use kenning_kernel::{Caller, Kernel};
use kenning_search::Filter;
use kenning_store::{EventRow, When};
use std::sync::Arc;

/// Hits of a search, unless the query asks for fewer or more.
const HITS_DEFAULT: i64 = 20;

/// Hits of a search at most.
const HITS_MAX: i64 = 1_000;

/// Events, unless the query asks for fewer or more.
const EVENTS_DEFAULT: i64 = 100;

/// The procedures, over the graph of one query.
pub(crate) struct Called<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) caller: &'a Caller,
    pub(crate) graph: &'a Graph,
    pub(crate) view: &'a View<'a>,
    pub(crate) now_ms: u64,
    pub(crate) when: When,
}

impl Procedures for Called<'_> {
    fn signature(&self, name: &str) -> Option<Signature> {
        let (arguments, columns): (&[(&str, bool)], &[&str]) = match name {
            "kenning.search" => (&[("query", false), ("limit", true)], &["node", "score"]),
            "kenning.labels" => (&[], &["label", "count"]),
            "kenning.types" => (&[], &["type", "count"]),
            "kenning.events" => (&[("kind", true), ("limit", true)], &["event", "node"]),
            _ => return None,
        };
        let arguments = arguments.iter();
        Some(Signature {
            arguments: arguments.map(|it| (it.0.to_owned(), it.1)).collect(),
            columns: columns.iter().map(|&it| it.to_owned()).collect(),
        })
    }

    fn call(&self, name: &str, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>> {
        let counted = |rows: Vec<(Arc<str>, u64)>| {
            let rows = rows.into_iter().map(|(name, n)| {
                let n = i64::try_from(n).unwrap_or(i64::MAX);
                vec![Value::Str(name), Value::Int(n)]
            });
            rows.take(n_max).collect()
        };
        match name {
            "kenning.labels" => {
                let [labels, _] = counts(self.graph);
                Ok(counted(labels))
            }
            "kenning.types" => {
                let [_, types] = counts(self.graph);
                Ok(counted(types))
            }
            "kenning.events" => self.events(arguments, n_max),
            _ => self.search(arguments, n_max),
        }
    }
}

impl Called<'_> {
    /// The events of the log, the newest first: one row for each node that an event changed or connected.
    fn events(&self, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>> {
        let kinds = match arguments.first() {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Str(kind)) => vec![kind.to_string()],
            Some(_) => return Err(wrong("`kind` of `kenning.events` is not a text")),
        };
        let limit = limit(
            "kenning.events",
            arguments.get(1),
            EVENTS_DEFAULT,
            events::EVENTS_MAX,
        )?;
        let space = &self.caller.principal.space;
        let found = events::read(self.kernel, space, self.when, kinds, limit.min(n_max));
        let found = found.map_err(|error| Error::graph(error.to_string()))?;
        let mut rows = Vec::new();
        for row in &found {
            let event = described(row)?;
            let nodes = events::changed(row).into_iter();
            let nodes = nodes.filter_map(|it| self.view.find(it));
            let before = rows.len();
            rows.extend(nodes.map(|it| vec![event.clone(), Value::Node(it)]));
            if rows.len() == before {
                rows.push(vec![event, Value::Null]);
            }
        }
        rows.truncate(n_max);
        Ok(rows)
    }

    /// The nodes that answer a question in plain words, by the one search.
    fn search(&self, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>> {
        if self.when != When::Now {
            return Err(wrong(
                "`kenning.search` answers from what is there now: leave out `as_of`",
            ));
        }
        let text = match arguments.first() {
            Some(Value::Str(text)) => text,
            Some(Value::Null) | None => return Ok(Vec::new()),
            Some(_) => return Err(wrong("`query` of `kenning.search` is not a text")),
        };
        let limit = limit("kenning.search", arguments.get(1), HITS_DEFAULT, HITS_MAX)?;
        let limit = limit.min(n_max);
        let space = &self.caller.principal.space;
        let question = self.kernel.question(text);
        let filters = [Filter::default()];
        let wanted = Wanted::new(&policy::QUERIES, &filters, limit, self.now_ms);
        let found = self.kernel.log().read(space, |tx| {
            let search = |search: &Search<'_>| search.find(&wanted);
            self.kernel.search(space, tx, &question, search)?
        });
        let found = found.map_err(|error| Error::graph(error.to_string()))?;
        let rows = found
            .hits
            .into_iter()
            .filter_map(|it| Some((self.view.find(it.node)?, it.relevance)))
            .map(|(node, score)| vec![Value::Node(node), Value::Float(score)]);
        Ok(rows.take(limit).collect())
    }
}

/// The second argument of a procedure: how many rows are wanted.
fn limit(procedure: &str, given: Option<&Value>, default: i64, most: i64) -> Result<usize> {
    let limit = match given {
        None | Some(Value::Null) => default,
        Some(Value::Int(it)) if (1..=most).contains(it) => *it,
        Some(_) => {
            let why = format!("`limit` of `{procedure}` is not a whole number from 1 to {most}");
            return Err(wrong(why));
        }
    };
    Ok(usize::try_from(limit).unwrap_or(0))
}

/// An event as a map.
fn described(row: &EventRow) -> Result<Value> {
    let named = events::properties(row).into_iter();
    Value::map(named.map(|(name, it)| (Arc::from(name), it)).collect())
}

fn wrong(message: impl Into<String>) -> Error {
    Error::run(Class::Procedure, "InvalidArgumentValue", message)
}
