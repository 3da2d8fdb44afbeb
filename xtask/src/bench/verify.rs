//! The check of a large log: every id hashed again, every signature checked, every row compared.

use super::fixture;
use super::meter::{cpu, memory_peak_mib};
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_audit::{Draft, Verify};
use kenning_core::{Kind, Space};
use serde_json::{Map, json};
use std::time::Instant;

/// Events a transaction while the log is made.
const BATCH: u64 = 5_000;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["events"])?;
    let n_events: u64 = options.value("events", 1_000_000)?;
    let directory = fixture::directory()?;
    let log = fixture::open(directory.path())?;
    let space = Space::default();
    let began = Instant::now();
    for start in (0..n_events).step_by(usize::try_from(BATCH)?) {
        let end = n_events.min(start + BATCH);
        log.write(&space, move |tx| {
            for n in start..end {
                let title = format!("note {n}");
                tx.put_node(Draft {
                    kind: Kind::Memory,
                    project: String::new(),
                    key: title.clone(),
                    body: fixture::words(n, 100),
                    title,
                    props: Map::new(),
                })?;
                tx.record("MemoryStoredEvent", json!({ "n": n }))?;
            }
            Ok(())
        })?;
    }
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
    println!(
        "verify: {n_events} events in {:.1} s, {:.0} events/s, {:.1} s of processor, \
         peak {} MiB",
        took.as_secs_f64(),
        n_events as f64 / took.as_secs_f64(),
        cpu.as_secs_f64(),
        memory_peak_mib()?,
    );
    Ok(())
}
