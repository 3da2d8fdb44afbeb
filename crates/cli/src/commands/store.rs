//! `kenning backup`, `restore`, `export` and `import`

use crate::{Host, Settings, output, owner, progress};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::{Imported, Restored, Transferred};
use kenning_vault::Dir;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The message about a backup, which counts rows of every kind.
const BACKED_UP: &str = "backed up";

/// The directory and the name of a file that the operator typed.
fn place(text: &str) -> Result<(Dir, String)> {
    kenning_vault::split(Path::new(text))
}

fn file(matches: &ArgMatches) -> String {
    matches
        .get_one::<String>("file")
        .cloned()
        .unwrap_or_else(|| "-".to_owned())
}

/// Refuses to replace an existing file without `--force`.
fn refuse_to_replace(target: &str, matches: &ArgMatches) -> Result<()> {
    if target == "-" || matches.get_flag("force") {
        return Ok(());
    }
    let (dir, name) = place(target)?;
    if dir.exists(&name)? {
        return Err(Error::conflict(format!("`{target}` exists"))
            .hint("name another file, or replace it with `--force`"));
    }
    Ok(())
}

/// Writes to a file, completely or not at all, or to standard output.
fn write_to(
    target: &str,
    work: impl FnOnce(&mut dyn Write) -> Result<Transferred>,
) -> Result<Transferred> {
    if target == "-" {
        return work(&mut std::io::stdout().lock());
    }
    let (dir, name) = place(target)?;
    let mut done = Transferred::default();
    dir.write_with(&name, |out| {
        done = work(out)?;
        Ok(())
    })?;
    Ok(done)
}

fn report(settings: &Settings, target: &str, what: &str, done: Transferred) {
    if settings.json && target != "-" {
        output::print_json(&json!({
            "rows": done.rows, "nodes": done.nodes, "edges": done.edges, "file": target,
        }));
    } else {
        let rows = match what == BACKED_UP {
            true => format!("{} rows, among them ", done.rows),
            false => String::new(),
        };
        let (nodes, edges) = (done.nodes, done.edges);
        output::say(&format!("{what} {rows}{nodes} nodes and {edges} edges"));
    }
}

pub(crate) fn backup(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let target = file(matches);
    refuse_to_replace(&target, matches)?;
    let engine = host.open(settings)?;
    let bar = progress::bar("rows written");
    let caller = progress::watched(owner(settings), &bar);
    let done = write_to(&target, |out| engine.backup(&caller, out))?;
    if target != "-" {
        // A disk error is found now, and not when the backup is needed.
        let (dir, name) = place(&target)?;
        kenning_engine::read_back(BufReader::new(dir.open_read(&name)?))?;
    }
    bar.finish_and_clear();
    report(settings, &target, BACKED_UP, done);
    Ok(0)
}

pub(crate) fn restore(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let source = file(matches);
    if source == "-" {
        return Err(
            Error::invalid("cannot restore from `-`: a backup is read twice")
                .hint("save it to a file first"),
        );
    }
    let (dir, name) = place(&source)?;
    let bar = progress::bar("rows restored");
    let caller = progress::watched(owner(settings), &bar);
    let restored = or_leave_nothing(settings, || {
        let engine = host.open(settings)?;
        let restored = engine.restore(&caller, matches.get_flag("keep-tokens"), || {
            Ok(Box::new(BufReader::new(dir.open_read(&name)?)) as Box<dyn BufRead + Send>)
        })?;
        if let Some(newer) = matches.get_one::<String>("erased-in") {
            let (dir, name) = place(newer)?;
            engine.erase_as_in(&caller, &restored.spaces, || {
                Ok(Box::new(BufReader::new(dir.open_read(&name)?)) as Box<dyn BufRead + Send>)
            })?;
        }
        Ok(restored)
    });
    bar.finish_and_clear();
    let restored = restored?;
    let spaces: Vec<&str> = restored.spaces.iter().map(|it| it.as_str()).collect();
    if settings.json {
        output::print_json(&json!({
            "rows": restored.rows, "spaces": spaces, "clean": true,
            "tokensRevoked": restored.tokens_revoked,
        }));
    } else {
        output::say(&format!(
            "restored and verified {} rows of the spaces {}",
            restored.rows,
            spaces.join(", ")
        ));
    }
    say_revoked(&restored);
    Ok(0)
}

/// The files of a store in the data directory.
const STORE_FILES: [&str; 5] = [
    "kenning.db",
    "kenning.db-wal",
    "kenning.db-shm",
    "node.key",
    "verified.json",
];

/// Restores. If that fails, the files of the store and the directories that it made are removed, so
/// that it can be tried again.
pub(crate) fn or_leave_nothing<T>(
    settings: &Settings,
    restore: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let data = settings.data.as_path();
    let missing: Vec<&Path> = data.ancestors().take_while(|it| !it.exists()).collect();
    let is_there = |name: &&str| data.join(name).symlink_metadata().is_ok();
    // An existing store is left alone, with all its files.
    let had_store = is_there(&STORE_FILES[0]);
    let old: Vec<&str> = STORE_FILES.into_iter().filter(is_there).collect();
    restore().inspect_err(|_| {
        let new = STORE_FILES.iter().filter(|it| !old.contains(it));
        let Ok(dir) = Dir::open(data) else { return };
        for name in new.filter(|it| !had_store || **it == "node.key") {
            // The next attempt names what cannot be removed.
            drop(dir.remove(name));
        }
        for made in missing {
            // Only while it is empty.
            drop(kenning_vault::split(made).and_then(|(dir, name)| dir.remove_dir(&name)));
        }
    })
}

/// Says that the tokens of the backup are no longer valid.
pub(crate) fn say_revoked(restored: &Restored) {
    let n = restored.tokens_revoked;
    if n > 0 {
        output::say(&format!(
            "{n} tokens of the backup are not valid here, because they may have been revoked since: \
             `kenning token create` makes new ones (`restore --keep-tokens` keeps them)"
        ));
    }
}

pub(crate) fn export(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let target = file(matches);
    refuse_to_replace(&target, matches)?;
    let engine = host.open(settings)?;
    let bar = progress::bar("nodes written");
    let caller = progress::watched(owner(settings), &bar);
    let done = write_to(&target, |out| engine.export(&caller, out))?;
    bar.finish_and_clear();
    report(settings, &target, "wrote", done);
    Ok(0)
}

pub(crate) fn import(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let bar = progress::bar("lines read");
    let caller = progress::watched(owner(settings), &bar);
    let source = file(matches);
    let mut input: Box<dyn BufRead> = if source == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let (dir, name) = place(&source)?;
        Box::new(BufReader::new(dir.open_read(&name)?))
    };
    let done = engine.import(&caller, &mut input)?;
    bar.finish_and_clear();
    if settings.json {
        output::print_json(&json!({
            "rows": done.nodes(), "edges": done.edges, "file": source, "created": done.created,
            "updated": done.updated, "unchanged": done.unchanged, "keptFiles": done.kept_files,
            "waiting": done.waiting, "pending": done.pending,
        }));
    } else {
        output::say(&what_became_of(&done));
    }
    Ok(0)
}

/// Says where every line of an import went.
fn what_became_of(done: &Imported) -> String {
    let (nodes, edges) = (done.nodes(), done.edges);
    let counts = [
        (done.created, "new"),
        (done.updated, "new revisions of nodes that were here"),
        (done.unchanged, "here already"),
        (done.kept_files, "of files that were here and stay"),
    ];
    let counts = counts.iter().filter(|it| it.0 > 0);
    let counts: Vec<String> = counts.map(|(n, what)| format!("{n} {what}")).collect();
    let mut text = format!("read {nodes} nodes and {edges} edges");
    if !counts.is_empty() {
        text += &format!("; of the nodes {}", counts.join(", "));
    }
    if let Some(id) = &done.pending {
        text += &format!(
            "\n{} more lines are about foundational memories and wait for a second key: `kenning omi pending \
             show {id}`",
            done.waiting
        );
    }
    text
}

pub(crate) fn migrate(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let place = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let bar = progress::bar("rows moved");
    let moved = host.migrate(settings, &place("from"), &place("to"), &|rows| {
        bar.set_position(rows);
    })?;
    bar.finish_and_clear();
    if settings.json {
        output::print_json(&moved);
        return Ok(0);
    }
    for space in moved.as_array().into_iter().flatten() {
        let text = |name: &str| space[name].as_str().unwrap_or_default().to_owned();
        output::print(&format!(
            "space {}: {} events, {} rows moved\nevent root {}\nstate root {}",
            text("space"),
            space["events"],
            space["rows"],
            text("eventRoot"),
            text("stateRoot")
        ));
    }
    output::say("the roots are the same on both sides, and the whole was verified");
    Ok(0)
}
