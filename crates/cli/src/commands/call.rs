//! Calling tools.

use super::{board, project};
use crate::{Host, Settings, output, owner, progress, tool_args};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::query::names_code;
use kenning_tools::{Effect, Reply, near, summary};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// `kenning tools`
pub(crate) fn list(settings: &Settings) -> Result<u8> {
    let tools = settings.selection.listed()?;
    if settings.json {
        let rows: Vec<Value> = tools.iter().map(|tool| summary(*tool)).collect();
        output::print_json(&json!(rows));
        return Ok(0);
    }
    let rows = tools.iter().map(|tool| {
        let (toolset, effect) = (tool.toolset().as_str(), tool.effect().as_str());
        format!(
            "{toolset:<5} {:<28} {effect:<8} {}",
            tool.name(),
            tool.description()
        )
    });
    output::print(&rows.collect::<Vec<_>>().join("\n"));
    Ok(0)
}

/// `kenning call NAME --json '{...}'`
pub(crate) fn by_name(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let name: &String = matches
        .get_one("name")
        .ok_or_else(|| Error::invalid("the name of the tool is missing"))?;
    let text: &String = matches
        .get_one("json")
        .ok_or_else(|| Error::invalid("the arguments are missing"))?;
    let text = if text == "-" {
        tool_args::read_stdin()?
    } else {
        text.clone()
    };
    let arguments = serde_json::from_str(&text).map_err(|cause| {
        Error::invalid(format!("`--json`: not JSON: {cause}"))
            .hint("give an object, for example `--json '{\"path\": \"a.md\"}'`")
    })?;
    call(
        host,
        settings,
        name,
        arguments,
        matches.get_flag("yes"),
        true,
    )
}

/// `kenning <toolset> <tool> --flags`
pub(crate) fn by_flags(
    host: &dyn Host,
    settings: &Settings,
    toolset: &str,
    matches: &ArgMatches,
) -> Result<u8> {
    let unknown = || Error::invalid(format!("no command `{toolset}`"));
    let (name, matches) = matches.subcommand().ok_or_else(unknown)?;
    let tool = tool_args::named(toolset, name).ok_or_else(unknown)?;
    let name = tool.name();
    let mut arguments = tool_args::arguments(tool, matches)?;
    if name == "load" {
        add_project(settings, &mut arguments);
    }
    call(
        host,
        settings,
        name,
        arguments,
        matches.get_flag("yes"),
        settings.json,
    )
}

/// An item is loaded into the project of the command line.
fn add_project(settings: &Settings, arguments: &mut Value) {
    let into_project = arguments
        .get("destination")
        .is_none_or(|it| it == "project");
    let project = settings.project.as_ref();
    let project = project.and_then(|it| std::path::absolute(it).ok());
    if let (true, Some(project), Some(fields)) = (into_project, project, arguments.as_object_mut())
    {
        let project = project.to_string_lossy().into_owned();
        fields.entry("project_path").or_insert(project.into());
    }
}

pub(super) fn call(
    host: &dyn Host,
    settings: &Settings,
    name: &str,
    arguments: Value,
    yes: bool,
    as_json: bool,
) -> Result<u8> {
    let tool = kenning_tools::TOOLS.iter().find(|it| it.name() == name);
    if tool.is_some_and(|tool| tool.effect() == Effect::Destroy) && !yes {
        confirm(name)?;
    }
    Ok(show(&answer(host, settings, name, arguments)?, as_json))
}

/// What a tool answers.
pub(super) fn answer(
    host: &dyn Host,
    settings: &Settings,
    name: &str,
    arguments: Value,
) -> Result<Reply> {
    let board = board(host, &shown(settings))?;
    let asked = arguments.get("cypher").and_then(Value::as_str);
    let is_of_now = arguments.get("as_of").is_none_or(Value::is_null);
    let asks_code = name == "code_query" && is_of_now && asked.is_some_and(names_code);
    if asks_code || name == "kg_agent_spawn" {
        project::read_first(board.engine(), &owner(settings))?;
    }
    let bar = progress::bar("working");
    let mut caller = progress::watched(owner(settings), &bar);
    // A terminal or a file has no limit of length.
    caller.answer_chars_max = None;
    let reply = board.call(name, arguments, &caller).ok_or_else(|| {
        let near = near::sentence(&board.near(name));
        let near = near.trim_start();
        let all = "`kenning tools` lists those that are shown";
        Error::not_found("tool", name).hint(match near {
            "" => all.to_owned(),
            near => format!("{near} {all}"),
        })
    })?;
    bar.finish_and_clear();
    Ok(reply)
}

/// A tool is found by its name in every toolset, if nothing else was selected.
fn shown(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let selection = &mut settings.selection;
    if selection.toolsets.is_empty() && selection.tools.is_empty() {
        selection.toolsets = vec!["all".to_owned()];
    }
    settings
}

/// A reply is data; an error with an envelope of its contract is data too.
pub(super) fn show(reply: &Reply, as_json: bool) -> u8 {
    reply.remarks.iter().for_each(|it| output::remark(it));
    if let Some(cursor) = reply.value.as_ref().and_then(cursor) {
        output::remark(&format!(
            "more: the same call with `cursor: \"{cursor}\"` goes on from there"
        ));
    }
    match &reply.error {
        None if as_json => output::print_json(&reply.to_json()),
        None => output::print(&reply.text),
        Some(error) => {
            match &reply.value {
                Some(envelope) if as_json => output::print_json(envelope),
                Some(envelope) => show_what_was_said(envelope),
                None => {}
            }
            return output::print_error(error, as_json);
        }
    }
    0
}

/// The cursor of a reply that shows only a part of a list.
fn cursor(answer: &Value) -> Option<&str> {
    let cut = answer["metadata"]["truncated"].as_array();
    let cut = cut.and_then(|all| all.iter().find_map(|it| it["cursor"].as_str()));
    answer["next_cursor"].as_str().or(cut)
}

/// Shows the output of a failed program, unless JSON was asked for.
fn show_what_was_said(envelope: &Value) {
    for name in ["stdout", "stderr"] {
        let said = envelope[name].as_str().map(str::trim_end);
        if let Some(said) = said.filter(|it| !it.is_empty()) {
            output::complain(&format!("{name}:\n{said}"));
        }
    }
}

pub(super) fn confirm(name: &str) -> Result<()> {
    confirm_that(&format!("`{name}` removes something"))
}

/// Asks on a terminal; elsewhere `--yes` is required.
pub(super) fn confirm_that(what: &str) -> Result<()> {
    let refused = || Error::denied(what).hint("confirm with `--yes`");
    if !std::io::stdin().is_terminal() {
        return Err(refused());
    }
    let mut err = std::io::stderr();
    // Without a prompt the answer is still read.
    drop(write!(err, "{what}. Go on? [y/N] ").and_then(|()| err.flush()));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|_| refused())?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(refused())
    }
}
