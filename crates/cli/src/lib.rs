//! The command line.
//!
//! [`command`] builds the whole from the tool table: a subcommand with flags for every tool, beside
//! those that care for the store. [`run`] reads the arguments into [`Settings`] (what was typed and
//! what the environment says, in one place), then calls one function per command.
//!
//! Data goes to standard output, everything else to standard error; the exit code is that of the
//! error table. This crate knows no storage: a [`Host`] opens the engine and runs the servers.

mod args;
mod audit_args;
mod commands;
mod completions;
pub mod env_vars;
mod output;
mod progress;
mod settings;
mod terminal;
mod tool_args;

pub use args::{command, kami_command, omi_command};
pub use commands::HookServer;
pub use output::print_error;
pub use settings::{DatabaseUrl, ServeOptions, Settings};

use clap::ArgMatches;
use kenning_core::Result;
use kenning_engine::{Caller, Engine};
use kenning_tools::Board;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// What can be said about a store without opening it.
#[derive(Debug, Default)]
pub struct StoreLook {
    /// Whether it exists.
    pub exists: bool,
    /// What was checked, and its state.
    pub seen: Vec<(String, String)>,
    /// What is wrong, one sentence each.
    pub faults: Vec<String>,
}

/// What only the binary can do.
pub trait Host: Sync {
    /// Sets up the log of the program itself, on standard error.
    fn start_logging(&self, settings: &Settings);
    /// Opens the engine.
    fn open(&self, settings: &Settings) -> Result<Arc<Engine>>;
    /// Checks the store without opening it, for `doctor`: creates and changes nothing.
    fn look_at_store(&self, settings: &Settings) -> StoreLook;
    /// Moves a store with its log from one place to another; each is a directory or a database URL.
    /// `progress` gets the number of rows moved. Returns what to show.
    fn migrate(
        &self,
        settings: &Settings,
        from: &str,
        to: &str,
        progress: &dyn Fn(u64),
    ) -> Result<Value>;
    /// The token of the operator who serves HTTP from this data directory; created if there is none.
    fn local_token(&self, settings: &Settings) -> Result<String>;
    /// Serves MCP on the standard streams until they end.
    fn mcp(&self, board: Board, settings: &Settings) -> Result<()>;
    /// Waits until the process is told to stop.
    fn wait_for_stop(&self) -> Result<()>;
    /// Serves HTTP until told to stop.
    fn serve(&self, board: Board, settings: &Settings, options: &ServeOptions) -> Result<()>;
}

/// Runs the commands of one program name.
type Commands = fn(&'static dyn Host, &Settings, &ArgMatches) -> Result<u8>;

/// Runs the command line of `kenning` and returns its exit code.
///
/// A link to the program named `omi` or `kami` is that program.
pub fn run(host: &'static dyn Host, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let called = arguments.first().map(Path::new).and_then(Path::file_stem);
    if called.is_some_and(|it| it == "omi") {
        return run_omi(host, arguments);
    }
    if called.is_some_and(|it| it == "kami") {
        return run_kami(host, arguments);
    }
    // For a client's hook a usage error must not be an exit code: some codes would stop the client.
    let fails_open = arguments.get(1).is_some_and(|it| it == "hook");
    let code = run_as(host, args::command(), commands::run, arguments);
    if fails_open { 0 } else { code }
}

/// Runs the command line of `kami` and returns its exit code.
fn run_kami(host: &'static dyn Host, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_as(host, args::kami_command(), commands::run_kami, arguments)
}

/// Runs the command line of `omi` and returns its exit code.
fn run_omi(host: &'static dyn Host, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_as(host, args::omi_command(), commands::run_omi, arguments)
}

fn run_as(
    host: &'static dyn Host,
    mut command: clap::Command,
    commands: Commands,
    arguments: impl IntoIterator<Item = OsString>,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = match command.try_get_matches_from_mut(&arguments) {
        Ok(matches) => matches,
        Err(usage) => return output::print_usage(&usage, &arguments),
    };
    let typed = arguments.iter().map(|it| it.to_string_lossy().into_owned());
    terminal::remember(&command, &matches, typed.collect());
    let settings = match Settings::from_matches(&matches) {
        Ok(settings) => settings,
        Err(error) => return print_error(&error, false),
    };
    host.start_logging(&settings);
    if settings.quiet {
        output::be_quiet();
    }
    let done = completions::run(&matches).unwrap_or_else(|| commands(host, &settings, &matches));
    match done {
        Ok(code) => code,
        Err(error) => print_error(&error, settings.json),
    }
}

/// The owner of the process, calling.
pub(crate) fn owner(settings: &Settings) -> Caller {
    Caller::new(settings.owner()).by_person()
}
