//! What `CALL` can name.

use crate::counts;
use crate::graph::Graph;
use crate::rows;
use crate::view::View;
use kenning_audit::Change;
use kenning_core::NodeId;
use kenning_cypher::{Class, Error, Procedures, Result, Signature, Value};
use kenning_kernel::search::{Search, Wanted, policy};
use kenning_kernel::{Caller, Kernel};
use kenning_search::Filter;
use kenning_store::{EventFilter, EventPage, EventRow, When};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hits of a search, unless the query asks for fewer or more.
const HITS_DEFAULT: i64 = 20;

/// Hits of a search at most.
const HITS_MAX: i64 = 1_000;

/// Events, unless the query asks for fewer or more.
const EVENTS_DEFAULT: i64 = 100;

/// Events at most.
const EVENTS_MAX: i64 = 10_000;

/// The nodes that a change is about.
fn changed(change: &Change) -> Vec<NodeId> {
    match change {
        Change::PutNode { id, .. } | Change::RemoveNode { id } => vec![*id],
        Change::PutEdge { src, dst, .. } | Change::EndEdge { src, dst, .. } => vec![*src, *dst],
        _ => Vec::new(),
    }
}

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
            EVENTS_MAX,
        )?;
        let filter = EventFilter {
            kinds,
            to: match self.when {
                When::Now => None,
                When::At(moment) => Some(moment),
            },
            ..EventFilter::default()
        };
        let page = EventPage {
            limit: limit.min(n_max),
            newest_first: true,
            ..EventPage::default()
        };
        let space = &self.caller.principal.space;
        let found = self.kernel.log();
        let found = found.read(space, |tx| tx.find_events(&filter, page));
        let found = found.map_err(|error| Error::graph(error.to_string()))?;
        let mut rows = Vec::new();
        for row in &found {
            let event = described(row)?;
            let changes = kenning_audit::event::parse(row).map_or_else(Vec::new, |it| it.changes);
            let mut nodes: Vec<_> = changes.iter().flat_map(changed).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let nodes = nodes.into_iter().filter_map(|it| self.view.find(it));
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
    let mut map: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    let mut add = |name: &str, value: Value| map.insert(Arc::from(name), value);
    add(
        "seq",
        Value::Int(i64::try_from(row.seq).unwrap_or(i64::MAX)),
    );
    add("id", Value::str(row.id.to_string()));
    add("kind", Value::str(&row.kind));
    add("at", rows::moment(row.hlc.ms()));
    add("author", Value::str(&row.author));
    if !row.sealed.agent.is_empty() {
        add("agent", Value::str(&row.sealed.agent));
    }
    Value::map(map)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::run(Class::Procedure, "InvalidArgumentValue", message)
}
