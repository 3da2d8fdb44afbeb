//! Nodes in memory that share a space over a bad network: `cargo xtask simulate`.
//!
//! Each seed lets two to five honest nodes write while everything fails and then heals, and tells a lie among
//! others; every eighth also runs whole programs and compares what the tools of all wings answer. A failure prints its seed, which shows it again, and ends the run.

use crate::options::Options;
use anyhow::{Result, bail};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const SEEDS: u64 = 100;

const STEPS: u64 = 90;

/// One seed of so many also runs whole programs with their tools.
const TOOLS_EVERY: u64 = 8;

/// Steps of whole programs.
const TOOL_STEPS: u64 = 40;

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["seeds", "seed", "steps", "tools"])?;
    let seeds = options.value("seeds", SEEDS)?;
    let first = options.value("seed", 0_u64)?;
    let steps = options.value("steps", STEPS)?;
    // Whole programs take longer than stores: every so many seeds.
    let tools_every = options.value("tools", TOOLS_EVERY)?.max(1);
    let n_tools = AtomicU64::new(0);
    let begin = Instant::now();
    let (next, n_events) = (AtomicU64::new(first), AtomicU64::new(0));
    let failed: Mutex<Vec<String>> = Mutex::default();
    let has_failed = || failed.lock().map_or(true, |it| !it.is_empty());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds || has_failed() {
                return;
            }
            let converged = kenning_testing_peers::converge(seed, steps);
            let lied = kenning_testing_peers::lie(seed);
            let used = match seed % tools_every {
                0 => kenning_testing_peers::use_tools(seed, TOOL_STEPS).map(|_| 1),
                _ => Ok(0),
            };
            let error = match (converged, lied, used) {
                (Ok(n), Ok(_), Ok(n_used)) => {
                    n_events.fetch_add(n, Ordering::Relaxed);
                    n_tools.fetch_add(n_used, Ordering::Relaxed);
                    continue;
                }
                (Err(error), _, _) => format!("seed {seed}: honest nodes: {error}"),
                (_, Err(error), _) => format!("seed {seed}: a liar: {error}"),
                (_, _, Err(error)) => format!("seed {seed}: programs: {error}"),
            };
            if let Ok(mut failed) = failed.lock() {
                failed.push(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    if let Some(error) = failed.lock().ok().and_then(|it| it.first().cloned()) {
        bail!("{error}");
    }
    println!(
        "simulate: {seeds} seeds of honest nodes and {seeds} of liars, {} of whole programs, 0 failures, {} events, {} s",
        n_tools.into_inner(),
        n_events.into_inner(),
        begin.elapsed().as_secs()
    );
    Ok(())
}
