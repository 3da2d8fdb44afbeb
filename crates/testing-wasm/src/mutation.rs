//! Breaks good components at random and checks that nothing else breaks.
//!
//! Each round takes one good component and runs what is left of it within tight limits. Half of them
//! have bytes flipped, cut, doubled or moved, and are mostly refused; the other half have other
//! numbers and operators in their code, so that they are good components that do something wild. Each
//! may be refused, fail or even answer; the process must go on, and a good tool that is called in
//! between must answer as ever.

use crate::probes;
use anyhow::{Context as _, Result, bail, ensure};
use kenning_sandbox::{
    Capabilities, Failure, Limits, Outcome, RunCall, Runtime, RuntimeOptions, Sha256, ToolCode,
};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmparser::{Parser, Payload};

/// The results of the broken components.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Not let in: no component, or not one that could run.
    pub refused: u64,
    /// Stopped while they ran.
    pub failed: u64,
    /// Answered, because nothing that mattered was broken.
    pub answered: u64,
}

/// How often a good tool is called in between.
const GOOD_EVERY: u64 = 50;

/// Breaks this many components. The same seed breaks the same ones.
pub fn run(count: u64, seed: u64) -> Result<Tally> {
    let good = probes::echo()?;
    let sources = [
        good.clone(),
        probes::flat_echo()?,
        probes::log()?,
        probes::print()?,
        probes::environment()?,
        probes::files()?,
        probes::http()?,
        probes::patient()?,
        probes::generic()?,
    ];
    let runtime = Runtime::new(RuntimeOptions {
        loaded_max: 8,
        ..RuntimeOptions::default()
    });
    let mut random = Random(seed | 1);
    let mut tally = Tally::default();
    for round in 0..count {
        let source = &sources[random.below(sources.len())];
        let broken = match random.below(2) {
            0 => broken(source, &mut random),
            _ => misguided(source, &mut random),
        };
        match call(&runtime, &broken).result {
            Ok(_) => tally.answered += 1,
            Err(Failure::Internal(why)) => bail!("round {round} of seed {seed}: {why}"),
            Err(Failure::Unusable { .. } | Failure::ExportNotFound(_)) => tally.refused += 1,
            Err(_) => tally.failed += 1,
        }
        if round % GOOD_EVERY == 0 {
            let answer = call(&runtime, &good).result;
            let context = || format!("a good tool after round {round} of seed {seed}");
            let answer = answer.map_err(anyhow::Error::from).with_context(context)?;
            ensure!(
                answer == "{}",
                "after round {round} of seed {seed}: {answer}"
            );
        }
    }
    Ok(tally)
}

fn call(runtime: &Runtime, wasm: &[u8]) -> Outcome {
    let source = || Ok(wasm.to_vec());
    let tool = ToolCode {
        sha256: Sha256::of(wasm),
        source: &source,
        artifact: None,
    };
    let limits = Limits {
        max_memory_mb: 16,
        max_execution_ms: 200,
        max_fuel: 200_000,
        ..Limits::default()
    };
    runtime.run(
        &tool,
        &RunCall {
            tool: "test",
            function: None,
            input: "{}",
            limits,
            capabilities: &Capabilities::default(),
            cancelled: Arc::default(),
            deadline: Instant::now() + Duration::from_secs(30),
            log: None,
        },
    )
}

fn broken(source: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = source.to_vec();
    (0..=random.below(4)).for_each(|_| damage(&mut bytes, random));
    bytes
}

fn misguided(source: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = source.to_vec();
    (0..=random.below(6)).for_each(|_| misguide(&mut bytes, random));
    bytes
}

/// Bytes that are no longer what the format says.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(6) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.byte(),
        3 => bytes.truncate(at),
        4 => {
            let end = (at + random.below(32)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, part);
        }
        _ => {
            let end = (at + random.below(8)).min(bytes.len());
            bytes.drain(at..end);
        }
    }
}

/// Another number after `i32.const` or `i64.const`, or another operator of two numbers. Where the byte
/// was something else after all, it is damage.
fn misguide(bytes: &mut [u8], random: &mut Random) {
    const CONSTANTS: std::ops::RangeInclusive<u8> = 0x41..=0x42;
    const OPERATORS: std::ops::RangeInclusive<u8> = 0x6a..=0x78;
    let places = code(bytes).into_iter().flatten().filter(|at| {
        let is_constant = CONSTANTS.contains(&bytes[*at]) && bytes[at + 1] < 0x80;
        is_constant || OPERATORS.contains(&bytes[*at])
    });
    let places: Vec<usize> = places.collect();
    if places.is_empty() {
        return;
    }
    let at = places[random.below(places.len())];
    if CONSTANTS.contains(&bytes[at]) {
        bytes[at + 1] = random.byte() & 0x7f;
    } else {
        let count = usize::from(OPERATORS.end() - OPERATORS.start()) + 1;
        bytes[at] = OPERATORS.start() + random.byte() % count as u8;
    }
}

/// Where the bodies of functions lie, without their last byte.
fn code(bytes: &[u8]) -> Vec<Range<usize>> {
    let payloads = Parser::new(0).parse_all(bytes);
    let bodies = payloads.filter_map(|payload| match payload {
        Ok(Payload::CodeSectionEntry(body)) => Some(body.range()),
        _ => None,
    });
    bodies.map(|range| range.start..range.end - 1).collect()
}

/// Xorshift: good enough to break things with, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}
