//! The pages of the command line and of its environment.

use super::markdown::{cell, notice};
use clap::{Arg, ArgAction, Command};
use std::fmt::Write;

/// `docs/reference/cli.md`
pub(super) fn page() -> String {
    let mut command = kenning_cli::command();
    command.build();
    let mut out = notice("crates/cli/src/args.rs");
    out += "# Command line\n\n\
        Data goes to standard output, everything else to standard error.\n\
        The exit code is that of [the error](errors.md).\n";
    section(&mut out, &command, "kenning", true);
    out
}

/// `docs/reference/environment.md`
pub(super) fn environment() -> String {
    let mut out = notice("crates/cli/src/env_vars.rs");
    out += "# Environment variables\n\n| variable | what it is for |\n|---|---|\n";
    for variable in kenning_cli::env_vars::ALL {
        let doc = variable
            .doc
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| `{}` | {} |", variable.name, cell(&doc));
    }
    out
}

fn section(out: &mut String, command: &Command, name: &str, with_shared: bool) {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = write!(
        out,
        "\n## `{name}`\n\n{about}.\n",
        about = about.trim_end_matches('.')
    );
    let own = |arg: &&Arg| {
        let hidden = ["help", "version"].contains(&arg.get_id().as_str());
        let shared = arg.is_global_set() && !with_shared;
        !hidden && !shared
    };
    let args: Vec<&Arg> = command.get_arguments().filter(own).collect();
    if !args.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for arg in args {
        let _ = writeln!(out, "| {} | {} |", cell(&spelled(arg)), cell(&meaning(arg)));
    }
    for inner in command
        .get_subcommands()
        .filter(|it| it.get_name() != "help")
    {
        section(out, inner, &format!("{name} {}", inner.get_name()), false);
    }
}

fn spelled(arg: &Arg) -> String {
    let values: Vec<String> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let value = if values.is_empty() {
        arg.get_id().to_string()
    } else {
        values.join(" ")
    };
    match (arg.get_short(), arg.get_long()) {
        (None, None) => format!("`{value}`"),
        (short, long) => {
            let short = short.map(|it| format!("-{it}"));
            let names: Vec<String> = short
                .into_iter()
                .chain(long.map(|it| format!("--{it}")))
                .collect();
            let names = names.join(", ");
            if takes_value {
                format!("`{names} {value}`")
            } else {
                format!("`{names}`")
            }
        }
    }
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('.') {
        text.push('.');
    }
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|it| it.get_name().to_owned())
        .collect();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    if takes_value && !choices.is_empty() {
        text += &format!(" One of {}.", choices.join(", "));
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    if takes_value && !defaults.is_empty() {
        text += &format!(" Default: `{}`.", defaults.join(","));
    }
    if let Some(variable) = arg.get_env() {
        text += &format!(" Also `{}`.", variable.to_string_lossy());
    }
    if arg.is_required_set() {
        text += " Required.";
    }
    text.trim().to_owned()
}
