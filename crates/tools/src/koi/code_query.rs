//! `code_query`
//!
//! There is no code graph yet, so every query is answered from an empty one, by `cypher`.

use super::api::{self, Api, Place, Route, Verb};
use super::cypher::{self, Fault, Stop};
use super::refusal::Refusal;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct CodeQuery;

/// What the HTTP API runs when it is asked nothing.
const QUERY_DEFAULT: &str = "MATCH (n) RETURN labels(n), count(n)";

/// Run Cypher queries against the code knowledge graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Cypher query (graph contains Functions, Classes, Modules, Files, Imports, Interfaces)
    pub cypher: String,
}

/// What the HTTP API is asked.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// A query.
    #[serde(default)]
    #[schemars(with = "String")]
    pub cypher: Option<String>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            cypher: Some(input.cypher),
        }
    }
}

/// Query result rows.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// One object a row, by the names of the columns
    results: Vec<Map<String, Value>>,
    count: usize,
    columns: Vec<String>,
}

/// Answers a call, whoever makes it.
pub fn answer(_: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    caller.principal.require(Scope::Read)?;
    let query = request.cypher.as_deref().unwrap_or(QUERY_DEFAULT);
    let found = cypher::answer(query, &|| caller.check()).map_err(|stop| match stop {
        Stop::Fault(Fault(why)) => {
            let error = Error::invalid(why).hint("queries are Cypher that only reads");
            Refusal::new(400, error)
        }
        Stop::Ended(error) => error.into(),
    })?;
    Ok(Output {
        count: found.rows.len(),
        results: found.rows,
        columns: found.columns,
    })
}

impl Tool for CodeQuery {
    const NAME: &'static str = "code_query";
    const TITLE: &'static str = "Query the code graph";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "How many of each kind",
            input: r#"{"cypher": "MATCH (n) RETURN labels(n), count(n)"}"#,
            output: r#""columns": ["#,
        },
        Example {
            title: "Nothing is changed by a query",
            input: r#"{"cypher": "CREATE (n:Function {name: 'x'})"}"#,
            output: "`CREATE` is refused",
        },
    ];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Post,
            path: "/code/query",
            summary: "Asks the graph of code",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Body,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: |answer| {
            if !answer.contains_key("columns") {
                let columns = columns(answer.get("results"));
                answer.insert("columns".to_owned(), columns.into());
            }
        },
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.into())?)
    }
}

/// The names of all columns; `c2` comes before `c10`.
fn columns(rows: Option<&Value>) -> Vec<String> {
    let rows = rows.and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = Vec::new();
    for name in rows.filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names.sort_by_key(|it| (it.len(), it.clone()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_those_of_all_rows_in_their_order() {
        let rows = json!([{ "c10": 1, "c2": 2 }, { "c1": 3 }]);
        assert_eq!(columns(Some(&rows)), ["c1", "c2", "c10"]);
        assert_eq!(columns(None), Vec::<String>::new());
    }
}
