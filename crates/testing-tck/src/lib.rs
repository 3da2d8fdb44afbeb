//! Runs the openCypher conformance kit over [`kenning_cypher`].
//!
//! [`gherkin`] reads feature files, [`setup`] runs the statements that fill a graph, [`expected`] reads the
//! values that answers are compared with, and [`run`] does one scenario. Nothing here is in the product: the
//! language that callers have only reads.

pub mod expected;
pub mod gherkin;
mod reader;
pub mod setup;

use expected::Expected;
use gherkin::{Scenario, Step};
use kenning_cypher::{
    Answer, Budget, Error, MemoryGraph, Moment, NoProcedures, Phase, Run, Statement, Value, Zone,
};
use setup::{Effects, Fault};
use std::collections::BTreeMap;

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As the kit says.
    Passed,
    /// Otherwise; the reason.
    Failed(String),
    /// Not run; the reason.
    Skipped(String),
}

/// The graph of a scenario and its parameters.
#[derive(Default)]
pub struct Session {
    /// The graph.
    pub graph: MemoryGraph,
    /// The values of `$name`.
    pub parameters: BTreeMap<String, Value>,
}

impl Session {
    /// Runs a query that reads.
    ///
    /// # Errors
    ///
    /// The query failed.
    pub fn query(&self, text: &str, parameters: &BTreeMap<String, Value>) -> Result<Answer, Error> {
        let budget = Budget::new(&|| None);
        let run = Run {
            parameters,
            procedures: &NoProcedures,
            now: Moment {
                seconds: 1_700_000_000,
                nanos: 123_456_789,
            },
            zone: Zone::Offset(0),
            seed: 7,
            budget: &budget,
        };
        Statement::parse(text)?.run(&self.graph, &run)
    }
}

/// Runs a scenario. `named_graph` has the statements of a graph that the kit has a name for.
#[must_use]
pub fn run(scenario: &Scenario, named_graph: &dyn Fn(&str) -> Option<String>) -> Outcome {
    let mut session = Session::default();
    let mut answer: Result<setup::Table, Error> = Ok(None);
    let mut effects = Effects::default();
    for step in &scenario.steps {
        let done = one(step, &mut session, &mut answer, &mut effects, named_graph);
        match done {
            Ok(()) => {}
            Err(outcome) => return outcome,
        }
    }
    Outcome::Passed
}

fn failed(reason: impl Into<String>) -> Outcome {
    Outcome::Failed(reason.into())
}

fn of_fault(fault: Fault) -> Outcome {
    match fault {
        Fault::Unsupported(word) => Outcome::Skipped(format!("writes with {word}")),
        Fault::Query(error) => failed(format!("the setup failed: {error}")),
        Fault::Malformed(why) => failed(format!("the setup was not understood: {why}")),
    }
}

fn one(
    step: &Step,
    session: &mut Session,
    answer: &mut Result<setup::Table, Error>,
    effects: &mut Effects,
    named_graph: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Outcome> {
    let text = step.text.as_str();
    let doc = || {
        step.doc
            .clone()
            .ok_or_else(|| failed(format!("`{text}` has no text")))
    };
    match text {
        "an empty graph" | "any graph" => *session = Session::default(),
        "having executed:" => {
            setup::execute(session, &doc()?, &mut Effects::default()).map_err(of_fault)?;
        }
        "parameters are:" => {
            for row in &step.table {
                let [name, value] = &row[..] else {
                    return Err(failed("parameters have a name and a value"));
                };
                let found = session.query(&format!("RETURN {value} AS value"), &BTreeMap::new());
                let found = found.map_err(|it| failed(format!("parameter `{value}`: {it}")))?;
                let value = found.rows.into_iter().flatten().next().unwrap_or_default();
                session.parameters.insert(name.clone(), value);
            }
        }
        "executing query:" | "executing control query:" => {
            let query = doc()?;
            *effects = Effects::default();
            *answer = if setup::writes(&query) {
                match setup::execute(session, &query, effects) {
                    Ok(table) => Ok(table),
                    Err(Fault::Query(error)) => Err(error),
                    Err(fault) => return Err(of_fault(fault)),
                }
            } else {
                let found = session.query(&query, &session.parameters);
                found.map(|it| Some((it.columns, it.rows)))
            };
        }
        "the result should be empty" => match answer {
            Ok(None) => {}
            Ok(Some((_, rows))) if rows.is_empty() => {}
            Ok(Some((_, rows))) => {
                return Err(failed(format!("{} rows instead of none", rows.len())));
            }
            Err(error) => return Err(failed(format!("failed: {error}"))),
        },
        "no side effects" => {
            if *effects != Effects::default() {
                return Err(failed("there were side effects"));
            }
        }
        "the side effects should be:" => check_effects(step, effects)?,
        _ if text.starts_with("the result should be") => check_rows(step, session, answer)?,
        _ if text.contains("should be raised at") => check_error(text, answer)?,
        _ if text.starts_with("there exists a procedure") => {
            return Err(Outcome::Skipped("needs a procedure".to_owned()));
        }
        _ => {
            let name = text
                .strip_prefix("the ")
                .and_then(|it| it.strip_suffix(" graph"));
            let Some(statements) = name.and_then(named_graph) else {
                return Err(failed(format!("unknown step `{text}`")));
            };
            setup::execute(session, &statements, &mut Effects::default()).map_err(of_fault)?;
        }
    }
    Ok(())
}

fn check_effects(step: &Step, effects: &Effects) -> Result<(), Outcome> {
    for row in &step.table {
        let [name, n] = &row[..] else { continue };
        let found = match name.as_str() {
            "+nodes" => effects.nodes,
            "+relationships" => effects.rels,
            "+properties" => effects.properties,
            // Labels are counted by name in the kit, and the writer adds them with their nodes.
            _ => continue,
        };
        if found.to_string() != *n {
            return Err(failed(format!("{name} is {found} instead of {n}")));
        }
    }
    Ok(())
}

fn check_rows(
    step: &Step,
    session: &Session,
    answer: &Result<setup::Table, Error>,
) -> Result<(), Outcome> {
    let (columns, rows) = match answer {
        Ok(Some(it)) => it,
        Ok(None) => return Err(failed("there is no answer")),
        Err(error) => {
            let class = error.class().name();
            return Err(failed(format!(
                "failed: {class} {}: {error}",
                error.detail()
            )));
        }
    };
    let Some((names, expected)) = step.table.split_first() else {
        return Err(failed("no table is given"));
    };
    let mut places = Vec::new();
    for name in names {
        match columns.iter().position(|it| it == name) {
            Some(place) => places.push(place),
            None => return Err(failed(format!("no column `{name}` among {columns:?}"))),
        }
    }
    if names.len() != columns.len() {
        return Err(failed(format!("columns {columns:?} instead of {names:?}")));
    }
    let any_list_order = step.text.contains("ignoring element order");
    let settle = |it: Expected| if any_list_order { it.sorted() } else { it };
    let mut wanted: Vec<Vec<Expected>> = Vec::new();
    for row in expected {
        let values = row.iter().map(|it| Expected::parse(it).map(settle));
        wanted.push(values.collect::<Result<_, _>>().map_err(failed)?);
    }
    let mut found: Vec<Vec<Expected>> = Vec::new();
    for row in rows {
        let values = places.iter().filter_map(|it| row.get(*it));
        let values = values.map(|it| Expected::of(it, &session.graph).map(settle));
        found.push(values.collect::<Result<_, _>>().map_err(failed)?);
    }
    let matches = if step.text.contains("in order") {
        wanted == found
    } else {
        let mut left = found.clone();
        wanted.len() == found.len()
            && wanted
                .iter()
                .all(|row| match left.iter().position(|it| it == row) {
                    Some(place) => {
                        left.swap_remove(place);
                        true
                    }
                    None => false,
                })
    };
    if matches {
        return Ok(());
    }
    let show = |rows: &[Vec<Expected>]| {
        let text = format!("{rows:?}");
        text.chars().take(600).collect::<String>()
    };
    Err(failed(format!(
        "found {} instead of {}",
        show(&found),
        show(&wanted)
    )))
}

fn check_error(text: &str, answer: &Result<setup::Table, Error>) -> Result<(), Outcome> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let class = words.get(1).copied().unwrap_or_default();
    let detail = text.rsplit(':').next().unwrap_or_default().trim();
    let Err(error) = answer else {
        return Err(failed(format!("no error instead of {class} {detail}")));
    };
    let phase = if text.contains("at compile time") {
        Some(Phase::Compile)
    } else if text.contains("at runtime") {
        Some(Phase::Run)
    } else {
        None
    };
    let found = (error.class().name(), error.detail(), error.phase());
    let fits = found.0 == class
        && (detail == "*" || found.1 == detail)
        && phase.is_none_or(|it| it == found.2);
    if fits {
        return Ok(());
    }
    Err(failed(format!("{found:?} ({error}) instead of {text}")))
}
