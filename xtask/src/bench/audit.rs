//! Questions to a long log: a rare kind, a rare author, a time, a page in the middle.

use super::fixture;
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_audit::Draft;
use kenning_core::{Kind, Space};
use kenning_store::{EventEffect, EventFilter, EventPage};
use serde_json::{Map, json};
use std::time::{Duration, Instant};

/// Events a transaction while the log is made.
const BATCH: u64 = 5_000;

/// How often each question is asked; the median counts.
const ROUNDS: usize = 51;

/// One event in so many is of the rare kind.
const RARE_EVERY: u64 = 100_000;

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
                let kind = match n % RARE_EVERY {
                    7 => "SyncStarted",
                    9 => {
                        let title = format!("note {n}");
                        tx.put_node(Draft {
                            kind: Kind::Memory,
                            project: String::new(),
                            key: title.clone(),
                            body: String::new(),
                            title,
                            props: Map::new(),
                        })?;
                        "Imported"
                    }
                    _ => "MemoryRecalledEvent",
                };
                tx.record(kind, json!({ "n": n }))?;
            }
            Ok(())
        })?;
    }
    let made = began.elapsed().as_secs_f64();
    println!("made {n_events} events in {made:.1} s");
    let middle = log.read(&space, |tx| tx.events_after(n_events / 2, 1))?;
    let middle = middle.first().map(|it| it.hlc);
    let kinds = |kind: &str| EventFilter {
        kinds: vec![kind.to_owned()],
        ..EventFilter::default()
    };
    let page = |skip| EventPage {
        skip,
        limit: 50,
        newest_first: false,
    };
    for (name, filter, page) in [
        ("a rare kind", kinds("SyncStarted"), page(0)),
        (
            "what created a node",
            EventFilter {
                effects: vec![EventEffect::CreatesNode],
                ..kinds("NodeCreated")
            },
            page(0),
        ),
        ("a kind that is not there", kinds("WorkflowFailed"), page(0)),
        ("a common kind", kinds("MemoryRecalledEvent"), page(0)),
        (
            "a page in the middle of a common kind",
            kinds("MemoryRecalledEvent"),
            page(n_events / 2),
        ),
        (
            "one moment",
            EventFilter {
                from: middle,
                to: middle,
                ..EventFilter::default()
            },
            page(0),
        ),
    ] {
        let mut times = Vec::new();
        let mut n_found = 0;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let found = log.read(&space, |tx| tx.find_events(&filter, page))?;
            times.push(began.elapsed());
            n_found = found.len();
        }
        let began = Instant::now();
        let total = log.read(&space, |tx| tx.count_events(&filter))?;
        let counted = began.elapsed();
        times.sort_unstable();
        println!(
            "{name}: {n_found} of {total} in {} (median), counted in {}",
            ms(times[ROUNDS / 2]),
            ms(counted)
        );
        if ["a rare kind", "what created a node"].contains(&name) {
            ensure!(total == n_events.div_ceil(RARE_EVERY), "events are missing");
        }
    }
    Ok(())
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}
