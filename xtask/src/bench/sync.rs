//! An exchange with an empty peer, and catching up, beside a bare copy of the same rows.
//!
//! Both nodes are on SQLite in one process: what is measured is the exchange itself, its messages packed
//! and unpacked, and no network.

use super::fixture;
use crate::options::Options;
use anyhow::{Result, ensure};
use kenning_audit::{Draft, Log, archive};
use kenning_core::{Kind, Space};
use kenning_peers::{
    Peer, Policy, Request, Response, Rules, Session, answer, pack, peer_id, unpack,
};
use kenning_search::passages;
use serde_json::{Map, json};
use std::time::{Duration, Instant};

/// Events a transaction while the log is made.
const BATCH: u64 = 1_000;

/// Events that the peer misses when it catches up.
const NEWS: u64 = 10;

/// An exchange is to be at least so fast as a part of a bare copy.
const RATIO_MIN: f64 = 0.3;

/// Catching up is to cost at most so much.
const CATCH_UP_MAX: Duration = Duration::from_millis(50);
const CATCH_UP_BYTES_MAX: usize = 20_000;

const RULES: Rules = Rules {
    passages_of: |node| passages(&node.title, &node.body),
    is_shared: |_| true,
};

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["events", "catch-up-of"])?;
    let n_events: u64 = options.value("events", 100_000)?;
    let n_known: u64 = options
        .value("catch-up-of", 1_000_000)?
        .max(n_events + NEWS)
        - NEWS;
    let space = Space::default();
    let (one, other) = (fixture::directory()?, fixture::directory()?);
    let (here, there) = (fixture::open(one.path())?, fixture::open(other.path())?);
    for (a, b) in [(&here, &there), (&there, &here)] {
        let did = b.signer().did().clone();
        a.write(&space, move |tx| {
            tx.add_author(&did);
            tx.record("PeerAdded", json!({})).map(drop)
        })?;
    }
    write(&here, &space, 0, n_events)?;
    let (took, n_bytes) = exchange(&there, &here, &space)?;
    let per_second = n_events as f64 / took.as_secs_f64();
    println!(
        "sync: {n_events} events to an empty peer in {:.1} s, {per_second:.0} events/s, {} bytes an event",
        took.as_secs_f64(),
        n_bytes as u64 / n_events
    );
    let copied = copy(&here, &space)?;
    let ratio = copied.as_secs_f64() / took.as_secs_f64();
    println!(
        "sync: bare copy of the same rows in {:.1} s; the exchange has {ratio:.2} of its speed (at least {RATIO_MIN})",
        copied.as_secs_f64()
    );
    // What both have before the peer misses something.
    write(&here, &space, n_events, n_known)?;
    exchange(&there, &here, &space)?;
    write(&here, &space, n_known, n_known + NEWS)?;
    let (took, n_bytes) = exchange(&there, &here, &space)?;
    println!(
        "sync: catching up on {NEWS} of {}: {:.1} ms, {n_bytes} bytes (at most {} ms and {CATCH_UP_BYTES_MAX})",
        n_known + NEWS,
        took.as_secs_f64() * 1_000.0,
        CATCH_UP_MAX.as_millis()
    );
    ensure!(
        here.roots(&space)?.state_root == there.roots(&space)?.state_root,
        "the nodes hold different rows"
    );
    ensure!(ratio >= RATIO_MIN, "the exchange is too slow");
    ensure!(
        took <= CATCH_UP_MAX && n_bytes <= CATCH_UP_BYTES_MAX,
        "catching up costs too much"
    );
    Ok(())
}

pub(super) fn write(log: &Log, space: &Space, from: u64, to: u64) -> Result<()> {
    for start in (from..to).step_by(usize::try_from(BATCH)?) {
        let end = to.min(start + BATCH);
        log.write_long(space, move |tx| {
            for n in start..end {
                let title = format!("note {n}");
                let node = tx.put_node(Draft {
                    kind: Kind::Memory,
                    project: String::new(),
                    key: title.clone(),
                    body: fixture::words(n, 100),
                    title,
                    props: Map::new(),
                })?;
                tx.put_passages(node.id, &passages(&node.title, &node.body))?;
                tx.record("MemoryStoredEvent", json!({ "n": n }))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn peer(of: &Log) -> Peer {
    let did = of.signer().did().clone();
    Peer {
        id: peer_id("", &did),
        did,
        endpoint: String::new(),
        policy: Policy::default(),
        added_ms: 0,
        cut_off: None,
    }
}

/// One whole exchange; how long it took, and how many bytes all messages had.
fn exchange(caller: &Log, called: &Log, space: &Space) -> Result<(Duration, usize)> {
    exchange_as(caller, called, &peer(called), space)
}

fn exchange_as(
    caller: &Log,
    called: &Log,
    known: &Peer,
    space: &Space,
) -> Result<(Duration, usize)> {
    let asker = peer(caller);
    let began = Instant::now();
    let mut n_bytes = 0;
    let mut session = Session::new(caller, space, known, RULES);
    let mut request = session.begin()?;
    while let Some(asked) = request {
        let bytes = pack(&asked.to_json())?;
        let read = Request::from_json(asked.path(), &unpack(&bytes)?)?;
        let (response, _) = answer(called, &asker, RULES, read, ())?;
        let said = pack(&response.to_json())?;
        n_bytes += bytes.len() + said.len();
        let response = Response::from_json(&unpack(&said)?)?;
        request = session.next(response, ())?;
    }
    Ok((began.elapsed(), n_bytes))
}

/// Takes in what another log has, and gives nothing.
pub(super) fn pull(caller: &Log, called: &Log, space: &Space) -> Result<()> {
    let known = Peer {
        policy: Policy {
            may_read: false,
            ..Policy::default()
        },
        ..peer(called)
    };
    exchange_as(caller, called, &known, space).map(drop)
}

/// Copies every row into an empty store.
fn copy(from: &Log, space: &Space) -> Result<Duration> {
    let directory = fixture::directory()?;
    let to = fixture::open(directory.path())?;
    let began = Instant::now();
    let mut rows = Vec::new();
    from.read(space, |tx| {
        archive::dump(tx, &mut |row| {
            rows.push(Ok(row));
            Ok(())
        })
    })?;
    archive::load(to.store(), space, rows.into_iter())?;
    Ok(began.elapsed())
}
