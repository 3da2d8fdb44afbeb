//! How fast memories are embedded, stored and recalled.
//!
//! Each figure stands beside a bare one from the same run: a sum over as many bytes, a bare SQLite
//! insert, a pass over as much memory.

use super::meter::{cpu, memory_peak_mib, ms, percentile};
use crate::options::Options;
use anyhow::Result;
use kenning_core::SeededRandom;
use kenning_embed::{Embedder as _, Table};
use kenning_engine::omi::{NewMemory, Recall};
use kenning_testing::Fixture;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Memories that are stored with one call.
const BATCH: usize = 1_000;

/// Questions that are asked.
const QUESTIONS: usize = 200;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["memories"])?;
    let n: usize = options.value("memories", 100_000)?;
    embedding()?;
    let fixture = Fixture::new();
    storing(&fixture, n)?;
    recalling(&fixture, n)?;
    println!(
        "most memory resident in this process: {} MiB",
        memory_peak_mib()?
    );
    Ok(())
}

fn embedding() -> Result<()> {
    let texts: Vec<String> = (0..20_000).map(sentence).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (began, before) = (Instant::now(), cpu()?);
    black_box(Table::built_in().embed(&texts)?);
    let (took, used) = (began.elapsed(), cpu()?.saturating_sub(before));
    let bytes: usize = texts.iter().map(|it| it.len()).sum();
    let bare = Instant::now();
    let folded: Vec<String> = texts.iter().map(|it| it.to_lowercase()).collect();
    black_box(folded);
    let bare = bare.elapsed();
    println!(
        "embedding: {:.0} texts/s on one core ({} texts of {} bytes, {:.0} ms, {:.0} ms processor); {:.1} x lower-casing them",
        texts.len() as f64 / took.as_secs_f64(),
        texts.len(),
        bytes / texts.len(),
        ms(took),
        ms(used),
        took.as_secs_f64() / bare.as_secs_f64(),
    );
    Ok(())
}

fn storing(fixture: &Fixture, n: usize) -> Result<()> {
    let engine = fixture.board.engine();
    let mut batches = Vec::new();
    let began = Instant::now();
    for first in (0..n).step_by(BATCH) {
        let memories = (first..n.min(first + BATCH)).map(|i| NewMemory {
            content: sentence(i as u64),
            ..NewMemory::default()
        });
        let batch: Vec<NewMemory> = memories.collect();
        let began = Instant::now();
        engine.omi().store_memories(&fixture.owner(), batch)?;
        batches.push(began.elapsed());
    }
    let first = batches.first().copied().unwrap_or_default();
    println!(
        "storing: first batch of {BATCH} {:.0} ms, median {:.0} ms, worst {:.0} ms; {n} in {:.1} s",
        ms(first),
        ms(percentile(&mut batches, 0.5)),
        ms(percentile(&mut batches, 1.0)),
        began.elapsed().as_secs_f64(),
    );
    let began = Instant::now();
    engine.omi().settle();
    println!(
        "  joining alike ones afterwards: {:.1} s more in the background",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn recalling(fixture: &Fixture, n: usize) -> Result<()> {
    let engine = fixture.board.engine();
    let ask = |i: usize| -> Result<Duration> {
        let recall = Recall {
            query: question(i as u64 * 7_919 % n.max(1) as u64),
            ..Recall::default()
        };
        let began = Instant::now();
        black_box(engine.omi().recall(&fixture.owner(), &recall)?);
        Ok(began.elapsed())
    };
    let first = ask(0)?;
    let before = cpu()?;
    let mut times: Vec<Duration> = (1..=QUESTIONS).map(ask).collect::<Result<_>>()?;
    let used = cpu()?.saturating_sub(before);
    // What any answer over all vectors must at least do: read them once.
    let vectors = vec![1_u8; n * 256];
    let bare = Instant::now();
    black_box(vectors.iter().map(|&it| u64::from(it)).sum::<u64>());
    let bare = bare.elapsed();
    println!(
        "recall over {n}: first {:.0} ms (takes in the store), then median {:.2} ms, p99 {:.2} ms, {:.2} ms processor each; one pass over {} MB {:.2} ms",
        ms(first),
        ms(percentile(&mut times, 0.5)),
        ms(percentile(&mut times, 0.99)),
        ms(used) / QUESTIONS as f64,
        n * 256 / 1_000_000,
        ms(bare),
    );
    Ok(())
}

const SUBJECTS: &[&str] = &[
    "The nightly backup",
    "Our payment webhook",
    "The mobile client",
    "The staging cluster",
    "Anna",
    "The search index",
    "The rate limiter",
    "A flaky test",
    "The invoice service",
    "The release train",
    "The login page",
    "The message queue",
];
const VERBS: &[&str] = &[
    "was slowed down by",
    "depends on",
    "failed because of",
    "was rewritten for",
    "is owned by",
    "must not touch",
    "logs to",
    "is cached in",
    "waits for",
    "was fixed with",
    "is measured by",
    "shares a lock with",
];
const OBJECTS: &[&str] = &[
    "the certificate rotation",
    "a missing index",
    "the platform team",
    "an expired token",
    "the Redis instance",
    "a race in the scheduler",
    "the feature flag",
    "the new parser",
    "the audit log",
    "the cold cache",
    "a retry storm",
    "the schema migration",
];

fn pick<'a>(random: &SeededRandom, words: &[&'a str]) -> &'a str {
    let at = usize::try_from(random.below(words.len() as u64)).unwrap_or(0);
    words[at]
}

/// A short text, the same for the same number.
pub(super) fn sentence(i: u64) -> String {
    let random = SeededRandom::new(i);
    let (subject, verb, object) = (
        pick(&random, SUBJECTS),
        pick(&random, VERBS),
        pick(&random, OBJECTS),
    );
    format!(
        "{subject} {verb} {object} in ticket {i}, and {} on day {}.",
        pick(&random, OBJECTS),
        random.below(365)
    )
}

pub(super) fn question(i: u64) -> String {
    let random = SeededRandom::new(i);
    format!(
        "what about {} and {} in ticket {i}?",
        pick(&random, SUBJECTS),
        pick(&random, VERBS)
    )
}
