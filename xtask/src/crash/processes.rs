//! Several processes on one data directory, each writing as fast as it can.
//!
//! Every MCP client starts its own process, so this is the normal case: no call may fail because the
//! store is locked, nothing may be lost, and the chain of events must stay one.

use super::binary::{Binary, Place};
use super::client::{Answer, Server, Transport};
use super::verdict::{self, Attempt};
use crate::bench::meter::{ms, percentile};
use crate::options::Options;
use anyhow::{Result, anyhow, ensure};
use kenning_core::Hash;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest wait, except for one call in a hundred.
const P99_MAX: Duration = Duration::from_secs(1);

/// What one process answered.
#[derive(Default)]
struct Done {
    attempts: Vec<Attempt>,
    errors: Vec<String>,
    latencies: Vec<Duration>,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["processes", "writes", "binary"])?;
    let n_processes: u64 = options.value("processes", 4)?;
    let n_writes: u64 = options.value("writes", 5_000)?;
    let binary = Binary::find(options, false)?;
    let place = Place::fresh()?;
    let began = Instant::now();
    let (binary, place) = (&binary, &place);
    let all: Result<Vec<Done>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_processes)
            .map(|process| scope.spawn(move || one_process(binary, place, process, n_writes)))
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|it| it.map_err(|_| anyhow!("a caller panicked"))?)
            .collect()
    });
    let took = began.elapsed();
    let mut sum = Done::default();
    for done in all? {
        sum.attempts.extend(done.attempts);
        sum.errors.extend(done.errors);
        sum.latencies.extend(done.latencies);
    }
    let found = binary.look(place)?;
    let verdict = verdict::judge(&BTreeMap::new(), &sum.attempts, &found);
    for sentence in verdict
        .lost
        .iter()
        .chain(&verdict.unsound)
        .chain(&sum.errors)
        .take(20)
    {
        println!("{sentence}");
    }
    let p99 = percentile(&mut sum.latencies, 0.99);
    println!(
        "processes: {n_processes} x {n_writes} writes, {} lost, {} errors, {} unsound, \
         p50 {:.1} ms, p99 {:.1} ms, {:.0} writes/s",
        verdict.lost.len(),
        sum.errors.len(),
        verdict.unsound.len(),
        ms(percentile(&mut sum.latencies, 0.5)),
        ms(p99),
        sum.latencies.len() as f64 / took.as_secs_f64(),
    );
    let expected = usize::try_from(n_processes * n_writes)?;
    ensure!(
        found.nodes.len() == expected,
        "{} nodes instead of {expected}",
        found.nodes.len()
    );
    ensure!(
        verdict.lost.is_empty() && verdict.unsound.is_empty(),
        "promises were broken"
    );
    ensure!(sum.errors.is_empty(), "a caller saw an error");
    ensure!(p99 < P99_MAX, "p99 is {:.0} ms", ms(p99));
    Ok(())
}

fn one_process(binary: &Binary, place: &Place, process: u64, n_writes: u64) -> Result<Done> {
    let server = Server::start(binary, place, Transport::Stdio)?;
    let mut client = server.client();
    let mut done = Done::default();
    for n in 0..n_writes {
        let path = format!("process {process}/{n}.md");
        let content = format!("# Note {n} of process {process}\n\nIt was written beside others.\n");
        let before = Instant::now();
        let answer = client.write_note(&path, &content);
        done.latencies.push(before.elapsed());
        done.attempts.push(Attempt {
            path,
            content: Hash::of(content.as_bytes()),
            sent: 0,
            acknowledged: (answer == Answer::Acknowledged).then_some(u64::MAX),
        });
        if answer != Answer::Acknowledged {
            done.errors
                .push(format!("process {process}, note {n}: {answer:?}"));
        }
    }
    server.stop()?;
    Ok(done)
}
