//! `code_query`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Code, Error, Result};
use kenning_engine::query::{Form, Question};
use kenning_engine::{Caller, Engine, parse_moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool.
pub struct CodeQuery;

/// What the HTTP API runs when it is asked nothing.
const QUERY_DEFAULT: &str = "MATCH (n) RETURN labels(n), count(n)";

/// Run Cypher queries against the code knowledge graph.
///
/// It holds everything: code, notes, people, memories, items, pages. `CALL kenning.search("words") YIELD
/// node, score` finds by meaning.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Cypher query (graph contains Functions, Classes, Modules, Files, Imports, Interfaces)
    pub cypher: String,
    /// The values of `$name` in the query
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The graph as it was then (ISO 8601)
    #[serde(default)]
    #[schemars(with = "String")]
    pub as_of: Option<String>,
    /// `agtype`: values as texts under c1, c2 …
    #[serde(default)]
    pub format: Format,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(
    missing_docs,
    reason = "without texts the schema is a plain list of words"
)]
pub enum Format {
    #[default]
    Json,
    Agtype,
}

/// What the HTTP API is asked.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// A query.
    #[serde(default)]
    #[schemars(with = "String")]
    pub cypher: Option<String>,
    /// The values of `$name`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// A moment of the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub as_of: Option<String>,
    /// How values are written.
    #[serde(default, skip_serializing_if = "is_json")]
    pub format: Format,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_json(format: &Format) -> bool {
    matches!(format, Format::Json)
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            cypher: Some(input.cypher),
            parameters: input.parameters,
            as_of: input.as_of,
            format: input.format,
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
    /// Names in the query that nothing has, and which were perhaps meant
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Answers a call, whoever makes it.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let as_of_ms = match &request.as_of {
        Some(text) => Some(parse_moment("as_of", text)?),
        None => None,
    };
    let question = Question {
        text: request.cypher.unwrap_or_else(|| QUERY_DEFAULT.to_owned()),
        parameters: request.parameters,
        as_of_ms,
        form: match request.format {
            Format::Json => Form::Json,
            Format::Agtype => Form::Agtype,
        },
    };
    let found = engine.query(caller, &question).map_err(refusal)?;
    let columns = found.columns.clone();
    let warnings = found.notes.clone();
    let results = found.objects();
    Ok(Output {
        warnings,
        count: results.len(),
        results,
        columns,
    })
}

fn refusal(error: Error) -> Refusal {
    match error.code {
        Code::InvalidInput => Refusal::new(400, error),
        _ => error.into(),
    }
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
