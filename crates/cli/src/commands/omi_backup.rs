//! `kenning omi backup`: make, list, check and bring back backups of the memory.

use crate::{Host, Settings, output, owner, progress};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use kenning_core::Result;
use kenning_engine::{BackupKind, BackupView, RestoreOptions, RestoreTo, RestoredBackup};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The command, to be put under `kenning omi`.
pub(crate) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    let unsealed = || {
        flag(
            "unsealed",
            "Accept a backup that is not sealed although MOLTVAULT_KEY is set",
        )
    };
    let id = || Arg::new("id").value_name("ID").required(true);
    Command::new("backup")
        .about("Back up the store and the files beside it, as `vault` in config.yaml says")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("create")
                .about("Make a backup and read it back; seal it if MOLTVAULT_KEY is set")
                .arg(flag("full", "With every file (default)").conflicts_with("incremental"))
                .arg(flag(
                    "incremental",
                    "Leave files that did not change to the last full backup",
                )),
        )
        .subcommand(Command::new("list").about("List backups, the newest first"))
        .subcommand(
            Command::new("verify")
                .about("Read a whole backup and verify it")
                .arg(id())
                .arg(unsealed()),
        )
        .subcommand(
            Command::new("restore")
                .about("Bring a backup back; nothing that is there is replaced without --force")
                .arg(id())
                .arg(
                    Arg::new("to")
                        .long("to")
                        .value_name("DIR")
                        .value_parser(value_parser!(PathBuf))
                        .required_unless_present("in-place")
                        .help("Put its files into this directory, which must be empty"),
                )
                .arg(flag("in-place", "Put its files where they came from").conflicts_with("to"))
                .arg(flag(
                    "store",
                    "Put its copy of the store into the data directory, which must be empty",
                ))
                .arg(flag("force", "Replace files that differ"))
                .arg(unsealed())
                .arg(
                    flag(
                        "keep-tokens",
                        "Keep the tokens in the store's copy valid, even if they were revoked since",
                    )
                    .requires("store"),
                ),
        )
}

/// Runs it.
pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("create", matches)) => create(host, settings, matches.get_flag("incremental")),
        Some(("list", _)) => list(host, settings),
        Some(("verify", matches)) => verify(host, settings, matches),
        Some(("restore", matches)) => restore(host, settings, matches),
        _ => Ok(2),
    }
}

fn id_of(matches: &ArgMatches) -> String {
    matches.get_one::<String>("id").cloned().unwrap_or_default()
}

fn create(host: &dyn Host, settings: &Settings, is_incremental: bool) -> Result<u8> {
    let engine = host.open(settings)?;
    let bar = progress::bar("rows written");
    let caller = progress::watched(owner(settings), &bar);
    let kind = if is_incremental {
        BackupKind::Incremental
    } else {
        BackupKind::Full
    };
    let made = engine.vault_backup(&caller, kind)?;
    bar.finish_and_clear();
    say_remarks(&made);
    if settings.json {
        output::print_json(&metadata(&made));
    } else {
        output::print(&line(&made));
    }
    Ok(0)
}

fn list(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let listed = host.open(settings)?.backup_list(&owner(settings))?;
    if settings.json {
        let backups: Vec<Value> = listed.backups.iter().map(metadata).collect();
        let broken = listed.broken.iter();
        let broken: Vec<Value> = broken
            .map(|(id, why)| json!({ "backup_id": id, "why": why }))
            .collect();
        output::print_json(&json!({ "backups": backups, "broken": broken }));
        return Ok(0);
    }
    for backup in &listed.backups {
        output::print(&line(backup));
    }
    for (id, why) in &listed.broken {
        output::say(&format!("{id} cannot be restored: {why}"));
    }
    if listed.backups.is_empty() {
        output::say("no backups");
    }
    Ok(0)
}

fn verify(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let (id, unsealed) = (&id_of(matches), matches.get_flag("unsealed"));
    let verified = engine.backup_verify(&owner(settings), id, unsealed)?;
    if settings.json {
        let mut shown = metadata(&verified.backup);
        shown["files"] = verified.files.into();
        shown["bytes"] = verified.n_bytes.into();
        output::print_json(&shown);
    } else {
        let (n, n_bytes) = (verified.files.len(), verified.n_bytes);
        output::print(&format!("{id} is whole: {n} files, {n_bytes} bytes"));
    }
    Ok(0)
}

fn restore(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let to = match matches.get_one::<PathBuf>("to") {
        Some(path) => RestoreTo::Dir(path.clone()),
        None => RestoreTo::InPlace,
    };
    let options = RestoreOptions {
        with_store: matches.get_flag("store"),
        force: matches.get_flag("force"),
        accept_unsealed: matches.get_flag("unsealed"),
        keep_tokens: matches.get_flag("keep-tokens"),
    };
    let restored = super::store::or_leave_nothing(settings, || {
        let engine = host.open(settings)?;
        engine.backup_restore(&owner(settings), &id_of(matches), &to, options)
    })?;
    say_remarks(&restored.backup);
    if settings.json {
        output::print_json(&restored_json(&restored));
        return Ok(0);
    }
    let (n, directory) = (restored.files.len(), restored.directory.display());
    output::print(&format!(
        "{n} files of {} are in {directory}",
        restored.backup.backup_id
    ));
    if let Some(store) = &restored.store {
        let spaces: Vec<&str> = store.spaces.iter().map(|it| it.as_str()).collect();
        output::print(&format!(
            "{} rows of the spaces {} are in the store, and were verified",
            store.rows,
            spaces.join(", ")
        ));
        super::store::say_revoked(store);
    }
    Ok(0)
}

fn say_remarks(backup: &BackupView) {
    for remark in &backup.remarks {
        output::say(&format!("note: {remark}"));
    }
}

fn line(it: &BackupView) -> String {
    let sealed = if it.encrypted { "sealed" } else { "not sealed" };
    let (id, at, n_bytes) = (&it.backup_id, &it.created_at, it.file_size);
    format!("{id}  {at}  {n_bytes} bytes  {sealed}")
}

fn metadata(it: &BackupView) -> Value {
    json!({
        "backup_id": it.backup_id, "backup_type": it.kind.as_str(), "created_at": it.created_at,
        "file_size": it.file_size, "checksum": it.checksum, "encrypted": it.encrypted,
        "files_included": it.files_included, "base_path_hash": it.base_path_hash,
        "retention_days": it.retention_days, "based_on": it.based_on,
    })
}

fn restored_json(it: &RestoredBackup) -> Value {
    let store = it.store.as_ref().map(|store| {
        let spaces: Vec<&str> = store.spaces.iter().map(|it| it.as_str()).collect();
        json!({ "rows": store.rows, "spaces": spaces, "tokensRevoked": store.tokens_revoked })
    });
    json!({
        "backup_id": it.backup.backup_id, "files": it.files,
        "directory": it.directory.display().to_string(), "store": store,
        "remarks": it.backup.remarks,
    })
}
