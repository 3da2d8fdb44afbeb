//! Measurements that the targets are held against.
//!
//! Times are wall times of this machine at this moment, so every figure stands beside a bare one from
//! the same run, and the ratio is what counts. Processor time is told too: it is what to trust on a
//! machine that is busy with other things.

mod agents;
mod audit;
mod build;
mod capture;
mod choice;
mod code;
mod collection;
mod cypher;
mod federation;
mod fixture;
mod graph;
mod hooks;
mod kiwi;
mod koi;
mod memory;
pub(crate) mod meter;
mod plan;
mod postgres;
mod recall;
mod resolve;
mod shuffle;
mod sync;
mod tokens;
mod vectors;
mod verify;
mod wasm;
mod writes;

use crate::options::{AS_BUILT, Options};
use crate::repository::cargo;
use anyhow::{Result, bail, ensure};

pub(crate) fn run(options: &Options) -> Result<()> {
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tokens"] => tokens::run(options),
        ["choice"] => choice::run(options),
        ["build"] => build::run(options),
        ["resolve"] => optimized(options, || resolve::run(options)),
        ["writes"] => optimized(options, || writes::run(options)),
        ["audit"] => optimized(options, || audit::run(options)),
        ["sync"] => optimized(options, || sync::run(options)),
        ["federation"] => optimized(options, || federation::run(options)),
        ["verify"] => optimized(options, || verify::run(options)),
        // Quality does not depend on the build profile.
        ["recall"] => recall::run(options),
        ["graph"] => optimized(options, || graph::run(options)),
        ["plan"] => optimized(options, || plan::run(options)),
        ["memory"] => optimized(options, || memory::run(options)),
        ["vectors"] => optimized(options, || vectors::run(options)),
        ["postgres"] => optimized(options, || postgres::run(options)),
        ["wasm"] => optimized(options, || wasm::run(options)),
        ["kiwi"] => optimized(options, || kiwi::run(options)),
        ["agents"] => agents::run(options),
        ["capture"] | ["capture", "show"] => capture::run(options),
        ["code"] => code::run(options),
        ["cypher"] => optimized(options, || cypher::run(options)),
        ["hooks"] => optimized(options, || hooks::run(options)),
        ["koi"] => optimized(options, || koi::run(options)),
        ["wasm", "bare"] => wasm::bare(options),
        _ => bail!(
            "`bench` measures tokens, choice, build, resolve, writes, audit, sync, federation, verify, recall, memory, graph, vectors, postgres, wasm, kiwi, koi, hooks, plan, code, capture, cypher or agents"
        ),
    }
}

/// Runs the measurement in an optimized build, in a process of its own when this one is none. With
/// `--as-built` it is this build, so that two of one profile can be compared.
fn optimized(options: &Options, measure: impl FnOnce() -> Result<()>) -> Result<()> {
    if !cfg!(debug_assertions) || options.has(AS_BUILT) {
        return measure();
    }
    let status = cargo()
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args().skip(1))
        .status()?;
    ensure!(status.success(), "the optimized run failed");
    Ok(())
}
