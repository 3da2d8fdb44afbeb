//! `kami dev watch`: a tool project, built and installed again whenever it changes.

use super::{Kami, packages, path};
use crate::{Host, output};
use clap::ArgMatches;
use kenning_core::{Code, Error, Result};
use kenning_engine::kami::{InstallOptions, tool_manifest_wasm};
use kenning_vault::{Dir, Watch};
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long it must be quiet before a build.
const QUIET: Duration = Duration::from_millis(300);

/// The largest files that are read.
const WASM_BYTES_MAX: u64 = 64 * 1024 * 1024;
const MANIFEST_BYTES_MAX: u64 = 256 * 1024;

pub(super) fn run(_: &'static dyn Host, kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let Some(("watch", matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let dir = Dir::open(&path(matches, "dir").unwrap_or_else(|| PathBuf::from(".")))?;
    let sources = dir.subdir("src")?;
    let built = build(kami, &dir);
    if matches.get_flag("once") {
        return built.map(|()| 0);
    }
    if let Err(error) = built {
        output::print_error(&error, false);
    }
    let (sender, receiver) = sync_channel(1);
    // One pending signal is enough.
    let _watch = Watch::start(&[&sources], move || {
        sender.try_send(()).unwrap_or_default();
    });
    output::say("watching; Ctrl-C stops it");
    while receiver.recv().is_ok() {
        while receiver.recv_timeout(QUIET).is_ok() {}
        if let Err(error) = build(kami, &dir) {
            output::print_error(&error, false);
        }
    }
    Ok(0)
}

/// `kami build`: builds the project, and puts the component where the manifest expects it.
pub(super) fn build_project(matches: &ArgMatches) -> Result<u8> {
    let dir = Dir::open(&path(matches, "dir").unwrap_or_else(|| PathBuf::from(".")))?;
    let wasm = compile(&dir, !matches.get_flag("debug"))?;
    output::print(&dir.path().join(&wasm).display().to_string());
    Ok(0)
}

/// Builds the project and returns the name of the component, which is where the manifest expects it.
fn compile(dir: &Dir, optimized: bool) -> Result<String> {
    let manifest = dir
        .read("tool.toml", MANIFEST_BYTES_MAX)
        .map_err(|error| match error.code {
            Code::NotFound => Error::new(Code::NotFound, "tool.toml not found")
                .hint("name the directory of a tool project; `kami init NAME` makes one"),
            _ => error,
        })?;
    let wanted = tool_manifest_wasm(&String::from_utf8_lossy(&manifest))?;
    run_cargo(dir, optimized)?;
    let profile = if optimized { "release" } else { "debug" };
    let place = format!("target/wasm32-wasip2/{profile}");
    let built = dir.subdir(&place)?;
    let is_wasm = |entry: &kenning_vault::Entry| entry.is_file && entry.name.ends_with(".wasm");
    let mut all: Vec<String> = built
        .list(".")?
        .into_iter()
        .filter(is_wasm)
        .map(|it| it.name)
        .collect();
    all.sort();
    // By the name in the manifest, in case the directory is shared with other projects.
    let named = all.iter().find(|it| **it == wanted).or(all.first());
    let named = named.ok_or_else(|| {
        Error::not_found("component in", &place)
            .hint("set `crate-type = [\"cdylib\"]` in Cargo.toml")
    })?;
    let wasm = built.read(named, WASM_BYTES_MAX)?;
    dir.write(&wanted, &wasm)?;
    Ok(wanted)
}

/// Runs the developer's compiler, and shows its output as it comes.
fn run_cargo(dir: &Dir, optimized: bool) -> Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the developer's own compiler, as if they had typed it"
    )]
    let mut command = std::process::Command::new("cargo");
    command
        .args(["build", "--target", "wasm32-wasip2"])
        // Where the component is expected, whatever the developer has set for other projects.
        .args(["--target-dir", "target"])
        .args(optimized.then_some("--release"))
        .current_dir(dir.path())
        // Standard output is the place of the component, and nothing else.
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if io::stderr().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command.spawn().map_err(|cause| {
        Error::unavailable("`cargo` cannot be started")
            .hint("install Rust")
            .because(cause)
    })?;
    let mut exports_twice = false;
    if let Some(err) = child.stderr.take() {
        for line in BufReader::new(err).split(b'\n').map_while(io::Result::ok) {
            exports_twice |= is_double_export(&String::from_utf8_lossy(&line));
            // As the compiler wrote it, colors included. If standard error is closed there is nobody
            // to tell.
            drop(io::stderr().write_all(&[&line[..], b"\n"].concat()));
        }
    }
    let status = child
        .wait()
        .map_err(|cause| Error::unavailable("`cargo` did not end").because(cause))?;
    match (status.success(), exports_twice) {
        (true, _) => Ok(()),
        (false, true) => Err(Error::invalid(
            "the project does not build: `kami_tool!` exports the tool, and so does the crate itself",
        )
        .hint("end `kami_tool!` with `exports: false`, or leave the other export out")),
        (false, false) => Err(Error::invalid("the project does not build")
            .hint("`rustup target add wasm32-wasip2` if the target is missing; else see above")),
    }
}

/// Whether the compiler or the linker reports that the contract's functions are defined twice. With
/// colors there are escapes between the words, but not within them.
fn is_double_export(line: &str) -> bool {
    let is_theirs = line.contains("kami:tool/tool") || line.contains("__kami_");
    let is_twice = [
        "already defined",
        "duplicate symbol",
        "defined multiple times",
    ];
    is_theirs && is_twice.iter().any(|it| line.contains(it))
}

/// Builds the project and installs it.
fn build(kami: &Kami<'_>, dir: &Dir) -> Result<()> {
    compile(dir, true)?;
    let options = InstallOptions {
        replace: true,
        allow_more: true,
        allow_downgrade: true,
        ..InstallOptions::default()
    };
    let source = dir.path().display().to_string();
    let installed = kami
        .engine
        .kami()
        .install_tool(&kami.caller, &source, &options)?;
    packages::told(kami, &installed);
    Ok(())
}
