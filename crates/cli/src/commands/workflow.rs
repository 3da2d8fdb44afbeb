//! `kenning workflow …` and `kenning trajectory …`

use super::{board, table};
use crate::{Host, Settings, output, owner};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::runs::{
    Advice, Family, Outcome, Run, RunFilter, Status, Step, Trajectory, TrajectoryFilter,
};
use kenning_engine::timestamp;
use kenning_engine::workflow::format_duration;
use kenning_engine::workflow_steps::WorkflowKind;
use kenning_tools::{finish_workflow, start_workflow};
use serde_json::{Map, Value, json};

const WORKFLOW: Family = Family::Workflow;

/// `kenning workflow …`
pub(crate) fn command() -> Command {
    let id = || {
        Arg::new("id")
            .value_name("ID")
            .required(true)
            .help("The id that `start` and `list` show")
    };
    Command::new("workflow")
        .about("Start, watch and steer durable workflows")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(start_command())
        .subcommand(
            Command::new("list")
                .about("List workflows, newest first")
                .arg(
                    Arg::new("status")
                        .long("status")
                        .value_name("STATUS")
                        .value_parser(PossibleValuesParser::new(words()))
                        .help("Only with this status"),
                ),
        )
        .subcommand(
            Command::new("status")
                .about("Show a workflow and what it made")
                .arg(id()),
        )
        .subcommand(
            Command::new("history")
                .about("Show every step of a workflow")
                .arg(id()),
        )
        .subcommand(
            Command::new("suspend")
                .about("Let a workflow wait; a step that is under way ends first")
                .arg(id()),
        )
        .subcommand(
            Command::new("resume")
                .about("Go on with a workflow that was suspended, or that a killed process left")
                .arg(id())
                .arg(
                    Arg::new("again")
                        .long("again")
                        .action(ArgAction::SetTrue)
                        .help("Do once more what perhaps was done when a process was killed"),
                ),
        )
        .subcommand(Command::new("stop").about("End a workflow").arg(id()))
}

fn start_command() -> Command {
    Command::new("start")
        .about("Start a workflow, and go on with it until it ends or waits")
        .arg(
            Arg::new("kind")
                .value_name("KIND")
                .required(true)
                .value_parser(PossibleValuesParser::new(
                    WorkflowKind::ALL.map(WorkflowKind::as_str),
                ))
                .help("What to do"),
        )
        .arg(
            Arg::new("doc")
                .value_name("PATH")
                .help("A document or a folder, relative to the project"),
        )
        .arg(
            Arg::new("watch")
                .long("watch")
                .value_name("PATHS")
                .value_delimiter(',')
                .help("Folders to follow, for `sync`"),
        )
        .arg(
            Arg::new("threshold")
                .long("threshold")
                .value_name("SHARE")
                .value_parser(clap::value_parser!(f64))
                .help("How ready a document must be, between 0 and 1"),
        )
        .arg(
            Arg::new("auto-start")
                .long("auto-start")
                .action(ArgAction::SetTrue)
                .help("Make a task of a document that is ready"),
        )
        .arg(
            Arg::new("input")
                .long("input")
                .value_name("JSON")
                .help("Goal, facts and actions, for `custom`; `-` reads standard input"),
        )
}

/// `kenning trajectory …`
pub(crate) fn trajectory_command() -> Command {
    Command::new("trajectory")
        .about("See what workflows and agents did, and what was learned")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List trajectories, newest first")
                .arg(
                    Arg::new("agent")
                        .long("agent")
                        .value_name("ID")
                        .help("Only of this agent"),
                )
                .arg(
                    Arg::new("workflow")
                        .long("workflow")
                        .value_name("ID")
                        .help("Only of this workflow"),
                )
                .arg(
                    Arg::new("success")
                        .long("success")
                        .action(ArgAction::SetTrue)
                        .help("Only those that went well"),
                ),
        )
        .subcommand(
            Command::new("show")
                .about("Show a trajectory step by step")
                .arg(Arg::new("id").value_name("ID").required(true)),
        )
        .subcommand(Command::new("patterns").about("Show sequences of actions that worked"))
}

/// Runs one of them.
pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let board = board(host, settings)?;
    let (engine, caller) = (board.engine(), owner(settings));
    let runs = engine.runs();
    let id = || {
        let id = matches.get_one::<String>("id").cloned();
        id.unwrap_or_default()
    };
    let run = match what {
        "start" => {
            let input = input(matches)?;
            let kind = matches.get_one::<String>("kind").map(String::as_str);
            let kind = kind.and_then(WorkflowKind::parse);
            let kind = kind.ok_or_else(|| Error::invalid("the kind is missing"))?;
            if kind == WorkflowKind::Collaboration && !input.contains_key("docPath") {
                return Err(Error::invalid("a collaboration needs a document")
                    .hint("for example `kenning workflow start collaboration docs/spec.md`"));
            }
            let run = start_workflow(board.engine(), &caller, kind, input)?;
            finish_workflow(&board, &caller, &run.id)?
        }
        "list" => {
            let mut all = runs.list(&caller, WORKFLOW, &RunFilter::default())?;
            if let Some(word) = matches.get_one::<String>("status") {
                all.retain(|it| it.word() == word);
            }
            show_list(settings.json, &all);
            return Ok(0);
        }
        "history" => {
            let run = runs.expect_run(&caller, WORKFLOW, &id())?;
            show_steps(settings.json, &run.id, &run.steps);
            return Ok(0);
        }
        "suspend" => runs.suspend(&caller, WORKFLOW, &id(), "by hand")?,
        "resume" => {
            runs.resume(&caller, WORKFLOW, &id(), matches.get_flag("again"))?;
            finish_workflow(&board, &caller, &id())?
        }
        "stop" => runs.stop(&caller, WORKFLOW, &id())?,
        _ => runs.expect_run(&caller, WORKFLOW, &id())?,
    };
    show(settings.json, &run);
    if what == "start" && run.status == Status::Running {
        output::remark("it goes on while a server runs: `kenning serve` or `kenning mcp`");
    }
    let has_failed = run.outcome == Some(Outcome::Failed) && matches!(what, "start" | "resume");
    Ok(u8::from(has_failed))
}

/// What a workflow can be, as it is listed.
fn words() -> Vec<&'static str> {
    let outcomes = [Outcome::Timeout, Outcome::Cancelled].map(Outcome::as_str);
    Status::ALL
        .map(Status::as_str)
        .into_iter()
        .chain(outcomes)
        .collect()
}

/// What a workflow is given.
fn input(matches: &ArgMatches) -> Result<Map<String, Value>> {
    let mut input = match matches.get_one::<String>("input") {
        None => Map::new(),
        Some(text) => {
            let text = match text.as_str() {
                "-" => crate::tool_args::read_stdin()?,
                text => text.to_owned(),
            };
            serde_json::from_str(&text).map_err(|cause| {
                Error::invalid(format!("`--input`: not a JSON object: {cause}"))
                    .hint("for example `--input '{\"goal\": \"complete-spec\"}'`")
            })?
        }
    };
    if let Some(path) = matches.get_one::<String>("doc") {
        input.insert("docPath".to_owned(), path.as_str().into());
    }
    let mut options = match input.remove("options") {
        Some(Value::Object(options)) => options,
        Some(other) => {
            return Err(Error::invalid(format!(
                "`--input`: `options` is {other} and not an object"
            )));
        }
        None => Map::new(),
    };
    if let Some(paths) = matches.get_many::<String>("watch") {
        let paths: Vec<&String> = paths.collect();
        options.insert("watchPaths".to_owned(), json!(paths));
    }
    if let Some(threshold) = matches.get_one::<f64>("threshold") {
        options.insert("threshold".to_owned(), json!(threshold));
    }
    if matches.get_flag("auto-start") {
        options.insert("autoStart".to_owned(), true.into());
    }
    if !options.is_empty() {
        input.insert("options".to_owned(), options.into());
    }
    Ok(input)
}

/// The actions that a plan leaves to people.
fn left_to_people(run: &Run) -> &[Value] {
    let left = run.state.get("forPeople").and_then(Value::as_array);
    left.map_or(&[], Vec::as_slice)
}

fn summary(run: &Run) -> Value {
    json!({
        "id": run.id, "type": run.kind, "status": run.status.as_str(),
        "outcome": run.outcome.map(Outcome::as_str), "currentStep": run.current_step,
        "startedAt": timestamp(run.started_ms), "lastEventAt": timestamp(run.last_ms),
        "duration": run.duration_ms(), "stepCount": run.n_steps, "artifacts": run.artifacts,
        "forPeople": left_to_people(run), "error": run.error, "trajectoryId": run.trajectory,
    })
}

fn show(as_json: bool, run: &Run) {
    if as_json {
        output::print_json(&summary(run));
        return;
    }
    let state = run.word();
    let at = match run.ended_ms {
        Some(_) => format!("after {}", format_duration(run.duration_ms())),
        None => format!("at {}", run.current_step),
    };
    output::print(&format!("{}  {state} {at}", run.id));
    if let Some(error) = &run.error {
        output::print(&format!("  {error}"));
    }
    for artifact in &run.artifacts {
        let text = artifact.as_str().map(str::to_owned);
        output::print(&format!(
            "  {}",
            text.unwrap_or_else(|| artifact.to_string())
        ));
    }
    for name in left_to_people(run).iter().filter_map(Value::as_str) {
        output::print(&format!("  for people: {name}"));
    }
}

fn show_list(as_json: bool, all: &[Run]) {
    if as_json {
        let rows: Vec<Value> = all.iter().map(summary).collect();
        output::print_json(&json!({ "workflows": rows, "count": rows.len() }));
        return;
    }
    let row = |it: &Run| {
        vec![
            it.id.clone(),
            it.word().to_owned(),
            it.current_step.clone(),
            it.n_steps.to_string(),
            timestamp(it.started_ms),
            format_duration(it.duration_ms()),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heads = ["ID", "STATUS", "STEP", "STEPS", "STARTED", "TOOK"];
    table::print(&heads, &rows, "no workflows");
}

fn show_steps(as_json: bool, id: &str, steps: &[Step]) {
    if as_json {
        let rows: Vec<Value> = steps
            .iter()
            .map(|it| {
                json!({
                    "action": it.action, "outcome": it.outcome.as_str(),
                    "duration": it.duration_ms, "timestamp": timestamp(it.at_ms),
                    "state": it.state, "metadata": it.metadata,
                })
            })
            .collect();
        output::print_json(&json!({ "id": id, "steps": rows }));
        return;
    }
    let row = |it: &Step| {
        vec![
            timestamp(it.at_ms),
            it.action.clone(),
            it.outcome.as_str().to_owned(),
            format_duration(it.duration_ms),
            match &it.metadata {
                Value::Null => String::new(),
                other => other.to_string(),
            },
        ]
    };
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    let heads = ["AT", "ACTION", "OUTCOME", "TOOK", "WHAT"];
    table::print(&heads, &rows, "no steps yet");
}

/// Runs one of the commands about trajectories.
pub(super) fn run_trajectory(
    host: &dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let (engine, caller) = (host.open(settings)?, owner(settings));
    let runs = engine.runs();
    match what {
        "show" => {
            let id = matches.get_one::<String>("id").cloned().unwrap_or_default();
            let found = runs.trajectory(&caller, &id)?;
            let found = found.ok_or_else(|| {
                Error::not_found("trajectory", &id).hint("`kenning trajectory list` lists them")
            })?;
            if !settings.json {
                output::print(&found.summary);
            }
            show_steps(settings.json, &found.id, &found.steps);
        }
        "patterns" => show_patterns(settings.json, &runs.patterns(&caller, None)?),
        _ => {
            let filter = TrajectoryFilter {
                agent_id: matches.get_one::<String>("agent").cloned(),
                workflow_id: matches.get_one::<String>("workflow").cloned(),
                success_only: matches.get_flag("success"),
            };
            show_trajectories(settings.json, &runs.trajectories(&caller, &filter)?);
        }
    }
    Ok(0)
}

fn show_trajectories(as_json: bool, all: &[Trajectory]) {
    if as_json {
        let rows: Vec<Value> = all
            .iter()
            .map(|it| {
                json!({
                    "id": it.id, "agentId": it.agent_id, "workflowId": it.workflow_id,
                    "outcome": it.outcome.as_str(), "success": it.is_success(),
                    "stepCount": it.n_steps, "totalDuration": it.duration_ms(),
                    "startedAt": timestamp(it.started_ms), "completedAt": timestamp(it.ended_ms),
                    "subject": it.subject, "actionSummary": it.actions(),
                })
            })
            .collect();
        output::print_json(&json!({ "trajectories": rows, "count": rows.len() }));
        return;
    }
    let row = |it: &Trajectory| {
        vec![
            it.id.clone(),
            it.workflow_id
                .clone()
                .unwrap_or_else(|| it.agent_id.clone()),
            it.outcome.as_str().to_owned(),
            it.n_steps.to_string(),
            format_duration(it.duration_ms()),
            it.subject.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heads = ["ID", "RUN", "OUTCOME", "STEPS", "TOOK", "ABOUT"];
    table::print(&heads, &rows, "no trajectories yet");
}

fn show_patterns(as_json: bool, all: &[Advice]) {
    if as_json {
        let rows: Vec<Value> = all
            .iter()
            .map(|it| {
                json!({
                    "type": it.pattern.kind, "pattern": it.pattern.id, "score": it.score,
                    "frequency": it.pattern.n_succeeded, "failures": it.pattern.n_failed,
                    "confidence": it.pattern.confidence(), "learningRecords": it.pattern.n_learned,
                })
            })
            .collect();
        output::print_json(&json!({ "patterns": rows, "count": rows.len() }));
        return;
    }
    let row = |it: &Advice| {
        vec![
            format!("{:.2}", it.score),
            it.pattern.kind.clone(),
            it.pattern.n_succeeded.to_string(),
            it.pattern.n_failed.to_string(),
            it.pattern.id.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heads = ["SCORE", "TYPE", "WORKED", "FAILED", "ACTIONS"];
    table::print(&heads, &rows, "nothing was learned yet");
}
