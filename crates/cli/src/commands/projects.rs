//! `kenning project`: which memories and which context belong to which project.

use super::table;
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::omi::{Assignment, ProjectView};
use kenning_engine::{Caller, Engine, parse_moment};
use serde_json::{Value, json};

/// The word for what belongs to no project.
const GLOBAL: &str = "global";

/// The subcommands.
pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let named = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).help(help).required(true)
    };
    Command::new("project")
        .about("Which memories, NOW.md and daily logs belong to which project")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("list").about("List projects, and what is in each"))
        .subcommand(
            Command::new("assign")
                .about("Give memories to a project; those that belong to none, unless `--from` names another")
                .arg(named("into", "PROJECT", "Its id, name, remote or path; `.` is this one, `global` none"))
                .arg(option("from", "PROJECT", "The project they are in").default_value(GLOBAL))
                .arg(
                    option("id", "IDS", "Only these memories")
                        .value_delimiter(',')
                        .action(ArgAction::Append),
                )
                .arg(
                    option("tags", "WORDS", "Only memories with all of these tags")
                        .value_delimiter(',')
                        .action(ArgAction::Append),
                )
                .arg(option("session", "ID", "Only memories of this session"))
                .arg(option("since", "TIME", "Only memories stored at this time or later"))
                .arg(option("before", "TIME", "Only memories stored before this time"))
                .arg(
                    Arg::new("all")
                        .long("all")
                        .action(ArgAction::SetTrue)
                        .help("Every memory of that project"),
                ),
        )
        .subcommand(
            Command::new("rename")
                .about("Change the name that people read; the id stays")
                .arg(named("which", "PROJECT", "Its id, name, remote or path; `.` is this one"))
                .arg(named("name", "NAME", "The new name")),
        )
        .subcommand(
            Command::new("merge")
                .about("Make one project a part of another, now and from now on")
                .arg(named("from", "PROJECT", "The project that ends"))
                .arg(named("into", "PROJECT", "The project that gets what it has; `.` is this one")),
        )
}

pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    match matches.subcommand() {
        Some(("assign", matches)) => assign(&engine, &caller, settings, matches),
        Some(("rename", matches)) => {
            let id = project(&engine, &caller, text(matches, "which"))?;
            let id = not_global(id)?;
            engine.rename_project(&caller, &id, text(matches, "name"))?;
            said(
                settings,
                &json!({ "project": id }),
                &format!("✓ {id} is called `{}`", text(matches, "name")),
            )
        }
        Some(("merge", matches)) => {
            let from = not_global(project(&engine, &caller, text(matches, "from"))?)?;
            let into = not_global(project(&engine, &caller, text(matches, "into"))?)?;
            let n_moved = engine.omi().merge_projects(&caller, &from, &into)?;
            let json = json!({ "from": from, "into": into, "memories": n_moved });
            said(
                settings,
                &json,
                &format!("✓ {from} is {into} now; memories moved: {n_moved}"),
            )
        }
        _ => list(&engine, &caller, settings),
    }
}

fn said(settings: &Settings, json: &Value, sentence: &str) -> Result<u8> {
    match settings.json {
        true => output::print_json(json),
        false => output::print(sentence),
    }
    Ok(0)
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// The id of a project that somebody named; empty for what is global.
fn project(engine: &Engine, caller: &Caller, named: &str) -> Result<String> {
    match named {
        GLOBAL => Ok(String::new()),
        "." => {
            let own = engine.project_of(caller)?;
            if own.is_empty() {
                return Err(Error::invalid("the working directory is not in a project")
                    .hint("go to a repository, or name a project: `kenning project list`"));
            }
            Ok(own)
        }
        named => engine.find_project(caller, named),
    }
}

fn not_global(id: String) -> Result<String> {
    if id.is_empty() {
        return Err(
            Error::invalid("`global` is not a project, but what belongs to none")
                .hint("`kenning project assign PROJECT --all` gives all of it to a project"),
        );
    }
    Ok(id)
}

fn assign(
    engine: &Engine,
    caller: &Caller,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let texts = |name: &str| -> Vec<String> {
        let given = matches.get_many::<String>(name).into_iter().flatten();
        given.cloned().collect()
    };
    let moment = |name: &'static str| {
        let given = matches.get_one::<String>(name);
        given.map(|it| parse_moment(name, it)).transpose()
    };
    let assignment = Assignment {
        from: project(engine, caller, text(matches, "from"))?,
        to: project(engine, caller, text(matches, "into"))?,
        ids: texts("id"),
        tags: texts("tags"),
        session: matches.get_one::<String>("session").cloned(),
        since_ms: moment("since")?,
        before_ms: moment("before")?,
    };
    let is_narrow = assignment
        != Assignment {
            from: assignment.from.clone(),
            to: assignment.to.clone(),
            ..Assignment::default()
        };
    if !is_narrow && !matches.get_flag("all") {
        return Err(Error::invalid("it is not said which memories")
            .hint("give `--id`, `--tags`, `--session`, `--since` or `--before`, or `--all`"));
    }
    let n_moved = engine.omi().assign_memories(caller, &assignment)?;
    let shown = match assignment.to.as_str() {
        "" => GLOBAL,
        id => id,
    };
    let json = json!({ "project": shown, "memories": n_moved });
    said(
        settings,
        &json,
        &format!("✓ memories given to {shown}: {n_moved}"),
    )
}

fn list(engine: &Engine, caller: &Caller, settings: &Settings) -> Result<u8> {
    let views = engine.omi().projects(caller)?;
    if settings.json {
        let rows: Vec<Value> = views.iter().map(json_of).collect();
        output::print_json(&Value::Array(rows));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = views
        .iter()
        .map(|it| {
            let mark = if it.is_current { "*" } else { "" };
            let (id, name) = match it.id.as_str() {
                "" => ("", GLOBAL),
                id => (id, it.known.name.as_str()),
            };
            let place = it.known.remote.as_ref().or(it.known.paths.first());
            vec![
                mark.to_owned(),
                name.to_owned(),
                it.memories.to_string(),
                if it.has_now { "yes" } else { "" }.to_owned(),
                it.daily_logs.to_string(),
                id.to_owned(),
                place.cloned().unwrap_or_default(),
            ]
        })
        .collect();
    output::print(&table::rows(
        &[
            "",
            "name",
            "memories",
            "NOW.md",
            "logs",
            "id",
            "recognized by",
        ],
        &rows,
    ));
    Ok(0)
}

fn json_of(view: &ProjectView) -> Value {
    json!({
        "id": view.id, "name": view.known.name, "remote": view.known.remote, "paths": view.known.paths,
        "memories": view.memories, "has_now": view.has_now, "daily_logs": view.daily_logs,
        "current": view.is_current,
    })
}
