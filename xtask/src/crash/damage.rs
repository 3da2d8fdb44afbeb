//! The store's file is damaged between two runs: a page is overwritten, or the end is missing.
//!
//! A store is filled by the real program, then copied and damaged again and again. Whatever the damage:
//! no command panics; a command that cannot answer says `corrupt` (or that it could not read); and no row of any
//! table that a backup holds is returned changed while `audit verify` and `doctor` call the store clean, except
//! those of the key-value table that no event covers, which are counted apart.

use super::TOLD_MAX;
use super::binary::{Binary, Place};
use super::calls::{Maker, SORTS};
use super::client::{Answer, Server, Transport};
use crate::options::Options;
use anyhow::{Context as _, Result, anyhow, ensure};
use kenning_core::SeededRandom;
use kenning_testing_disk::image::{self, Tree};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Output;

const FILE: &str = "data/kenning.db";
const LOG: &str = "data/kenning.db-wal";
const PAGE: usize = 4_096;
/// Rounds of every sort that fill the store.
const ROUNDS: u64 = 6;
/// What a command may end with: done, a refusal of the contract, `unavailable`, `corrupt`. Not 70, which
/// is an internal error, and not the 101 of a panic.
const ENDS: &[i32] = &[0, 1, 2, 3, 4, 5, 6, 8, 9];
/// Reads, one for each case in turn.
const READS: &[&[&str]] = &[
    &[
        "call",
        "memory_recall",
        "--json",
        "{\"query\":\"what was seen\"}",
    ],
    &[
        "call",
        "kg_vector_search",
        "--json",
        "{\"vector\":[1,1,1,1,1,1,1,1],\"namespace\":\"crash\"}",
    ],
    &[
        "call",
        "search",
        "--json",
        "{\"item_type\":\"knowledge\",\"query\":\"text\"}",
    ],
    &[
        "call",
        "knowledge_search",
        "--json",
        "{\"query\":\"somebody\"}",
    ],
    &["call", "integrity_check"],
    &["call", "kg_stats"],
    &["audit", "export"],
    &[
        "call",
        "memory_store",
        "--json",
        "{\"content\":\"after the damage\"}",
    ],
];

#[derive(Default)]
struct Tally {
    n_cases: u64,
    n_named: u64,
    n_harmless: u64,
    /// Cases in which only rows changed that no event covers: caches, cursors, cards.
    n_uncovered: u64,
    failures: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["pages", "lengths", "seed", "binary"])?;
    let n_pages: u64 = options.value("pages", 1_000)?;
    let n_lengths: u64 = options.value("lengths", 200)?;
    let seed = super::seed(options)?;
    let binary = Binary::find(options, false)?;
    let random = SeededRandom::new(seed);
    let stage = Stage::fill(&binary, &random)?;
    let mut tally = Tally::default();
    for n in 0..n_pages {
        let (what, bytes) = stage.with_a_page_of_nonsense(&random)?;
        stage.judge(n, &what, &[(FILE, bytes)], &mut tally)?;
    }
    for n in 0..n_lengths {
        // One in four is the log's: there the end of what was written last is missing, which SQLite
        // takes for a write that never was.
        let name = if n % 4 == 3 { LOG } else { FILE };
        let whole = stage.file(name)?;
        let length = random.below(whole.len() as u64 + 1) as usize;
        let what = format!("{name} of {length} bytes instead of {}", whole.len());
        stage.judge(n, &what, &[(name, whole[..length].to_vec())], &mut tally)?;
    }
    for sentence in tally.failures.iter().take(TOLD_MAX) {
        println!("{sentence}");
    }
    println!(
        "damage: {} cases ({n_pages} pages, {n_lengths} lengths), {} failures, {} named, {} without \
         effect on any row, {} in rows that no event covers, seed {seed}",
        tally.n_cases,
        tally.failures.len(),
        tally.n_named,
        tally.n_harmless,
        tally.n_uncovered,
    );
    ensure!(
        n_pages + n_lengths < 20 || tally.n_named > 0,
        "no damage was named: the test is blind"
    );
    ensure!(tally.failures.is_empty(), "promises were broken");
    Ok(())
}

/// A filled store, and what it says while it is whole.
struct Stage<'a> {
    binary: &'a Binary,
    place: Place,
    whole: Tree,
    rows: BTreeSet<String>,
    /// The names of rows that are others after each command: when somebody last looked, and the like.
    moving: BTreeSet<String>,
}

impl<'a> Stage<'a> {
    fn fill(binary: &'a Binary, random: &SeededRandom) -> Result<Self> {
        let place = Place::fresh()?;
        let server = Server::start(binary, &place, Transport::Stdio)?;
        let mut maker = Maker::new("damage".to_owned(), random.next(), &place, false);
        let mut client = server.client();
        for sort in (0..ROUNDS).flat_map(|_| SORTS) {
            let mut write = maker.of(*sort);
            let (answer, value) = client.write(&write);
            ensure!(
                answer == Answer::Acknowledged,
                "{:?}: {answer:?}",
                write.sort
            );
            maker.learn(&mut write, &value);
        }
        // After a command that ended in order everything is in the file; a second life that is killed
        // leaves a log as well.
        server.stop()?;
        let done = binary.command(&place).args(["audit", "verify"]).output()?;
        ensure!(done.status.success(), "a whole store is not clean");
        ensure!(!place.root().join(LOG).exists(), "the log was left behind");
        let server = Server::start(binary, &place, Transport::Stdio)?;
        let mut client = server.client();
        for _ in 0..8 {
            let (answer, _) = client.write(&maker.of(super::calls::Sort::Memory));
            ensure!(answer == Answer::Acknowledged, "{answer:?}");
        }
        server.kill()?;
        let whole = image::read(place.root())?;
        let mut stage = Self {
            binary,
            place,
            whole,
            rows: BTreeSet::new(),
            moving: BTreeSet::new(),
        };
        stage.rows = stage.rows_of_the_whole()?;
        let again = stage.rows_of_the_whole()?;
        let others = again.symmetric_difference(&stage.rows);
        stage.moving = others.map(|it| name_of(it)).collect();
        ensure!(
            stage.moving.len() < 10,
            "a whole store is another one each time: {:?}",
            stage.moving
        );
        let moving = &stage.moving;
        stage.rows.retain(|it| !moving.contains(&name_of(it)));
        Ok(stage)
    }

    /// What a backup of the whole store holds after the commands that every case begins with.
    fn rows_of_the_whole(&self) -> Result<BTreeSet<String>> {
        self.put_back(&[])?;
        for words in [&["audit", "verify", "--json"][..], &["doctor", "--json"]] {
            ensure!(self.command(words)?.status.success(), "{words:?}");
        }
        let rows = self.all_rows()?;
        let rows = rows.map_err(|it| anyhow!("a whole store: {it}"))?;
        rows.context("a whole store has rows")
    }

    /// The data directory as it was, with this damage.
    fn put_back(&self, damage: &[(&str, Vec<u8>)]) -> Result<()> {
        std::fs::remove_dir_all(self.place.data())?;
        let mut tree: Tree = self.whole.clone();
        tree.retain(|path, _| path == "data" || path.starts_with("data/"));
        for (name, bytes) in damage {
            tree.insert((*name).to_owned(), Some(bytes.clone()));
        }
        Ok(image::write(&tree, self.place.root())?)
    }

    fn file(&self, name: &str) -> Result<&Vec<u8>> {
        let file = self.whole.get(name).and_then(Option::as_ref);
        file.with_context(|| format!("there is no {name}"))
    }

    fn with_a_page_of_nonsense(&self, random: &SeededRandom) -> Result<(String, Vec<u8>)> {
        let mut bytes = self.file(FILE)?.clone();
        let n_pages = bytes.len() / PAGE;
        let page = random.below(n_pages as u64) as usize;
        let other = random.below(n_pages as u64) as usize;
        let kind = random.below(4);
        let from = bytes[other * PAGE..(other + 1) * PAGE].to_vec();
        let at = &mut bytes[page * PAGE..(page + 1) * PAGE];
        let what = match kind {
            0 => {
                at.fill(0);
                "zeros".to_owned()
            }
            1 => {
                at.copy_from_slice(&from);
                format!("page {other}")
            }
            2 => {
                // Half of a page, as a torn write leaves it.
                at[PAGE / 2..].copy_from_slice(&from[PAGE / 2..]);
                format!("half of page {other}")
            }
            _ => {
                at.iter_mut().for_each(|it| *it = random.below(256) as u8);
                "nonsense".to_owned()
            }
        };
        Ok((format!("page {page} of {n_pages} is {what}"), bytes))
    }

    /// One damage, and all that is asked of a store that has it.
    fn judge(
        &self,
        n: u64,
        what: &str,
        damage: &[(&str, Vec<u8>)],
        tally: &mut Tally,
    ) -> Result<()> {
        tally.n_cases += 1;
        self.put_back(damage)?;
        let mut wrong = Vec::new();
        let verify = self.command(&["audit", "verify", "--json"])?;
        wrong.extend(fault_of("audit verify", &verify));
        let is_clean = verify.status.success();
        let doctor = self.command(&["doctor", "--json"])?;
        wrong.extend(fault_of("doctor", &doctor));
        let is_named = !is_clean || !doctor.status.success();
        let words = READS[usize::try_from(n)? % READS.len()];
        let rows = self.all_rows()?.unwrap_or_else(|fault| {
            wrong.push(fault);
            None
        });
        wrong.extend(fault_of(&words.join(" "), &self.command(words)?));
        let mut is_uncovered = false;
        if let Some(rows) = rows.filter(|_| !is_named) {
            let mut others: Vec<&String> = rows.symmetric_difference(&self.rows).collect();
            if damage[0].0 == LOG {
                // Its end may be missing, and with it whole writes; nothing else may be there. What there is one of
                // is then as it was before: heads, pairs, and nodes that moved to their history.
                let is_new = |row: &&String| {
                    let row: Value = serde_json::from_str(row).unwrap_or_default();
                    ["events", "checkpoints"].contains(&row["table"].as_str().unwrap_or_default())
                };
                others.retain(|it| rows.contains(*it) && is_new(it));
            }
            let n_all = others.len();
            others.retain(|it| is_covered(it));
            if let Some(first) = others.first() {
                let n = others.len();
                let first: String = first.chars().take(200).collect();
                wrong.push(format!(
                    "{n} rows are others, and the store is called clean: {first}"
                ));
            }
            is_uncovered = others.is_empty() && n_all > 0;
        }
        match (is_named, is_uncovered) {
            (true, _) => tally.n_named += 1,
            (false, true) => tally.n_uncovered += 1,
            (false, false) => tally.n_harmless += 1,
        }
        let told = wrong.iter().map(|it| format!("{what}: {it}"));
        tally.failures.extend(told);
        Ok(())
    }

    fn command(&self, words: &[&str]) -> Result<Output> {
        Ok(self.binary.command(&self.place).args(words).output()?)
    }

    /// Every row of a backup; `None` if they cannot be read. An error is how the command should not end.
    fn all_rows(&self) -> Result<std::result::Result<Option<BTreeSet<String>>, String>> {
        let done = self.command(&["backup", "-"])?;
        if let Some(fault) = fault_of("backup", &done) {
            return Ok(Err(fault));
        }
        if !done.status.success() {
            return Ok(Ok(None));
        }
        let text = String::from_utf8_lossy(&done.stdout);
        let is_row = |line: &&str| line.contains("\"table\":") && !self.is_moving(line);
        Ok(Ok(Some(
            text.lines().filter(is_row).map(str::to_owned).collect(),
        )))
    }

    /// Whether a row changes whenever a command looks at the store.
    fn is_moving(&self, line: &str) -> bool {
        self.moving.contains(&name_of(line))
    }
}

/// Whether an event says what a row must be. SECURITY.md lists those that none does.
fn is_covered(line: &str) -> bool {
    let row: Value = serde_json::from_str(line).unwrap_or_default();
    let bucket = row["bucket"].as_str().unwrap_or_default();
    row["table"] != "kv" || kenning_audit::is_signed_bucket(bucket)
}

/// What a row is called: the table with its key, without what it holds.
fn name_of(line: &str) -> String {
    let row: Value = serde_json::from_str(line).unwrap_or_default();
    let parts = ["table", "bucket", "key", "node", "id", "name", "seq"];
    let parts = parts.map(|it| row[it].to_string());
    parts.join(" ")
}

/// What is wrong with the end of a command, whatever it found.
fn fault_of(what: &str, done: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&done.stderr);
    let all = format!("{said}{}", String::from_utf8_lossy(&done.stdout));
    let first = said.lines().next().unwrap_or_default();
    let Some(code) = done.status.code() else {
        return Some(format!("`{what}` ended by {}: {first}", done.status));
    };
    if !ENDS.contains(&code) || said.contains("panicked") {
        return Some(format!("`{what}` ended with {code}: {}", said.trim()));
    }
    let is_named = ["corrupt", "damaged", "fault", "a stored row", "false"];
    if code == 9 && !is_named.iter().any(|it| all.contains(it)) {
        return Some(format!(
            "`{what}` ended with 9 and does not say why: {first}"
        ));
    }
    None
}
