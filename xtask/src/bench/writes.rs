//! Durable writes: ours beside a bare loop over the same library, on the same disk, in the same run.
//!
//! The bare loop inserts one small row a commit and does nothing else. Ours puts a node, its passages
//! and an event that is hashed, signed and chained; with several callers the writer commits them in
//! groups. `--of notes` and `--of memories` go through the engine instead of the log alone: a note is
//! also parsed, cut into passages and written as a file. `--fsync-ms X` makes every sync X milliseconds
//! slower for both, so that the ratio of a laptop's disk can be measured on a machine whose disk answers
//! at once.
//!
//! `writer` is the processor time of the one thread that every write of a process goes through: what it
//! does, all callers wait for. `written` are the bytes of all write calls of this process (the write-ahead log, what is copied from
//! it into the file, and for notes their own files); `kept` is the size of the store's file afterwards.

use super::fixture;
use super::meter::{bytes_written, cpu, cpu_of_threads, ms, percentile};
use crate::options::Options;
use crate::repository::{output, root};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kenning_audit::{Draft, Log, Verify};
use kenning_core::{Kind, Space};
use kenning_engine::omi::NewMemory;
use kenning_testing::Fixture;
use serde_json::{Map, json};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Tells the slow disk how slow it is, and us that we are on it.
const SLOW: &str = "SLOW_FSYNC_MS";
/// The size of a note's text.
pub(super) const BODY_BYTES: usize = 200;
/// The name of the thread that writes; it begins with its store.
const WRITER: &str = "kenning-writer";
/// How many rows the bare loop with groups commits at once.
const BARE_GROUP: usize = 64;

/// What one loop did.
struct Measured {
    n_writes: usize,
    took: Duration,
    cpu: Duration,
    latencies: Vec<Duration>,
    /// Of the thread that writes.
    writer: Duration,
    bytes_written: u64,
    bytes_kept: u64,
}

impl Measured {
    fn per_second(&self) -> f64 {
        self.n_writes as f64 / self.took.as_secs_f64()
    }

    fn print(mut self, name: &str, bare: f64) {
        println!(
            "{name:<26} {:>8.0} {:>7.2} {:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>9} {:>9}",
            self.per_second(),
            self.per_second() / bare,
            ms(self.cpu) / self.n_writes.max(1) as f64,
            ms(self.writer) / self.n_writes.max(1) as f64,
            ms(percentile(&mut self.latencies, 0.5)),
            ms(percentile(&mut self.latencies, 0.99)),
            self.bytes_written / self.n_writes.max(1) as u64,
            self.bytes_kept / self.n_writes.max(1) as u64,
        );
    }
}

/// What one write is.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Rows,
    Notes,
    Memories,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["seconds", "callers", "fsync-ms", "of", "bytes"])?;
    if let Some(text) = options.text("fsync-ms")
        && std::env::var_os(SLOW).is_none()
    {
        return on_a_slow_disk(text);
    }
    let time = Duration::from_secs_f64(options.value("seconds", 5.0)?);
    let callers = options.text("callers").unwrap_or("1,64").split(',');
    let callers = callers.map(|it| it.trim().parse::<usize>());
    let callers = callers.collect::<Result<Vec<_>, _>>();
    let callers = callers.map_err(|_| anyhow!("`--callers` are numbers with commas between"))?;

    let what = match options.text("of").unwrap_or("rows") {
        "rows" => What::Rows,
        "notes" => What::Notes,
        "memories" => What::Memories,
        other => bail!("`--of {other}` is none of rows, notes and memories"),
    };
    let bytes: usize = options.value("bytes", BODY_BYTES)?;

    let directory = fixture::directory()?;
    let mut syncs = syncs(directory.path())?;
    println!(
        "fdatasync of 4 KiB: median {:.2} ms, p99 {:.2} ms",
        ms(percentile(&mut syncs, 0.5)),
        ms(percentile(&mut syncs, 0.99)),
    );
    println!(
        "{:<26} {:>8} {:>7} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "",
        "writes/s",
        "ratio",
        "cpu ms",
        "writer ms",
        "median ms",
        "p99 ms",
        "written B",
        "kept B"
    );
    let one = bare(directory.path(), 1, time)?;
    let per_second = one.per_second();
    one.print("bare, a commit a row", per_second);
    let grouped = bare(directory.path(), BARE_GROUP, time)?;
    grouped.print(&format!("bare, a commit {BARE_GROUP} rows"), per_second);
    for n in callers {
        let name = format!("ours, {n} {}", if n == 1 { "caller" } else { "callers" });
        let measured = match what {
            What::Rows => ours(n, time, bytes)?,
            What::Notes | What::Memories => through_the_engine(what, n, time, bytes)?,
        };
        measured.print(&name, per_second);
    }
    println!("Each of our writes is a node, its passages and an event; every event is signed.");
    Ok(())
}

/// Builds the library that slows syncs down and runs this program again on top of it.
fn on_a_slow_disk(text: &str) -> Result<()> {
    ensure!(
        text.parse::<f64>().is_ok(),
        "`--fsync-ms {text}` is not a number"
    );
    let directory = fixture::directory()?;
    let library = directory.path().join("slow_fsync.so");
    let source = root().join("testing/slow-disk/slow_fsync.c");
    output(
        Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl"),
    )?;
    println!("every sync takes {text} ms longer, for the bare loop and for ours");
    let status = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env("LD_PRELOAD", &library)
        .env(SLOW, text)
        .status()?;
    ensure!(status.success(), "the run on the slow disk failed");
    Ok(())
}

/// How long the disk takes to say that 4 KiB are on it.
fn syncs(directory: &Path) -> Result<Vec<Duration>> {
    let mut file = File::create(directory.join("sync"))?;
    let (page, began) = ([7; 4_096], Instant::now());
    let mut all = Vec::new();
    while all.len() < 1_000 && began.elapsed() < Duration::from_secs(2) {
        file.write_all(&page)?;
        let before = Instant::now();
        file.sync_data()?;
        all.push(before.elapsed());
    }
    Ok(all)
}

/// One thread, `group` rows a commit. A latency is that of a commit.
fn bare(directory: &Path, group: usize, time: Duration) -> Result<Measured> {
    let database = rusqlite::Connection::open(directory.join(format!("bare-{group}.db")))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch(
        "CREATE TABLE rows (key TEXT PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL) STRICT",
    )?;
    let mut insert = database.prepare("INSERT INTO rows VALUES (?1, ?2, ?3)")?;
    let (mut n_writes, mut latencies) = (0, Vec::new());
    let (written_before, cpu_before, began) = (bytes_written()?, cpu()?, Instant::now());
    while began.elapsed() < time {
        let before = Instant::now();
        database.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..group {
            let body = fixture::words(n_writes as u64, BODY_BYTES);
            insert.execute((format!("note-{n_writes}"), body, [7_u8; 32]))?;
            n_writes += 1;
        }
        database.execute_batch("COMMIT")?;
        latencies.push(before.elapsed());
    }
    let (took, cpu, bytes_written) = (
        began.elapsed(),
        cpu()? - cpu_before,
        bytes_written()? - written_before,
    );
    drop(insert);
    drop(database);
    Ok(Measured {
        n_writes,
        took,
        cpu,
        latencies,
        writer: cpu,
        bytes_written,
        bytes_kept: size_of_store(&directory.join(format!("bare-{group}.db")))?,
    })
}

/// The size of a store's file once everything in its write-ahead log is in it.
fn size_of_store(file: &Path) -> Result<u64> {
    let database = rusqlite::Connection::open(file)?;
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(std::fs::metadata(file)?.len())
}

/// So many threads, each waiting for its write before it makes the next.
fn called(
    callers: usize,
    time: Duration,
    write: &(dyn Fn(usize, usize) -> Result<()> + Sync),
) -> Result<Measured> {
    let (written_before, cpu_before, began) = (bytes_written()?, cpu()?, Instant::now());
    let done: Result<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                scope.spawn(move || {
                    let mut latencies = Vec::new();
                    while began.elapsed() < time {
                        let before = Instant::now();
                        write(caller, latencies.len())?;
                        latencies.push(before.elapsed());
                    }
                    Ok(latencies)
                })
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|it| it.map_err(|_| anyhow!("a caller panicked"))?)
            .collect()
    });
    let latencies = done?.concat();
    Ok(Measured {
        n_writes: latencies.len(),
        took: began.elapsed(),
        cpu: cpu()? - cpu_before,
        latencies,
        writer: cpu_of_threads(WRITER)?,
        bytes_written: bytes_written()? - written_before,
        bytes_kept: 0,
    })
}

/// Writes to the log alone.
fn ours(callers: usize, time: Duration, bytes: usize) -> Result<Measured> {
    let directory = fixture::directory()?;
    let log = fixture::open(directory.path())?;
    let mut measured = called(callers, time, &|caller, n| write_of(&log, caller, n, bytes))?;
    let report = log.read(&Space::default(), |tx| {
        kenning_audit::verify(tx, &Verify::of(&Space::default()), &|_| ())
    })?;
    ensure!(
        report.is_clean(),
        "the log is not sound: {:?}",
        report.faults
    );
    ensure!(
        report.n_events as usize == measured.n_writes,
        "events are missing"
    );
    drop(log);
    measured.bytes_kept = size_of_store(&directory.path().join(kenning_store_sqlite::FILE_NAME))?;
    Ok(measured)
}

/// Writes through the engine, as tools do.
fn through_the_engine(
    what: What,
    callers: usize,
    time: Duration,
    bytes: usize,
) -> Result<Measured> {
    let fixture = Fixture::new();
    let engine = fixture.board.engine();
    let mut measured = called(callers, time, &|caller, n| {
        let body = fixture::words((caller * 1_000_000 + n) as u64, bytes);
        if what == What::Memories {
            let memory = NewMemory {
                content: body,
                ..NewMemory::default()
            };
            engine
                .omi()
                .store_memories(&fixture.owner(), vec![memory])?;
            return Ok(());
        }
        let text = format!(
            "---\ntags: [bench, note]\n---\n# Note {n}\n\nAfter [[note {}]].\n\n{body}\n",
            n.saturating_sub(1)
        );
        engine.koi().write_note(
            &fixture.owner(),
            &format!("bench/{caller}/note {n}.md"),
            text,
        )?;
        Ok(())
    })?;
    engine.omi().settle();
    let report = engine.verify(&Space::default(), &|_| ())?;
    ensure!(
        report.is_clean(),
        "the log is not sound: {:?}",
        report.faults
    );
    let file = fixture.root.path().join("data");
    measured.bytes_kept = size_of_store(&file.join(kenning_store_sqlite::FILE_NAME))?;
    Ok(measured)
}

pub(super) fn write(log: &Log, caller: usize, n: usize) -> Result<()> {
    write_of(log, caller, n, BODY_BYTES)
}

fn write_of(log: &Log, caller: usize, n: usize, bytes: usize) -> Result<()> {
    let body = fixture::words((caller * 1_000_000 + n) as u64, bytes);
    let key = format!("bench:{caller}/{n}");
    let title = format!("note {n}");
    let passages = kenning_search::passages(&title, &body);
    log.write(&Space::default(), move |tx| {
        let path = key.clone();
        let node = tx.put_node(Draft {
            kind: Kind::Document,
            project: String::new(),
            key,
            title,
            body,
            props: Map::new(),
        })?;
        tx.put_passages(node.id, &passages)?;
        tx.record("NoteWritten", json!({ "path": path }))?;
        Ok(())
    })
    .context("a write failed")
}
