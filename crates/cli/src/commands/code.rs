//! `kenning code symbols|callers|callees|tests|impact NAME`

use super::{project, table};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::Result;
use kenning_engine::koi::{CodeLink, CodeQuestion, CodeSymbol};
use serde_json::{Value, json};

/// `kenning code ...`
pub(crate) fn command() -> Command {
    let sub = |name: &'static str, about: &'static str| {
        let command = Command::new(name)
            .about(about)
            .arg(
                Arg::new("name")
                    .value_name("NAME")
                    .required(true)
                    .help("A function, type or constant: `parse_header`, or `Type.method`"),
            )
            .arg(
                Arg::new("repo")
                    .long("repo")
                    .value_name("OWNER/NAME")
                    .help("Only in this repository"),
            );
        match name {
            "symbols" => command,
            _ => command.arg(
                Arg::new("guesses")
                    .long("guesses")
                    .help("Also what only the name speaks for")
                    .action(ArgAction::SetTrue),
            ),
        }
    };
    Command::new("code")
        .about("Ask the code of scanned repositories")
        .subcommand_required(true)
        .subcommand(sub("symbols", "Show where something is defined"))
        .subcommand(sub("callers", "Show who calls a function"))
        .subcommand(sub("callees", "Show what a function calls"))
        .subcommand(sub("tests", "Show which tests reach a function"))
        .subcommand(sub(
            "impact",
            "Show what a change may reach: callers, users and heirs, and theirs",
        ))
}

/// Runs one of them.
pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let engine = host.open(settings)?;
    let caller = owner(settings);
    project::read_first(&engine, &caller)?;
    let name = matches
        .get_one::<String>("name")
        .cloned()
        .unwrap_or_default();
    let repo = matches.get_one::<String>("repo").map(String::as_str);
    let question = match what {
        "callers" => CodeQuestion::Callers,
        "callees" => CodeQuestion::Callees,
        "tests" => CodeQuestion::Tests,
        "impact" => CodeQuestion::Impact,
        _ => {
            let found = engine.koi().code_symbols(&caller, &name, repo)?;
            show_symbols(settings.json, &found);
            return Ok(if found.is_empty() { 3 } else { 0 });
        }
    };
    let guesses = matches.get_flag("guesses");
    let found = engine
        .koi()
        .code_links(&caller, &name, repo, question, guesses)?;
    show_links(settings.json, &found);
    Ok(0)
}

fn place(symbol: &CodeSymbol) -> String {
    match symbol.text("file_path") {
        "" => "(outside)".to_owned(),
        path => format!("{path}:{}", symbol.line()),
    }
}

fn title(symbol: &CodeSymbol) -> String {
    let names = ["qualified_name", "name", "path"];
    let mut names = names.iter().map(|it| symbol.text(it));
    names
        .find(|it| !it.is_empty())
        .unwrap_or_default()
        .to_owned()
}

fn show_symbols(as_json: bool, found: &[CodeSymbol]) {
    if as_json {
        let all: Vec<Value> = found
            .iter()
            .map(|it| Value::Object(it.props.clone()))
            .collect();
        output::print_json(&json!({ "symbols": all, "count": all.len() }));
        return;
    }
    let row = |it: &CodeSymbol| {
        vec![
            it.text("label").to_owned(),
            title(it),
            it.text("repo").to_owned(),
            place(it),
            it.text("signature").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    let none = "no symbol has this name; scan the repository with `github_scan`";
    table::print(&["KIND", "NAME", "REPO", "PLACE", "SIGNATURE"], &rows, none);
}

fn show_links(as_json: bool, found: &[(CodeSymbol, Vec<CodeLink>)]) {
    if as_json {
        let link = |it: &CodeLink| {
            json!({
                "symbol": it.symbol.props, "relation": it.relation, "confidence": it.confidence,
                "origin": it.origin, "lines": it.lines, "depth": it.depth,
            })
        };
        let all: Vec<Value> = found
            .iter()
            .map(|(symbol, links)| {
                let links: Vec<Value> = links.iter().map(link).collect();
                json!({ "symbol": symbol.props, "links": links, "count": links.len() })
            })
            .collect();
        output::print_json(&json!({ "results": all }));
        return;
    }
    for (symbol, links) in found {
        output::say(&format!(
            "{} {} ({})",
            symbol.text("label"),
            title(symbol),
            place(symbol)
        ));
        let row = |it: &CodeLink| {
            let lines: Vec<String> = it.lines.iter().take(5).map(ToString::to_string).collect();
            vec![
                it.depth.to_string(),
                it.relation.clone(),
                title(&it.symbol),
                place(&it.symbol),
                lines.join(","),
                format!("{:.2}", it.confidence),
                it.origin.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = links.iter().map(row).collect();
        let heads = ["STEPS", "HOW", "NAME", "PLACE", "LINES", "SURE", "ORIGIN"];
        table::print(&heads, &rows, "nothing found");
    }
}
