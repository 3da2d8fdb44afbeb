//! Hostile tools: the corpus, and good components broken at random.
//!
//! The tests of `sandbox` run the corpus and a few hundred mutations; here are as many as one has time
//! for. Whatever a component is, it must end as the corpus says, and a good tool that is called after
//! it must answer as ever. That this process is still there to print its line is part of the verdict.
//! [`neighbors`] prints how long those took that had to be stopped, and how others fared meanwhile.

mod neighbors;

use crate::bench::meter::{forget_memory_peak, memory_peak_kib, ms};
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_sandbox::{
    Capabilities, Limits, Outcome, PoolSize, RunCall, Runtime, RuntimeOptions, Sha256, ToolCode,
};
use kenning_testing_wasm::corpus::{self, Case};
use kenning_testing_wasm::{mutation, probes};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A corpus may grow, never shrink unseen.
const CASES_MIN: usize = 150;
/// Of mutations, if no other is asked for: a run can be compared with the last.
const SEED: u64 = 20_261_115;
/// The caller's own patience; a case's limits are far below it.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["mutations", "seed"])?;
    let n_mutations: u64 = options.value("mutations", 10_000)?;
    let seed: u64 = options.value("seed", SEED)?;
    let cases = corpus::cases()?;
    let pool = PoolSize {
        calls: 4,
        max_memory_mb: 64,
    };
    let mut n_failures = 0;
    for (name, pooling) in [
        ("hostile components", None),
        ("hostile components in a pool", Some(pool)),
    ] {
        let runtime = Runtime::new(RuntimeOptions {
            pooling,
            ..RuntimeOptions::default()
        });
        let mut excess = Excess::default();
        let wrong = wrong_ends(&runtime, &cases, pooling.is_some(), &mut excess)?;
        wrong.iter().for_each(|it| println!("{name}: {it}"));
        println!(
            "{name}: {} cases, {} failures, seed none ({excess})",
            cases.len(),
            wrong.len()
        );
        n_failures += wrong.len();
    }
    neighbors::run()?;
    let what = match mutation::run(n_mutations, seed) {
        Ok(tally) => format!(
            "{} refused, {} stopped, {} answered",
            tally.refused, tally.failed, tally.answered
        ),
        Err(why) => {
            println!("mutations: {why:#}");
            n_failures += 1;
            "given up at the first failure".to_owned()
        }
    };
    let n_broken = u8::from(what.starts_with("given"));
    println!("mutations: {n_mutations} cases, {n_broken} failures, seed {seed} ({what})");
    ensure!(
        cases.len() >= CASES_MIN,
        "the corpus has {} cases; there were {CASES_MIN} at least",
        cases.len()
    );
    ensure!(n_failures == 0, "{n_failures} failures");
    Ok(())
}

/// Memory beyond a tool's own limit that a call may take for a moment.
const MEMORY_EXCESS_KIB_MAX: u64 = 16 * 1024;

/// The most by which a case went beyond its limits, and which.
#[derive(Default)]
struct Excess {
    time: (Duration, String),
    memory_kib: (u64, String),
}

impl Excess {
    /// Runs a case whose code is compiled already, and notes how far beyond its limits it went.
    fn note(&mut self, case: &Case, run: impl FnOnce() -> Outcome) -> Result<Outcome> {
        forget_memory_peak()?;
        let before = memory_peak_kib()?;
        let began = Instant::now();
        let outcome = run();
        let limit = Duration::from_millis(case.limits.max_execution_ms);
        let time = began.elapsed().saturating_sub(limit);
        if time > self.time.0 {
            self.time = (time, case.name.clone());
        }
        let limit = u64::from(case.limits.max_memory_mb) * 1_024;
        let memory = memory_peak_kib()?.saturating_sub(before + limit);
        if memory > self.memory_kib.0 {
            self.memory_kib = (memory, case.name.clone());
        }
        Ok(outcome)
    }
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "beyond the time limit: {:.0} ms", ms(self.time.0))?;
        write!(f, " ({}), ", self.time.1)?;
        write!(f, "memory limit: {} KiB", self.memory_kib.0)?;
        write!(f, " ({})", self.memory_kib.1)
    }
}

/// A sentence for each case that came to another end than it must, or that left something behind.
fn wrong_ends(
    runtime: &Runtime,
    cases: &[Case],
    is_pool: bool,
    excess: &mut Excess,
) -> Result<Vec<String>> {
    let good = probes::echo()?;
    let mut wrong = Vec::new();
    for case in cases {
        // Compiling takes time and memory of its own. What cannot be compiled is refused below.
        drop(runtime.prepare(&case.wasm));
        let run = || call(runtime, &case.wasm, &case.input, case.limits);
        let result = excess.note(case, run)?.result;
        if !case.end.is_met_by(&result, is_pool) {
            let (name, end) = (&case.name, case.end);
            wrong.push(format!("{name}: {end:?} expected, {result:?} found"));
        }
        let after = call(runtime, &good, "{}", Limits::default()).result;
        if after.as_deref() != Ok("{}") {
            wrong.push(format!("a good tool after {}: {after:?}", case.name));
        }
    }
    let (memory_kib, name) = &excess.memory_kib;
    if *memory_kib > MEMORY_EXCESS_KIB_MAX {
        wrong.push(format!("{name}: {memory_kib} KiB more than its limit"));
    }
    Ok(wrong)
}

fn call(runtime: &Runtime, wasm: &[u8], input: &str, limits: Limits) -> Outcome {
    call_until(runtime, wasm, input, limits, &Arc::default())
}

/// The same, until the call is cancelled.
fn call_until(
    runtime: &Runtime,
    wasm: &[u8],
    input: &str,
    limits: Limits,
    cancelled: &Arc<AtomicBool>,
) -> Outcome {
    let source = || Ok(wasm.to_vec());
    let tool = ToolCode {
        sha256: Sha256::of(wasm),
        source: &source,
        artifact: None,
    };
    let call = RunCall {
        tool: "test",
        function: None,
        input,
        limits,
        capabilities: &Capabilities::default(),
        cancelled: Arc::clone(cancelled),
        deadline: Instant::now() + PATIENCE,
        log: None,
    };
    runtime.run(&tool, &call)
}
