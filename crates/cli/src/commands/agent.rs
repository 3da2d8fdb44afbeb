//! `kenning agent list|spawn|status|cancel`

use super::{call, table};
use crate::{Host, Settings, output, owner};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use kenning_core::Result;
use kenning_engine::agents::{AgentKind, AgentRow, AgentStatus, Priority};
use kenning_engine::timestamp;
use serde_json::{Map, Value, json};

fn words(all: impl IntoIterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(all)
}

/// `kenning agent ...`
pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let agent = Arg::new("agent")
        .value_name("AGENT")
        .required(true)
        .help("Its id or its name");
    let kinds = || words(AgentKind::ALL.iter().map(|it| it.as_str()));
    Command::new("agent")
        .about("Agents that look at documents and code, and report")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List agents and what they are doing")
                .arg(option("type", "TYPE", "Only of this type").value_parser(kinds()))
                .arg(
                    option("status", "STATUS", "Only with this status")
                        .value_parser(words(AgentStatus::ALL.iter().map(|it| it.as_str()))),
                ),
        )
        .subcommand(
            Command::new("spawn")
                .about("Have an agent do a task, and show its report")
                .arg(
                    Arg::new("type")
                        .value_name("TYPE")
                        .required(true)
                        .value_parser(words(AgentKind::SPAWNABLE.map(AgentKind::as_str)))
                        .help("What kind of agent"),
                )
                .arg(
                    Arg::new("task")
                        .value_name("TASK")
                        .required(true)
                        .help("What to find out, in any words"),
                )
                .arg(option(
                    "name",
                    "NAME",
                    "Its name: the agent of this name does the task",
                ))
                .arg(
                    option("timeout", "MS", "How long it may take")
                        .value_parser(clap::value_parser!(u64)),
                )
                .arg(
                    option(
                        "retries",
                        "N",
                        "How often a failure that may pass is tried again",
                    )
                    .value_parser(clap::value_parser!(u32)),
                )
                .arg(
                    option("priority", "PRIORITY", "Whose turn comes first")
                        .value_parser(words(Priority::ALL.iter().map(|it| it.as_str()))),
                ),
        )
        .subcommand(
            Command::new("status")
                .about("Show one agent")
                .arg(agent.clone()),
        )
        .subcommand(
            Command::new("cancel")
                .about("End the task of an agent")
                .arg(agent),
        )
}

/// Runs one of them.
pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    if what == "spawn" {
        return spawn(host, settings, matches);
    }
    let engine = host.open(settings)?;
    let (agents, caller) = (engine.agent_tasks(), owner(settings));
    match what {
        "status" => {
            let found = agents.status(&caller, text("agent").unwrap_or_default())?;
            show(settings, &[found]);
        }
        "cancel" => {
            let agent = text("agent").unwrap_or_default();
            let is_cancelled = agents.cancel(&caller, agent)?;
            if settings.json {
                output::print_json(&json!({ "cancelled": is_cancelled }));
            } else if is_cancelled {
                output::say("its task ends at its next step");
            } else {
                output::say("it has no task");
            }
        }
        _ => {
            let kind = text("type").and_then(AgentKind::parse);
            let status = text("status").and_then(AgentStatus::parse);
            show(settings, &agents.list(&caller, kind, status)?.agents);
        }
    }
    Ok(0)
}

/// As the tool does it: so the same limits hold, and a model may look with the same tools.
fn spawn(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let mut options = Map::new();
    if let Some(ms) = matches.get_one::<u64>("timeout") {
        options.insert("timeout".to_owned(), (*ms).into());
    }
    if let Some(n) = matches.get_one::<u32>("retries") {
        options.insert("maxRetries".to_owned(), (*n).into());
    }
    if let Some(priority) = text("priority") {
        options.insert("priority".to_owned(), priority.into());
    }
    let mut arguments = json!({ "type": text("type"), "task": text("task"), "options": options });
    if let Some(name) = text("name") {
        arguments["name"] = name.into();
    }
    let reply = call::answer(host, settings, "kg_agent_spawn", arguments)?;
    let artifacts = reply
        .value
        .as_ref()
        .and_then(|it| it.pointer("/data/artifacts")?.as_array());
    // The report, then what it speaks of, such as a patch.
    let texts: Vec<&str> = artifacts
        .into_iter()
        .flatten()
        .filter_map(|it| it["content"].as_str())
        .collect();
    if texts.is_empty() || settings.json || reply.is_error() {
        return Ok(call::show(&reply, settings.json));
    }
    texts.into_iter().for_each(output::print);
    Ok(0)
}

fn show(settings: &Settings, agents: &[AgentRow]) {
    if settings.json {
        let rows: Vec<Value> = agents
            .iter()
            .map(|it| {
                json!({
                    "id": it.id, "type": it.kind.as_str(), "name": it.name, "status": it.status.as_str(),
                    "currentTask": it.current_task, "queuedTasks": it.queued,
                    "completedTasks": it.completed, "errorCount": it.errors,
                    "lastActivity": timestamp(it.active_ms), "task": it.about, "lastError": it.error,
                    "report": it.report,
                })
            })
            .collect();
        output::print_json(&json!({ "agents": rows, "count": rows.len() }));
        return;
    }
    let rows: Vec<Vec<String>> = agents
        .iter()
        .map(|it| {
            vec![
                it.id.clone(),
                it.kind.as_str().to_owned(),
                it.name.clone(),
                it.status.as_str().to_owned(),
                it.completed.to_string(),
                it.errors.to_string(),
                timestamp(it.active_ms),
                it.error.clone().unwrap_or_else(|| it.about.clone()),
            ]
        })
        .collect();
    let head = [
        "AGENT", "TYPE", "NAME", "STATUS", "DONE", "FAILED", "LAST", "TASK",
    ];
    table::print(
        &head,
        &rows,
        "no agent was spawned yet: `kenning agent spawn researcher \"…\"`",
    );
}
