//! Kills the real program while it writes, and looks at what is left.
//!
//! Each round starts the program on a data directory and a vault, lets several callers write notes,
//! memories, items, vectors, documents and backups, kills it at a random moment, opens the store again
//! and judges. What is killed is the program that
//! people run, over the transport that agents use. `--sabotage` runs the same against a build that
//! acknowledges before it commits: then writes **must** be lost, or the test proves nothing.
//!
//! With `--backend postgres` the store is a database of a private server, which is not killed; [`faults`]
//! does the reverse, and [`servers`] lets several programs write to one database.
//!
//! Reading order: [`verdict`] (what is promised), [`writers`] (who writes), this loop.

mod backend;
pub(crate) mod binary;
mod calls;
mod client;
mod damage;
mod disk;
mod failover;
mod faults;
mod power;
mod processes;
mod proxy;
pub(crate) mod servers;
mod verdict;
mod workflows;
mod writers;

use crate::options::Options;
use anyhow::{Result, bail, ensure};
use backend::Backend;
use binary::{Binary, Place};
use client::{Server, Transport};
use kenning_core::{Hash, SeededRandom};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// About how many rounds use the same directory.
const ROUNDS_A_PLACE: u64 = 20;
/// How many broken promises are printed in full.
const TOLD_MAX: usize = 20;

pub(crate) fn run(options: &Options) -> Result<()> {
    match options.words.as_slice() {
        [] => kill(options),
        [word] if word == "processes" => processes::run(options),
        [word] if word == "faults" => faults::run(options),
        [word] if word == "servers" => servers::run(options),
        [word] if word == "power" => power::run(options),
        [word] if word == "disk" => disk::run(options),
        [word] if word == "damage" => damage::run(options),
        [word] if word == "failover" => failover::run(options),
        [word] if word == "workflows" => workflows::run(options),
        words => bail!(
            "`crash` knows `processes`, `faults`, `servers`, `power`, `disk`, `damage`, `failover` and \
             `workflows`, not `{}`",
            words.join(" ")
        ),
    }
}

/// What earlier rounds left in a place.
#[derive(Default)]
struct Past {
    /// Notes of the vault.
    files: BTreeMap<String, Hash>,
    /// Everything that was written.
    calls: Vec<calls::Called>,
}

/// The results of all rounds.
#[derive(Default)]
struct Tally {
    n_acknowledged: usize,
    n_lost: usize,
    n_unsound: usize,
    n_told: usize,
}

impl Tally {
    fn tell(&mut self, round: u64, what: &str, sentences: &[String]) {
        for sentence in sentences {
            if self.n_told < TOLD_MAX {
                println!("round {round}: {what}: {sentence}");
            }
            self.n_told += 1;
        }
    }
}

fn kill(options: &Options) -> Result<()> {
    options.only(&[
        "kills",
        "seed",
        "transport",
        "binary",
        "sabotage",
        "backend",
    ])?;
    let kills: u64 = options.value("kills", 200)?;
    let seed = seed(options)?;
    let transports: &[Transport] = match options.text("transport").unwrap_or("both") {
        "stdio" => &[Transport::Stdio],
        "http" => &[Transport::Http],
        "both" => &[Transport::Stdio, Transport::Http],
        other => bail!("`--transport {other}`: stdio, http or both"),
    };
    let sabotage = options.has("sabotage");
    let stage = Stage {
        binary: Binary::find(options, sabotage)?,
        backend: Backend::find(options)?,
        random: SeededRandom::new(seed),
    };
    let mut tally = Tally::default();
    let mut place = stage.backend.place()?;
    let mut past = Past::default();
    for round in 0..kills {
        if stage.random.below(ROUNDS_A_PLACE) == 0 {
            (place, past) = (stage.backend.place()?, Past::default());
        }
        let transport = transports[usize::try_from(round)? % transports.len()];
        let broken = stage.one_round(&place, transport, round, &mut past, &mut tally)?;
        if broken {
            let broken = std::mem::replace(&mut place, stage.backend.place()?);
            past = Past::default();
            if !sabotage {
                println!(
                    "round {round}: the store is left in {}",
                    broken.keep().display()
                );
            }
        }
    }
    println!(
        "crash: {kills} kills, {} acknowledged, {} lost, {} unsound, seed {seed}",
        tally.n_acknowledged, tally.n_lost, tally.n_unsound
    );
    ensure!(
        tally.n_acknowledged > 0,
        "nothing was acknowledged, so nothing was tested"
    );
    if sabotage {
        ensure!(
            tally.n_lost > 0,
            "the sabotaged build lost nothing: the test is blind"
        );
        println!("crash: the sabotage was seen");
        return Ok(());
    }
    ensure!(tally.n_lost + tally.n_unsound == 0, "promises were broken");
    Ok(())
}

/// The one that was asked for, else that of this moment.
fn seed(options: &Options) -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    options.value("seed", since.as_secs())
}

/// What stays the same in all rounds.
struct Stage {
    binary: Binary,
    backend: Backend,
    random: SeededRandom,
}

impl Stage {
    /// One life and death. Says whether a promise was broken.
    fn one_round(
        &self,
        place: &Place,
        transport: Transport,
        round: u64,
        past: &mut Past,
        tally: &mut Tally,
    ) -> Result<bool> {
        let Self {
            binary,
            backend,
            random,
        } = self;
        let server = Server::start(binary, place, transport)?;
        let writers = writers::start(&server, place, transport, round, random.next());
        std::thread::sleep(Duration::from_micros(
            random.below(backend.kill_within_us()),
        ));
        server.kill()?;
        let done = writers.join()?;
        if random.below(5) == 0 {
            // Once more, while it may be finishing what the first death left.
            let mut child = binary
                .command(place)
                .arg("doctor")
                .stdout(std::process::Stdio::null())
                .spawn()?;
            std::thread::sleep(Duration::from_micros(random.below(20_000)));
            child.kill()?;
            child.wait()?;
        }
        backend.settle(place)?;
        let found = binary.look(place)?;
        let mut verdict = verdict::judge_all(&past.files, &done.calls, &found);
        verdict.lost.extend(found.traces.lost(&past.calls));
        verdict.unsound.extend(done.refusals);
        let acknowledged = done.calls.iter().filter(|it| it.acknowledged.is_some());
        tally.n_acknowledged += acknowledged.count();
        tally.n_lost += verdict.lost.len();
        tally.n_unsound += verdict.unsound.len();
        tally.tell(round, "lost", &verdict.lost);
        tally.tell(round, "unsound", &verdict.unsound);
        past.files = found.files;
        past.calls.extend(done.calls);
        Ok(!(verdict.lost.is_empty() && verdict.unsound.is_empty()))
    }
}
