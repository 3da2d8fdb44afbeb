//! The database is lost for good, and its hot standby takes its place under load.
//!
//! The primary waits for the standby at every commit (`synchronous_standby_names`), so what was acknowledged is
//! on both. Callers write through the real program; at a random moment the primary is stopped as by a
//! power cut, the standby is promoted, and the address leads there. Callers must see nothing but done
//! or `unavailable`, and then be served again by the same process; everything that was acknowledged is
//! there; and what is found by the program that lived through it is what a new one finds.
//!
//! With `--sabotage` commits do not wait for the standby, which has stopped following: then writes
//! **must** be lost, or the test proves nothing.

use super::binary::{Binary, Place};
use super::calls::{Called, Maker, Sort};
use super::client::{Answer, Client, Server, Transport};
use super::proxy::{Proxy, address_of};
use super::{TOLD_MAX, backend, verdict};
use crate::options::Options;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kenning_core::SeededRandom;
use kenning_testing_postgres::{Server as Database, Version, own};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many write at once.
const CALLERS: u64 = 4;
/// How long after the promotion a call must have succeeded.
const BACK_MAX: Duration = Duration::from_secs(15);
/// How long a standby may take to follow.
const FOLLOW_MAX: Duration = Duration::from_secs(60);
/// The pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// Memories that are looked for afterwards.
const FOUND_AGAIN: usize = 12;

/// What callers did and were told.
#[derive(Default)]
struct Done {
    calls: Vec<Called>,
    /// Texts of memories that were acknowledged.
    memories: Vec<String>,
    n_unavailable: usize,
    wrong: Vec<String>,
}

#[derive(Default)]
struct Tally {
    n_acknowledged: usize,
    n_unavailable: usize,
    n_lost: usize,
    n_unsound: usize,
    slowest_return: Duration,
    told: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["rounds", "seed", "binary", "sabotage"])?;
    let n_rounds: u64 = options.value("rounds", 5)?;
    let sabotage = options.has("sabotage");
    let seed = super::seed(options)?;
    let binary = Binary::find(options, false)?;
    let mut tally = Tally::default();
    for round in 0..n_rounds {
        one_round(&binary, seed.wrapping_add(round), sabotage, &mut tally)?;
    }
    for sentence in tally.told.iter().take(TOLD_MAX) {
        println!("{sentence}");
    }
    println!(
        "failover: {n_rounds} promotions, {} failures ({} lost, {} unsound), {} acknowledged, {} \
         unavailable, served again after at most {:.2} s, seed {seed}",
        tally.n_lost + tally.n_unsound,
        tally.n_lost,
        tally.n_unsound,
        tally.n_acknowledged,
        tally.n_unavailable,
        tally.slowest_return.as_secs_f64(),
    );
    ensure!(
        tally.n_acknowledged > 0,
        "nothing was acknowledged, so nothing was tested"
    );
    if sabotage {
        ensure!(
            tally.n_lost > 0,
            "nothing was lost on a standby that did not follow: the test is blind"
        );
        println!("failover: it was seen that the standby did not follow");
        return Ok(());
    }
    ensure!(tally.n_lost + tally.n_unsound == 0, "promises were broken");
    Ok(())
}

fn one_round(binary: &Binary, seed: u64, sabotage: bool, tally: &mut Tally) -> Result<()> {
    let random = SeededRandom::new(seed);
    let primary = own(Version::V18);
    let url = primary.database();
    let standby = primary.standby();
    if !sabotage {
        wait_for_each_commit(&primary)?;
    }
    let there = standby.same_database(&url);
    let proxy = Proxy::start(address_of(&url)?)?;
    let place = Place::fresh()?.with_database(&proxy.url(&url)?);
    let server = Server::start(binary, &place, Transport::Http)?;
    let (moments, n_done, stop) = (AtomicU64::new(1), AtomicU64::new(0), AtomicBool::new(false));
    let mut done = Done::default();
    let mut back = Err(anyhow!("nobody was asked"));
    std::thread::scope(|scope| -> Result<()> {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let client = server.client();
                let name = format!("failover/{caller}");
                let maker = Maker::new(name, seed ^ (caller + 1), &place, true);
                let (moments, n_done, stop) = (&moments, &n_done, &stop);
                scope.spawn(move || call(client, maker, moments, n_done, stop))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(800 + random.below(1_500)));
        if sabotage {
            // It follows no longer, and nobody waits for it.
            let url = standby.url();
            standby.sql(&url, "ALTER SYSTEM SET primary_conninfo = ''");
            standby.sql(&url, "SELECT pg_reload_conf()");
            std::thread::sleep(Duration::from_millis(1_000));
        }
        back = promote(&primary, &standby, &there, &proxy, &n_done);
        // Long enough that more than the first call after it is seen.
        std::thread::sleep(Duration::from_millis(1_000));
        stop.store(true, Ordering::SeqCst);
        for caller in callers {
            let one = caller.join().map_err(|_| anyhow!("a caller panicked"))?;
            done.calls.extend(one.calls);
            done.memories.extend(one.memories);
            done.n_unavailable += one.n_unavailable;
            done.wrong.extend(one.wrong);
        }
        Ok(())
    })?;
    match back {
        Ok(took) => tally.slowest_return = tally.slowest_return.max(took),
        Err(error) => done.wrong.push(format!("{error:#}")),
    }
    done.wrong.extend(compare(
        binary,
        &place,
        &mut server.client(),
        &done.memories,
    ));
    server.kill()?;
    drop(proxy);
    backend::settle(&standby, &there)?;
    let found = binary.look(&place.with_database(&there))?;
    let mut verdict = verdict::judge_all(&BTreeMap::new(), &done.calls, &found);
    verdict.unsound.extend(done.wrong);
    let n_acknowledged = done.calls.iter().filter(|it| it.acknowledged.is_some());
    tally.n_acknowledged += n_acknowledged.count();
    tally.n_unavailable += done.n_unavailable;
    tally.n_lost += verdict.lost.len();
    tally.n_unsound += verdict.unsound.len();
    tally.told.extend(verdict.lost);
    tally.told.extend(verdict.unsound);
    Ok(())
}

/// No commit is acknowledged from now on that the standby does not have.
fn wait_for_each_commit(primary: &Database) -> Result<()> {
    let url = primary.url();
    primary.sql(&url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.sql(&url, "SELECT pg_reload_conf()");
    let ask = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    let began = Instant::now();
    while primary.sql(&url, ask) != "1" {
        if began.elapsed() > FOLLOW_MAX {
            bail!("the standby does not follow");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Stops the primary and promotes the standby. Returns how long it took until a call succeeded.
fn promote(
    primary: &Database,
    standby: &Database,
    there: &str,
    proxy: &Proxy,
    n_done: &AtomicU64,
) -> Result<Duration> {
    ensure!(
        n_done.load(Ordering::SeqCst) > 0,
        "nobody was served before the primary was lost"
    );
    primary.stop_immediate();
    standby
        .try_sql(&standby.url(), "SELECT pg_promote(true, 60)")
        .map_err(|error| anyhow!(error))
        .context("the standby was not promoted")?;
    proxy.lead_to(address_of(there)?);
    let (before, began) = (n_done.load(Ordering::SeqCst), Instant::now());
    while n_done.load(Ordering::SeqCst) == before {
        if began.elapsed() > BACK_MAX {
            bail!("nobody was served for {BACK_MAX:?} after the promotion");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(began.elapsed())
}

/// One caller, who writes until it is enough.
fn call(
    mut client: Client,
    mut maker: Maker,
    moments: &AtomicU64,
    n_done: &AtomicU64,
    stop: &AtomicBool,
) -> Done {
    let mut done = Done::default();
    while !stop.load(Ordering::SeqCst) {
        let mut write = maker.any();
        let sent = moments.fetch_add(1, Ordering::SeqCst);
        let (answer, value) = client.write(&write);
        let is_done = answer == Answer::Acknowledged;
        let acknowledged = is_done.then(|| moments.fetch_add(1, Ordering::SeqCst));
        if is_done {
            n_done.fetch_add(1, Ordering::SeqCst);
            maker.learn(&mut write, &value);
            if write.sort == Sort::Memory {
                let text = write.arguments["content"].as_str();
                done.memories.extend(text.map(str::to_owned));
            }
        }
        done.calls.push(write.called(sent, acknowledged));
        match answer {
            Answer::Acknowledged => continue,
            Answer::Refused(said) if said.starts_with("503:") || write.must_wait(&said) => {
                done.n_unavailable += 1;
            }
            Answer::Refused(said) => done.wrong.push(format!("{:?}: {said}", write.sort)),
            Answer::Gone => done.wrong.push(format!("{:?}: no answer", write.sort)),
        }
        std::thread::sleep(PAUSE);
    }
    done
}

/// What the program that lived through it does not find, and a new one does or does not.
fn compare(
    binary: &Binary,
    place: &Place,
    client: &mut Client,
    memories: &[String],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let step = (memories.len() / FOUND_AGAIN).max(1);
    for text in memories.iter().rev().step_by(step) {
        let arguments = json!({ "query": text, "limit": 5 });
        let (_, old) = client.read("memory_recall", &arguments);
        let new = binary.call(place, "memory_recall", &arguments);
        let new = new.map(|it| it.to_string()).unwrap_or_default();
        for (who, said) in [("the old process", old.to_string()), ("a new one", new)] {
            if !said.contains(text.as_str()) {
                wrong.push(format!("{who} does not find `{text}`"));
            }
        }
    }
    let last = memories.last().map_or("saw", String::as_str);
    for (tool, arguments) in [
        (
            "koi_search",
            json!({ "query": "Somebody wrote this", "limit": 20 }),
        ),
        ("koi_search", json!({ "query": last, "limit": 20 })),
        (
            "kg_vector_search",
            json!({ "vector": [1, 1, 1, 1, 1, 1, 1, 1], "namespace": "crash", "k": 50, "query": "" }),
        ),
        (
            "kg_vector_search",
            json!({ "vector": [1, 0.1, 1, 0.1, 1, 0.1, 1, 0.1], "namespace": "crash", "k": 50, "query": "" }),
        ),
        (
            "code_query",
            json!({ "cypher": "MATCH (n) RETURN labels(n) AS l, count(*) AS n ORDER BY l" }),
        ),
        (
            "code_query",
            json!({ "cypher": "MATCH (a)-[r]->(b) RETURN type(r) AS t, count(*) AS n ORDER BY t" }),
        ),
        (
            "code_query",
            json!({ "cypher": "MATCH (n) WHERE n.title IS NOT NULL RETURN n.title AS t ORDER BY t" }),
        ),
    ] {
        wrong.extend(differs(binary, place, client, tool, &arguments));
    }
    wrong
}

/// How the answers of the two processes differ. The index of the old one may be made anew in the background, so
/// it has some time.
fn differs(
    binary: &Binary,
    place: &Place,
    client: &mut Client,
    tool: &str,
    arguments: &Value,
) -> Option<String> {
    let began = Instant::now();
    loop {
        let (answer, old) = client.read(tool, arguments);
        let new = binary.call(place, tool, arguments);
        let told = match new {
            Ok(new) if answer == Answer::Acknowledged => {
                let (old, new) = (without_times(&old), without_times(&new));
                if old == new {
                    // There is always something in the graph; whether there are pages and vectors depends on
                    // what was acknowledged.
                    let is_blind = tool == "code_query" && is_empty(&new);
                    return is_blind.then(|| format!("`{tool}` {arguments}: finds nothing"));
                }
                format!("the old process {old}, a new one {new}")
            }
            Ok(_) => format!("the old process {answer:?}"),
            Err(error) => format!("a new process {error:#}"),
        };
        if began.elapsed() > BACK_MAX {
            return Some(format!("`{tool}` {arguments}: {told}"));
        }
    }
}

/// Whether an answer has no list with anything in it.
fn is_empty(answer: &Value) -> bool {
    match answer {
        Value::Array(all) => all.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => true,
    }
}

/// An answer without how long it took, and from where.
fn without_times(answer: &Value) -> Value {
    match answer {
        Value::Array(all) => all.iter().map(without_times).collect(),
        Value::Object(members) => {
            let is_time = |name: &str| {
                let name = name.to_ascii_lowercase();
                ["took", "elapsed", "_ms", "time", "duration", "cached"]
                    .iter()
                    .any(|it| name.contains(it))
            };
            let kept = members.iter().filter(|it| !is_time(it.0));
            let kept = kept.map(|(name, value)| (name.clone(), without_times(value)));
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}
