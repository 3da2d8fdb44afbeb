//! `kami`: installed WASM tools, for people.
//!
//! The same commands are under `kenning kami` and in the program `kami`. Results go to standard
//! output, everything else to standard error; if a tool answers with an error, the exit code is 1.

pub(crate) mod args;
mod dev;
mod packages;
mod progress;
mod running;
mod scaffold;

use crate::settings::ServeOptions;
use crate::{Host, Settings, output, owner};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::{Caller, Engine};
use kenning_tools::Board;
use std::path::PathBuf;
use std::sync::Arc;

/// The context of a command.
struct Kami<'a> {
    settings: &'a Settings,
    engine: Arc<Engine>,
    caller: Caller,
}

/// Runs a command of `kami`.
pub(crate) fn run(
    host: &'static dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((name, inner)) = matches.subcommand() else {
        return Ok(2);
    };
    match name {
        "init" => return scaffold::run(inner),
        "serve" => return serve(host, settings, inner),
        "build" => return dev::build_project(inner),
        _ => {}
    }
    let mut caller = owner(settings);
    // A person who waits decides how long; the tool's own limits apply anyway.
    caller.deadline += std::time::Duration::from_secs(24 * 60 * 60);
    caller.progress = Some(progress::compiling());
    let kami = Kami {
        settings,
        engine: host.open(settings)?,
        caller,
    };
    match name {
        "install" => packages::install(&kami, inner),
        "search" => packages::search(&kami, inner),
        "publish" => packages::publish(&kami, inner),
        "list" => packages::list(&kami, inner),
        "inspect" => packages::inspect(&kami, inner),
        "exec" => running::exec(&kami, inner),
        "run" => running::run_file(&kami, inner),
        "uninstall" => packages::uninstall(&kami, inner),
        "update" => packages::update(&kami, inner),
        "enable" => packages::enable(&kami, inner, true),
        "disable" => packages::enable(&kami, inner, false),
        "pin" => packages::pin(&kami, inner),
        "validate" => packages::validate(&kami, inner),
        "keygen" => packages::keygen(&kami, inner),
        "sign" => packages::sign(&kami, inner),
        "verify" => packages::verify(&kami, inner),
        "trust" => packages::trust(&kami, inner),
        "logs" => running::logs(&kami, inner),
        "policy" => packages::policy(&kami, inner),
        "status" => packages::status(&kami),
        "dev" => dev::run(host, &kami, inner),
        other => Err(Error::invalid(format!("no command `{other}`"))),
    }
}

/// `kami serve`: the installed tools and nothing else.
fn serve(host: &'static dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let mut settings = settings.clone();
    settings.selection.toolsets = vec!["kami".to_owned()];
    let board = Board::new(host.open(&settings)?, settings.selection.clone())?;
    let listen = word(matches, "listen");
    let is_http = matches
        .get_one::<String>("transport")
        .is_some_and(|it| it == "http");
    if listen.is_none() && !is_http {
        return host.mcp(board, &settings).map(|()| 0);
    }
    let port = matches.get_one::<u64>("port").copied().unwrap_or(3_000);
    let address = listen.unwrap_or_else(|| format!("127.0.0.1:{port}"));
    let options = ServeOptions::of(&address, matches)?;
    host.serve(board, &settings, &options).map(|()| 0)
}

fn word(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

fn path(matches: &ArgMatches, name: &str) -> Option<PathBuf> {
    matches.get_one::<PathBuf>(name).cloned()
}

/// An argument that clap requires.
fn must(matches: &ArgMatches, name: &'static str) -> Result<String> {
    word(matches, name).ok_or_else(|| Error::invalid(format!("`{name}` is missing")))
}

/// Says what was done.
fn done(text: &str) {
    output::say(&format!("✓ {text}"));
}
