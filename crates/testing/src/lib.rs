//! For tests only: the whole program in a fresh directory, over a real store.
//!
//! Time stands still and randomness is seeded, so that a test gives the same result every time. No
//! product crate depends on this one; `xtask tidy` checks that.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

pub mod hostile;
pub mod mutate;
mod schema;
mod source;

/// What the wings stand on, for tests that look beneath them.
pub use kenning_kernel as kernel;
/// Directories, for the same.
pub use kenning_vault as vault;

use jiff::tz::TimeZone;
use kenning_audit::Log;
use kenning_core::{Clock, FixedClock, SeededRandom, Space};
use kenning_engine::{Caller, Engine, Environment, Options, Principal};
use kenning_kernel::Kernel;
use kenning_store::Store;
use kenning_store_postgres::Postgres;
use kenning_store_sqlite::Sqlite;
use kenning_tools::{Board, Reply, Selection};
use kenning_vault::Dir;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

pub use source::Source;

/// The time at the start of every test.
pub const NOW_MS: u64 = 1_800_000_000_000;

const SEED: u64 = 7;

/// The program that confines others in tests, since a test harness cannot do it. `cargo` puts it beside
/// the tests, once [`build_launcher`] was called.
pub fn launcher() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().and_then(Path::parent).unwrap();
    built.join("jail-launcher")
}

/// Builds [`launcher`], once in a process: a run of only some tests does not build it.
#[expect(
    clippy::disallowed_methods,
    reason = "the compiler is no stranger's program"
)]
pub fn build_launcher() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../jail/Cargo.toml");
        let target = launcher()
            .parent()
            .and_then(Path::parent)
            .unwrap()
            .to_owned();
        let built = std::process::Command::new(cargo)
            .args(["build", "--quiet", "--bin", "jail-launcher"])
            .args(["--manifest-path", manifest])
            .arg("--target-dir")
            .arg(target)
            .status();
        assert!(built.unwrap().success(), "jail-launcher was not built");
    });
}

/// The environment of a test: variables, and the network.
#[derive(Clone, Default)]
pub struct Outside {
    /// Names and values.
    pub variables: Vec<(String, String)>,
    /// How pages of the web are reached.
    pub web: kenning_engine::koi::WebOptions,
    /// Variables that change while the program runs.
    pub changing: Option<Environment>,
}

impl Outside {
    /// With these variables.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter();
        Self {
            variables: owned
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    fn environment(&self) -> Environment {
        let Self {
            variables,
            changing,
            ..
        } = self.clone();
        Arc::new(move |name| {
            let found = variables.iter().find(|it| it.0 == name);
            let found = found.map(|it| it.1.clone());
            let found = found.or_else(|| changing.as_ref().and_then(|it| it(name)));
            // Programs are found through the real `PATH`.
            found.or_else(|| std::env::var(name).ok().filter(|_| name == "PATH"))
        })
    }
}

/// The program in a fresh directory: its tool table, its vault (with one note, `People/Bill Baue.md`) and its data directory.
pub struct Fixture {
    /// The board.
    pub board: Board,
    /// The directory that holds `vault`, `omi`, `project` and `data`; gone when dropped.
    pub root: Arc<tempfile::TempDir>,
    /// What time it is; it stands still unless it is advanced.
    pub clock: Arc<FixedClock>,
    kernel: Arc<Kernel>,
    outside: Outside,
    /// How many times it was opened: each process makes other ids.
    n_opened: Arc<AtomicU64>,
}

impl Default for Fixture {
    fn default() -> Self {
        Self::select(Selection::default())
    }
}

impl Fixture {
    /// With every tool.
    pub fn new() -> Self {
        Self::default()
    }

    /// With these tools.
    pub fn select(selection: Selection) -> Self {
        Self::in_world(selection, Outside::default())
    }

    /// With these tools and this environment.
    pub fn in_world(selection: Selection, outside: Outside) -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let clock = Arc::new(FixedClock::at(NOW_MS));
        let vault = root.path().join("vault");
        Dir::create(&vault)
            .unwrap()
            .write("People/Bill Baue.md", b"# Bill Baue\n")
            .unwrap();
        let Opened { board, kernel } =
            open_at(root.path(), Some(vault), selection, &clock, SEED, &outside);
        Self {
            board,
            kernel,
            root,
            clock,
            outside,
            n_opened: Arc::default(),
        }
    }

    /// With these tools and no vault.
    pub fn without_vault(selection: Selection) -> Self {
        Self::without_vault_in(selection, Outside::default())
    }

    /// With these tools, this environment and no vault.
    pub fn without_vault_in(selection: Selection, outside: Outside) -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let clock = Arc::new(FixedClock::at(NOW_MS));
        let Opened { board, kernel } =
            open_at(root.path(), None, selection, &clock, SEED, &outside);
        Self {
            board,
            kernel,
            root,
            clock,
            outside,
            n_opened: Arc::default(),
        }
    }

    /// Over an existing project, which is only read, without a vault.
    pub fn over_project(project: &Path) -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let clock = Arc::new(FixedClock::at(NOW_MS));
        let places = Places {
            root: root.path(),
            vault: None,
            project: project.to_owned(),
        };
        let Opened { board, kernel } = open_places(
            &places,
            Selection::default(),
            &clock,
            SEED,
            &Outside::default(),
        );
        Self {
            board,
            kernel,
            root,
            clock,
            outside: Outside::default(),
            n_opened: Arc::default(),
        }
    }

    /// Without a vault, with this variable set.
    pub fn with_environment(environment: Environment) -> Self {
        let outside = Outside {
            changing: Some(environment),
            ..Outside::default()
        };
        Self::without_vault_in(Selection::default(), outside)
    }

    /// The same data with other tools, as another process would open it.
    pub fn again(&self, selection: Selection) -> Self {
        // Another process makes other ids.
        let vault = Some(self.vault()).filter(|it| it.is_dir());
        let seed = SEED + 1 + self.n_opened.fetch_add(1, Ordering::Relaxed);
        let root = self.root.path();
        let Opened { board, kernel } =
            open_at(root, vault, selection, &self.clock, seed, &self.outside);
        Self {
            board,
            kernel,
            root: Arc::clone(&self.root),
            clock: Arc::clone(&self.clock),
            outside: self.outside.clone(),
            n_opened: Arc::clone(&self.n_opened),
        }
    }

    /// A board that was opened by hand.
    pub fn of(opened: Opened, root: impl Into<Arc<tempfile::TempDir>>) -> Self {
        let Opened { board, kernel } = opened;
        Self {
            board,
            kernel,
            root: root.into(),
            clock: Arc::new(FixedClock::at(NOW_MS)),
            outside: Outside::default(),
            n_opened: Arc::default(),
        }
    }

    /// What the wings stand on.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The log, which the engine does not expose.
    pub fn log(&self) -> &Log {
        self.kernel.log()
    }

    /// The owner, at the command line.
    pub fn owner(&self) -> Caller {
        self.agent().by_person()
    }

    /// A caller over MCP, with every permission that a token can have.
    pub fn agent(&self) -> Caller {
        Caller::new(Principal::owner(Space::default()))
    }

    /// The kinds of all events so far.
    pub fn event_kinds(&self) -> Vec<String> {
        let events = self
            .board
            .engine()
            .events_after(&self.owner(), 0, 100_000)
            .unwrap();
        let kinds = events
            .iter()
            .map(|it| it.json["kind"].as_str().unwrap().to_owned());
        kinds.collect()
    }

    /// Where the vault is.
    pub fn vault(&self) -> PathBuf {
        self.root.path().join("vault")
    }

    /// Where NOW.md and the daily logs are, once something was written.
    pub fn omi(&self) -> PathBuf {
        self.root.path().join("omi")
    }

    /// Where repositories may be, once it exists.
    pub fn repositories(&self) -> PathBuf {
        self.root.path().join("repositories")
    }

    /// Where mail is read from, if it exists when the program is opened.
    pub fn mail(&self) -> PathBuf {
        self.root.path().join("mail")
    }

    /// Where the project is.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Writes a file of the project.
    pub fn put_document(&self, path: &str, text: &str) {
        let project = Dir::open(&self.project()).unwrap();
        project.write(path, text.as_bytes()).unwrap();
    }

    /// Calls a tool as the owner, see [`Fixture::call_as`].
    pub fn call(&self, name: &str, arguments: Value) -> Reply {
        self.call_as(name, arguments, &self.owner())
    }

    /// Calls a tool and validates its answer against its output schema, as clients do.
    pub fn call_as(&self, name: &str, arguments: Value, caller: &Caller) -> Reply {
        let reply = self.board.call(name, arguments, caller);
        let reply = reply.expect("a listed tool");
        assert_fits_schema(name, &reply);
        reply
    }
}

/// Fails unless an answer matches the tool's output schema. Errors are not checked.
///
/// # Panics
/// When a client that validates would refuse the answer.
pub fn assert_fits_schema(tool: &str, reply: &Reply) {
    static SCHEMAS: LazyLock<HashMap<&str, Value>> = LazyLock::new(|| {
        let declared = kenning_tools::TOOLS.iter();
        let declared = declared.filter_map(|tool| Some((tool.name(), tool.output_schema()?)));
        declared.collect()
    });
    if reply.is_error() {
        return;
    }
    let Some(schema) = SCHEMAS.get(tool) else {
        return;
    };
    let structured = reply.structured();
    let structured = structured.unwrap_or_else(|| panic!("`{tool}` answers nothing structured"));
    let faults = schema::faults(schema, structured);
    assert!(
        faults.is_empty(),
        "the answer of `{tool}` does not fit its output schema: {faults:#?}"
    );
}

/// The store that `KENNING_TEST_BACKEND` names: `sqlite`, or `postgres` with a new database for each
/// test.
fn store(root: &Path, data: &Path) -> Store {
    match std::env::var("KENNING_TEST_BACKEND").as_deref() {
        Ok("postgres") => {
            let note = Dir::open(root).unwrap();
            if !note.exists("database").unwrap() {
                let url = kenning_testing_postgres::shared().database();
                note.write_private("database", url.as_bytes()).unwrap();
            }
            let url = String::from_utf8(note.read("database", 4_096).unwrap()).unwrap();
            Store::new(Postgres::open(&url, None).unwrap())
        }
        Ok("sqlite") | Err(_) => Store::new(Sqlite::open(data).unwrap()),
        Ok(other) => panic!("KENNING_TEST_BACKEND: `{other}` is neither `sqlite` nor `postgres`"),
    }
}

/// A board, and what no door can reach.
pub struct Opened {
    /// The board.
    pub board: Board,
    /// What its engine stands on.
    pub kernel: Arc<Kernel>,
}

/// Opens the data directory beneath `root`, as another process would.
pub fn open(root: &Path, vault: Option<PathBuf>, selection: Selection) -> Opened {
    let clock = Arc::new(FixedClock::at(NOW_MS));
    open_at(root, vault, selection, &clock, SEED, &Outside::default())
}

fn open_at(
    root: &Path,
    vault: Option<PathBuf>,
    selection: Selection,
    clock: &Arc<FixedClock>,
    seed: u64,
    outside: &Outside,
) -> Opened {
    let project = root.join("project");
    Dir::create(&project).unwrap();
    let places = Places {
        root,
        vault,
        project,
    };
    open_places(&places, selection, clock, seed, outside)
}

/// Where everything is.
struct Places<'a> {
    root: &'a Path,
    vault: Option<PathBuf>,
    project: PathBuf,
}

fn open_places(
    places: &Places<'_>,
    selection: Selection,
    clock: &Arc<FixedClock>,
    seed: u64,
    outside: &Outside,
) -> Opened {
    let root = places.root;
    let data = Dir::create(&root.join("data")).unwrap();
    let (options, wings) = Options {
        store: store(root, data.path()),
        data,
        vault: places.vault.clone(),
        omi: Some(root.join("omi")),
        project: Some(places.project.clone()),
        wasm: kenning_engine::kami::WasmOptions::default(),
        items: kenning_engine::kiwi::ItemOptions {
            user: Some(root.join("user")),
            user_knowledge: Some(root.join("knowledge")),
            launcher: Some(launcher()),
            ..Default::default()
        },
        repositories: kenning_engine::koi::RepositoryOptions {
            paths: vec![root.join("repositories")],
            ..Default::default()
        },
        mail: Some(root.join("mail")).filter(|it| it.exists()),
        web: outside.web.clone(),
        space: Space::default(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(seed)),
        environment: outside.environment(),
        shared: false,
        read_only: selection.read_only,
    }
    .split();
    let kernel = Arc::new(Kernel::open(options).unwrap());
    let engine = Engine::over(Arc::clone(&kernel), wings).unwrap();
    let board = Board::new(Arc::new(engine), selection).unwrap();
    Opened { board, kernel }
}
