//! Whatever a door asks for while somebody waits has one end for all its waits; long work has none.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kenning_core::{FixedClock, Result, SeededRandom, Space};
use kenning_engine::{Caller, Engine, NewToken, Options, Principal, Scope, Waited};
use kenning_store::{Backend, ReadWork, Store, Wake, WriteWork, patience};
use kenning_store_sqlite::Sqlite;
use kenning_vault::Dir;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long each wait for the store might have lasted; `None` is for ever.
type Waits = Arc<Mutex<Vec<Option<Duration>>>>;

/// A real backend that records how long its callers are willing to wait.
struct Watched(Sqlite, Waits);

impl Watched {
    fn note(&self) {
        let left = patience::until().map(|it| it.saturating_duration_since(Instant::now()));
        self.1.lock().unwrap().push(left);
    }
}

impl Backend for Watched {
    fn read(&self, space: &Space, work: &mut ReadWork<'_>) -> Result<()> {
        self.note();
        self.0.read(space, work)
    }

    fn write(&self, space: &Space, work: WriteWork) -> Result<()> {
        self.note();
        self.0.write(space, work)
    }

    fn subscribe(&self, wake: Wake) -> Duration {
        self.0.subscribe(wake)
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        self.note();
        self.0.spaces()
    }

    fn scrub(&self) -> Result<bool> {
        self.note();
        self.0.scrub()
    }

    fn check(&self) -> Result<Vec<String>> {
        self.note();
        self.0.check()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

fn open_engine(root: &std::path::Path, shared: bool) -> (Engine, Waits) {
    let data = Dir::create(&root.join("data")).unwrap();
    Dir::create(&root.join("vault")).unwrap();
    let waits = Waits::default();
    let backend = Watched(Sqlite::open(data.path()).unwrap(), waits.clone());
    let engine = Engine::open(Options {
        store: Store::new(backend),
        data,
        omi: None,
        project: None,
        wasm: kenning_engine::kami::WasmOptions::default(),
        items: kenning_engine::kiwi::ItemOptions::default(),
        repositories: kenning_engine::koi::RepositoryOptions::default(),
        mail: None,
        zone: jiff::tz::TimeZone::UTC,
        vault: Some(root.join("vault")),
        web: kenning_engine::koi::WebOptions::default(),
        space: Space::default(),
        clock: Arc::new(FixedClock::at(1_000)),
        random: Arc::new(SeededRandom::new(1)),
        environment: Arc::new(|_| None),
        shared,
        read_only: false,
    });
    (engine.unwrap(), waits)
}

fn owner() -> Caller {
    Caller::new(Principal::owner(Space::default()))
}

type Ask<'a> = &'a dyn Fn(&Engine, &Caller) -> Result<()>;

/// Everything that is asked while somebody waits.
const ASKED: &[(&str, Ask<'static>)] = &[
    ("write_note", &|it, who| {
        it.koi().write_note(who, "a.md", "a".to_owned()).map(drop)
    }),
    ("read_note", &|it, who| {
        it.koi().read_note(who, "a.md").map(drop)
    }),
    ("create_token", &|it, who| {
        let new = NewToken {
            name: "t".to_owned(),
            scopes: vec![Scope::Read],
            space: Space::default(),
            expires_ms: None,
        };
        it.create_token(who, new).map(drop)
    }),
    ("tokens", &|it, who| it.tokens(who).map(drop)),
    ("revoke_token", &|it, who| {
        let id = it.tokens(who)?.remove(0).id;
        it.revoke_token(who, &id)
    }),
    ("events_after", &|it, who| {
        it.events_after(who, 0, 9).map(drop)
    }),
    ("roots", &|it, who| it.roots(who).map(drop)),
    ("prove_inclusion", &|it, who| {
        it.prove_inclusion(who, "1").map(drop)
    }),
    ("prove_consistency", &|it, who| {
        it.prove_consistency(who, 1).map(drop)
    }),
    ("checkpoint", &|it, who| it.checkpoint(who).map(drop)),
];

#[test]
fn every_wait_of_a_call_has_an_end_on_a_shared_store() {
    let root = tempfile::tempdir().unwrap();
    let (engine, waits) = open_engine(root.path(), true);
    let most = Duration::from_millis(4_500);
    let gone = Duration::from_secs(3);
    for (name, ask) in ASKED {
        for waited in [Duration::ZERO, gone] {
            waits.lock().unwrap().clear();
            ask(&engine, &owner().after(Waited(waited))).unwrap();
            let seen = waits.lock().unwrap().clone();
            assert!(!seen.is_empty(), "{name}");
            let in_time = |it: &Option<Duration>| it.is_some_and(|it| it <= most - waited);
            assert!(seen.iter().all(in_time), "{name}: {seen:?}");
        }
    }
    waits.lock().unwrap().clear();
    engine.authenticate("kng_a_b").unwrap_err();
    assert!(matches!(waits.lock().unwrap()[..], [Some(_)]));
}

#[test]
fn long_work_and_an_embedded_store_wait_as_long_as_it_takes() {
    let root = tempfile::tempdir().unwrap();
    let (engine, waits) = open_engine(root.path(), false);
    for (name, ask) in ASKED {
        waits.lock().unwrap().clear();
        ask(&engine, &owner()).unwrap();
        assert!(waits.lock().unwrap().iter().all(Option::is_none), "{name}");
    }
    drop(engine);
    let (engine, waits) = open_engine(root.path(), true);
    let report = engine.verify(&Space::default(), &|_| ()).unwrap();
    assert!(report.n_events > 0);
    engine.backup(&owner(), &mut Vec::new()).unwrap();
    engine.export(&owner(), &mut Vec::new()).unwrap();
    assert!(waits.lock().unwrap().iter().all(Option::is_none));
}
