//! Questions to a long log: a rare kind, a rare author, a time, a page in the middle; asked of the store, and with
//! `kg_audit_query`.

use super::fixture;
use super::meter::cpu;
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_audit::Draft;
use kenning_core::{Kind, Space};
use kenning_engine::{Caller, Principal};
use kenning_store::{EventEffect, EventFilter, EventPage};
use kenning_tools::Selection;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

/// Events a transaction while the log is made.
const BATCH: u64 = 5_000;

/// How often each question is asked; the median counts.
const ROUNDS: usize = 51;

/// Rounds in which processor time is counted, which the kernel tells in hundredths of a second.
const CPU_ROUNDS: u32 = 400;

/// A rare kind is to be found with at most so much processor time.
const RARE_MAX: Duration = Duration::from_millis(5);

/// One event in so many is of the rare kind.
const RARE_EVERY: u64 = 100_000;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["events"])?;
    let n_events: u64 = options.value("events", 1_000_000)?;
    let directory = fixture::directory()?;
    let opened = kenning_testing::open(directory.path(), None, Selection::default());
    let log = opened.kernel.log();
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
            ensure!(total == n_rare(n_events), "events are missing");
            let used = processor(|| {
                log.read(&space, |tx| tx.find_events(&filter, page))?;
                Ok(())
            })?;
            println!(
                "{name}: {} of processor time (at most {})",
                ms(used),
                ms(RARE_MAX)
            );
            ensure!(used <= RARE_MAX, "finding {name} costs too much");
        }
    }
    // As an agent asks, with the count of all and the payloads.
    let caller = Caller::new(Principal::owner(space));
    for kind in ["SyncStarted", "NodeCreated"] {
        let input = json!({ "eventType": kind, "includePayload": true, "limit": 50 });
        let ask = || {
            let reply = opened.board.call("kg_audit_query", input.clone(), &caller);
            let reply = reply.context("no tool `kg_audit_query`")?;
            let answer = reply.to_json();
            ensure!(!reply.is_error(), "{answer}");
            Ok(answer)
        };
        let total = ask()?["data"]["totalCount"].as_u64();
        ensure!(
            total == Some(n_rare(n_events)),
            "events are missing: {total:?}"
        );
        let began = Instant::now();
        let used = processor(|| ask().map(drop))?;
        println!(
            "audit: {n_events} events, `kg_audit_query` for {kind} in {} ({} of processor time, at most {})",
            ms(began.elapsed() / CPU_ROUNDS),
            ms(used),
            ms(RARE_MAX)
        );
        ensure!(
            used <= RARE_MAX,
            "`kg_audit_query` for {kind} costs too much"
        );
    }
    Ok(())
}

/// How many events of a rare kind there are.
fn n_rare(n_events: u64) -> u64 {
    n_events.saturating_sub(7).div_ceil(RARE_EVERY)
}

/// Processor time of one round.
fn processor(mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let before = cpu()?;
    for _ in 0..CPU_ROUNDS {
        work()?;
    }
    Ok((cpu()? - before) / CPU_ROUNDS)
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}
