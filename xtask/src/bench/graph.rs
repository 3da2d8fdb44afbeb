//! Measures how fast a tree of Markdown files becomes a graph, and how fast the graph answers.
//!
//! Beside it stands a bare loop that only reads and parses the same files, on one core.

use super::meter::{cpu, memory_peak_mib, ms, percentile};
use super::{fixture, meter};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use kenning_core::SeededRandom;
use kenning_engine::Caller;
use kenning_engine::kg::{DocumentQuery, Generate, Generated};
use kenning_testing::Fixture;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Questions that are asked.
const QUESTIONS: usize = 200;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["files", "tree"])?;
    let n: usize = options.value("files", 14_000)?;
    let made = fixture::directory()?;
    let tree = match options.text("tree") {
        Some(tree) => PathBuf::from(tree),
        None => {
            make_tree(made.path(), n)?;
            made.path().to_owned()
        }
    };
    let bare = bare_loop(&tree)?;
    println!(
        "{} files, {:.1} MB; a bare loop that reads and parses them: {:.0} files/s ({:.2} s)",
        bare.files,
        bare.bytes as f64 / 1e6,
        bare.files as f64 / bare.took.as_secs_f64(),
        bare.took.as_secs_f64(),
    );
    let fixture = Fixture::over_project(&tree);
    let first = generation(&fixture, "first generation", false)?;
    let rate = bare.took.as_secs_f64() / first.1.as_secs_f64();
    let peak = memory_peak_mib()?;
    println!(
        "  {:.2} x the files/s of the bare loop; {} nodes, {} edges; most memory resident {peak} MiB",
        rate, first.0.nodes_generated, first.0.edges_created,
    );
    generation(&fixture, "again, nothing changed", true)?;
    if options.text("tree").is_none() {
        std::fs::write(
            tree.join("docs/part-0/page-0.md"),
            "Changed: see [[page-7]].\n",
        )?;
        let changed = generation(&fixture, "one file changed", true)?;
        ensure!(changed.0.nodes_updated == 1, "one document is another now");
    }
    asking(&fixture)?;
    println!(
        "most memory resident in the end: {} MiB",
        memory_peak_mib()?
    );
    Ok(())
}

/// A person who waits decides how long.
fn patient(fixture: &Fixture) -> Caller {
    let mut caller = fixture.owner();
    caller.deadline += Duration::from_secs(3_600);
    caller
}

fn generation(fixture: &Fixture, what: &str, incremental: bool) -> Result<(Generated, Duration)> {
    let generate = Generate {
        docs_path: ".".to_owned(),
        force: false,
        incremental,
    };
    let (began, before) = (Instant::now(), cpu()?);
    let mut caller = patient(fixture);
    let parts: Arc<Mutex<Vec<(String, Duration)>>> = Arc::default();
    let theirs = Arc::clone(&parts);
    caller.progress = Some(Arc::new(move |_, _, what: &str| {
        let mut parts = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        match parts.last_mut() {
            Some(last) if last.0 == what => last.1 = began.elapsed(),
            _ => parts.push((what.to_owned(), began.elapsed())),
        }
    }));
    let done = fixture
        .board
        .engine()
        .kg()
        .generate_graph(&caller, &generate)?;
    let (took, used) = (began.elapsed(), cpu()?.saturating_sub(before));
    println!(
        "{what}: {:.2} s ({:.2} s processor), {} added, {} updated, {} removed, {} errors",
        took.as_secs_f64(),
        used.as_secs_f64(),
        done.nodes_added,
        done.nodes_updated,
        done.nodes_removed,
        done.errors.len(),
    );
    let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
    let shown: Vec<String> = parts
        .iter()
        .map(|phase| format!("{} {:.2} s", phase.0, phase.1.as_secs_f64()))
        .collect();
    println!("  {}", shown.join(", "));
    Ok((done, took))
}

fn asking(fixture: &Fixture) -> Result<()> {
    let engine = fixture.board.engine();
    let ask = |i: usize| -> Result<Duration> {
        let query = DocumentQuery {
            text: Some(question(i)),
            limit: 10,
            ..DocumentQuery::default()
        };
        let began = Instant::now();
        black_box(engine.kg().find_documents(&fixture.owner(), &query)?);
        Ok(began.elapsed())
    };
    let first = ask(0)?;
    let before = cpu()?;
    let mut times: Vec<Duration> = (1..=QUESTIONS).map(ask).collect::<Result<_>>()?;
    let used = meter::cpu()?.saturating_sub(before);
    println!(
        "kg_graph_query: first {:.0} ms (takes in the store), then median {:.2} ms, p99 {:.2} ms, {:.2} ms processor each",
        ms(first),
        ms(percentile(&mut times, 0.5)),
        ms(percentile(&mut times, 0.99)),
        ms(used) / QUESTIONS as f64,
    );
    let began = Instant::now();
    black_box(engine.kg().graph_stats(&fixture.owner())?);
    println!("kg_graph_stats: {:.2} ms", ms(began.elapsed()));
    Ok(())
}

struct Bare {
    files: usize,
    bytes: usize,
    took: Duration,
}

fn bare_loop(tree: &Path) -> Result<Bare> {
    let mut names = Vec::new();
    gather(tree, &mut names)?;
    // Once before, so that both sides find the files in memory.
    for name in &names {
        black_box(std::fs::read(name)?);
    }
    let began = Instant::now();
    let mut bytes = 0;
    for name in &names {
        let content = std::fs::read(name).with_context(|| name.display().to_string())?;
        bytes += content.len();
        black_box(kenning_graph::parse(&String::from_utf8_lossy(&content)));
    }
    Ok(Bare {
        files: names.len(),
        bytes,
        took: began.elapsed(),
    })
}

fn gather(dir: &Path, names: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if kind.is_dir() && !is_hidden && entry.file_name() != "node_modules" {
            gather(&path, names)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "md") {
            names.push(path);
        }
    }
    Ok(())
}

const SUBJECTS: [&str; 16] = [
    "The scheduler",
    "A replica",
    "The billing job",
    "An operator",
    "The cache",
    "Every client",
    "The parser",
    "A migration",
    "The gateway",
    "Our importer",
    "The index",
    "A webhook",
    "The mailer",
    "An audit",
    "The planner",
    "A nightly backup",
];
const VERBS: [&str; 12] = [
    "retries",
    "rejects",
    "records",
    "compares",
    "merges",
    "throttles",
    "announces",
    "repairs",
    "encrypts",
    "collects",
    "summarizes",
    "forwards",
];
const OBJECTS: [&str; 16] = [
    "stale sessions",
    "duplicate invoices",
    "signed events",
    "broken links",
    "large uploads",
    "slow queries",
    "expired tokens",
    "customer records",
    "partial writes",
    "unknown fields",
    "queued messages",
    "search results",
    "foreign keys",
    "daily reports",
    "memory pages",
    "network errors",
];

fn pick<'a>(random: &SeededRandom, from: &[&'a str]) -> &'a str {
    from[usize::try_from(random.below(from.len() as u64)).unwrap_or(0)]
}

fn sentence(random: &SeededRandom) -> String {
    let (subject, verb, object) = (
        pick(random, &SUBJECTS),
        pick(random, &VERBS),
        pick(random, &OBJECTS),
    );
    format!(
        "{subject} {verb} {object} before {} o'clock, item {}. ",
        random.below(24),
        random.below(5_000)
    )
}

fn question(i: usize) -> String {
    let random = SeededRandom::new(i as u64 + 99);
    format!("{} {}", pick(&random, &VERBS), pick(&random, &OBJECTS))
}

/// Folders of 200 pages, about 2.5 kB each, with links, tags, code and tables.
fn make_tree(root: &Path, n: usize) -> Result<()> {
    let random = SeededRandom::new(6);
    let any = || random.below(n as u64);
    for i in 0..n {
        let mut text = format!(
            "---\ntitle: Page {i}\ntype: {}\ntags: [t{}, t{}]\nrelated: \"[[page-{}]]\"\n---\n# Page {i}\n\n",
            ["concept", "guide", "service", "feature"][i % 4],
            any() % 40,
            any() % 400,
            any(),
        );
        for paragraph in 0..6 {
            for _ in 0..4 {
                text += &sentence(&random);
            }
            match paragraph {
                1 => {
                    text += &format!(
                        "See [[page-{}]] and [[page-{}#Details|the details]].",
                        any(),
                        any()
                    );
                }
                3 => {
                    text += &format!(
                        "Compare [that page](../part-{}/page-{}.md).",
                        0,
                        any() % 200.min(n as u64)
                    );
                }
                _ => {}
            }
            text += "\n\n";
        }
        text += &format!(
            "## Details\n\n```rust\nlet link = \"[[page-{}]]\";\n```\n\n| a | b |\n|---|---|\n| 1 | #topic{} |\n",
            any(),
            any() % 30
        );
        let folder = root.join(format!("docs/part-{}", i / 200));
        if i % 200 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("page-{i}.md")), text)?;
    }
    Ok(())
}
