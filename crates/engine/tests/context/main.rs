//! NOW.md and the daily logs, on a real store in a fresh directory.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and play the person who edits the files"
)]

mod daily;
mod integrity;
mod now;
mod sessions;
mod settings;
mod unfinished;

use jiff::tz::TimeZone;
use kenning_core::{FixedClock, Kind, SeededRandom, Space};
use kenning_engine::omi::{Now, NowUpdate};
use kenning_engine::{Caller, Engine, EventView, Options, Principal, Scope};
use kenning_kernel::Kernel;
use kenning_store::{Row, Store, Table, When};
use kenning_store_sqlite::Sqlite;
use kenning_vault::Dir;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// 2027-01-15T08:00:00 in UTC.
const NOW_MS: u64 = 1_800_000_000_000;

const DAY_MS: u64 = 86_400_000;

/// An engine whose context is in `omi` beneath `root`, and a clock that a test can move.
struct Place {
    engine: Engine,
    kernel: Arc<Kernel>,
    clock: Arc<FixedClock>,
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// Opens a directory again, as another process would.
    fn at(root: tempfile::TempDir) -> Self {
        let clock = Arc::new(FixedClock::at(NOW_MS));
        let (engine, kernel) = open_both(
            root.path().join("omi"),
            root.path().join("data"),
            &clock,
            false,
        );
        Self {
            engine,
            kernel,
            clock,
            root,
        }
    }

    fn reopened(self) -> Self {
        let Self {
            engine,
            kernel,
            root,
            ..
        } = self;
        drop((engine, kernel));
        Self::at(root)
    }

    /// A second process on the same directories, which may not write.
    fn reader(&self) -> Engine {
        let data = self.root.path().join("data");
        open(self.omi(), data, &self.clock, true)
    }

    fn omi(&self) -> PathBuf {
        self.root.path().join("omi")
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.omi().join(name)).unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.omi().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn update(&self, task: &str, completions: &[&str]) {
        self.engine
            .omi()
            .now_update(&owner(), update(task, completions))
            .unwrap();
    }

    fn now(&self) -> Now {
        self.engine.omi().now_read(&owner()).unwrap().unwrap()
    }

    /// The kinds of the events, oldest first.
    fn events(&self) -> Vec<String> {
        let events = self.engine.events_after(&owner(), 0, 1_000).unwrap();
        let kind = |it: EventView| it.json["kind"].as_str().unwrap().to_owned();
        events.into_iter().map(kind).collect()
    }

    /// The texts that a file's node had, the present one last.
    fn revisions(&self, key: &str) -> Vec<String> {
        let read = self.kernel.log().read(&Space::default(), |tx| {
            let node = tx.node_by_key("", Kind::Document, key, When::Now)?;
            let node = node.unwrap();
            let history = tx.history(node.id)?;
            let bodies = history.into_iter().map(|(it, _)| it.body);
            Ok(bodies.chain([node.body]).collect())
        });
        read.unwrap()
    }

    /// The keys of the nodes in which a word is found.
    fn found(&self, word: &str) -> Vec<String> {
        let wanted = kenning_search::tokens(word);
        let read = self.kernel.log().read(&Space::default(), |tx| {
            let mut nodes = BTreeSet::new();
            tx.scan(Table::Passages, &mut |row| {
                if let Row::Passage(it) = row {
                    let tokens = format!("{} {}", it.passage.tokens, it.passage.title_tokens);
                    if tokens
                        .split(' ')
                        .any(|it| wanted.iter().any(|word| word == it))
                    {
                        nodes.insert(it.node);
                    }
                }
                Ok(())
            })?;
            let mut keys = Vec::new();
            for node in nodes {
                keys.extend(tx.node(node, When::Now)?.map(|it| it.key));
            }
            keys.sort();
            Ok(keys)
        });
        read.unwrap()
    }

    fn is_clean(&self) -> bool {
        let report = self.engine.verify(&Space::default(), &|_| ());
        report.unwrap().is_clean()
    }
}

fn open(omi: PathBuf, data: PathBuf, clock: &Arc<FixedClock>, read_only: bool) -> Engine {
    open_both(omi, data, clock, read_only).0
}

/// The engine, and the kernel for what no door can reach.
fn open_both(
    omi: PathBuf,
    data: PathBuf,
    clock: &Arc<FixedClock>,
    read_only: bool,
) -> (Engine, Arc<Kernel>) {
    let (kernel, wings) = options(omi, data, clock, read_only).split();
    let kernel = Arc::new(Kernel::open(kernel).unwrap());
    let engine = Engine::over(Arc::clone(&kernel), wings).unwrap();
    (engine, kernel)
}

fn options(omi: PathBuf, data: PathBuf, clock: &Arc<FixedClock>, read_only: bool) -> Options {
    let data = Dir::create(&data).unwrap();
    Options {
        store: Store::new(Sqlite::open(data.path()).unwrap()),
        data,
        vault: None,
        omi: Some(omi),
        project: None,
        wasm: kenning_engine::kami::WasmOptions::default(),
        items: kenning_engine::kiwi::ItemOptions::default(),
        repositories: kenning_engine::koi::RepositoryOptions::default(),
        mail: None,
        web: kenning_engine::koi::WebOptions::default(),
        space: Space::default(),
        clock: clock.clone(),
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(7)),
        environment: Arc::new(|_| None),
        shared: false,
        read_only,
    }
}

fn owner() -> Caller {
    Caller::new(Principal::owner(Space::default()))
}

/// Somebody with one scope only.
fn only(scope: Scope) -> Caller {
    Caller::new(Principal {
        scopes: vec![scope],
        ..Principal::owner(Space::default())
    })
}

fn update(task: &str, completions: &[&str]) -> NowUpdate {
    NowUpdate {
        task: Some(task.to_owned()),
        completions: Some(completions.iter().map(|&it| it.to_owned()).collect()),
        ..NowUpdate::default()
    }
}
