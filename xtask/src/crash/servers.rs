//! Several servers on one database and one vault, each with its own key and many callers.
//!
//! The log must have one order, whichever server appends.

use super::binary::{Binary, Place};
use super::client::{Answer, Client, Server, Transport};
use super::verdict::{self, Attempt};
use super::{TOLD_MAX, backend};
use crate::bench::meter::{ms, percentile};
use crate::options::Options;
use anyhow::{Result, anyhow, ensure};
use kenning_core::Hash;
use kenning_testing_postgres::{Version, own};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The most retries of a call.
const TRIES_MAX: usize = 20;

/// When a caller has called enough.
#[derive(Clone, Copy)]
pub(crate) enum Enough {
    Calls(u64),
    Time(Duration),
}

/// What a caller does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Write,
    /// Reads notes that the same caller has written before.
    Read {
        n_notes: u64,
    },
}

/// What all callers together did.
#[derive(Default)]
pub(crate) struct Load {
    attempts: Vec<Attempt>,
    pub(crate) errors: Vec<String>,
    /// Calls that were made again, because they were told to.
    n_again: usize,
    pub(crate) latencies: Vec<Duration>,
    pub(crate) took: Duration,
}

impl Load {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }
}

/// Running servers on one store.
pub(crate) struct Servers(Vec<Server>);

impl Servers {
    /// Starts so many, each with a data directory of its own when the store is a database.
    pub(crate) fn start(binary: &Binary, place: &Place, n_servers: u64) -> Result<Self> {
        let start = |n: u64| {
            let place = match place.database() {
                Some(_) => place.with_data(&format!("data {n}")),
                None => place.clone(),
            };
            Server::start(binary, &place, Transport::Http)
        };
        Ok(Self((0..n_servers).map(start).collect::<Result<_>>()?))
    }

    /// Lets so many callers of each server call.
    pub(crate) fn load(&self, n_callers: u64, doing: Doing, enough: Enough) -> Result<Load> {
        let began = Instant::now();
        let all: Result<Vec<Load>> = std::thread::scope(|scope| {
            let callers = self.0.iter().enumerate().flat_map(|(server, running)| {
                (0..n_callers).map(move |caller| {
                    let mut client = running.client();
                    let folder = format!("server {server}/caller {caller}");
                    scope.spawn(move || {
                        let mut load = Load::default();
                        for n in 0.. {
                            let is_enough = match enough {
                                Enough::Calls(max) => n >= max,
                                Enough::Time(max) => began.elapsed() >= max,
                            };
                            if is_enough {
                                break;
                            }
                            load.call(&mut client, &folder, n, doing);
                        }
                        load
                    })
                })
            });
            let callers: Vec<_> = callers.collect();
            callers
                .into_iter()
                .map(|it| it.join().map_err(|_| anyhow!("a caller panicked")))
                .collect()
        });
        let mut sum = Load::default();
        for load in all? {
            sum.attempts.extend(load.attempts);
            sum.errors.extend(load.errors);
            sum.n_again += load.n_again;
            sum.latencies.extend(load.latencies);
        }
        sum.took = began.elapsed();
        Ok(sum)
    }

    pub(crate) fn stop(self) -> Result<()> {
        self.0.into_iter().try_for_each(Server::kill)
    }
}

impl Load {
    /// Calls, and calls again while the answer is `unavailable`, as an overloaded machine answers. The time
    /// includes all attempts.
    fn call(&mut self, client: &mut Client, folder: &str, n: u64, doing: Doing) {
        let before = Instant::now();
        for _ in 0..TRIES_MAX {
            let (path, answer) = Self::once(&mut self.attempts, client, folder, n, doing);
            match answer {
                Answer::Acknowledged => break,
                Answer::Refused(said) if said.starts_with("503:") => self.n_again += 1,
                answer => {
                    self.errors.push(format!("`{path}`: {answer:?}"));
                    break;
                }
            }
        }
        self.latencies.push(before.elapsed());
    }

    fn once(
        attempts: &mut Vec<Attempt>,
        client: &mut Client,
        folder: &str,
        n: u64,
        doing: Doing,
    ) -> (String, Answer) {
        match doing {
            Doing::Write => {
                let path = format!("{folder}/{n}.md");
                let text = format!("# Note {n} of {folder}\n\nIt was written beside others.\n");
                let answer = client.write_note(&path, &text);
                attempts.push(Attempt {
                    path: path.clone(),
                    content: Hash::of(text.as_bytes()),
                    sent: 0,
                    acknowledged: (answer == Answer::Acknowledged).then_some(u64::MAX),
                });
                (path, answer)
            }
            Doing::Read { n_notes } => {
                let path = format!("{folder}/{}.md", n % n_notes);
                let answer = client.read_note(&path);
                (path, answer)
            }
        }
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["servers", "callers", "writes", "binary"])?;
    let n_servers: u64 = options.value("servers", 3)?;
    let n_callers: u64 = options.value("callers", 64)?;
    let n_writes: u64 = options.value("writes", 20)?;
    let binary = Binary::find(options, false)?;
    let database = own(Version::V18);
    let url = database.database();
    let place = Place::fresh()?.with_database(&url);
    let servers = Servers::start(&binary, &place, n_servers)?;
    let mut load = servers.load(n_callers, Doing::Write, Enough::Calls(n_writes))?;
    servers.stop()?;
    backend::settle(&database, &url)?;
    let found = binary.look(&place)?;
    let verdict = verdict::judge(&BTreeMap::new(), &load.attempts, &found);
    let told = verdict.lost.iter().chain(&verdict.unsound);
    for sentence in told.chain(&load.errors).take(TOLD_MAX) {
        println!("{sentence}");
    }
    println!(
        "servers: {n_servers} x {n_callers} callers x {n_writes} writes, {} present, {} lost, \
         {} errors, {} called again, {} unsound, {} authors, p50 {:.1} ms, p99 {:.1} ms, slowest {:.1} ms, \
         {:.0} writes/s",
        found.nodes.len(),
        verdict.lost.len(),
        load.errors.len(),
        load.n_again,
        verdict.unsound.len(),
        found.authors.len(),
        ms(percentile(&mut load.latencies, 0.5)),
        ms(percentile(&mut load.latencies, 0.99)),
        ms(percentile(&mut load.latencies, 1.0)),
        load.per_second(),
    );
    let expected = n_servers * n_callers * n_writes;
    ensure!(load.errors.is_empty(), "a caller saw an error");
    ensure!(
        found.nodes.len() as u64 == expected,
        "{} nodes instead of {expected}",
        found.nodes.len()
    );
    ensure!(
        verdict.lost.is_empty() && verdict.unsound.is_empty(),
        "promises were broken"
    );
    // Whoever looks afterwards finishes what a killed server left, and joins the log's authors for it.
    ensure!(
        found.authors.len() as u64 >= n_servers,
        "the log is not of all servers"
    );
    Ok(())
}
