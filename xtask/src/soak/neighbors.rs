//! One caller asks for little, another for as much as it can: does the first one notice?
//!
//! Each has a token of its own on one server. The quiet one recalls, searches, queries the graph and writes short
//! notes, one call after the other. The loud one does all at once: it writes notes of megabytes, asks queries that
//! compute until they are stopped (at the limit of their steps or their time, or when it hangs up), searches for pages of text, has the graph made anew, fills its place in line with hundreds
//! of calls, and sends bodies that never end. Rounds with and without the loud one alternate, because the
//! machine has other things to do, and the medians of their p99 are compared.

use super::clients::{Http, Line};
use super::{load_average, serve};
use crate::bench::meter::{ms, percentile};
use crate::crash::binary::{Binary, Place};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_core::SeededRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much longer the slowest of a hundred calls may take beside the loud caller.
const RATIO_MAX: f64 = 3.0;
/// Connections of the quiet caller.
const QUIET: usize = 2;
/// Its pause between two calls.
const PAUSE: Duration = Duration::from_millis(5);
/// Connections of the loud one that call, and those that drip.
const LOUD: usize = 96;
const DRIPS: usize = 32;
/// When most of its queries are given up.
const HANGS_UP: Duration = Duration::from_millis(500);
/// A note of the loud one.
const LARGE_BYTES: usize = 1_500_000;
/// What belongs to one of its vectors.
const METADATA_BYTES: usize = 900_000;
/// What there is to search in.
const NOTES: usize = 300;
const MEMORIES: usize = 300;
/// Queries that have no end: each looks at billions of combinations, and makes one row.
const ENDLESS: [&str; 4] = [
    "RETURN reduce(s = 0, a IN range(1, 3000) | s + reduce(t = 0, b IN range(1, 3000) | t + \
     reduce(u = 0, c IN range(1, 3000) | u + c % 7))) AS x",
    "RETURN any(a IN range(1, 3000) WHERE any(b IN range(1, 3000) WHERE \
     any(c IN range(1, 3000) WHERE a + b + c < 0))) AS x",
    "MATCH (a), (b), (c) WHERE a.title < b.title AND b.title < c.title RETURN count(*) AS x",
    "MATCH (a)-[*1..30]-(b), (c)-[*1..30]-(d) RETURN count(*) AS x",
];

/// The durations of the quiet caller's calls, by tool.
type Took = BTreeMap<&'static str, Vec<Duration>>;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["rounds", "seconds", "binary", "seed"])?;
    let n_rounds: usize = options.value("rounds", 5)?;
    let time = Duration::from_secs(options.value("seconds", 8)?);
    let seed: u64 = options.value("seed", 1)?;
    ensure!(n_rounds > 0, "`--rounds 0` measures nothing");
    let binary = Binary::find(options, false)?;
    let place = Place::fresh()?;
    let (quiet, loud) = (binary.token(&place)?, binary.token(&place)?);
    let (server, owner) = serve(&binary, &place)?;
    let (quiet, loud) = (owner.with_token(&quiet), owner.with_token(&loud));
    fill(&owner)?;

    let mut p99: [Vec<Duration>; 2] = Default::default();
    let mut by_tool: [Took; 2] = Default::default();
    let (mut n_loud, mut n_stopped) = (0, 0);
    for round in 0..n_rounds {
        for (at, is_beside) in [false, true].into_iter().enumerate() {
            let noise = is_beside.then(|| Noise::start(&loud, seed + round as u64));
            let took = measure(&quiet, time, seed)?;
            let (answered, stopped) = noise.map_or((0, 0), Noise::stop);
            n_loud += answered;
            n_stopped += stopped;
            // What the loud one left in the indexes is taken in before the next round begins.
            settle(&quiet)?;
            let mut all: Vec<Duration> = took.values().flatten().copied().collect();
            p99[at].push(percentile(&mut all, 0.99));
            for (tool, took) in took {
                by_tool[at].entry(tool).or_default().extend(took);
            }
        }
    }
    server.stop()?;

    let n_quiet: usize = by_tool
        .iter()
        .flat_map(|it| it.values())
        .map(Vec::len)
        .sum();
    let [mut alone_by_tool, mut beside_by_tool] = by_tool;
    for (tool, alone) in &mut alone_by_tool {
        let beside = beside_by_tool
            .get_mut(tool)
            .context("a tool without calls")?;
        println!(
            "  {tool:<18} alone p50 {:>6.1} ms, p99 {:>6.1} ms ({} calls); beside p50 {:>6.1} ms, p99 {:>6.1} ms ({} calls)",
            ms(percentile(alone, 0.5)),
            ms(percentile(alone, 0.99)),
            alone.len(),
            ms(percentile(beside, 0.5)),
            ms(percentile(beside, 0.99)),
            beside.len(),
        );
    }
    let [alone, beside] = p99.map(|mut it| percentile(&mut it, 0.5));
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!(
        "neighbors: {n_rounds} rounds, {n_quiet} calls of the quiet one and {n_loud} of the loud one answered, {n_stopped} of its queries \
         stopped, \
         p99 {:.1} ms alone and {:.1} ms beside it ({ratio:.2} x), load average {}, seed {seed}",
        ms(alone),
        ms(beside),
        load_average(),
    );
    ensure!(n_loud > 0, "the loud one did nothing");
    ensure!(n_stopped > 0, "no query of the loud one had to be stopped");
    ensure!(
        ratio <= RATIO_MAX,
        "a neighbor makes calls {ratio:.2} times slower"
    );
    Ok(())
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
        let content = format!(
            "# Note {n}\n\nabout thing {} [[n{}]]\n",
            n % 9,
            (n + 1) % NOTES
        );
        let note = json!({ "path": format!("n{n}.md"), "content": content });
        good(&mut http, "vault_write_note", &note)?;
    }
    for n in 0..MEMORIES {
        let content = format!("The measure of thing {n} is {} meters.", n * 3);
        let memory = json!({ "content": content, "memory_type": "fact" });
        good(&mut http, "memory_store", &memory)?;
    }
    Ok(())
}

/// A few calls that are not counted.
fn settle(http: &Http) -> Result<()> {
    let mut http = http.clone();
    for _ in 0..5 {
        good(
            &mut http,
            "memory_recall",
            &json!({ "query": "measure of thing 1" }),
        )?;
        good(&mut http, "koi_search", &json!({ "query": "thing 1" }))?;
        good(
            &mut http,
            "code_query",
            &json!({ "cypher": "MATCH (n) RETURN count(n) AS n" }),
        )?;
    }
    Ok(())
}

/// The quiet caller for a while.
fn measure(http: &Http, time: Duration, seed: u64) -> Result<Took> {
    let all: Arc<Mutex<Took>> = Arc::default();
    let callers = (0..QUIET).map(|caller| {
        let (all, mut http) = (Arc::clone(&all), http.clone());
        std::thread::spawn(move || -> Result<()> {
            let random = SeededRandom::new(seed ^ caller as u64);
            let until = Instant::now() + time;
            for round in 0.. {
                if Instant::now() >= until {
                    break;
                }
                let n = random.below(100);
                let (tool, arguments) = match round % 4 {
                    0 => {
                        let query = format!("measure of thing {n}");
                        ("memory_recall", json!({ "query": query }))
                    }
                    1 => {
                        let content = format!("# Diary\n\nentry {n} of round {round}\n");
                        let path = format!("quiet/c{caller}-{n}.md");
                        (
                            "vault_write_note",
                            json!({ "path": path, "content": content }),
                        )
                    }
                    2 => {
                        let cypher =
                            "MATCH (a)-->(b) WHERE a.title = $title RETURN b.title LIMIT 5";
                        let parameters = json!({ "title": format!("Note {n}") });
                        (
                            "code_query",
                            json!({ "cypher": cypher, "parameters": parameters }),
                        )
                    }
                    _ => ("koi_search", json!({ "query": format!("thing {n}") })),
                };
                let began = Instant::now();
                good(&mut http, tool, &arguments)?;
                let took = began.elapsed();
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.entry(tool).or_default().push(took);
                drop(all);
                std::thread::sleep(PAUSE);
            }
            Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        let done = caller.join();
        done.map_err(|_| anyhow::anyhow!("the quiet caller died"))??;
    }
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *all))
}

/// The loud caller, as long as it is there.
struct Noise {
    stop: Arc<AtomicBool>,
    n_answered: Arc<AtomicU64>,
    /// Queries that were stopped: by a limit, or because the caller hung up.
    n_stopped: Arc<AtomicU64>,
    lines: Vec<Line>,
    callers: Vec<std::thread::JoinHandle<()>>,
}

impl Noise {
    fn start(http: &Http, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let n_answered = Arc::new(AtomicU64::new(0));
        let n_stopped = Arc::new(AtomicU64::new(0));
        let mut lines = Vec::new();
        let is_told = Arc::new(AtomicBool::new(false));
        let mut callers = Vec::new();
        for caller in 0..LOUD {
            let (stop, n_answered) = (Arc::clone(&stop), Arc::clone(&n_answered));
            let n_stopped = Arc::clone(&n_stopped);
            let is_told = Arc::clone(&is_told);
            let mut http = http.clone();
            if is_impatient(caller) {
                http = http.with_patience(HANGS_UP);
            }
            lines.push(http.line());
            callers.push(std::thread::spawn(move || {
                let random = SeededRandom::new(seed ^ ((caller as u64) << 16));
                while !stop.load(Ordering::Relaxed) {
                    let (tool, arguments) = demand(caller, &random);
                    let path = format!("/tools/{tool}");
                    // Whatever it is told: it goes on.
                    let is_query = tool == "code_query";
                    match http.exchange("POST", &path, &arguments.to_string()) {
                        Ok((status, body)) => {
                            n_answered.fetch_add(1, Ordering::Relaxed);
                            // A query that took all the steps or the time that it may.
                            let is_stopped = is_query && [413, 504].contains(&status);
                            n_stopped.fetch_add(u64::from(is_stopped), Ordering::Relaxed);
                            // Anything else is no work for the server, and would be a mistake of this test.
                            let is_work = is_stopped || [200, 429, 503, 504].contains(&status);
                            if !is_work && !is_told.swap(true, Ordering::Relaxed) {
                                println!("  the loud `{tool}`: {status} {body}");
                            }
                        }
                        Err(_) => {
                            n_stopped.fetch_add(u64::from(is_query), Ordering::Relaxed);
                            http.hang_up();
                        }
                    }
                }
            }));
        }
        for _ in 0..DRIPS {
            let (stop, http) = (Arc::clone(&stop), http.clone());
            callers.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // Cut off in the end, as it deserves; it comes back.
                    let _cut_off = drip(&http, &stop);
                }
            }));
        }
        Self {
            stop,
            n_answered,
            n_stopped,
            lines,
            callers,
        }
    }

    /// Ends it, and says how many of its calls were answered and how many of its queries stopped.
    fn stop(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        // It does not wait for what has no end.
        self.lines.iter().for_each(Line::cut);
        for caller in self.callers {
            // A caller that ended early has made enough load.
            drop(caller.join());
        }
        (
            self.n_answered.load(Ordering::Relaxed),
            self.n_stopped.load(Ordering::Relaxed),
        )
    }
}

/// Most queries are given up soon, so that others have their turn; some are never.
fn is_impatient(caller: usize) -> bool {
    caller > 6 && matches!(caller % 6, 1 | 2)
}

/// Something that takes long.
fn demand(caller: usize, random: &SeededRandom) -> (&'static str, Value) {
    let words = |n_bytes: usize| -> String {
        let word = |n: u64| format!("word{} of thing {} and more\n", n, n % 9);
        let mut text = String::new();
        while text.len() < n_bytes {
            text += &word(random.below(10_000));
        }
        text
    };
    match caller % 6 {
        0 => {
            let path = format!("loud/n{caller}.md");
            (
                "vault_write_note",
                json!({ "path": path, "content": words(LARGE_BYTES) }),
            )
        }
        1 | 2 => {
            let at = random.below(ENDLESS.len() as u64) as usize;
            ("code_query", json!({ "cypher": ENDLESS[at] }))
        }
        3 => ("koi_search", json!({ "query": words(8_000) })),
        4 => {
            let blob = words(METADATA_BYTES);
            let vector = [1.0, 0.5, 0.25, random.below(9) as f64];
            let id = format!("loud{caller}");
            (
                "kg_vector_upsert",
                json!({ "id": id, "vector": vector, "metadata": { "blob": blob } }),
            )
        }
        _ => ("kg_graph_generate", json!({ "docsPath": "." })),
    }
}

/// A body a byte at a time.
fn drip(http: &Http, stop: &AtomicBool) -> Result<()> {
    let mut stream: TcpStream = http.connect()?;
    stream.write_all(
        http.head("POST", "/tools/vault_write_note", 1_000_000)
            .as_bytes(),
    )?;
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(b" ")?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
