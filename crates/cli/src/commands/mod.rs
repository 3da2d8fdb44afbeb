//! One function a command.

mod agent;
mod agent_key;
mod audit;
mod audit_proofs;
mod call;
mod capture;
mod chores;
mod code;
mod doctor;
mod federation;
mod forget;
mod hook;
mod hook_capture;
mod hook_server;
mod import_other;
mod kami;
mod kg_export;
mod kiwi;
mod koi;
mod koi_notes;
mod omi;
mod omi_backup;
mod peer;
mod project;
mod projects;
mod query;
mod reindex;
mod setup;
mod store;
mod table;
mod token;
mod tour;
mod trust;
mod watch;
mod workflow;

pub(crate) use agent::command as agent_command;
pub(crate) use capture::command as capture_command;
pub(crate) use code::command as code_command;
pub(crate) use federation::command as federation_command;
pub(crate) use forget::command as forget_command;
pub(crate) use hook::command as hook_command;
pub use hook_server::HookServer;
pub(crate) use import_other::commands as import_commands;
pub(crate) use kami::args::commands as kami_commands;
pub(crate) use kami::run as run_kami;
pub(crate) use kg_export::command as kg_export_command;
pub(crate) use kiwi::commands as kiwi_commands;
pub(crate) use kiwi::registry_command;
pub(crate) use koi::commands as koi_commands;
pub(crate) use omi::args::commands as omi_commands;
pub(crate) use omi::run as run_omi;
pub(crate) use peer::command as peer_command;
pub(crate) use projects::command as project_command;
pub(crate) use query::command as query_command;
pub(crate) use setup::{CLIENTS as SETUP_CLIENTS, SCOPES as SETUP_SCOPES};
pub(crate) use trust::command as trust_command;
pub(crate) use watch::command as watch_command;
pub(crate) use workflow::{command as workflow_command, trajectory_command};

use crate::settings::ServeOptions;
use crate::{Host, Settings};
use clap::ArgMatches;
use kenning_core::Result;
use kenning_tools::Board;

/// Runs the command and returns its exit code.
pub(crate) fn run(
    host: &'static dyn Host,
    settings: &Settings,
    matches: &ArgMatches,
) -> Result<u8> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(2);
    };
    match name {
        "mcp" => {
            // A model reads the listing before anything else: it is short unless somebody chose.
            let selection = settings.selection.clone().or_default_set();
            let board = Board::new(host.open(settings)?, selection)?;
            host.mcp(board, settings).map(|()| 0)
        }
        "serve" => {
            let options = ServeOptions::from_matches(matches)?;
            host.serve(board(host, settings)?, settings, &options)
                .map(|()| 0)
        }
        "watch" => watch::run(host, settings, matches),
        "workflow" => workflow::run(host, settings, matches),
        "trajectory" => workflow::run_trajectory(host, settings, matches),
        "tools" => call::list(settings),
        "call" => call::by_name(host, settings, matches),
        "audit" => audit::run(host, settings, matches),
        "backup" => store::backup(host, settings, matches),
        "restore" => store::restore(host, settings, matches),
        "export" => store::export(host, settings, matches),
        "import" => match matches.subcommand() {
            Some((form, matches)) => import_other::run(host, settings, form, matches),
            None => store::import(host, settings, matches),
        },
        "migrate" => store::migrate(host, settings, matches),
        "query" => query::run(host, settings, matches),
        "hook" => Ok(hook::run(host, settings, matches)),
        "agent" => agent::run(host, settings, matches),
        "code" => code::run(host, settings, matches),
        "forget" => forget::run(host, settings, matches),
        "doctor" => doctor::run(host, settings),
        "reindex" => reindex::run(
            &*host.open(settings)?,
            crate::owner(settings),
            settings.json,
        ),
        "agent-key" => agent_key::run(host, settings, matches),
        "token" => token::run(host, settings, matches),
        "capture" => capture::run(host, settings, matches),
        "project" => projects::run(host, settings, matches),
        "peer" => peer::run(host, settings, matches),
        "federation" => federation::run(host, settings, matches),
        "setup" => setup::run(settings, matches),
        "tour" => tour::run(host, settings),
        "omi" => omi::run(host, settings, matches),
        "kami" => kami::run(host, settings, matches),
        "kg" if matches.subcommand_name() == Some("export") => {
            kg_export::run(host, settings, matches)
        }
        "trust" => trust::run(host, settings, matches),
        "registry" => kiwi::registry(host, settings, matches),
        "koi" => match koi::run(host, settings, matches) {
            Some(done) => done,
            None => call::by_flags(host, settings, name, matches),
        },
        "kiwi" => match kiwi::run(host, settings, matches) {
            Some(done) => done,
            None => call::by_flags(host, settings, name, matches),
        },
        toolset => call::by_flags(host, settings, toolset, matches),
    }
}

fn board(host: &dyn Host, settings: &Settings) -> Result<Board> {
    Board::new(host.open(settings)?, settings.selection.clone())
}
