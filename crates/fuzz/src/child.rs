//! The process that tries inputs. It may crash on one, so it records which it is about to try.
//!
//! Its arguments are `NAME SEED FROM CASES SECONDS PROGRESS` to try many, or `NAME one FILE` for one. Before
//! each case its number is written to the file of the progress; what is found is a line on standard
//! output, and so is the end.

use crate::{Subject, Target};
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The exit code after one input that found something.
pub const FOUND: u8 = 101;
/// The most findings, for a target that always fails.
const FINDS_MAX: usize = 20;
/// Threads that serve calls have as much.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// What the last panic said, wherever it was.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

/// Runs as the arguments say; see the head of this file.
pub fn main(words: &[String]) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let why = info.payload_as_str().unwrap_or("no words");
        if let Ok(mut panicked) = PANICKED.lock() {
            panicked.get_or_insert_with(|| format!("panic at {}: {why}", in_repository(&at)));
        }
    }));
    let words = words.to_vec();
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || work(&words));
    let done = thread.map_err(|it| it.to_string());
    let done = done.and_then(|it| it.join().map_err(|_| "the thread died".to_owned()));
    match done.and_then(|it| it) {
        Ok(code) => code,
        Err(why) => {
            say(&json!({ "error": why }));
            ExitCode::FAILURE
        }
    }
}

/// A place in a file, as it is called in the repository.
fn in_repository(at: &str) -> &str {
    at.find("crates/").map_or(at, |it| &at[it..])
}

#[expect(clippy::print_stdout, reason = "its lines are what it is for")]
fn say(line: &serde_json::Value) {
    println!("{line}");
}

fn work(words: &[String]) -> Result<ExitCode, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [name, "one", file] => {
            let input = std::fs::read(file).map_err(|it| it.to_string())?;
            let target = Target::named(name).ok_or("no such target")?;
            let mut subject = Some((target.open)());
            Ok(match try_input(target, &mut subject, &input) {
                None => ExitCode::SUCCESS,
                Some(why) => {
                    say(&json!({ "why": why }));
                    ExitCode::from(FOUND)
                }
            })
        }
        [name, seed, from, cases, seconds, progress] => {
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("`{text}` is no number"))
            };
            let target = Target::named(name).ok_or("no such target")?;
            let progress = File::options().write(true).open(progress);
            many(
                target,
                number(seed)?,
                number(from)?..number(cases)?,
                Duration::from_secs(number(seconds)?),
                &progress.map_err(|it| it.to_string())?,
            )
        }
        _ => Err("these are not the words of a child".to_owned()),
    }
}

/// Tries one input; returns what was wrong, if anything.
fn try_input(
    target: &Target,
    subject: &mut Option<Box<dyn Subject>>,
    input: &[u8],
) -> Option<String> {
    let clear = || PANICKED.lock().ok().and_then(|mut it| it.take());
    clear();
    let made = catch_unwind(AssertUnwindSafe(|| {
        let subject = subject.get_or_insert_with(|| (target.open)());
        subject.check(input)
    }));
    let panicked = clear();
    match made {
        Err(_) => Some(panicked.unwrap_or_else(|| "panic".to_owned())),
        Ok(Err(why)) => Some(panicked.map_or(why.clone(), |it| format!("{why}; {it}"))),
        // A contained panic did no harm, but is a finding too.
        Ok(Ok(())) => panicked.filter(|_| !target.contains_panics),
    }
}

fn many(
    target: &Target,
    seed: u64,
    cases: std::ops::Range<u64>,
    time: Duration,
    progress: &File,
) -> Result<ExitCode, String> {
    let pool = target.pool()?;
    let began = Instant::now();
    let mut subject = Some((target.open)());
    let mut n_finds = 0;
    let mut slowest = (Duration::ZERO, 0);
    let mut n_cases = 0;
    for case in cases {
        if began.elapsed() >= time || n_finds >= FINDS_MAX {
            break;
        }
        if case % target.fresh_every == 0 {
            subject = None;
        }
        let input = target.input(&pool, seed, case);
        let written = progress.write_all_at(&(case + 1).to_le_bytes(), 0);
        written.map_err(|it| it.to_string())?;
        let at = Instant::now();
        let found = try_input(target, &mut subject, &input);
        let took = at.elapsed();
        n_cases += 1;
        if took > slowest.0 {
            slowest = (took, case);
        }
        if let Some(why) = found {
            say(&json!({ "case": case, "why": why }));
            n_finds += 1;
            subject = None;
        }
    }
    say(&json!({
        "cases": n_cases,
        "slowest_ms": u64::try_from(slowest.0.as_millis()).unwrap_or(u64::MAX),
        "slowest_case": slowest.1,
    }));
    Ok(ExitCode::SUCCESS)
}
