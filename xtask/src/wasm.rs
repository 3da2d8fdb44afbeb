//! Tools that mean no good: the hostile corpus, and good components broken at random.
//!
//! The tests of `sandbox` run the corpus and a few hundred mutations; here are as many as one has time
//! for. Whatever a component is, it must end as the corpus says, and a good tool that is called after
//! it must answer as ever. That this process is still there to print its line is part of the verdict.

use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_sandbox::{
    Capabilities, Failure, Limits, Outcome, PoolSize, RunCall, Runtime, RuntimeOptions, Sha256,
    ToolCode,
};
use kenning_testing_wasm::corpus::{self, Case, End};
use kenning_testing_wasm::{mutation, probes};
use std::sync::Arc;
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
        let wrong = wrong_ends(&runtime, &cases, pooling.is_some())?;
        wrong.iter().for_each(|it| println!("{name}: {it}"));
        println!(
            "{name}: {} cases, {} failures, seed none",
            cases.len(),
            wrong.len()
        );
        n_failures += wrong.len();
    }
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

/// A sentence for each case that came to another end than it must, or that left something behind.
fn wrong_ends(runtime: &Runtime, cases: &[Case], is_pool: bool) -> Result<Vec<String>> {
    let good = probes::echo()?;
    let mut wrong = Vec::new();
    for case in cases {
        let result = call(runtime, &case.wasm, &case.input, case.limits).result;
        if !is_as_it_must(case.end, &result, is_pool) {
            let (name, end) = (&case.name, case.end);
            wrong.push(format!("{name}: {end:?} expected, {result:?} found"));
        }
        let after = call(runtime, &good, "{}", Limits::default()).result;
        if after.as_deref() != Ok("{}") {
            wrong.push(format!("a good tool after {}: {after:?}", case.name));
        }
    }
    Ok(wrong)
}

fn is_as_it_must(expected: End, result: &Result<String, Failure>, is_pool: bool) -> bool {
    match (expected, end(result)) {
        (End::Any, found) => found.is_some(),
        // What is larger than a place in the pool from the start is not let in at all.
        (End::Memory | End::Limit, Some(End::Refused)) => is_pool,
        (expected, found) => found == Some(expected),
    }
}

/// How it ended, if that is among the ends that a component may come to.
fn end(result: &Result<String, Failure>) -> Option<End> {
    Some(match result {
        Ok(_) => End::Answer,
        Err(Failure::Returned(_)) => End::Returned,
        Err(Failure::TimedOut { .. }) => End::Time,
        Err(Failure::FuelExhausted { .. }) => End::Fuel,
        Err(Failure::MemoryGrow { .. }) => End::Memory,
        Err(Failure::Panicked { .. }) => End::Panic,
        Err(Failure::Exited { .. }) => End::Exit,
        Err(Failure::Trap(_)) => End::Trap,
        Err(Failure::LimitReached(_)) => End::Limit,
        Err(Failure::OutputTooLarge { .. }) => End::Output,
        Err(Failure::Unusable { .. } | Failure::ExportNotFound(_)) => End::Refused,
        Err(_) => return None,
    })
}

fn call(runtime: &Runtime, wasm: &[u8], input: &str, limits: Limits) -> Outcome {
    let source = || Ok(wasm.to_vec());
    let tool = ToolCode {
        sha256: Sha256::of(wasm),
        source: &source,
        artifact: None,
    };
    let call = RunCall {
        function: None,
        input,
        limits,
        capabilities: &Capabilities::default(),
        cancelled: Arc::default(),
        deadline: Instant::now() + PATIENCE,
        log: None,
    };
    runtime.run(&tool, &call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_that_was_expected_counts() {
        let fuel = || {
            Err(Failure::FuelExhausted {
                used: 1,
                limit: 1,
                suggested: 2,
            })
        };
        let refused = || Err(Failure::ExportNotFound("run".to_owned()));
        let internal = || Err(Failure::Internal("ours".to_owned()));
        for (expected, result, is_pool, is_right) in [
            (End::Fuel, fuel(), false, true),
            (End::Time, fuel(), false, false),
            (End::Any, fuel(), false, true),
            (End::Any, internal(), false, false),
            (End::Answer, Ok(String::new()), false, true),
            (End::Memory, refused(), false, false),
            (End::Memory, refused(), true, true),
            (End::Trap, refused(), true, false),
        ] {
            let found = is_as_it_must(expected, &result, is_pool);
            assert_eq!(found, is_right, "{expected:?} {result:?} {is_pool}");
        }
    }
}
