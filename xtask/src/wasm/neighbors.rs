//! How long tools live that must be stopped, and how their neighbors fare.

use super::{call, call_until};
use crate::bench::meter::{cpu, ms};
use anyhow::{Result, ensure};
use kenning_sandbox::{Failure, Limits, Runtime, RuntimeOptions};
use kenning_testing_wasm::probes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Tools that never end, at once.
const HOGS: usize = 4;
/// What each may take.
const LIMIT: Duration = Duration::from_millis(400);
/// Times that a call is given up.
const CANCELS: u32 = 20;

pub(super) fn run() -> Result<()> {
    let runtime = Runtime::new(RuntimeOptions::default());
    let (busy, echo) = (probes::busy()?, probes::echo()?);
    runtime.prepare(&busy)?;
    runtime.prepare(&echo)?;
    hogs(&runtime, &busy, &echo)?;
    cancels(&runtime, &busy)
}

fn endless(limit: Duration) -> Limits {
    Limits {
        max_execution_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        max_fuel: 1 << 60,
        ..Limits::default()
    }
}

/// Busy loops are stopped at their limit, and another tool is answered meanwhile.
fn hogs(runtime: &Runtime, busy: &[u8], echo: &[u8]) -> Result<()> {
    let limit_ms = LIMIT.as_millis();
    let lives = scope(|scope| {
        let life = || {
            let began = Instant::now();
            let result = call(runtime, busy, "{}", endless(LIMIT)).result;
            (began.elapsed(), result)
        };
        let hogs: Vec<_> = (0..HOGS).map(|_| scope.spawn(life)).collect();
        sleep(Duration::from_millis(50));
        let (mut calls, mut slowest) = (0, Duration::ZERO);
        while hogs.iter().any(|it| !it.is_finished()) {
            let began = Instant::now();
            let answer = call(runtime, echo, "{}", Limits::default()).result;
            slowest = slowest.max(began.elapsed());
            ensure!(answer.as_deref() == Ok("{}"), "a neighbor got {answer:?}");
            calls += 1;
        }
        let mut longest = Duration::ZERO;
        for hog in hogs {
            let Ok((life, result)) = hog.join() else {
                anyhow::bail!("a call panicked");
            };
            let is_stopped = matches!(result, Err(Failure::TimedOut { .. }));
            ensure!(is_stopped, "a loop ended with {result:?}");
            longest = longest.max(life);
        }
        Ok((longest, calls, slowest))
    });
    let (longest, calls, slowest) = lives?;
    println!(
        "neighbors: {HOGS} loops with {limit_ms} ms each, the last stopped after {:.0} ms; \
         meanwhile {calls} calls of another tool, the slowest {:.2} ms",
        ms(longest),
        ms(slowest)
    );
    Ok(())
}

/// A cancelled call uses no more processor time.
fn cancels(runtime: &Runtime, busy: &[u8]) -> Result<()> {
    let (mut slowest, mut most_used) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..CANCELS {
        let cancelled: Arc<AtomicBool> = Arc::default();
        let limits = endless(Duration::from_secs(60));
        scope(|scope| -> Result<()> {
            let running = scope.spawn(|| call_until(runtime, busy, "{}", limits, &cancelled));
            sleep(Duration::from_millis(50));
            let (began, before) = (Instant::now(), cpu()?);
            cancelled.store(true, Ordering::Relaxed);
            let Ok(outcome) = running.join() else {
                anyhow::bail!("a call panicked");
            };
            slowest = slowest.max(began.elapsed());
            most_used = most_used.max(cpu()?.saturating_sub(before));
            let is_stopped = outcome.result == Err(Failure::Cancelled);
            ensure!(is_stopped, "a call ended with {:?}", outcome.result);
            Ok(())
        })?;
    }
    println!(
        "cancel: {CANCELS} calls given up, the slowest ended after {:.0} ms and {:.0} ms of processor time",
        ms(slowest),
        ms(most_used)
    );
    Ok(())
}
