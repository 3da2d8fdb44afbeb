//! `kenning trust` and `kami trust`: trusted keys, for tools and items alike.

use super::table;
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine};
use serde_json::json;

pub(crate) fn command() -> Command {
    let key = || Arg::new("key").value_name("KEY").required(true);
    Command::new("trust")
        .about("Whose signatures count")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("add")
                .about("Trust a key: 64 hexadecimal digits, or did:key:...")
                .arg(key())
                .arg(
                    Arg::new("name")
                        .long("name")
                        .value_name("NAME")
                        .help("Whose it is")
                        .default_value(""),
                ),
        )
        .subcommand(Command::new("list").about("List the trusted keys"))
        .subcommand(
            Command::new("remove")
                .about("Trust a key no longer")
                .arg(key()),
        )
}

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    change(
        &*host.open(settings)?,
        &owner(settings),
        settings.json,
        matches,
    )
}

/// Does it with an open engine.
pub(super) fn change(
    engine: &Engine,
    caller: &Caller,
    as_json: bool,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let word = |name: &str| matches.get_one::<String>(name).cloned();
    let key = || word("key").ok_or_else(|| Error::invalid("no key"));
    match what {
        "add" => {
            let name = word("name").unwrap_or_default();
            let key = engine.kami().trust_key(caller, &key()?, &name)?;
            output::say(&format!("{} is trusted", key.key));
        }
        "remove" => {
            let key = key()?;
            engine.kami().distrust_key(caller, &key)?;
            output::say(&format!("{key} is no longer trusted"));
        }
        _ => {
            let keys = engine.kami().trusted_keys(caller)?;
            if as_json {
                let keys = keys
                    .iter()
                    .map(|it| json!({ "key": it.key, "name": it.name }));
                output::print_json(&keys.collect());
            } else {
                let rows: Vec<Vec<String>> = keys
                    .into_iter()
                    .map(|key| vec![key.key, key.name])
                    .collect();
                table::print(
                    &["KEY", "NAME"],
                    &rows,
                    "no key is trusted yet beside that of this node",
                );
            }
        }
    }
    Ok(0)
}
