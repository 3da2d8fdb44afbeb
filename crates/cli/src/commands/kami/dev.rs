//! `kami dev watch`: a tool project, built and installed again whenever it changes.

use super::{Kami, packages, path};
use crate::{Host, output};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::{InstallOptions, tool_manifest_wasm};
use kenning_vault::{Dir, Watch};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// So long it must be quiet before a build.
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
    // A signal that is waiting stands for all that follow.
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

/// Builds the project, puts the component where the manifest wants it, and installs it.
fn build(kami: &Kami<'_>, dir: &Dir) -> Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the developer's own compiler, as if they had typed it"
    )]
    let status = std::process::Command::new("cargo")
        .args(["build", "--target", "wasm32-wasip2", "--release"])
        // Where it is looked for, whatever the developer has set for other projects.
        .args(["--target-dir", "target"])
        .current_dir(dir.path())
        .status()
        .map_err(|cause| {
            Error::unavailable("`cargo` cannot be started")
                .hint("install Rust")
                .because(cause)
        })?;
    if !status.success() {
        return Err(Error::invalid("the project does not build"));
    }
    let built = dir.subdir("target/wasm32-wasip2/release")?;
    let found = built
        .list(".")?
        .into_iter()
        .find(|it| it.is_file && it.name.ends_with(".wasm"));
    let found = found.ok_or_else(|| {
        Error::not_found("component in", "target/wasm32-wasip2/release")
            .hint("set `crate-type = [\"cdylib\"]` in Cargo.toml")
    })?;
    let wasm = built.read(&found.name, WASM_BYTES_MAX)?;
    let manifest = dir.read("tool.toml", MANIFEST_BYTES_MAX)?;
    let wanted = tool_manifest_wasm(&String::from_utf8_lossy(&manifest))?;
    dir.write(&wanted, &wasm)?;
    let options = InstallOptions {
        replace: true,
        allow_more: true,
        ..InstallOptions::default()
    };
    let source = dir.path().display().to_string();
    let installed = kami.engine.install_tool(&kami.caller, &source, &options)?;
    packages::told(kami, &installed);
    Ok(())
}
