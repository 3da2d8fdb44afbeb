//! Callers' vectors: how well, how fast and in how much memory they are found, beside graphs.
//!
//! Data is clustered, as vectors of texts are, seeded, and the same for all: it is written to a file
//! that the peers read (faiss and usearch, in a Python environment made for it). Times are processor
//! times of one thread. What is right is found by comparing everything in single precision.

mod data;
mod peers;
mod stored;

use super::meter::{cpu, memory_mib, ms};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use data::{Data, Share};
use kenning_core::NodeId;
use kenning_search::{Collection, Near};
use std::hint::black_box;
use std::time::Duration;

/// How many are asked for.
const LIMIT: usize = 10;

/// Questions are asked again until so much processor time is used: the kernel counts hundredths.
const MEASURED: Duration = Duration::from_secs(1);

/// The table's head.
const HEAD: &str = "\
| vectors | what | recall@10: all, 10 %, 1 % | ms a query: all | 10 % filter | 1 % filter | µs an insert | µs a removal | bytes a vector |
|---|---|---|---|---|---|---|---|---|";

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["sizes", "dims", "peers", "minutes"])?;
    let with_peers = options.text("peers") != Some("no");
    let minutes: u64 = options.value("minutes", 5)?;
    let cases = cases(options)?;
    let environment = if with_peers {
        peers::environment()
    } else {
        None
    };
    let mut lines = Vec::new();
    for (n, dimensions) in cases {
        let data = Data::make(n, dimensions);
        let own = own(&data)?;
        eprintln!("{own}");
        lines.push(own.to_string());
        if let Some(python) = &environment {
            for peer in peers::measure(python, &data, minutes)? {
                eprintln!("{peer}");
                lines.push(peer.to_string());
            }
        }
    }
    println!("{HEAD}\n{}\n", lines.join("\n"));
    stored::durable()?;
    stored::loaded()
}

fn cases(options: &Options) -> Result<Vec<(usize, usize)>> {
    let sizes = options.text("sizes").unwrap_or("10000,100000,1000000");
    let sizes = sizes.split(',').map(|it| it.replace('_', "").parse());
    let sizes: Vec<usize> = sizes
        .collect::<Result<_, _>>()
        .context("`--sizes` are numbers with commas between them")?;
    ensure!(
        sizes.iter().all(|it| *it >= 1_000),
        "a size is at least 1000"
    );
    let dimensions: usize = options.value("dims", 256)?;
    let mut cases: Vec<_> = sizes.into_iter().map(|n| (n, dimensions)).collect();
    if options.text("dims").is_none() && options.text("sizes").is_none() {
        cases.push((100_000, 1_536));
    }
    Ok(cases)
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Measured {
    n: usize,
    dimensions: usize,
    what: String,
    /// For each share that a filter admits.
    recall: Vec<f64>,
    query_ms: Vec<f64>,
    insert_us: f64,
    removal_us: Option<f64>,
    bytes: f64,
    remark: String,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let recall: Vec<String> = self.recall.iter().map(|it| format!("{it:.3}")).collect();
        let query = |i: usize| match self.query_ms.get(i) {
            Some(it) => format!("{it:.3}"),
            None => "none".to_owned(),
        };
        let removal = match self.removal_us {
            Some(it) => format!("{it:.1}"),
            None => "none".to_owned(),
        };
        write!(
            f,
            "| {} x {} | {} | {} | {} | {} | {} | {:.1} | {removal} | {:.0}{} |",
            self.n,
            self.dimensions,
            self.what,
            recall.join(", "),
            query(0),
            query(1),
            query(2),
            self.insert_us,
            self.bytes,
            self.remark,
        )
    }
}

fn own(data: &Data) -> Result<Measured> {
    let resident = memory_mib()?;
    let began = cpu()?;
    let mut collection = Collection::new(data.dimensions);
    for i in 0..data.n {
        collection.put(node(i), data.vector(i), &Share::facets(i));
    }
    collection.prepare();
    let insert = cpu()?.saturating_sub(began);
    let resident = memory_mib()?.saturating_sub(resident);
    let bytes = collection.bytes() as f64 / data.n as f64;
    let (mut recall, mut query_ms, mut sketched) = (Vec::new(), Vec::new(), false);
    for share in Share::ALL {
        let ask = |query: &[f32]| {
            let near = Near {
                to: query,
                facets: share.facet(),
                limit: LIMIT,
                threads: 1,
            };
            collection.nearest(&near, |node| Ok(Some(data.vector(place(node)).to_vec())))
        };
        let mut found = Vec::new();
        for query in data.queries() {
            let near = ask(query)?;
            sketched |= near.sketched;
            found.push(near.nearest.iter().map(|it| place(it.node)).collect());
        }
        recall.push(data.recall(share, &found));
        query_ms.push(asked_again(data, |query| ask(query).map(drop))?);
    }
    let began = cpu()?;
    // Enough that the rest moves together, so that this is paid for too.
    let n_removed = data.n / 5;
    (0..n_removed).for_each(|i| collection.remove(node(5 * i)));
    collection.prepare();
    let removal = cpu()?.saturating_sub(began);
    Ok(Measured {
        n: data.n,
        dimensions: data.dimensions,
        what: format!("Kenning ({})", if sketched { "sketch" } else { "exact" }),
        recall,
        query_ms,
        insert_us: us(insert) / data.n as f64,
        removal_us: Some(us(removal) / n_removed as f64),
        bytes,
        remark: format!(
            ", {:.0} resident with names and facets",
            resident as f64 * 1_048_576.0 / data.n as f64
        ),
    })
}

fn us(duration: Duration) -> f64 {
    ms(duration) * 1_000.0
}

/// Processor milliseconds of a question.
fn asked_again(data: &Data, ask: impl Fn(&[f32]) -> kenning_core::Result<()>) -> Result<f64> {
    let (began, mut n) = (cpu()?, 0);
    loop {
        for query in data.queries() {
            black_box(ask(query)?);
            n += 1;
        }
        let used = cpu()?.saturating_sub(began);
        if used >= MEASURED {
            return Ok(ms(used) / f64::from(n));
        }
    }
}

fn node(i: usize) -> NodeId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(i as u64).to_be_bytes());
    NodeId(bytes)
}

fn place(node: NodeId) -> usize {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&node.0[8..]);
    usize::try_from(u64::from_be_bytes(bytes)).unwrap_or(usize::MAX)
}
