//! `kenning forget`: much at once.

use super::omi::forget::{report_json, show};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result, Space};
use kenning_engine::omi::{FORGET_MAX, Forget, ForgetMany, ForgetReport};
use kenning_engine::{Caller, parse_moment};
use serde_json::json;

/// What a person must know before they erase.
const NOTES: &str = "\
Without `--yes` it says what it would forget and changes nothing. With it everything is erased at once, for good: \
rows, history, vectors, what events say of it, entries of the daily logs, stored indexes and free pages. \
The log stays whole: `kenning audit verify` counts what was erased.

Not erased: backups that were made before (make a new one and remove the old), notes in your vault, and data of events \
that a program before version 2 of the log wrote, because it is part of what was signed. To be rid of those too, \
`kenning export` what you keep, `kenning import` it into a new data directory, and remove the old one.";

/// The command.
pub(crate) fn command() -> Command {
    let name = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(name.to_uppercase())
            .help(help)
            .required(true)
    };
    Command::new("forget")
        .about("Erase memories for good: of a project, a space, a time, or with a text")
        .after_help(NOTES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("yes")
                .long("yes")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Do it"),
        )
        .subcommand(
            Command::new("project")
                .about("The memories of a project")
                .arg(name("name", "Which project")),
        )
        .subcommand(
            Command::new("space")
                .about("Everything in a space: memories, entities, documents, vectors, the data of its events")
                .arg(name("name", "Which space")),
        )
        .subcommand(
            Command::new("before")
                .about("Memories that were stored before a moment")
                .arg(name("moment", "For example 2026-01-31, or 2026-01-31T12:00:00Z")),
        )
        .subcommand(
            Command::new("text")
                .about("Memories that hold a text, and every event and earlier revision with it")
                .arg(name("text", "The text, letter by letter")),
        )
}

/// Runs it.
pub(super) fn run(
    host: &'static dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((name, inner)) = matches.subcommand() else {
        return Ok(2);
    };
    let is_meant = inner.get_flag("yes");
    let given = |name: &str| inner.get_one::<String>(name).cloned().unwrap_or_default();
    let mut caller = owner(settings);
    let which = match name {
        "project" => ForgetMany {
            project: Some(given("name")),
            ..ForgetMany::default()
        },
        "before" => ForgetMany {
            before_ms: Some(parse_moment("moment", &given("moment"))?),
            ..ForgetMany::default()
        },
        "text" => ForgetMany {
            text: Some(checked_text(given("text"))?),
            ..ForgetMany::default()
        },
        "space" => {
            let space: Space = given("name").parse().map_err(|cause| {
                Error::invalid("`NAME` is not the name of a space").because(cause)
            })?;
            caller.principal.space = space;
            ForgetMany {
                everything: true,
                ..ForgetMany::default()
            }
        }
        _ => return Ok(2),
    };
    let engine = host.open(settings)?;
    let space = &caller.principal.space;
    if !engine.spaces()?.contains(space) {
        return Err(Error::not_found("space", space).hint("`kenning doctor` names the spaces"));
    }
    let ids = engine.omi().memories_to_forget(&caller, &which)?;
    if !is_meant {
        if settings.json {
            output::print_json(&json!({ "would_forget": ids }));
        } else {
            output::print(&format!("{} memories would be erased", ids.len()));
            output::chat("nothing was changed; repeat it with `--yes` to erase them for good");
        }
        return Ok(0);
    }
    let agent = engine.agent_of(&caller)?;
    let report = kenning_engine::on_behalf_of(agent, || erase(&engine, &caller, &which, ids))?;
    if settings.json {
        output::print_json(&report_json(&report));
    } else {
        show(&report, false);
        if report.ids.is_empty() && report.erased.is_none() {
            output::chat("there was nothing to forget");
        }
    }
    Ok(0)
}

fn checked_text(text: String) -> Result<String> {
    if text.trim().chars().count() < kenning_engine::FORGET_TEXT_CHARS_MIN {
        return Err(
            Error::invalid(format!("`TEXT`: `{text}` is too short")).hint(format!(
                "give at least {} characters: shorter texts occur by chance",
                kenning_engine::FORGET_TEXT_CHARS_MIN
            )),
        );
    }
    Ok(text.trim().to_owned())
}

fn erase(
    engine: &kenning_engine::Engine,
    caller: &Caller,
    which: &ForgetMany,
    ids: Vec<String>,
) -> Result<ForgetReport> {
    let mut all = ForgetReport::default();
    for ids in ids.chunks(FORGET_MAX) {
        let forget = Forget {
            ids: ids.to_vec(),
            at_once: true,
        };
        all.add(engine.omi().forget_memories(caller, &forget)?);
    }
    if let Some(text) = &which.text {
        all.add(engine.omi().forget_text(caller, text)?);
    }
    if which.everything {
        all.add(engine.omi().forget_space(caller)?);
    }
    Ok(all)
}
