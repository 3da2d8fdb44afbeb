//! `kenning kiwi run|sign|create|update|publish|delete|link|export`, and `kenning registry`.
//!
//! An action is a call of `execute`, so that it means the same as over every other transport.

use super::call;
use crate::settings::{LISTEN_DEFAULT, ServeOptions};
use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use kenning_core::{Error, Result};
use kenning_engine::kiwi::{ItemScope, ItemTarget, RegistryVersion, SignState};
use kenning_tools::{Board, Selection};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The actions that are commands, and what they do.
const ACTIONS: [(&str, &str); 7] = [
    (
        "run",
        "Give the steps of a directive or the text of an entry; run a tool",
    ),
    (
        "sign",
        "Validate and sign an item, or every item that a pattern such as '*' means",
    ),
    (
        "create",
        "Validate and sign an item that was not signed yet",
    ),
    ("update", "Validate and sign an item that was signed before"),
    ("publish", "Put a signed item into the registry"),
    ("delete", "Remove an item"),
    ("link", "Link two items of a type"),
];

const TYPES: [&str; 3] = ["directive", "tool", "knowledge"];

/// `kenning kiwi ...`, beside the tools themselves.
pub(crate) fn commands() -> Vec<Command> {
    let mut all: Vec<Command> = ACTIONS.iter().map(|it| action(it.0, it.1)).collect();
    all.push(
        Command::new("export")
            .about("Write every signed directive as a skill folder, with all its files")
            .arg(
                Arg::new("force")
                    .long("force")
                    .help("Replace files that are there and say something else")
                    .action(ArgAction::SetTrue),
            )
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
    let is_sign = name == "sign";
    let item_type = Arg::new("item-type").value_name("TYPE").required(true);
    let item_type = match is_sign {
        true => item_type
            .help("directive, tool or knowledge; '*' is all three")
            .value_parser(["directive", "tool", "knowledge", "*"]),
        false => item_type
            .help("directive, tool or knowledge")
            .value_parser(TYPES),
    };
    let item_id = Arg::new("item-id").value_name("ID");
    let item_id = match is_sign {
        true => item_id
            .help("Which one; '*' is all of them, 'email/*' those of a category")
            .required_if_eq_any(TYPES.map(|it| ("item-type", it)))
            .default_value_if("item-type", "*", "*"),
        false => item_id.required(true),
    };
    let command = Command::new(name)
        .about(about)
        .arg(item_type)
        .arg(item_id)
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
        "sign" => command
            .arg(text("location", "PLACE", "project or user"))
            .arg(text("category", "PATH", "Where it is to lie"))
            .arg(
                Arg::new("yes")
                    .long("yes")
                    .help("Do not ask before many items are signed")
                    .action(ArgAction::SetTrue),
            ),
        "create" | "update" => command
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

/// Runs one of them; `None` for any other command.
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
    let word = |name: &str| inner.try_get_one::<String>(name).ok().flatten();
    let is_pattern = |it: &String| it.contains(['*', '?']);
    if name == "sign" && word("item-id").is_some_and(is_pattern) {
        return Some(sign_many(host, settings, inner));
    }
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

/// Signs every item that matches a pattern, after showing the list.
fn sign_many(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let word = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    if word("category").is_some() {
        return Err(Error::invalid("`--category` moves one item")
            .hint("name the item, or leave `--category` out"));
    }
    let named = word("item-type").unwrap_or_default();
    let types: Vec<&str> = match named.as_str() {
        "*" => TYPES.to_vec(),
        one => vec![one],
    };
    let location: Option<ItemScope> = word("location").map(|it| it.parse()).transpose()?;
    let (engine, caller) = (host.open(settings)?, owner(settings));
    let (mut to_sign, mut n_invalid) = (Vec::new(), 0);
    for item_type in types {
        let target = ItemTarget {
            item_type: item_type.parse()?,
            id: word("item-id").unwrap_or_default(),
            project_path: word("project-path"),
            dry_run: false,
        };
        let found = engine
            .kiwi()
            .sign_candidates(&caller, &target, location)
            .map_err(|it| it.error)?;
        for it in &found {
            let (state, path) = (it.state.word(), &it.path);
            if it.state != SignState::Signed {
                let version = match it.version.as_str() {
                    "" => String::new(),
                    version => format!(" {version}"),
                };
                let issues = it.issues.iter().map(|it| format!("\n    {it}"));
                let issues: String = issues.collect();
                output::say(&format!(
                    "{item_type} {}{version} ({state}) {path}{issues}",
                    it.id
                ));
            }
        }
        let invalid = found.iter().filter(|it| it.state == SignState::Invalid);
        n_invalid += invalid.count();
        if found.iter().any(|it| it.state.is_to_sign()) {
            to_sign.push(item_type);
        }
    }
    // The engine holds the store: the calls below open it again.
    drop(engine);
    let left_out = || match n_invalid {
        0 => Ok(0),
        n => Err(Error::invalid(format!(
            "{n} of these items are invalid and were not signed"
        ))
        .hint("the list says what is wrong with each")),
    };
    if to_sign.is_empty() {
        output::say("nothing to sign");
        return left_out();
    }
    let dry_run = matches.get_flag("dry-run");
    if !matches.get_flag("yes") && !dry_run {
        call::confirm_that("`kiwi sign` signs these items with the key of this node")?;
    }
    let mut code = 0;
    for item_type in to_sign {
        let mut arguments = json!({
            "action": "sign", "item_type": item_type, "item_id": word("item-id"),
            "parameters": { "confirm": true }, "dry_run": dry_run,
        });
        if let Some(location) = word("location") {
            arguments["parameters"]["location"] = location.into();
        }
        if let Some(path) = word("project-path") {
            arguments["project_path"] = path.into();
        }
        let done = call::call(host, settings, "execute", arguments, true, settings.json)?;
        code = code.max(done);
    }
    Ok(code.max(left_out()?))
}

fn export(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let to: &PathBuf = matches
        .get_one("skills")
        .ok_or_else(|| Error::invalid("the directory is missing"))?;
    let to = std::path::absolute(to)
        .map_err(|cause| Error::invalid("`--skills` is not a valid path").because(cause))?;
    let replace = matches.get_flag("force");
    let engine = host.open(settings)?;
    let done = engine
        .kiwi()
        .export_skills(&owner(settings), &to, replace)?;
    for (id, why) in &done.left_out {
        output::say(&format!("left out `{id}`: {why}"));
    }
    for (name, fault) in &done.faults {
        output::say(&format!("warning: `{name}`: {fault}"));
    }
    let (n_skills, n_files) = (done.names.len(), done.n_files);
    output::say(&format!("{n_skills} skills, {n_files} files"));
    if settings.json {
        output::print_json(&json!(done.names));
    } else {
        done.names.iter().for_each(|it| output::print(it));
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
                .arg(
                    Arg::new("token")
                        .long("token")
                        .value_name("TOKEN")
                        .help("Accept this token, with every scope"),
                )
                .args(crate::settings::token_rules()),
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
            // A client that may pull items may not search everything else.
            exclude_tools: ["search", "load", "execute", "help"]
                .map(ToOwned::to_owned)
                .into(),
            ..settings.selection.clone()
        };
        let board = Board::new(host.open(settings)?, selection)?;
        let options = ServeOptions::of(&word("listen")?, matches)?;
        return host.serve(board, settings, &options).map(|()| 0);
    }
    let (item_type, id) = (word("item-type")?.parse()?, word("item-id")?);
    let (engine, caller) = (host.open(settings)?, owner(settings));
    if what == "deprecate" {
        let (version, reason) = (word("version")?, word("reason")?);
        engine
            .kiwi()
            .registry_deprecate(&caller, item_type, &id, &version, &reason)
            .map_err(|it| it.error)?;
        output::say(&format!("{id} {version} is deprecated: {reason}"));
        return Ok(0);
    }
    let versions = engine
        .kiwi()
        .registry_versions(&caller, item_type, &id)
        .map_err(|it| it.error)?;
    if settings.json {
        let shown: Vec<Value> = versions.iter().map(RegistryVersion::to_json).collect();
        output::print_json(&shown.into());
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = versions
        .into_iter()
        .map(|version| {
            vec![
                version.version,
                version.published_at,
                version.deprecated.unwrap_or_default(),
                version.signer,
            ]
        })
        .collect();
    output::print(&super::table::rows(
        &["VERSION", "PUBLISHED", "DEPRECATED", "SIGNER"],
        &rows,
    ));
    Ok(0)
}
