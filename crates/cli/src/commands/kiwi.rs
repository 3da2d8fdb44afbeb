//! `kenning kiwi run|sign|create|update|publish|delete|link|export`, and `kenning registry`.
//!
//! An action is a call of `execute`, so that it means the same as over every other door.

use super::call;
use crate::settings::{LISTEN_DEFAULT, ServeOptions};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use kenning_core::{Error, Result};
use kenning_engine::RegistryVersion;
use kenning_tools::{Board, Selection};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The actions that are commands, and what they do.
const ACTIONS: [(&str, &str); 7] = [
    (
        "run",
        "Give the steps of a directive or the text of an entry; run a tool",
    ),
    ("sign", "Validate and sign an item"),
    (
        "create",
        "Validate and sign an item that was not signed yet",
    ),
    ("update", "Validate and sign an item that was signed before"),
    ("publish", "Put a signed item into the registry"),
    ("delete", "Remove an item"),
    ("link", "Link two items of a type"),
];

/// `kenning kiwi ...`, beside the tools themselves.
pub(crate) fn commands() -> Vec<Command> {
    let mut all: Vec<Command> = ACTIONS.iter().map(|it| action(it.0, it.1)).collect();
    all.push(
        Command::new("export")
            .about("Write every signed directive as a skill folder")
            .arg(
                Arg::new("skills")
                    .long("skills")
                    .value_name("DIR")
                    .help("Where to")
                    .required(true)
                    .value_parser(value_parser!(PathBuf)),
            ),
    );
    all
}

fn action(name: &'static str, about: &'static str) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let command = Command::new(name)
        .about(about)
        .arg(
            Arg::new("item-type")
                .value_name("TYPE")
                .help("directive, tool or knowledge")
                .required(true)
                .value_parser(["directive", "tool", "knowledge"]),
        )
        .arg(Arg::new("item-id").value_name("ID").required(true))
        .arg(
            Arg::new("parameters")
                .short('p')
                .long("parameter")
                .value_name("NAME=VALUE")
                .help("A parameter; a value that is JSON is taken as such")
                .action(ArgAction::Append),
        )
        .arg(text("project-path", "DIR", "The project, if not this one"))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .help("Validate and change nothing")
                .action(ArgAction::SetTrue),
        );
    match name {
        "run" => command.arg(text(
            "run-id",
            "RUN",
            "Stay within what this directive's run may do",
        )),
        "publish" => command
            .arg(text("changelog", "TEXT", "What is new"))
            .arg(text("version", "VERSION", "The version of the file")),
        "sign" | "create" | "update" => command
            .arg(text("location", "PLACE", "project or user"))
            .arg(text("category", "PATH", "Where it is to lie")),
        "delete" => command
            .arg(text("source", "SOURCE", "local, registry or all"))
            .arg(
                Arg::new("yes")
                    .long("yes")
                    .help("Do not ask")
                    .action(ArgAction::SetTrue),
            ),
        "link" => command
            .arg(text("target-id", "ID", "The other item").required(true))
            .arg(text("relationship-type", "WORD", "How they relate").required(true)),
        _ => command,
    }
}

/// Runs one of them; `None` if it is none of them.
pub(crate) fn run(
    host: &dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Option<Result<u8>> {
    let (name, inner) = matches.subcommand()?;
    if name == "export" {
        return Some(export(host, settings, inner));
    }
    ACTIONS.iter().find(|it| it.0 == name)?;
    Some(act(host, settings, name, inner))
}

fn act(host: &dyn Host, settings: &Settings, action: &str, matches: &ArgMatches) -> Result<u8> {
    let word = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    let mut parameters = Map::new();
    for pair in matches
        .get_many::<String>("parameters")
        .into_iter()
        .flatten()
    {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Error::invalid(format!("`--parameter`: `{pair}` is not `NAME=VALUE`"))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        parameters.insert(name.to_owned(), value);
    }
    let named = [
        "changelog",
        "version",
        "location",
        "category",
        "source",
        "target-id",
        "relationship-type",
    ];
    for name in named {
        if let Some(value) = word(name) {
            parameters.insert(name.replace('-', "_"), value.into());
        }
    }
    if action == "delete" {
        let sure = matches.get_flag("yes") || matches.get_flag("dry-run");
        if !sure {
            call::confirm("kiwi delete")?;
        }
        parameters.insert("confirm".to_owned(), true.into());
    }
    let mut arguments = json!({
        "action": action, "item_type": word("item-type"), "item_id": word("item-id"),
        "parameters": parameters, "dry_run": matches.get_flag("dry-run"),
    });
    for name in ["project-path", "run-id"] {
        if let Some(value) = word(name) {
            arguments[name.replace('-', "_")] = value.into();
        }
    }
    call::call(host, settings, "execute", arguments, true, settings.json)
}

fn export(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let to: &PathBuf = matches
        .get_one("skills")
        .ok_or_else(|| Error::invalid("no directory"))?;
    let to = std::path::absolute(to)
        .map_err(|cause| Error::invalid("`--skills` is no path").because(cause))?;
    let names = host.open(settings)?.export_skills(&owner(settings), &to)?;
    if settings.json {
        output::print_json(&json!(names));
    } else {
        names.iter().for_each(|it| output::print(it));
    }
    Ok(0)
}

/// `kenning registry ...`
pub(crate) fn registry_command() -> Command {
    let of_item = |command: Command| {
        command
            .arg(
                Arg::new("item-type")
                    .value_name("TYPE")
                    .required(true)
                    .value_parser(["directive", "tool", "knowledge"]),
            )
            .arg(Arg::new("item-id").value_name("ID").required(true))
    };
    Command::new("registry")
        .about("The registry of directives, tools and knowledge in this store")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("serve")
                .about("Serve the registry, and nothing that runs or loads anything")
                .arg(
                    Arg::new("listen")
                        .long("listen")
                        .value_name("ADDRESS")
                        .default_value(LISTEN_DEFAULT),
                )
                .arg(Arg::new("token").long("token").value_name("TOKEN")),
        )
        .subcommand(of_item(
            Command::new("versions").about("List the versions of an item"),
        ))
        .subcommand(
            of_item(Command::new("deprecate").about("Say that a version should not be used"))
                .arg(Arg::new("version").value_name("VERSION").required(true))
                .arg(
                    Arg::new("reason")
                        .long("reason")
                        .value_name("TEXT")
                        .default_value("deprecated"),
                ),
        )
}

pub(crate) fn registry(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let Some((what, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let word = |name: &str| {
        let word = matches.try_get_one::<String>(name).ok().flatten().cloned();
        word.ok_or_else(|| Error::invalid(format!("no {name}")))
    };
    if what == "serve" {
        let selection = Selection {
            toolsets: vec!["kiwi".to_owned()],
            // Whoever may pull items may not search through everything else.
            exclude_tools: ["search", "load", "execute", "help"]
                .map(ToOwned::to_owned)
                .into(),
            ..settings.selection.clone()
        };
        let board = Board::new(host.open(settings)?, selection)?;
        let options = ServeOptions::of(&word("listen")?, word("token").ok(), false)?;
        return host.serve(board, settings, &options).map(|()| 0);
    }
    let (item_type, id) = (word("item-type")?.parse()?, word("item-id")?);
    let (engine, caller) = (host.open(settings)?, owner(settings));
    if what == "deprecate" {
        let (version, reason) = (word("version")?, word("reason")?);
        engine
            .registry_deprecate(&caller, item_type, &id, &version, &reason)
            .map_err(|it| it.error)?;
        output::say(&format!("{id} {version} is deprecated: {reason}"));
        return Ok(0);
    }
    let versions = engine
        .registry_versions(&caller, item_type, &id)
        .map_err(|it| it.error)?;
    if settings.json {
        let shown: Vec<Value> = versions.iter().map(RegistryVersion::to_json).collect();
        output::print_json(&shown.into());
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = versions
        .into_iter()
        .map(|it| {
            vec![
                it.version,
                it.published_at,
                it.deprecated.unwrap_or_default(),
                it.signer,
            ]
        })
        .collect();
    output::print(&super::table::rows(
        &["VERSION", "PUBLISHED", "DEPRECATED", "SIGNER"],
        &rows,
    ));
    Ok(0)
}
