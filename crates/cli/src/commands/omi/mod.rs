//! `omi`: memories, beliefs and the current context, for people.
//!
//! The same commands are under `kenning omi` and in the program `omi`, beside the tools of the
//! contract, which keep their names with underscores.

pub(crate) mod args;
mod care;
mod context;
mod events;
pub(crate) mod forget;
mod graph;
mod memories;
mod pending;
mod picture;

use super::{call, omi_backup, table};
use crate::{Host, Settings, output, owner};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine, on_behalf_of};
use serde_json::json;
use std::sync::Arc;

/// The contract's message if nothing was set up.
const NOT_INITIALIZED: &str = "OMI not initialized. Run 'omi init' first.";

/// The context of a command.
pub(super) struct Omi<'a> {
    settings: &'a Settings,
    engine: Arc<Engine>,
    caller: Caller,
}

/// What a command needs of the directory.
#[derive(PartialEq, Eq)]
enum Needs {
    /// There must be something to read.
    Something,
    /// It must be writable; it is created if it is missing.
    Writing,
}

/// Runs a command of `omi`.
pub(crate) fn run(
    host: &'static dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((name, inner)) = matches.subcommand() else {
        return Ok(2);
    };
    if name == "backup" {
        return omi_backup::run(host, settings, inner);
    }
    let Some(needs) = needs(name, inner) else {
        return call::by_flags(host, settings, "omi", matches);
    };
    let omi = Omi {
        settings,
        engine: host.open(settings)?,
        caller: owner(settings),
    };
    match needs {
        Needs::Writing => {
            refuse_read_only(settings, name)?;
            let made = omi.engine.omi().init_context(&omi.caller)?;
            if name == "init" {
                return Ok(care::init(&omi, &made));
            }
        }
        Needs::Something if !omi.engine.omi().has_context(&omi.caller)? => {
            return Ok(not_initialized(settings));
        }
        Needs::Something => {}
    }
    let agent = match needs {
        Needs::Writing => omi.engine.agent_of(&omi.caller)?,
        Needs::Something => None,
    };
    on_behalf_of(agent, || dispatch(&omi, name, inner))
}

/// `None` for a tool.
fn needs(name: &str, matches: &ArgMatches) -> Option<Needs> {
    Some(match (name, matches.subcommand_name()) {
        ("audit", _) if matches.get_flag("accept") => Needs::Writing,
        ("edit" | "forget" | "restore", _) => Needs::Writing,
        ("init" | "store" | "session-start" | "session-end" | "check" | "reindex", _)
        | ("belief" | "now", Some("update"))
        | ("daily", Some("append"))
        | ("config", Some("set"))
        | ("pending", Some("confirm" | "reject")) => Needs::Writing,
        (
            "recall" | "list" | "get" | "belief" | "now" | "daily" | "status" | "audit" | "config"
            | "events" | "graph" | "pending",
            _,
        ) => Needs::Something,
        _ => return None,
    })
}

fn dispatch(omi: &Omi<'_>, name: &str, matches: &ArgMatches) -> Result<u8> {
    match (name, matches.subcommand()) {
        ("store", _) => memories::store(omi, matches),
        ("recall", _) => memories::recall(omi, matches),
        ("get", _) => memories::get(omi, matches),
        ("list", _) => forget::list(omi, matches),
        ("edit", _) => forget::edit(omi, matches),
        ("forget", _) => forget::forget(omi, matches),
        ("restore", _) => forget::restore(omi, matches),
        ("belief", Some(("update", it))) => memories::belief_update(omi, it),
        ("belief", Some(("evidence", it))) => memories::belief_evidence(omi, it),
        ("belief", Some(("check", it))) => memories::belief_check(omi, it),
        ("now", Some(("show", _))) => context::now_show(omi),
        ("now", Some(("update", it))) => context::now_update(omi, it),
        ("daily", Some(("append", it))) => context::daily_append(omi, it),
        ("daily", Some(("show", it))) => context::daily_show(omi, it),
        ("daily", Some(("list", it))) => context::daily_list(omi, it),
        ("session-start", _) => context::session_start(omi, matches),
        ("session-end", _) => context::session_end(omi, matches),
        ("check", _) => context::check(omi),
        ("status", _) => care::status(omi),
        ("reindex", _) => care::reindex(omi),
        ("audit", _) => care::audit(omi, matches),
        ("config", Some(("get", it))) => care::config_get(omi, it),
        ("config", Some(("set", it))) => care::config_set(omi, it),
        ("config", Some(("show", _))) => care::config_show(omi),
        ("events", Some(("list", it))) => events::list(omi, it),
        ("events", Some(("subscribe", it))) => events::subscribe(omi, it),
        ("graph", Some(("export", it))) => graph::export(omi, it),
        ("pending", Some(("list", _))) => pending::list(omi),
        ("pending", Some(("show", it))) => pending::show(omi, it),
        ("pending", Some(("confirm", it))) => pending::confirm(omi, it),
        ("pending", Some(("reject", it))) => pending::reject(omi, it),
        _ => Ok(2),
    }
}

fn refuse_read_only(settings: &Settings, name: &str) -> Result<()> {
    if settings.selection.read_only {
        return Err(Error::denied(format!("`omi {name}` changes data"))
            .hint("run it without `--read-only`"));
    }
    Ok(())
}

/// The contract's own message and exit code, which the error table does not have.
fn not_initialized(settings: &Settings) -> u8 {
    if settings.json {
        let error = json!({ "code": "not_found", "message": NOT_INITIALIZED, "retryable": false });
        output::complain(&json!({ "error": error }).to_string());
    } else {
        output::complain(&format!("Error: {NOT_INITIALIZED}"));
    }
    1
}

/// A text argument; empty if not given.
fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// A text argument; `-` reads standard input.
fn text_or_stdin(matches: &ArgMatches, name: &str) -> Result<String> {
    match text(matches, name) {
        "-" => crate::tool_args::read_stdin(),
        given => Ok(given.to_owned()),
    }
}

/// All values of an argument; `None` if not given.
fn texts(matches: &ArgMatches, name: &str) -> Option<Vec<String>> {
    let values = matches.get_many::<String>(name)?;
    Some(values.map(|it| it.trim().to_owned()).collect())
}

fn limit(matches: &ArgMatches) -> usize {
    let limit = matches.get_one::<u32>("limit").copied().unwrap_or(10);
    usize::try_from(limit).unwrap_or(10)
}
