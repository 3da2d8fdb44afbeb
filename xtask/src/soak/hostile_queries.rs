//! One caller asks queries that want too much, another asks small ones: does the second one notice?
//!
//! Each has a token of its own on one server. The hostile one goes through all of `testing::hostile`, on a few
//! connections, over and over. The other asks `code_query` for little. Rounds with and without the hostile one
//! alternate, because the machine has other things to do, and the medians of their p99 are compared. Every answer
//! to a hostile query must keep the budgets of rows and memory, and show nothing of the store below.

use super::clients::Http;
use super::{load_average, serve};
use crate::bench::meter::{ms, percentile};
use crate::crash::binary::{Binary, Place};
use crate::options::Options;
use anyhow::{Context as _, Result, bail, ensure};
use kenning_engine::query::ROWS_MAX;
use kenning_testing::hostile::{Hostile, hostile_queries};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much longer the slowest of a hundred calls may take beside the hostile caller.
const RATIO_MAX: f64 = 3.0;
/// Connections of the hostile caller.
const HOSTILE: usize = 2;
/// The pause of the other one between two calls.
const PAUSE: Duration = Duration::from_millis(5);
/// What the server may hold at most, resident: two queries with all that each may have, their answers, and itself.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// What there is to ask about.
const NOTES: usize = 300;
/// What no answer says.
const BELOW: &[&str] = &[
    "sqlite",
    "sqlstate",
    "syntax error at or near",
    "panicked",
    "rusqlite",
];

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["rounds", "seconds", "binary"])?;
    let n_rounds: usize = options.value("rounds", 5)?;
    let time = Duration::from_secs(options.value("seconds", 12)?);
    ensure!(n_rounds > 0, "`--rounds 0` measures nothing");
    let binary = Binary::find(options, false)?;
    let place = Place::fresh()?;
    let (quiet, loud) = (binary.token(&place)?, binary.token(&place)?);
    let (server, owner) = serve(&binary, &place)?;
    let (quiet, loud) = (owner.with_token(&quiet), owner.with_token(&loud));
    fill(&owner)?;

    let mut p99: [Vec<Duration>; 2] = Default::default();
    let mut n_quiet = 0;
    // A round goes on where the last one ended, so that all are asked.
    let noise = Arc::new(Noise {
        queries: hostile_queries(),
        next: AtomicUsize::new(0),
        ends: AtomicBool::new(false),
        faults: Mutex::default(),
    });
    for _ in 0..n_rounds {
        for (at, is_beside) in [false, true].into_iter().enumerate() {
            noise.ends.store(false, Ordering::Relaxed);
            let callers = if is_beside { HOSTILE } else { 0 };
            let callers: Vec<_> = (0..callers)
                .map(|_| {
                    let (noise, mut http) = (Arc::clone(&noise), loud.clone());
                    std::thread::spawn(move || noise.ask(&mut http))
                })
                .collect();
            let mut took = measure(&quiet, time)?;
            noise.ends.store(true, Ordering::Relaxed);
            for caller in callers {
                ensure!(caller.join().is_ok(), "a caller died");
            }
            n_quiet += took.len();
            p99[at].push(percentile(&mut took, 0.99));
        }
    }
    let peak = memory_peak_bytes(server.id())?;
    server.stop()?;

    let faults = noise.faults.lock().unwrap_or_else(PoisonError::into_inner);
    faults
        .iter()
        .take(10)
        .for_each(|it| println!("wrong: {it}"));
    let n_asked = noise.next.load(Ordering::Relaxed);
    let [alone, beside] = p99.map(|mut it| percentile(&mut it, 0.5));
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!(
        "hostile queries: {n_asked} asked of {} kinds, {} wrong answers, {n_quiet} small queries beside them, p99 {:.1} ms \
         alone and {:.1} ms beside ({ratio:.2} x), most memory {} MiB, load average {}",
        noise.queries.len(),
        faults.len(),
        ms(alone),
        ms(beside),
        peak >> 20,
        load_average(),
    );
    ensure!(
        n_asked >= noise.queries.len(),
        "only {n_asked} of {} were asked: give more `--rounds` or `--seconds`",
        noise.queries.len()
    );
    ensure!(faults.is_empty(), "{} wrong answers", faults.len());
    ensure!(
        peak <= MEMORY_BYTES_MAX,
        "the server held {} MiB",
        peak >> 20
    );
    ensure!(
        ratio <= RATIO_MAX,
        "hostile queries make small ones {ratio:.2} times slower"
    );
    Ok(())
}

struct Noise {
    queries: Vec<Hostile>,
    /// The next of them, and how many were asked.
    next: AtomicUsize,
    ends: AtomicBool,
    faults: Mutex<Vec<String>>,
}

impl Noise {
    fn ask(&self, http: &mut Http) {
        while !self.ends.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(query) = self.queries.get(at % self.queries.len().max(1)) else {
                return;
            };
            let asked = json!({ "cypher": query.cypher, "parameters": query.parameters });
            let answered = http.ask("POST", "/tools/code_query", &asked.to_string());
            let judged = answered.map_err(|why| format!("{why:#}"));
            let judged = judged.and_then(|(status, body)| judge(status, &body));
            if let Err(why) = judged {
                http.hang_up();
                let start: String = query.cypher.chars().take(80).collect();
                let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
                faults.push(format!("{start}: {why}"));
            }
        }
    }
}

/// What is wrong with an answer.
fn judge(status: u16, body: &str) -> Result<(), String> {
    let lower = body.to_lowercase();
    if status == 200 {
        let answer: Value = serde_json::from_str(body).map_err(|it| it.to_string())?;
        let n_rows = answer["count"].as_u64().unwrap_or(0);
        return match n_rows <= ROWS_MAX {
            true => Ok(()),
            false => Err(format!("{n_rows} rows")),
        };
    }
    // The query is wrong, too large, too long or too late, or it is not its turn.
    if ![400, 413, 422, 429, 504].contains(&status) {
        return Err(format!("{status}: {body}"));
    }
    match BELOW.iter().find(|it| lower.contains(**it)) {
        Some(word) => Err(format!("the answer says `{word}`: {body}")),
        None => Ok(()),
    }
}

fn good(http: &mut Http, tool: &str, arguments: &Value) -> Result<()> {
    let path = format!("/tools/{tool}");
    let (status, body) = http.ask("POST", &path, &arguments.to_string())?;
    ensure!(status == 200, "`{tool}` was answered with {status}: {body}");
    Ok(())
}

fn fill(http: &Http) -> Result<()> {
    let mut http = http.clone();
    for n in 0..NOTES {
        let next = (n + 1) % NOTES;
        let content = format!(
            "# Note {n}\n\nabout thing {} #tag{} [[n{next}]]\n",
            n % 9,
            n % 5
        );
        let note = json!({ "path": format!("n{n}.md"), "content": content });
        good(&mut http, "vault_write_note", &note)?;
    }
    Ok(())
}

/// How long small queries take, one after the other.
fn measure(http: &Http, time: Duration) -> Result<Vec<Duration>> {
    let mut http = http.clone();
    let queries = [
        "MATCH (d:Document {title: 'Note 7'})-[:LINK]->(e) RETURN e.title",
        "MATCH (t:Tag)<-[:HAS_TAG]-(d) RETURN t.name, count(d) ORDER BY t.name",
        "MATCH (d:Document) RETURN d.title ORDER BY d.title LIMIT 5",
    ];
    let mut took = Vec::new();
    let began = Instant::now();
    for query in queries.iter().cycle() {
        if began.elapsed() >= time {
            break;
        }
        let at = Instant::now();
        good(&mut http, "code_query", &json!({ "cypher": query }))?;
        took.push(at.elapsed());
        std::thread::sleep(PAUSE);
    }
    if took.is_empty() {
        bail!("no small query was answered");
    }
    Ok(took)
}

fn memory_peak_bytes(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("/proc has no VmHWM")? * 1_024)
}
