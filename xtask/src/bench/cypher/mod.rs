//! Ten typical queries over a graph of a hundred thousand nodes, beside two other engines on the same data.
//!
//! Ours is asked over a real store, with the answer as JSON. graphdblite is a
//! program of its own (`tools/graphs`), ladybug a package of Python in an environment beneath `target`; each has its
//! usual indexes. A time is the least of some repetitions, and all must give the same rows. A peer that cannot be
//! had is an error, unless `--allow-missing` says that it may be left out: then no promise is judged.

mod data;

use super::fixture;
use super::meter::{cpu, memory_peak_mib};
use crate::options::{ALLOW_MISSING, Options};
use crate::repository::{output, root};
use anyhow::{Context as _, Result, ensure};
use data::{Data, Query};
use kenning_audit::{Draft, EdgeDraft};
use kenning_core::{Kind, NodeId, Space};
use kenning_engine::Caller;
use kenning_engine::query::{Queries, Question};
use kenning_testing::Fixture;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LADYBUG: &str = include_str!("with_ladybug.py");

/// Rows of one transaction while the store is filled.
const PAGE: usize = 2_000;

/// Of ten queries, so many are no slower than with the faster peer …
const NO_SLOWER_MIN: usize = 7;
/// … and none takes longer than so many times as long.
const RATIO_MAX: f64 = 3.0;

/// What an engine answered: of each query the rows and the milliseconds, by its sets of parameters.
struct Answered {
    name: &'static str,
    load_s: f64,
    queries: Vec<(Vec<Value>, Vec<f64>)>,
}

impl Answered {
    fn read(name: &'static str, printed: &str) -> Result<Self> {
        let all: Value = serde_json::from_str(printed.trim()).context("a peer's answer")?;
        let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
        let queries = list(&all["queries"]).into_iter().map(|it| {
            // One that was refused took forever.
            let times = list(&it["ms"]);
            let times = times.iter().map(|it| it.as_f64().unwrap_or(f64::INFINITY));
            (list(&it["rows"]), times.collect())
        });
        Ok(Self {
            name,
            load_s: all["load_s"].as_f64().unwrap_or(f64::NAN),
            queries: queries.collect(),
        })
    }

    fn mean_ms(&self, query: usize) -> f64 {
        let times = self.queries.get(query).map_or(&[][..], |it| &it.1);
        times.iter().sum::<f64>() / times.len().max(1) as f64
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["nodes", "repeat", "limit-ms", ALLOW_MISSING])?;
    let n_nodes: u64 = options.value("nodes", 100_000)?;
    let repeat: usize = options.value("repeat", 30)?;
    let limit_ms: u64 = options.value("limit-ms", 2_000)?;
    let data = Data::new(n_nodes);
    let queries = data::queries();
    println!(
        "{} nodes, {} relationships; each query up to {repeat} times or {limit_ms} ms, the least time counts",
        data.nodes.len(),
        data.rels.len()
    );
    let folder = fixture::directory()?;
    data.write(folder.path())?;
    let asked = queries.iter().map(|it| {
        json!({
            "text": it.text, "ladybug": it.ladybug.unwrap_or(it.text), "parameters": it.parameters,
        })
    });
    let asked = json!({
        "repeat": repeat, "limit_ms": limit_ms, "queries": asked.collect::<Vec<_>>(),
    });
    std::fs::write(folder.path().join("queries.json"), asked.to_string())?;
    let ours = ours(&data, &queries, repeat, Duration::from_millis(limit_ms))?;
    let mut peers = Vec::new();
    for peer in [graphdblite(folder.path()), ladybug(folder.path())] {
        match peer {
            Ok(peer) => peers.push(peer),
            Err(error) if options.has(ALLOW_MISSING) => println!("a peer is missing: {error:#}"),
            Err(error) => {
                let hint = "a peer is missing; `--allow-missing` measures without it";
                return Err(error.context(hint));
            }
        }
    }
    judge(&queries, &ours, &peers)
}

/// Peers that a promise compares with.
const PEERS: usize = 2;

/// Fills a store, and asks.
fn ours(data: &Data, queries: &[Query], repeat: usize, limit: Duration) -> Result<Answered> {
    let fixture = Fixture::new();
    let began = Instant::now();
    fill(&fixture, data)?;
    println!(
        "our store was filled in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let mut caller = fixture.owner();
    caller.deadline += Duration::from_secs(3_600);
    let (began, before) = (Instant::now(), cpu()?);
    let asked = Queries::new(Arc::clone(fixture.kernel()));
    ask(&asked, &caller, "RETURN 1", &json!({}))?;
    let load_s = began.elapsed().as_secs_f64();
    println!(
        "our graph was made from its rows in {load_s:.2} s ({:.2} s of processor time), most memory resident {} MiB",
        (cpu()? - before).as_secs_f64(),
        memory_peak_mib()?
    );
    let mut answered = Vec::new();
    for query in queries {
        let (mut rows, mut times) = (Vec::new(), Vec::new());
        for parameters in &query.parameters {
            let began = Instant::now();
            let (mut least, mut n, mut found) = (f64::INFINITY, 0, Value::Null);
            while n == 0 || n < repeat && began.elapsed() < limit {
                let at = Instant::now();
                found = ask(&asked, &caller, query.text, parameters)?;
                least = least.min(at.elapsed().as_secs_f64() * 1e3);
                n += 1;
            }
            rows.push(found);
            times.push(least);
        }
        answered.push((rows, times));
    }
    Ok(Answered {
        name: "ours",
        load_s,
        queries: answered,
    })
}

fn ask(queries: &Queries, caller: &Caller, text: &str, parameters: &Value) -> Result<Value> {
    let question = Question {
        text: text.to_owned(),
        parameters: parameters.as_object().cloned().unwrap_or_default(),
        ..Question::default()
    };
    let found = queries.answer(caller, &question)?;
    Ok(found.rows.into())
}

fn fill(fixture: &Fixture, data: &Data) -> Result<()> {
    let space = Space::default();
    let mut ids: Vec<NodeId> = Vec::with_capacity(data.nodes.len());
    for page in data.nodes.chunks(PAGE) {
        let drafts: Vec<Draft> = page.iter().map(draft).collect();
        let made = fixture.log().write(&space, move |tx| {
            let mut made = Vec::with_capacity(drafts.len());
            for draft in &drafts {
                made.push(tx.put_node(draft.clone())?.id);
            }
            tx.record("NodeUpdated", json!({}))?;
            Ok(made)
        })?;
        ids.extend(made);
    }
    for page in data.rels.chunks(PAGE) {
        let drafts: Vec<EdgeDraft> = page
            .iter()
            .map(|it| EdgeDraft {
                src: ids[it.start],
                rel: it.kind.to_lowercase(),
                dst: ids[it.end],
                weight: 1.0,
                props: Map::new(),
            })
            .collect();
        fixture.log().write(&space, move |tx| {
            for draft in &drafts {
                tx.put_edge(draft.clone())?;
            }
            tx.record("NodeUpdated", json!({})).map(drop)
        })?;
    }
    Ok(())
}

fn draft(node: &data::Node) -> Draft {
    let (kind, what) = match node.label {
        "File" => (Kind::Document, ("label", "File")),
        "Person" => (Kind::Entity, ("type", "person")),
        label => (Kind::Symbol, ("label", label)),
    };
    let mut props = Map::new();
    props.insert(what.0.to_owned(), json!(what.1));
    props.insert("uid".to_owned(), json!(node.uid));
    props.insert("name".to_owned(), json!(node.name));
    props.insert("lines".to_owned(), json!(node.lines));
    props.insert("visibility".to_owned(), json!(node.visibility));
    Draft {
        kind,
        project: String::new(),
        key: node.uid.clone(),
        title: node.name.clone(),
        body: String::new(),
        props,
    }
}

fn graphdblite(folder: &Path) -> Result<Answered> {
    let mut build = Command::new("cargo");
    let build = build
        .args(["build", "--quiet", "--release", "--manifest-path"])
        .arg(root().join("tools/graphs/Cargo.toml"))
        .arg("--target-dir")
        .arg(root().join("target/graphs"));
    output(build)?;
    let program = root().join("target/graphs/release/kenning-graphs");
    Answered::read("graphdblite", &output(Command::new(program).arg(folder))?)
}

fn ladybug(folder: &Path) -> Result<Answered> {
    let environment = root().join("target/bench-graphs");
    let python = environment.join("bin/python");
    if !python.exists() {
        let arguments = ["-m", "venv"];
        output(Command::new("python3").args(arguments).arg(&environment))?;
    }
    let import = ["-c", "import ladybug"];
    if output(Command::new(&python).args(import)).is_err() {
        let install = ["-m", "pip", "install", "--quiet", "ladybug"];
        output(Command::new(&python).args(install))?;
    }
    let script = folder.join("with_ladybug.py");
    std::fs::write(&script, LADYBUG)?;
    let printed = output(Command::new(&python).arg(&script).arg(folder))?;
    Answered::read("ladybug", &printed)
}

/// Prints all, and fails where a promise is not kept.
fn judge(queries: &[Query], ours: &Answered, peers: &[Answered]) -> Result<()> {
    print!("{:<16} {:>12}", "ms", ours.name);
    for peer in peers {
        print!(" {:>12}", peer.name);
    }
    println!(" {:>12}", "to faster");
    print!("{:<16} {:>12.0}", "loading", ours.load_s * 1e3);
    for peer in peers {
        print!(" {:>12.0}", peer.load_s * 1e3);
    }
    println!();
    let (mut no_slower, mut worst) = (0, 0.0_f64);
    for (idx, query) in queries.iter().enumerate() {
        let own = ours.mean_ms(idx);
        print!("{:<16} {own:>12.3}", query.name);
        for peer in peers {
            let ms = peer.mean_ms(idx);
            match ms.is_finite() {
                true => print!(" {ms:>12.3}"),
                false => print!(" {:>12}", "refused"),
            }
            let rows = peer.queries.get(idx).map(|it| &it.0);
            let same = rows == ours.queries.get(idx).map(|it| &it.0);
            ensure!(
                same || !ms.is_finite(),
                "`{}` has other rows with {}",
                query.name,
                peer.name
            );
        }
        let faster = peers.iter().map(|it| it.mean_ms(idx));
        let ratio = own / faster.fold(f64::INFINITY, f64::min);
        println!(" {ratio:>10.2} x");
        no_slower += usize::from(ratio <= 1.0);
        worst = worst.max(ratio);
    }
    println!(
        "no slower than the faster peer: {no_slower} of {}; at worst {worst:.2} x",
        queries.len()
    );
    if peers.len() == PEERS {
        ensure!(
            no_slower >= NO_SLOWER_MIN && worst <= RATIO_MAX,
            "promised were {NO_SLOWER_MIN} of {} and at most {RATIO_MAX} x",
            queries.len()
        );
    }
    Ok(())
}
