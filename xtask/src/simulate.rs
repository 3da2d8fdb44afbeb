//! Nodes in memory that share a space over a bad network: `cargo xtask simulate`.
//!
//! Each seed lets two to five honest nodes write while everything fails and then heals, lets nodes exchange that may not
//! do everything, and tells a lie among others; every so many also run whole programs and compare what the tools of all
//! wings answer. A failure prints its seed, which shows it again, and ends the run.

use crate::bench::meter::memory_peak_mib;
use crate::options::Options;
use anyhow::{Result, bail, ensure};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const SEEDS: u64 = 100;

const STEPS: u64 = 200;

/// One seed of so many also runs whole programs with their tools; 0 for none.
const TOOLS_EVERY: u64 = 8;

/// Steps of whole programs.
const TOOL_STEPS: u64 = 40;

/// Whatever liars send, the process takes no more memory: one message of theirs, unpacked, is a gigabyte.
const MEMORY_MAX_MIB: u64 = 512;

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["seeds", "seed", "steps", "tools"])?;
    let liars_only = match options.words.as_slice() {
        [] => false,
        [word] if word == "liars" => true,
        _ => bail!("`simulate` takes nothing, or `liars`"),
    };
    let seeds = options.value("seeds", SEEDS)?;
    let first = options.value("seed", 0_u64)?;
    let steps = options.value("steps", STEPS)?;
    let tools_every = options.value("tools", TOOLS_EVERY)?;
    let (n_tools, n_refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    let (next, n_events) = (AtomicU64::new(first), AtomicU64::new(0));
    let failed: Mutex<Vec<String>> = Mutex::default();
    let has_failed = || failed.lock().map_or(true, |it| !it.is_empty());
    let one = |seed: u64| -> Result<(), String> {
        let told = |what: &str, error: kenning_core::Error| format!("seed {seed}: {what}: {error}");
        kenning_testing_peers::lie(seed).map_err(|it| told("a liar", it))?;
        if liars_only {
            return Ok(());
        }
        let n = kenning_testing_peers::converge(seed, steps);
        n_events.fetch_add(n.map_err(|it| told("honest nodes", it))?, Ordering::Relaxed);
        let n = kenning_testing_peers::restrict(seed);
        n_refused.fetch_add(n.map_err(|it| told("policies", it))?, Ordering::Relaxed);
        if tools_every > 0 && seed.is_multiple_of(tools_every) {
            let used = kenning_testing_peers::use_tools(seed, TOOL_STEPS);
            used.map_err(|it| told("programs", it))?;
            n_tools.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds || has_failed() {
                return;
            }
            if let (Err(error), Ok(mut failed)) = (one(seed), failed.lock()) {
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
    let (took, peak) = (begin.elapsed().as_secs(), memory_peak_mib()?);
    ensure!(
        peak <= MEMORY_MAX_MIB,
        "{peak} MiB of memory were taken, more than {MEMORY_MAX_MIB}"
    );
    let last = first + seeds.saturating_sub(1);
    if liars_only {
        println!(
            "liars: {seeds} seeds, 0 lies believed, {} kinds of lies, at most {peak} MiB of memory, {took} s, seeds {first} to {last}",
            kenning_testing_peers::LIES.len(),
        );
        return Ok(());
    }
    println!(
        "simulate: {seeds} seeds x {steps} steps, {} of whole programs, 0 failures, {} events, {} events of unknown authors refused and 0 taken, {seeds} lies noticed, at most {peak} MiB of memory, {took} s, seeds {first} to {last}",
        n_tools.into_inner(),
        n_events.into_inner(),
        n_refused.into_inner(),
    );
    Ok(())
}
