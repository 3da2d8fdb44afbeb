//! What building costs: the first command of the README from nothing, an optimized program from nothing,
//! and one domain crate changed.
//!
//! Everything is built in a directory of its own, which is removed afterwards. Processor seconds are what
//! to compare: wall time depends on what else the machine does.

use super::meter::cpu_of_children;
use crate::options::Options;
use crate::repository::{cargo, root};
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The crate that is touched: one of the domains, with every transport above it.
const TOUCHED: &str = "crates/koi/src/lib.rs";
/// An optimized program is at most so large.
const PROGRAM_BYTES_MAX: u64 = 40 * 1_000_000;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["release", "debug"])?;
    let both = options.has("release") == options.has("debug");
    println!("| what | processor s | wall s | program |\n|---|---|---|---|");
    if both || options.has("debug") {
        measure("dev", "debug", None)?;
    }
    if both || options.has("release") {
        measure("release", "release", Some(PROGRAM_BYTES_MAX))?;
    }
    Ok(())
}

/// Builds the program from nothing, and again after one crate was touched.
fn measure(profile: &str, folder: &str, bytes_max: Option<u64>) -> Result<()> {
    let target = tempfile::tempdir()?;
    // Downloads are not what is measured.
    ensure!(
        cargo().args(["fetch", "--quiet"]).status()?.success(),
        "the dependencies could not be fetched"
    );
    let (used, wall) = build(profile, target.path())?;
    let program = target.path().join(folder).join("kenning");
    let bytes = program
        .metadata()
        .with_context(|| format!("no program at `{}`", program.display()))?
        .len();
    row(&format!("{profile}, from nothing"), used, wall, bytes);
    let touched = File::options().append(true).open(root().join(TOUCHED))?;
    touched.set_modified(SystemTime::now())?;
    let (used, wall) = build(profile, target.path())?;
    row(
        &format!("{profile}, `{TOUCHED}` touched"),
        used,
        wall,
        bytes,
    );
    if let Some(most) = bytes_max {
        ensure!(
            bytes <= most,
            "the optimized program has {bytes} bytes, more than {most}"
        );
    }
    Ok(())
}

fn build(profile: &str, target: &Path) -> Result<(Duration, Duration)> {
    let (began, before) = (Instant::now(), cpu_of_children()?);
    let built = cargo()
        .args([
            "build",
            "--quiet",
            "--package",
            "kenning",
            "--profile",
            profile,
        ])
        .arg("--target-dir")
        .arg(target)
        .status()?;
    ensure!(built.success(), "the program could not be built");
    let used = cpu_of_children()?.saturating_sub(before);
    Ok((used, began.elapsed()))
}

fn row(what: &str, used: Duration, wall: Duration, bytes: u64) {
    println!(
        "| {what} | {:.1} | {:.1} | {:.1} MB |",
        used.as_secs_f64(),
        wall.as_secs_f64(),
        bytes as f64 / 1e6
    );
}
