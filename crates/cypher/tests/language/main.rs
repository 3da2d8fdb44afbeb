//! The language from outside: queries in, rows or errors out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside test functions"
)]

mod agreement;
mod answers;
mod hostile;
mod plans;
mod syntax;
mod temporal;

use kenning_cypher::{
    Answer, Budget, Error, Graph, MemoryGraph, Moment, NoProcedures, NodeId, Procedures, Result,
    Run, Statement, Value, Zone,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// 2026-01-02T03:04:05.006Z
const NOW: Moment = Moment {
    seconds: 1_767_323_045,
    nanos: 6_000_000,
};

fn run(
    graph: &dyn Graph,
    text: &str,
    parameters: &BTreeMap<String, Value>,
    procedures: &dyn Procedures,
    budget: &Budget<'_>,
) -> Result<Answer> {
    let run = Run {
        parameters,
        procedures,
        now: NOW,
        zone: Zone::Offset(0),
        seed: 1,
        budget,
    };
    Statement::parse(text)?.run(graph, &run)
}

fn ask(graph: &dyn Graph, text: &str) -> Result<Answer> {
    let budget = Budget::new(&|| None);
    run(graph, text, &BTreeMap::new(), &NoProcedures, &budget)
}

/// The rows as text, one line a row, columns parted by ` | `.
fn lines(graph: &dyn Graph, text: &str) -> Vec<String> {
    let answer = ask(graph, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let line = |row: &Vec<Value>| {
        let values: Vec<String> = row.iter().map(ToString::to_string).collect();
        values.join(" | ")
    };
    answer.rows.iter().map(line).collect()
}

/// The one value of `RETURN expression`, as text.
fn value(expression: &str) -> String {
    let lines = lines(
        &MemoryGraph::new(),
        &format!("RETURN {expression} AS value"),
    );
    lines.into_iter().next().unwrap_or_default()
}

/// The error of a query over an empty graph.
fn error(text: &str) -> Error {
    match ask(&MemoryGraph::new(), text) {
        Ok(answer) => panic!("{text}: no error, but {:?}", answer.rows),
        Err(error) => error,
    }
}

fn properties(pairs: &[(&str, Value)]) -> Vec<(Arc<str>, Value)> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| (Arc::from(*key), value.clone()))
        .collect()
}

/// Ann, Bob and Cid know one another in turn; Ann and Bob work at Acme.
fn people() -> MemoryGraph {
    let mut graph = MemoryGraph::new();
    let mut person = |name: &str, age: i64| -> NodeId {
        let values = properties(&[("name", name.into()), ("age", age.into())]);
        graph.add_node(&["Person"], values)
    };
    let (ann, bob, cid) = (person("Ann", 40), person("Bob", 30), person("Cid", 20));
    let acme = graph.add_node(&["Company"], properties(&[("name", "Acme".into())]));
    for (from, to, since) in [(ann, bob, 2001), (bob, cid, 2002), (cid, ann, 2003)] {
        let values = properties(&[("since", Value::Int(since))]);
        graph.add_rel(from, "KNOWS", to, values).unwrap();
    }
    for from in [ann, bob] {
        graph.add_rel(from, "WORKS_AT", acme, []).unwrap();
    }
    graph
}
