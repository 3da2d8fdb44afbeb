//! `kenning koi merge|unmerge|veto|merged|entities|stats|import|add_repo|remove_repo|history|restore`, beside the
//! tools themselves.

use super::call::confirm;
use super::{koi_notes, table};
use crate::{Host, Settings, env_vars, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use kenning_core::{Error, Result};
use kenning_engine::koi::{EntityImport, MergedEntity};
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::github_repos;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How much longer a command may take than a call of a tool.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// The largest export of another server.
const EXPORT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The commands here that the KOI API has routes for.
const ADD_REPO: &str = "add_repo";
const REMOVE_REPO: &str = "remove_repo";

/// `kenning koi ...`, beside the tools themselves.
pub(crate) fn commands() -> Vec<Command> {
    let word = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).help(help).required(true)
    };
    let mut all = vec![
        Command::new("merge")
            .about("Merge two entities; `unmerge` reverts it")
            .arg(word(
                "from",
                "ENTITY",
                "The entity to merge, by URI or name",
            ))
            .arg(word(
                "into",
                "ENTITY",
                "The entity that remains, by URI or name",
            )),
        Command::new("unmerge")
            .about("Revert a merge: both entities exist again, as they would without it")
            .arg(word(
                "from",
                "ENTITY",
                "The entity that was merged, by URI or name",
            )),
        Command::new("veto")
            .about("Say that a label does not mean an entity, however alike they are")
            .arg(word(
                "label",
                "LABEL",
                "A label, or the URI of another entity",
            ))
            .arg(word(
                "entity",
                "ENTITY",
                "The entity that it does not mean, by URI or name",
            ))
            .arg(
                Arg::new("undo")
                    .long("undo")
                    .help("Revert the veto")
                    .action(ArgAction::SetTrue),
            ),
        Command::new("forget")
            .about("Take back what a document, a registered note or an import stated")
            .arg(word(
                "source",
                "SOURCE",
                "A document's name, a note's path or an import's name",
            )),
        Command::new("merged").about("List merges and vetoes"),
        Command::new("entities")
            .about("List entities, the oldest first")
            .arg(
                Arg::new("type")
                    .long("type")
                    .value_name("TYPE")
                    .help("Only of this type"),
            )
            .arg(
                Arg::new("limit")
                    .long("limit")
                    .value_name("N")
                    .default_value("100")
                    .value_parser(value_parser!(usize)),
            )
            .arg(
                Arg::new("offset")
                    .long("offset")
                    .value_name("N")
                    .default_value("0")
                    .value_parser(value_parser!(usize)),
            ),
        Command::new("stats").about("Count entities and relationships, and those that wait"),
        Command::new("import")
            .about("Take over what `/entities` and `/relationships` of a KOI server export as JSON")
            .arg(
                Arg::new("files")
                    .value_name("FILE")
                    .required(true)
                    .num_args(1..)
                    .value_parser(value_parser!(PathBuf)),
            )
            .arg(
                Arg::new("name")
                    .long("name")
                    .value_name("NAME")
                    .default_value("import")
                    .help("What the import is called: a later one of this name takes its place"),
            ),
        Command::new(ADD_REPO)
            .about("Register a git repository, which `github_scan` then reads")
            .arg(word(
                "url",
                "URL",
                "https://…, or a path beneath KENNING_REPO_PATHS",
            ))
            .arg(
                Arg::new("name")
                    .long("name")
                    .value_name("OWNER/NAME")
                    .help("What it is called, if not as in the address"),
            )
            .arg(
                Arg::new("branch")
                    .long("branch")
                    .value_name("BRANCH")
                    .help("The branch to read [default: the repository's own]"),
            ),
        Command::new(REMOVE_REPO)
            .about("Unregister a git repository and remove its documents")
            .arg(word("name", "OWNER/NAME", "As `github_scan` shows it"))
            .arg(
                Arg::new("keep-documents")
                    .long("keep-documents")
                    .help("Let the documents stay that its scans brought")
                    .action(ArgAction::SetTrue),
            )
            .arg(
                Arg::new("yes")
                    .long("yes")
                    .help("Do not ask before something is removed")
                    .action(ArgAction::SetTrue),
            ),
    ];
    all.extend(koi_notes::commands());
    all
}

/// Runs one of them; `None` for any other command.
pub(crate) fn run(
    host: &dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Option<Result<u8>> {
    let (name, inner) = matches.subcommand()?;
    commands().iter().find(|it| it.get_name() == name)?;
    Some(host.open(settings).and_then(|engine| {
        let mut caller = owner(settings);
        // A person who imports a large graph waits for it.
        caller.deadline += PATIENCE;
        if ![ADD_REPO, REMOVE_REPO].contains(&name) && engine.koi().far_server(&caller.principal.space)?.is_some() {
            let endpoint = env_vars::KOI_API_ENDPOINT;
            output::say(&format!(
                "{endpoint} is set, but `{name}` is about the store here: the KOI API has no such route"
            ));
        }
        match name {
            koi_notes::HISTORY | koi_notes::RESTORE => {
                koi_notes::run(&engine, &caller, settings.json, name, inner)
            }
            _ => act(&engine, &caller, settings.json, name, inner),
        }
    }))
}

fn act(
    engine: &Engine,
    caller: &Caller,
    as_json: bool,
    name: &str,
    matches: &ArgMatches,
) -> Result<u8> {
    let word = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    match name {
        "merge" => {
            let done = engine
                .koi()
                .merge_entities(caller, &word("from"), &word("into"))?;
            let shown = json!({
                "uri": done.uri, "name": done.name, "into": done.into, "into_name": done.into_name,
            });
            let (from, into) = ends(&done);
            tell(as_json, &shown, &format!("{from} is {into} now"));
        }
        "unmerge" => {
            let done = engine.koi().unmerge_entity(caller, &word("from"))?;
            let shown = json!({
                "uri": done.uri, "name": done.name, "from": done.into, "from_name": done.into_name,
            });
            let (from, into) = ends(&done);
            tell(as_json, &shown, &format!("{from} is no longer {into}"));
        }
        "veto" => {
            let is_undone = matches.get_flag("undo");
            let veto =
                engine
                    .koi()
                    .veto_entity(caller, &word("label"), &word("entity"), is_undone)?;
            let shown = json!({
                "label": veto.label, "uri": veto.uri, "name": veto.name, "undone": is_undone,
            });
            let may = if is_undone {
                "may mean"
            } else {
                "does not mean"
            };
            let entity = named(&veto.name, &veto.uri);
            tell(
                as_json,
                &shown,
                &format!("\"{}\" {may} {entity}", veto.label),
            );
        }
        "forget" => {
            let n = engine.koi().forget_statement(caller, &word("source"))?;
            let shown = json!({ "source": word("source"), "statements": n });
            tell(
                as_json,
                &shown,
                &format!("{n} statements of {} are taken back", word("source")),
            );
        }
        "merged" => merged(engine, caller, as_json)?,
        "entities" => entities(engine, caller, as_json, matches)?,
        "stats" => stats(engine, caller, as_json)?,
        ADD_REPO => add_repo(engine, caller, as_json, matches)?,
        REMOVE_REPO => remove_repo(engine, caller, as_json, matches)?,
        _ => import(engine, caller, as_json, matches)?,
    }
    Ok(0)
}

fn add_repo(engine: &Engine, caller: &Caller, as_json: bool, matches: &ArgMatches) -> Result<()> {
    let word = |name: &str| matches.get_one::<String>(name).cloned();
    let request = github_repos::Request {
        repo_url: word("url").unwrap_or_default(),
        repo_name: word("name"),
        branch: word("branch"),
    };
    let done = github_repos::register(engine, caller, request)?;
    let said = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
    let status = said("status").replace('_', " ");
    let told = format!("{}: {status}; `github_scan` reads it", said("repo_name"));
    tell(as_json, &done, &told);
    Ok(())
}

fn remove_repo(
    engine: &Engine,
    caller: &Caller,
    as_json: bool,
    matches: &ArgMatches,
) -> Result<()> {
    let keep_documents = matches.get_flag("keep-documents");
    if !keep_documents && !matches.get_flag("yes") {
        confirm(REMOVE_REPO)?;
    }
    let request = github_repos::Removal {
        repo_name: matches
            .get_one::<String>("name")
            .cloned()
            .unwrap_or_default(),
        keep_documents,
    };
    let done = github_repos::unregister(engine, caller, request)?;
    let told = format!(
        "{} is not scanned any more: {} documents removed, {} kept",
        done["repo_name"].as_str().unwrap_or_default(),
        done["documents_removed"],
        done["documents_kept"]
    );
    tell(as_json, &done, &told);
    Ok(())
}

fn tell(as_json: bool, shown: &Value, told: &str) {
    if as_json {
        output::print_json(shown);
    } else {
        output::chat(told);
    }
}

/// An entity by its name, with its URI beside it.
fn named(name: &str, uri: &str) -> String {
    match name.is_empty() {
        true => uri.to_owned(),
        false => format!("\"{name}\" ({uri})"),
    }
}

/// The merged entity, and the one that remains.
fn ends(merged: &MergedEntity) -> (String, String) {
    (
        named(&merged.name, &merged.uri),
        named(&merged.into_name, &merged.into),
    )
}

fn merged(engine: &Engine, caller: &Caller, as_json: bool) -> Result<()> {
    let all = engine.koi().entity_identities(caller)?;
    if as_json {
        let merged = all
            .merged
            .iter()
            .map(|it| json!({ "uri": it.uri, "name": it.name, "into": it.into, "into_name": it.into_name }));
        let vetoes = all.vetoes.iter();
        let vetoes =
            vetoes.map(|veto| json!({ "label": veto.label, "uri": veto.uri, "name": veto.name }));
        let (merged, vetoes): (Vec<_>, Vec<_>) = (merged.collect(), vetoes.collect());
        output::print_json(&json!({ "merged": merged, "vetoes": vetoes }));
        return Ok(());
    }
    let merged = all
        .merged
        .into_iter()
        .map(|it| vec!["is".to_owned(), it.uri, it.into, it.name, it.into_name]);
    let vetoes = all.vetoes.into_iter().map(|veto| {
        let label = veto.label.clone();
        vec!["is not".to_owned(), veto.label, veto.uri, label, veto.name]
    });
    let rows: Vec<Vec<String>> = merged.chain(vetoes).collect();
    let head = ["", "ENTITY OR LABEL", "ENTITY", "NAME", "NAME"];
    table::print(&head, &rows, "no merges and no vetoes");
    Ok(())
}

fn entities(engine: &Engine, caller: &Caller, as_json: bool, matches: &ArgMatches) -> Result<()> {
    let number = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or_default();
    let kind = matches.get_one::<String>("type").map(String::as_str);
    let (limit, offset) = (number("limit"), number("offset"));
    let mut all = engine
        .koi()
        .entities(caller, kind, limit.saturating_add(1), offset)?;
    if all.len() > limit {
        all.truncate(limit);
        let next = offset + limit;
        output::say(&format!(
            "more: the same command with `--offset {next}` goes on from there"
        ));
    }
    if as_json {
        let rows = all.iter().map(|it| {
            json!({
                "uri": it.uri, "name": it.name, "type": it.kind, "aliases": it.aliases,
                "description": it.description, "source": it.source, "source_rid": it.source_rid,
            })
        });
        output::print_json(&json!({ "entities": rows.collect::<Vec<_>>(), "count": all.len() }));
        return Ok(());
    }
    let rows = all
        .into_iter()
        .map(|it| vec![it.kind, it.name, it.source, it.uri]);
    let rows: Vec<Vec<String>> = rows.collect();
    let none = match kind {
        Some(kind) => format!("no entities of type `{kind}`; `kenning koi stats` counts the types"),
        None => "no entities yet: write notes into the vault, or ingest pages".to_owned(),
    };
    table::print(&["TYPE", "NAME", "SOURCE", "URI"], &rows, &none);
    Ok(())
}

fn stats(engine: &Engine, caller: &Caller, as_json: bool) -> Result<()> {
    let entities = engine.koi().entity_stats(caller)?;
    let relationships = engine.koi().relationship_stats(caller)?;
    if as_json {
        output::print_json(&json!({
            "total_entities": entities.total, "by_type": entities.by_type,
            "total_relationships": relationships.total, "by_predicate": relationships.by_predicate,
            "total_pending": relationships.total_pending,
        }));
        return Ok(());
    }
    let counts = entities
        .by_type
        .into_iter()
        .chain(relationships.by_predicate);
    let mut rows: Vec<Vec<String>> = counts.map(|(it, n)| vec![it, n.to_string()]).collect();
    for it in relationships.top_pending {
        let what = format!("waits: {} {}", it.predicate, it.label);
        rows.push(vec![what, it.count.to_string()]);
    }
    table::print(
        &["", "COUNT"],
        &rows,
        "no entities and no relationships yet",
    );
    Ok(())
}

fn import(engine: &Engine, caller: &Caller, as_json: bool, matches: &ArgMatches) -> Result<()> {
    let mut exports = Vec::new();
    for path in matches.get_many::<PathBuf>("files").into_iter().flatten() {
        let (dir, file) = kenning_vault::split(path)?;
        let bytes = dir.read(&file, EXPORT_BYTES_MAX)?;
        let export = serde_json::from_slice(&bytes).map_err(|cause| {
            Error::invalid(format!("`{}` is not JSON: {cause}", path.display()))
                .hint("give the response of `GET /entities` or `GET /relationships`")
        })?;
        exports.push(export);
    }
    let name = matches.get_one::<String>("name").cloned();
    let import = EntityImport {
        name: name.unwrap_or_default(),
        exports,
    };
    let done = engine.koi().import_entities(caller, &import)?;
    if as_json {
        output::print_json(&json!({
            "entities": done.n_entities, "relationships": done.n_relationships,
            "changed": done.n_changed, "rejected": done.n_rejected, "reasons": done.rejected,
        }));
        return Ok(());
    }
    output::chat(&format!(
        "{} entities and {} relationships ({} of them turned round or only related, {} left out)",
        done.n_entities, done.n_relationships, done.n_changed, done.n_rejected
    ));
    for why in done.rejected {
        output::say(&format!("left out: {why}"));
    }
    Ok(())
}
