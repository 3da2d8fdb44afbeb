//! `kenning koi history|restore`: earlier states of a note.

use super::table;
use crate::output;
use clap::{Arg, ArgMatches, Command, value_parser};
use kenning_core::Result;
use kenning_engine::{Caller, Engine, timestamp};
use serde_json::json;

/// The commands.
pub(super) const HISTORY: &str = "history";
pub(super) const RESTORE: &str = "restore";

pub(super) fn commands() -> [Command; 2] {
    let note = || {
        Arg::new("note")
            .value_name("NOTE")
            .help("Its path in the vault")
            .required(true)
    };
    let number = |help: &'static str| {
        Arg::new("revision")
            .long("revision")
            .value_name("N")
            .help(help)
            .value_parser(value_parser!(usize))
    };
    [
        Command::new(HISTORY)
            .about("List the earlier states of a note, under earlier names too; with --revision show one")
            .arg(note())
            .arg(number("Show the text of this one")),
        Command::new(RESTORE)
            .about("Give a note the text of an earlier state; a deleted one is there again")
            .arg(note())
            .arg(number("Which one [default: the last that was different]")),
    ]
}

pub(super) fn run(
    engine: &Engine,
    caller: &Caller,
    as_json: bool,
    name: &str,
    matches: &ArgMatches,
) -> Result<u8> {
    let note = matches.get_one::<String>("note").map_or("", String::as_str);
    let revision = matches.get_one::<usize>("revision").copied();
    if name == RESTORE {
        let done = engine.koi().restore_note(caller, note, revision)?;
        let at = timestamp(done.at_ms);
        match as_json {
            true => output::print_json(&json!({ "path": note, "revision": done.n, "at": at })),
            false => output::chat(&format!(
                "{note} is as in revision {} of {at} again",
                done.n
            )),
        }
        return Ok(0);
    }
    let history = engine.koi().note_history(caller, note)?;
    if let Some(n) = revision {
        let found = history.iter().find(|it| it.n == n);
        let found = found.ok_or_else(|| {
            kenning_core::Error::not_found("revision", n.to_string())
                .hint(format!("there are revisions 1 to {}", history.len()))
        })?;
        match as_json {
            true => output::print_json(&json!({
                "revision": n, "at": timestamp(found.at_ms), "path": found.path, "text": found.text,
            })),
            false => output::print(&found.text),
        }
        return Ok(0);
    }
    if as_json {
        let rows = history.iter().map(|it| {
            json!({
                "revision": it.n, "at": timestamp(it.at_ms), "path": it.path, "bytes": it.text.len(),
            })
        });
        output::print_json(&json!({ "revisions": rows.collect::<Vec<_>>() }));
        return Ok(0);
    }
    let rows = history.iter().map(|it| {
        vec![
            it.n.to_string(),
            timestamp(it.at_ms),
            it.text.len().to_string(),
            it.path.clone(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    table::print(&["REVISION", "AT", "BYTES", "PATH"], &rows, "no revisions");
    Ok(0)
}
