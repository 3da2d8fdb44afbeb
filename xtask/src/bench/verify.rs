//! The check of a large log: every id hashed again, every signature checked, every row compared. Some of its events
//! were written by other nodes and merged.

use super::meter::{cpu, memory_peak_mib};
use super::{fixture, sync};
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_audit::{Log, Verify};
use kenning_core::Space;
use serde_json::json;
use std::time::{Duration, Instant};

/// Other nodes, and how many of a hundred events each of them writes.
const OTHERS: u64 = 3;
const OTHERS_SHARE: u64 = 4;

/// A log of a million events is to be checked in so long.
const TOOK_MAX: Duration = Duration::from_secs(60);

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["events"])?;
    let n_events: u64 = options.value("events", 1_000_000)?;
    let directory = fixture::directory()?;
    let log = fixture::open(directory.path())?;
    let space = Space::default();
    let began = Instant::now();
    let n_each = n_events * OTHERS_SHARE / 100;
    for n in 0..OTHERS {
        merge(&log, &space, n * n_each, (n + 1) * n_each)?;
    }
    sync::write(&log, &space, OTHERS * n_each, n_events)?;
    println!(
        "made {n_events} events in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let (cpu_before, began) = (cpu()?, Instant::now());
    let report = log.read(&space, |tx| {
        kenning_audit::verify(tx, &Verify::of(&space), &|_| ())
    })?;
    let (took, cpu) = (began.elapsed(), cpu()? - cpu_before);
    ensure!(
        report.is_clean(),
        "the log is not sound: {:?}",
        report.faults
    );
    // The log adds an event about each checkpoint that it signs by itself.
    ensure!(report.n_events >= n_events, "events are missing");
    let n_authors = report.authors.len();
    ensure!(
        report.n_foreign >= OTHERS * n_each,
        "events of other nodes are missing"
    );
    println!(
        "verify: {n_events} events of {n_authors} authors, {} of them merged, in {:.1} s (at most {} s), \
         {:.0} events/s, {:.1} s of processor, peak {} MiB",
        report.n_foreign,
        took.as_secs_f64(),
        TOOK_MAX.as_secs(),
        n_events as f64 / took.as_secs_f64(),
        cpu.as_secs_f64(),
        memory_peak_mib()?,
    );
    ensure!(took <= TOOK_MAX, "it took too long");
    Ok(())
}

/// Another node writes, and the log takes it in.
fn merge(log: &Log, space: &Space, from: u64, to: u64) -> Result<()> {
    let directory = fixture::directory()?;
    let other = fixture::open(directory.path())?;
    for (a, b) in [(log, &other), (&other, log)] {
        let did = b.signer().did().clone();
        a.write(space, move |tx| {
            tx.add_author(&did);
            tx.record("PeerAdded", json!({})).map(drop)
        })?;
    }
    sync::write(&other, space, from, to)?;
    sync::pull(log, &other, space)
}
