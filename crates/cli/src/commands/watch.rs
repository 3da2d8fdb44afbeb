//! `kenning watch`: the graph follows its files until it is stopped.

use crate::{Host, Settings, output};
use clap::{Arg, ArgMatches, Command};
use kenning_core::Result;
use kenning_engine::kg::{Generated, GraphWatch, WatchOptions};
use kenning_engine::{Principal, timestamp};
use serde_json::json;
use std::sync::Arc;

/// The command line of it.
pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Let the graph follow a folder of the project, and the vault, until stopped")
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .default_value("docs")
                .help("The folder of documents, relative to the project"),
        )
}

/// Watches until the process is told to stop.
pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let folder: Option<&String> = matches.get_one("folder");
    let options = WatchOptions {
        docs_path: folder.cloned().unwrap_or_else(|| "docs".to_owned()),
        ..WatchOptions::default()
    };
    let (as_json, clock) = (settings.json, Arc::clone(&engine));
    let principal = Principal::owner(settings.space.clone());
    let watch = GraphWatch::start(engine.kg(), principal, options, move |done| {
        let at = timestamp(clock.now_ms());
        match done {
            Ok(done) => show(done, &at, as_json),
            Err(error) => output::complain(&format!("error: {error}")),
        }
    })?;
    output::say("watching; Ctrl-C stops it");
    host.wait_for_stop()?;
    drop(watch);
    Ok(0)
}

fn show(done: &Generated, at: &str, as_json: bool) {
    let Generated {
        nodes_added: added,
        nodes_updated: updated,
        nodes_removed: removed,
        ..
    } = done;
    if as_json {
        let line = json!({ "at": at, "added": added, "updated": updated, "removed": removed });
        output::print(&line.to_string());
    } else {
        output::print(&format!(
            "{at}  {added} added, {updated} updated, {removed} removed"
        ));
    }
}
