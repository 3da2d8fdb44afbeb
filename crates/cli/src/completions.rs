//! Completions for shells, and the manual page: what is written about the whole command line.
//!
//! They need the arguments of every command, so they are looked for before a command is run.

use crate::{args, output};
use clap::{ArgMatches, Command};
use kenning_core::{Error, Result};

/// Prints what was asked for and returns the exit code; nothing if these arguments are of another command.
pub(crate) fn run(matches: &ArgMatches) -> Option<Result<u8>> {
    match matches.subcommand()? {
        ("completions", inner) => Some(Ok(completions(args::command(), "kenning", inner))),
        ("man", _) => Some(man()),
        // `omi completion`, as a program of its own and as `kenning omi completion`.
        ("completion", inner) => Some(Ok(completions(args::omi_command(), "omi", inner))),
        ("omi", inner) => match inner.subcommand()? {
            ("completion", inner) => Some(Ok(completions(args::omi_command(), "omi", inner))),
            _ => None,
        },
        _ => None,
    }
}

fn completions(mut command: Command, program: &str, matches: &ArgMatches) -> u8 {
    if let Some(&shell) = matches.get_one::<clap_complete::Shell>("shell") {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, program, &mut script);
        output::print(&String::from_utf8_lossy(&script));
    }
    0
}

fn man() -> Result<u8> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command())
        .render(&mut page)
        .map_err(|cause| Error::internal("the manual page could not be made").because(cause))?;
    output::print(&String::from_utf8_lossy(&page));
    Ok(0)
}
