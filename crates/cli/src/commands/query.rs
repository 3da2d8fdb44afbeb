//! `kenning query`: Cypher over everything in the store.

use super::{project, table};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::parse_moment;
use kenning_engine::query::{Found, Question, names_code};
use serde_json::{Map, Value, json};
use std::io::Read;

/// A query is not longer than this.
const QUERY_BYTES_MAX: u64 = 1 << 20;

/// The command line of it.
pub(crate) fn command() -> Command {
    Command::new("query")
        .about("Ask everything in the store in Cypher, for example 'MATCH (n) RETURN labels(n), count(*)'")
        .arg(
            Arg::new("cypher")
                .value_name("CYPHER")
                .required(true)
                .help("The query; `-` is standard input"),
        )
        .arg(
            Arg::new("param")
                .long("param")
                .short('p')
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("The value of `$NAME`: JSON, or else a text"),
        )
        .arg(
            Arg::new("as-of")
                .long("as-of")
                .value_name("MOMENT")
                .help("Answer from what was there at this moment"),
        )
        .arg(
            Arg::new("csv")
                .long("csv")
                .action(ArgAction::SetTrue)
                .help("Print the rows as CSV (RFC 4180)"),
        )
}

/// Asks, and prints the rows.
pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let text = |name: &str| matches.get_one::<String>(name);
    let as_of = text("as-of").map(|it| parse_moment("--as-of", it));
    let question = Question {
        text: match text("cypher").map(String::as_str) {
            Some("-") => from_input()?,
            given => given.unwrap_or_default().to_owned(),
        },
        parameters: parameters(matches.get_many::<String>("param"))?,
        as_of_ms: as_of.transpose()?,
        ..Question::default()
    };
    let (engine, caller) = (host.open(settings)?, owner(settings));
    if question.as_of_ms.is_none() && names_code(&question.text) {
        project::read_first(&engine, &caller)?;
    }
    let found = engine.query(&caller, &question)?;
    if settings.json {
        let columns = found.columns.clone();
        let notes = found.notes.clone();
        let results = found.objects();
        let count = results.len();
        let mut answer = json!({ "columns": columns, "results": results, "count": count });
        if !notes.is_empty() {
            answer["warnings"] = notes.into();
        }
        output::print_json(&answer);
        return Ok(0);
    }
    for note in &found.notes {
        output::remark(note);
    }
    if matches.get_flag("csv") {
        output::print_raw(&csv(&found));
    } else {
        let head: Vec<&str> = found.columns.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = found.rows.iter().map(|row| cells(row)).collect();
        table::print(&head, &rows, "no rows");
    }
    Ok(0)
}

fn from_input() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin()
        .take(QUERY_BYTES_MAX + 1)
        .read_to_string(&mut text);
    read.map_err(|cause| Error::invalid("the query is not text").because(cause))?;
    if text.len() as u64 > QUERY_BYTES_MAX {
        return Err(Error::too_large(format!(
            "the query is longer than {QUERY_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

fn parameters<'a>(given: Option<impl Iterator<Item = &'a String>>) -> Result<Map<String, Value>> {
    let mut parameters = Map::new();
    for pair in given.into_iter().flatten() {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Error::invalid(format!("`--param {pair}` has no `=`"))
                .hint("write `--param name=value`"));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        parameters.insert(name.to_owned(), value);
    }
    Ok(parameters)
}

/// Values as people read them: texts without quotes.
fn cells(row: &[Value]) -> Vec<String> {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    row.iter().map(cell).collect()
}

fn csv(found: &Found) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|it| quoted(it)).collect();
        cells.join(",")
    };
    let mut lines = vec![line(&found.columns)];
    lines.extend(found.rows.iter().map(|row| line(&cells(row))));
    lines.join("\r\n")
}

fn quoted(cell: &str) -> String {
    // What a spreadsheet takes for a formula would run there.
    let is_formula =
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    let cell = if is_formula {
        format!("'{cell}")
    } else {
        cell.to_owned()
    };
    if cell.contains([',', '"', '\n', '\r']) || is_formula {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it_and_runs_no_formula() {
        let found = Found {
            columns: vec!["a,b".to_owned(), "c".to_owned()],
            rows: vec![
                vec![json!("say \"hi\"\nthere"), json!(-1.5)],
                vec![json!("=1+1"), Value::Null],
                vec![json!([1, "x"]), json!(true)],
            ],
            notes: Vec::new(),
        };
        let expected =
            "\"a,b\",c\r\n\"say \"\"hi\"\"\nthere\",-1.5\r\n\"'=1+1\",\r\n\"[1,\"\"x\"\"]\",true";
        assert_eq!(csv(&found), expected);
    }

    #[test]
    fn a_parameter_is_json_or_else_a_text() {
        let given = ["n=3", "name=Ann Lee", "list=[1,2]", "eq=a=b"].map(ToOwned::to_owned);
        let expected = json!({ "n": 3, "name": "Ann Lee", "list": [1, 2], "eq": "a=b" });
        assert_eq!(
            Value::Object(parameters(Some(given.iter())).unwrap()),
            expected
        );
        let bad = ["alone".to_owned()];
        assert!(parameters(Some(bad.iter())).is_err());
    }
}
