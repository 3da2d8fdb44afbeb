//! PostgreSQL beside SQLite, in one run: writes and reads a second for one, two and three servers, and
//! what a row costs on disk.
//!
//! First without a server: logs over stores in this process, so that only the store is measured. Then
//! with real `kenning serve` processes and notes that are files too. SQLite is measured in both ways for
//! comparison.

use super::fixture;
use super::meter::{ms, percentile};
use super::writes::write;
use crate::crash::binary::{Binary, Place};
use crate::crash::servers::{Doing, Enough, Load, Servers};
use crate::options::Options;
use anyhow::{Context as _, Result, anyhow, ensure};
use kenning_audit::{Draft, Log, Verify};
use kenning_core::{Kind, SeededRandom, Space};
use kenning_store::{Store, Vector, When};
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::{Server, Version, own};
use serde_json::{Map, json};
use std::time::{Duration, Instant};

const SERVERS_MAX: usize = 3;
const CALLERS: usize = 64;
/// Of a vector of the most common small model.
const DIMENSIONS: usize = 256;
/// Rows a transaction while the tables are filled.
const BATCH: u64 = 200;
/// Notes that each caller has to read.
const NOTES_A_CALLER: u64 = 4;

/// What callers did.
struct Measured {
    latencies: Vec<Duration>,
    took: Duration,
}

impl Measured {
    fn print(mut self, name: &str) {
        println!(
            "{name:<44} {:>8.0} {:>9.3} {:>9.3}",
            self.latencies.len() as f64 / self.took.as_secs_f64(),
            ms(percentile(&mut self.latencies, 0.5)),
            ms(percentile(&mut self.latencies, 0.99)),
        );
    }
}

impl From<Load> for Measured {
    fn from(load: Load) -> Self {
        Self {
            latencies: load.latencies,
            took: load.took,
        }
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["seconds", "rows", "binary"])?;
    let time = Duration::from_secs_f64(options.value("seconds", 3.0)?);
    let n_rows: u64 = options.value("rows", 20_000)?;
    let binary = Binary::find(options, false)?;
    let server = own(Version::V18);
    println!(
        "PostgreSQL {}, its defaults but 64 MB of shared buffers, fsync on, on this machine",
        server.version()
    );
    println!(
        "{:<44} {:>8} {:>9} {:>9}",
        "without a server", "calls/s", "median ms", "p99 ms"
    );
    for callers in [1, CALLERS] {
        let directory = fixture::directory()?;
        let logs = [fixture::open(directory.path())?];
        both("SQLite", &logs, callers, time)?;
    }
    for (n_servers, callers) in [(1, 1), (1, CALLERS), (2, CALLERS), (SERVERS_MAX, CALLERS)] {
        let url = server.database();
        let open = |_| Ok(fixture::over(Store::new(Postgres::open(&url, None)?)));
        let logs: Vec<Log> = (0..n_servers).map(open).collect::<Result<_>>()?;
        both("PostgreSQL", &logs, callers, time)?;
    }
    println!("\nnotes over HTTP, files and all");
    served("SQLite", &binary, &Place::fresh()?, 1, time)?;
    for n_servers in 1..=SERVERS_MAX {
        let place = Place::fresh()?.with_database(&server.database());
        served("PostgreSQL", &binary, &place, n_servers as u64, time)?;
    }
    sizes(&server, n_rows)
}

fn named(store: &str, n_servers: usize, callers: usize, what: &str) -> String {
    let servers = if n_servers == 1 { "server" } else { "servers" };
    let each = if callers == 1 { "caller" } else { "callers" };
    format!("{store}, {n_servers} {servers} x {callers} {each}, {what}")
}

/// Writes, then reads of what was written, then the check that it is all there.
fn both(store: &str, logs: &[Log], callers: usize, time: Duration) -> Result<()> {
    let name = |what| named(store, logs.len(), callers, what);
    let place = |server: usize, caller: usize| server * callers + caller;
    let wrote = each(logs, callers, time, |log, server, caller, n| {
        write(log, place(server, caller), n)
    })?;
    let n_events = wrote.latencies.len() as u64;
    wrote.print(&name("writes"));
    each(logs, callers, time, |log, _, caller, n| {
        // Everybody has written a first one.
        let other = SeededRandom::new((caller * 1_000_003 + n) as u64);
        let other = other.below((logs.len() * callers) as u64);
        let key = format!("bench:{other}/0");
        let node = log.read(&Space::default(), |tx| {
            tx.node_by_key("", Kind::Document, &key, When::Now)
        })?;
        node.map(drop).context("a node is missing")
    })?
    .print(&name("reads"));
    let report = logs[0].read(&Space::default(), |tx| {
        kenning_audit::verify(tx, &Verify::of(&Space::default()), &|_| ())
    })?;
    ensure!(
        report.is_clean(),
        "the log is not sound: {:?}",
        report.faults
    );
    // Each log but the first says in an event of its own that it joins.
    let n_joined = logs.len() as u64 - 1;
    ensure!(report.n_events == n_events + n_joined, "events are missing");
    Ok(())
}

/// So many callers of each log, each waiting for its answer before it asks again.
fn each(
    logs: &[Log],
    callers: usize,
    time: Duration,
    call: impl Fn(&Log, usize, usize, usize) -> Result<()> + Sync,
) -> Result<Measured> {
    let (began, call) = (Instant::now(), &call);
    let done: Result<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
        let threads = logs.iter().enumerate().flat_map(|(server, log)| {
            (0..callers).map(move |caller| {
                scope.spawn(move || {
                    let mut latencies = Vec::new();
                    while latencies.is_empty() || began.elapsed() < time {
                        let before = Instant::now();
                        call(log, server, caller, latencies.len())?;
                        latencies.push(before.elapsed());
                    }
                    Ok(latencies)
                })
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|it| it.map_err(|_| anyhow!("a caller panicked"))?)
            .collect()
    });
    Ok(Measured {
        latencies: done?.concat(),
        took: began.elapsed(),
    })
}

/// Notes over HTTP: written, then read.
fn served(
    store: &str,
    binary: &Binary,
    place: &Place,
    n_servers: u64,
    time: Duration,
) -> Result<()> {
    let servers = Servers::start(binary, place, n_servers)?;
    let load = |doing, enough| -> Result<Load> {
        let load = servers.load(CALLERS as u64, doing, enough)?;
        ensure!(
            load.errors.is_empty(),
            "{} errors: {}",
            load.errors.len(),
            load.errors[0]
        );
        Ok(load)
    };
    // The notes that are read later are there before time is taken.
    load(Doing::Write, Enough::Calls(NOTES_A_CALLER))?;
    let wrote = load(Doing::Write, Enough::Time(time))?;
    let n_notes = NOTES_A_CALLER;
    let read = load(Doing::Read { n_notes }, Enough::Time(time))?;
    let n_servers = usize::try_from(n_servers)?;
    Measured::from(wrote).print(&named(store, n_servers, CALLERS, "writes"));
    Measured::from(read).print(&named(store, n_servers, CALLERS, "reads"));
    servers.stop()
}

/// What a node, an event and a vector take on disk, with their indexes.
fn sizes(server: &Server, n_rows: u64) -> Result<()> {
    let url = server.database();
    let log = fixture::over(Store::new(Postgres::open(&url, None)?));
    let began = Instant::now();
    for start in (0..n_rows).step_by(usize::try_from(BATCH)?) {
        let end = n_rows.min(start + BATCH);
        log.write(&Space::default(), move |tx| {
            for n in start..end {
                let body = fixture::words(n, super::writes::BODY_BYTES);
                let (key, title) = (format!("bench:{n}"), format!("note {n}"));
                let passages = kenning_search::passages(&title, &body);
                let path = key.clone();
                let node = tx.put_node(Draft {
                    kind: Kind::Document,
                    project: String::new(),
                    key,
                    title,
                    body,
                    props: Map::new(),
                })?;
                tx.put_passages(node.id, &passages)?;
                tx.record("NoteWritten", json!({ "path": path }))?;
                tx.put_vector(Vector {
                    collection: "bench".to_owned(),
                    id: format!("{n}"),
                    model: "bench-256".to_owned(),
                    numbers: numbers(n),
                    props: Map::new(),
                    seq: 0,
                })?;
            }
            Ok(())
        })?;
    }
    println!(
        "\non disk, {n_rows} nodes of {} bytes with an event and a vector of {DIMENSIONS} each \
         (made in {:.1} s)",
        super::writes::BODY_BYTES,
        began.elapsed().as_secs_f64()
    );
    println!(
        "{:<16} {:>9} {:>12} {:>11} {:>12}",
        "table", "rows", "bytes", "bytes/row", "of indexes"
    );
    let mut total = 0;
    for table in ["nodes", "passages", "events", "tiles", "vectors"] {
        server.sql(&url, &format!("VACUUM (FULL, ANALYZE) {table}"));
        let ask = format!(
            "SELECT (SELECT count(*) FROM {table}), pg_total_relation_size('{table}'),
                    pg_indexes_size('{table}')"
        );
        let answer = server.sql(&url, &ask);
        let figures = answer.split('|').map(str::parse::<u64>);
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        let [rows, bytes, indexes] = figures.as_slice() else {
            return Err(anyhow!("three figures were asked for, not {answer}"));
        };
        total += bytes;
        println!(
            "{table:<16} {rows:>9} {bytes:>12} {:>11.0} {:>12.0}",
            *bytes as f64 / *rows as f64,
            *indexes as f64 / *rows as f64,
        );
    }
    let each = total as f64 / n_rows as f64;
    println!(
        "a node with its passages, event and vector: {each:.0} bytes; a billion: {:.1} TB",
        each * 1e9 / 1e12
    );
    Ok(())
}

/// Numbers that no compression makes smaller, the same for the same seed.
fn numbers(seed: u64) -> Vec<f32> {
    let random = SeededRandom::new(seed);
    let number = |_| (random.below(2_000_001) as f32 - 1e6) / 1e6;
    (0..DIMENSIONS).map(number).collect()
}
