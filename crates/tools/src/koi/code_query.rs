//! `code_query`
//!
//! There is no code graph yet, so every query is answered from an empty one, by `cypher`.

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
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Request {
    /// A query.
    #[serde(default)]
    pub cypher: Option<String>,
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

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        let cypher = Some(input.cypher);
        Ok(answer(ctx.engine, ctx.caller, Request { cypher })?)
    }
}
