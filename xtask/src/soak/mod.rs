//! Hours of a working day in minutes: does anything grow that should not?
//!
//! `soak` starts the program that people run, once as an HTTP server and once over stdio on the same data
//! directory, lets clients call both in a mix of reading and writing, and samples what the processes hold:
//! memory, descriptors, threads, files, the write-ahead log, rows. What is written is written over and over
//! to the same notes, memories and vectors, so after a while nothing may grow but the history, and that by
//! the same amount a call. [`judge`] decides. `soak overload` asks for more than can be done ([`overload`]);
//! `soak neighbors` lets one caller ask for much while another asks for little ([`neighbors`]), and
//! `soak hostile-queries` lets it ask queries that want too much ([`hostile_queries`]).

mod clients;
mod hostile_queries;
mod judge;
mod neighbors;
mod overload;
mod samples;

use crate::crash::binary::{Binary, Place};
use crate::options::Options;
use anyhow::{Result, bail, ensure};
use clients::{Http, Pipe, Turn};
use kenning_core::SeededRandom;
use samples::Sample;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often is looked.
const LOOK: Duration = Duration::from_secs(2);
/// How often a caller calls: as fast as it can would fill the disk with history.
const PACE: Duration = Duration::from_millis(25);
/// How many wrong answers are printed.
const TOLD_MAX: usize = 10;

pub(crate) fn run(options: &Options) -> Result<()> {
    match options.words.as_slice() {
        [] => soak(options),
        [word] if word == "overload" => overload::run(options),
        [word] if word == "neighbors" => neighbors::run(options),
        [word] if word == "hostile-queries" => hostile_queries::run(options),
        words => bail!(
            "`soak` knows `overload`, `neighbors` and `hostile-queries`, not `{}`",
            words.join(" ")
        ),
    }
}

/// The program, started.
struct Started {
    child: Child,
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Started {
    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop and waits until it has.
    fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill").arg(self.id().to_string()).status()?;
        ensure!(
            asked.success(),
            "the program was gone before it was stopped"
        );
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the program ended with {status}");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the program did not stop when it was asked to")
    }
}

/// A command of the program without the environment of this process.
fn command(binary: &Binary, place: &Place) -> Result<Command> {
    let home = place.data().with_file_name("home");
    std::fs::create_dir_all(home.join("project"))?;
    let mut command = binary.command(place);
    command
        .arg("--project")
        .arg(home.join("project"))
        .env("HOME", &home);
    Ok(command)
}

/// Starts the HTTP server: the process, its address, and its owner's token.
fn serve(binary: &Binary, place: &Place) -> Result<(Started, Http)> {
    let mut command = command(binary, place)?;
    let (child, host) = Binary::serve(&mut command, |it| {
        it.args(["--rate-limit", "100000000"]).spawn()
    })?;
    let started = Started { child };
    let token = std::fs::read_to_string(place.data().join("http.token")).ok();
    let http = Http::new(&host, token.as_deref().map(str::trim));
    Ok((started, http))
}

fn mcp(binary: &Binary, place: &Place) -> Result<(Started, Pipe)> {
    let mut command = command(binary, place)?;
    let (child, input, output) = Binary::mcp(&mut command, Command::spawn)?;
    let started = Started { child };
    let pipe = Pipe::new(input, output)?;
    Ok((started, pipe))
}

/// How many threads of the machine wanted to run in the last minute, for the summary lines.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = text.split(' ').next().filter(|it| !it.is_empty());
    minute.unwrap_or("unknown").to_owned()
}

/// What the callers have done so far.
#[derive(Default)]
struct Count {
    calls: AtomicU64,
    wrong: AtomicU64,
    stop: AtomicBool,
}

impl Count {
    fn note(&self, answered: Result<(), String>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = answered {
            let n = self.wrong.fetch_add(1, Ordering::Relaxed);
            if (n as usize) < TOLD_MAX && !self.stop.load(Ordering::Relaxed) {
                println!("a wrong answer: {why}");
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// What a soak prints first. Lines that begin with `soak:` are its figures.
pub(crate) fn opening(minutes: f64, seed: u64) -> String {
    format!("soaking for {minutes} minutes, seed {seed}")
}

fn soak(options: &Options) -> Result<()> {
    options.only(&["minutes", "binary", "seed"])?;
    let minutes: f64 = options.value("minutes", 30.0)?;
    let seed: u64 = options.value("seed", 1)?;
    ensure!(
        minutes >= 1.0,
        "`--minutes {minutes}` is too short to see anything"
    );
    let time = Duration::from_secs_f64(minutes * 60.0);
    let binary = Binary::find(options, false)?;
    let place = Place::fresh()?;
    let (server, http) = serve(&binary, &place)?;
    let (stdio, pipe) = mcp(&binary, &place)?;
    let pipe = Arc::new(pipe);
    let count = Arc::new(Count::default());
    println!("{}", opening(minutes, seed));
    let mut first = http.clone();
    for turn in Turn::everything() {
        first.call(&turn).map_err(anyhow::Error::msg)?;
    }
    for turn in Turn::larger() {
        pipe.call(&turn).map_err(anyhow::Error::msg)?;
    }

    let mut callers = Vec::new();
    for caller in 0..6_u64 {
        let (count, pipe, http) = (Arc::clone(&count), Arc::clone(&pipe), http.clone());
        callers.push(std::thread::spawn(move || {
            let random = SeededRandom::new(seed ^ (caller << 32));
            let mut http = http;
            let mut n = 0_u64;
            while count.goes_on() {
                let began = Instant::now();
                let turn = Turn::chosen(&random);
                count.note(match caller {
                    0 | 1 => pipe.call(&turn),
                    2 => http.call_mcp(&turn),
                    _ => http.call(&turn),
                });
                n += 1;
                if n.is_multiple_of(200) {
                    // Clients come and go.
                    http.hang_up();
                }
                std::thread::sleep(PACE.saturating_sub(began.elapsed()));
            }
        }));
    }
    {
        // A watcher that loads the page, scrapes the figures, follows the log and leaves again.
        let (count, mut http) = (Arc::clone(&count), http.clone());
        callers.push(std::thread::spawn(move || {
            let pages = [
                "/healthz",
                "/metrics",
                "/tools",
                "/openapi.json",
                "/nowhere",
            ];
            for page in pages.iter().cycle() {
                if !count.goes_on() {
                    break;
                }
                count.note(http.get(page));
                count.note(http.follow(Duration::from_millis(500)));
            }
        }));
    }
    {
        // Commands of a person and hooks of a client are processes of their own on the same data.
        let (count, binary, place) = (Arc::clone(&count), &binary, place.clone());
        let mut commands = Vec::new();
        for _ in 0..2 {
            commands.push(command(binary, &place)?);
        }
        callers.push(std::thread::spawn(move || {
            let words = [["kg", "kg_stats"], ["omi", "now_read"]];
            for n in (0..2).cycle() {
                if !count.goes_on() {
                    break;
                }
                let command: &mut Command = &mut commands[n];
                command.env_remove("LD_PRELOAD").stdin(Stdio::null());
                if command.get_args().all(|it| it != "--json") {
                    command.args(words[n]).arg("--json");
                }
                let done = command.output();
                let is_good = done.as_ref().is_ok_and(|it| it.status.success());
                count.note(if is_good {
                    Ok(())
                } else {
                    Err(format!("a command: {done:?}"))
                });
                for _ in 0..50 {
                    if count.goes_on() {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        }));
    }

    let began = Instant::now();
    let mut taken: Vec<Sample> = Vec::new();
    let mut is_whole = true;
    while began.elapsed() < time {
        std::thread::sleep(LOOK.min(time.saturating_sub(began.elapsed())));
        let calls = count.calls.load(Ordering::Relaxed);
        match Sample::take(&[server.id(), stdio.id()], &place, calls) {
            Ok(sample) => taken.push(sample),
            Err(why) => {
                println!("a process is gone: {why:#}");
                is_whole = false;
                break;
            }
        }
    }
    count.stop.store(true, Ordering::Relaxed);
    for caller in callers {
        ensure!(caller.join().is_ok(), "a caller died");
    }
    let faults = if is_whole {
        judge::faults(&taken)
    } else {
        Vec::new()
    };
    drop(pipe);
    drop(stdio);
    if is_whole {
        server.stop()?;
    }
    let verified = binary.json(&place, &["audit", "verify"])?;
    let is_sound = verified["faults"].as_array().is_some_and(Vec::is_empty);

    for line in judge::lines(&taken) {
        println!("{line}");
    }
    faults.iter().for_each(|it| println!("grows: {it}"));
    let (calls, wrong) = (
        count.calls.load(Ordering::Relaxed),
        count.wrong.load(Ordering::Relaxed),
    );
    println!(
        "soak: {calls} calls in {minutes} minutes, {wrong} wrong answers, {} gauges grew, {}, seed {seed}",
        faults.len(),
        judge::summary(&taken)
    );
    ensure!(is_whole, "a process ended");
    ensure!(wrong == 0, "{wrong} wrong answers");
    ensure!(is_sound, "the log does not verify: {verified}");
    ensure!(faults.is_empty(), "{} gauges grew", faults.len());
    Ok(())
}
