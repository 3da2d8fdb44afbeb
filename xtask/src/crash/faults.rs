//! The database goes away, in every way that a database does, while the program serves.
//!
//! Callers write and read over HTTP, every other one with a token, which the program has to look up
//! first. A fault is: all backends killed, the server stopped as by a power
//! cut and started again, all sockets reset, no listener for a while, and a network that drops
//! everything for longer than any call waits. Each call must be answered in time, as done or as
//! `unavailable`; what was acknowledged must be there in the end, and nothing may be half-done.

use super::backend;
use super::binary::{Binary, Place};
use super::client::{Answer, Client, Server, Transport};
use super::proxy::{Proxy, Weather, address_of};
use super::verdict::{self, Attempt};
use super::writers::{self, WRITERS};
use crate::options::Options;
use anyhow::{Result, anyhow, ensure};
use kenning_core::{Hash, SeededRandom};
use kenning_testing_postgres::{Version, own};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is promised, and what a busy machine may add.
const CALL_MAX: Duration = Duration::from_millis(5_300);
/// How long after its return the database must have been found again.
const BACK_MAX: Duration = Duration::from_secs(5);
/// The pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// Callers that only read.
const READERS: u64 = 2;
/// A note that is written once, before the first fault.
const STEADY: &str = "steady.md";

/// What can happen to a database.
#[derive(Clone, Copy, Debug)]
enum Fault {
    BackendsKilled,
    ServerStopped,
    SocketsReset,
    Refused,
    Swallowed(Weather),
}

impl Fault {
    /// Every kind in turn, so that few faults are of all kinds too.
    fn nth(n: u64, random: &SeededRandom) -> Self {
        match n % 5 {
            0 => Self::BackendsKilled,
            1 => Self::ServerStopped,
            2 => Self::SocketsReset,
            3 => Self::Refused,
            _ if random.below(2) == 0 => Self::Swallowed(Weather::Mute),
            _ => Self::Swallowed(Weather::Hole),
        }
    }
}

/// What callers did and were told.
#[derive(Default)]
struct Done {
    attempts: Vec<Attempt>,
    n_unavailable: usize,
    /// Answers that are neither.
    wrong: Vec<String>,
    slowest: Duration,
    /// Of those who show a token.
    slowest_with_token: Duration,
    n_slow: usize,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.attempts.extend(other.attempts);
        self.n_unavailable += other.n_unavailable;
        self.wrong.extend(other.wrong);
        self.slowest = self.slowest.max(other.slowest);
        self.slowest_with_token = self.slowest_with_token.max(other.slowest_with_token);
        self.n_slow += other.n_slow;
    }

    /// All of it was done with a token, or without.
    fn of(mut self, has_token: bool) -> Self {
        if has_token {
            self.slowest_with_token = self.slowest;
        }
        self
    }

    /// Makes one call and keeps what is to be known of it.
    fn timed(&mut self, call: impl FnOnce() -> Answer) -> bool {
        let before = Instant::now();
        let answer = call();
        let took = before.elapsed();
        self.slowest = self.slowest.max(took);
        self.n_slow += usize::from(took > CALL_MAX);
        if took > CALL_MAX {
            println!("after {:.2} s: {answer:?}", took.as_secs_f64());
        }
        match answer {
            Answer::Acknowledged => return true,
            Answer::Refused(said) if said.starts_with("503:") => {
                self.n_unavailable += 1;
                std::thread::sleep(PAUSE);
            }
            Answer::Refused(said) => {
                self.wrong.push(said);
                std::thread::sleep(PAUSE);
            }
            Answer::Gone => {
                self.wrong.push("no answer at all".to_owned());
                std::thread::sleep(PAUSE);
            }
        }
        false
    }

    /// Writes a note, again and again while it is refused and there is time.
    fn write(
        &mut self,
        client: &mut Client,
        (path, text): &(String, String),
        moments: &AtomicU64,
        go_on: impl Fn() -> bool,
    ) -> bool {
        loop {
            let sent = moments.fetch_add(1, Ordering::SeqCst);
            let is_done = self.timed(|| client.write_note(path, text));
            self.attempts.push(Attempt {
                path: path.clone(),
                content: Hash::of(text.as_bytes()),
                sent,
                acknowledged: is_done.then(|| moments.fetch_add(1, Ordering::SeqCst)),
            });
            if is_done || !go_on() {
                return is_done;
            }
        }
    }
}

/// Stops the callers.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["faults", "seed", "binary"])?;
    let n_faults: u64 = options.value("faults", 50)?;
    let seed = super::seed(options)?;
    let binary = Binary::find(options, false)?;
    let database = own(Version::V18);
    let url = database.database();
    let proxy = Proxy::start(address_of(&url)?)?;
    let place = Place::fresh()?.with_database(&url);
    let server = Server::start(
        &binary,
        &place.with_database(&proxy.url(&url)?),
        Transport::Http,
    )?;
    let token = binary.token(&place)?;
    let caller = |n: u64| {
        let client = server.client();
        match n % 2 {
            0 => client,
            _ => client.with_token(&token),
        }
    };
    let (moments, stop) = (AtomicU64::new(1), AtomicBool::new(false));
    let random = SeededRandom::new(seed);
    let mut slowest_return = Duration::ZERO;
    let mut done = Done::default();
    let steady = (STEADY.to_owned(), "# Steady\n".to_owned());
    let mut prober = caller(1);
    ensure!(
        done.write(&mut prober, &steady, &moments, || false),
        "the first write was refused"
    );

    let go_on = || !stop.load(Ordering::SeqCst);
    let (go_on, moments) = (&go_on, &moments);
    std::thread::scope(|scope| -> Result<()> {
        // The callers also stop when something here panics: a scope waits for them.
        let stopping = Stop(&stop);
        let writers = (0..WRITERS).map(|writer| {
            let (mut client, random) = (caller(writer), SeededRandom::new(seed ^ (writer + 1)));
            let has_token = writer % 2 == 1;
            scope.spawn(move || {
                let mut done = Done::default();
                for n in 0.. {
                    let note = writers::note(&format!("{writer}"), n, &random);
                    done.write(&mut client, &note, moments, go_on);
                    if !go_on() {
                        break;
                    }
                }
                done.of(has_token)
            })
        });
        let mut callers: Vec<_> = writers.collect();
        callers.extend((0..READERS).map(|reader| {
            let mut client = caller(reader);
            scope.spawn(move || {
                let mut done = Done::default();
                while go_on() {
                    done.timed(|| client.read_note(STEADY));
                    std::thread::sleep(Duration::from_millis(5));
                }
                done.of(reader % 2 == 1)
            })
        }));
        for n in 0..n_faults {
            std::thread::sleep(Duration::from_millis(50 + random.below(400)));
            let fault = Fault::nth(n, &random);
            inject(fault, &database, &url, &proxy, &random);
            // The database is there again. Calls must soon succeed.
            let back = Instant::now();
            let note = (format!("probe/{n}.md"), format!("# After fault {n}\n"));
            let found = done.write(&mut prober, &note, moments, || back.elapsed() < BACK_MAX);
            slowest_return = slowest_return.max(back.elapsed());
            if !found {
                println!("fault {n} ({fault:?}): nobody was served for {BACK_MAX:?} after it");
            }
        }
        drop(stopping);
        for caller in callers {
            done.add(caller.join().map_err(|_| anyhow!("a caller panicked"))?);
        }
        Ok(())
    })?;
    server.kill()?;
    drop(proxy);
    backend::settle(&database, &url)?;
    report(&binary, &place, done, slowest_return, n_faults, seed)
}

/// Lets it happen, and returns when the database is there again.
fn inject(
    fault: Fault,
    database: &kenning_testing_postgres::Server,
    url: &str,
    proxy: &Proxy,
    random: &SeededRandom,
) {
    match fault {
        Fault::BackendsKilled => drop(database.kill_backends(url)),
        Fault::ServerStopped => {
            database.stop_immediate();
            std::thread::sleep(Duration::from_millis(random.below(800)));
            database.start_again();
        }
        Fault::SocketsReset => proxy.cut(),
        Fault::Refused => {
            proxy.set(Weather::Refusing);
            proxy.cut();
            std::thread::sleep(Duration::from_millis(300 + random.below(1_500)));
            proxy.set(Weather::Fair);
        }
        Fault::Swallowed(weather) => {
            proxy.set(weather);
            std::thread::sleep(Duration::from_millis(6_000 + random.below(2_000)));
            proxy.set(Weather::Fair);
        }
    }
}

fn report(
    binary: &Binary,
    place: &Place,
    done: Done,
    slowest_return: Duration,
    n_faults: u64,
    seed: u64,
) -> Result<()> {
    let found = binary.look(place)?;
    let mut verdict = verdict::judge(&BTreeMap::new(), &done.attempts, &found);
    verdict.unsound.extend(done.wrong);
    let told = verdict.lost.iter().chain(&verdict.unsound);
    for sentence in told.take(super::TOLD_MAX) {
        println!("{sentence}");
    }
    let acknowledged = done.attempts.iter().filter(|it| it.acknowledged.is_some());
    let n_acknowledged = acknowledged.count();
    println!(
        "faults: {n_faults} faults, {n_acknowledged} acknowledged, {} unavailable, {} lost, \
         {} unsound, slowest call {:.2} s, with a token {:.2} s ({} too slow), back after at most {:.2} s, seed {seed}",
        done.n_unavailable,
        verdict.lost.len(),
        verdict.unsound.len(),
        done.slowest.as_secs_f64(),
        done.slowest_with_token.as_secs_f64(),
        done.n_slow,
        slowest_return.as_secs_f64(),
    );
    ensure!(
        verdict.lost.is_empty() && verdict.unsound.is_empty(),
        "promises were broken"
    );
    ensure!(done.slowest <= CALL_MAX, "a call was answered too late");
    ensure!(
        slowest_return <= BACK_MAX,
        "the database was found again too late"
    );
    Ok(())
}
