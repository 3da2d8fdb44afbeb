//! Backups, webhooks and repositories: what leaves the program and what it fetches, on a real store in a fresh directory.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and look at the files themselves"
)]

mod backups;
mod repositories;
mod server;
mod webhooks;

use jiff::tz::TimeZone;
use kenning_core::{FixedClock, SeededRandom, Space};
use kenning_engine::omi::{MemoryType, NewMemory, NowUpdate};
use kenning_engine::{Caller, Engine, Options, Principal, Scope};
use kenning_kernel::Kernel;
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use kenning_vault::Dir;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// 2027-01-15T08:00:00 in UTC.
const NOW_MS: u64 = 1_800_000_000_000;

const DAY_MS: u64 = 86_400_000;

/// An engine whose context is in `omi` beneath a fresh directory.
struct Place {
    engine: Arc<Engine>,
    kernel: Arc<Kernel>,
    clock: Arc<FixedClock>,
    root: Arc<tempfile::TempDir>,
    /// How often `HOOK_TOKEN` was read from the environment.
    n_token_reads: Arc<AtomicUsize>,
}

/// How a process is started.
#[derive(Clone, Copy, Default)]
struct Start {
    /// The data directory beneath the root.
    data: &'static str,
    /// `MOLTVAULT_KEY`
    passphrase: Option<&'static str>,
    read_only: bool,
}

impl Place {
    fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let clock = Arc::new(FixedClock::at(NOW_MS));
        let n_token_reads = Arc::default();
        let (engine, kernel) = open(root.path(), &clock, &n_token_reads, Start::default());
        Self {
            engine,
            kernel,
            clock,
            root,
            n_token_reads,
        }
    }

    /// Another process on the same directories.
    fn again(&self, start: Start) -> Self {
        let n_token_reads = Arc::default();
        let (engine, kernel) = open(self.root.path(), &self.clock, &n_token_reads, start);
        Self {
            engine,
            kernel,
            clock: Arc::clone(&self.clock),
            root: Arc::clone(&self.root),
            n_token_reads,
        }
    }

    fn omi(&self) -> PathBuf {
        self.root.path().join("omi")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A person edits a file of the context.
    fn put(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.omi()).unwrap();
        std::fs::write(self.omi().join(name), text).unwrap();
    }

    fn task(&self, task: &str) {
        let update = NowUpdate {
            task: Some(task.to_owned()),
            ..NowUpdate::default()
        };
        self.engine.omi().now_update(&owner(), update).unwrap();
    }

    fn remember(&self, content: &str) -> String {
        let new = NewMemory {
            content: content.to_owned(),
            memory_type: MemoryType::Fact,
            ..NewMemory::default()
        };
        let stored = self
            .engine
            .omi()
            .store_memories(&owner(), vec![new])
            .unwrap();
        stored[0].id.clone()
    }

    fn kinds(&self) -> Vec<String> {
        let events = self.engine.events_after(&owner(), 0, 1_000).unwrap();
        let kinds = events.iter().map(|it| it.json["kind"].as_str().unwrap());
        kinds.map(str::to_owned).collect()
    }
}

/// Waits until a condition holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The engine, and the kernel for what no door can reach.
fn open(
    root: &Path,
    clock: &Arc<FixedClock>,
    n_token_reads: &Arc<AtomicUsize>,
    start: Start,
) -> (Arc<Engine>, Arc<Kernel>) {
    let name = if start.data.is_empty() {
        "data"
    } else {
        start.data
    };
    let data = Dir::create(&root.join(name)).unwrap();
    // Another process makes other ids.
    let seed = data.list(".").unwrap().len() as u64;
    let passphrase = start.passphrase;
    let n_token_reads = Arc::clone(n_token_reads);
    let options = Options {
        store: Store::new(Sqlite::open(data.path()).unwrap()),
        data,
        vault: None,
        omi: Some(root.join("omi")),
        project: None,
        wasm: kenning_engine::kami::WasmOptions::default(),
        items: kenning_engine::kiwi::ItemOptions::default(),
        repositories: kenning_engine::koi::RepositoryOptions::default(),
        mail: None,
        web: kenning_engine::koi::WebOptions::default(),
        space: Space::default(),
        clock: clock.clone(),
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(seed)),
        environment: Arc::new(move |name| match name {
            "MOLTVAULT_KEY" => passphrase.map(str::to_owned),
            "HOOK_TOKEN" => {
                n_token_reads.fetch_add(1, Ordering::SeqCst);
                Some("s3cret".to_owned())
            }
            _ => None,
        }),
        shared: false,
        read_only: start.read_only,
    };
    let (kernel, wings) = options.split();
    let kernel = Arc::new(Kernel::open(kernel).unwrap());
    let engine = Engine::over(Arc::clone(&kernel), wings).unwrap();
    (Arc::new(engine), kernel)
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
