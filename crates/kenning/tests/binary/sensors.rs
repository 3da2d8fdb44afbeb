//! Repositories and mail through the real binary, killed in the middle of reading them.

use crate::Place;
use kenning_core::{Clock, SeededRandom, Space};
use kenning_engine::koi::NewRepository;
use kenning_engine::{Caller, Engine, Options, Principal};
use kenning_store::Store;
use kenning_store_sqlite::Sqlite;
use kenning_vault::Dir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Enough that a scan takes several transactions.
const FILES: usize = 1_500;

/// How often a process is killed.
const KILLS: usize = 24;

struct Wall;

impl Clock for Wall {
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        u64::try_from(since.unwrap().as_millis()).unwrap()
    }
}

fn repositories(place: &Place) -> PathBuf {
    place.0.path().join("repositories")
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdout(Stdio::null())
        .status();
    assert!(done.unwrap().success(), "git {args:?}");
}

/// A repository with files of this edition.
fn commit(place: &Place, edition: usize) {
    let dir = repositories(place).join("many");
    if edition == 0 {
        std::fs::create_dir_all(&dir).unwrap();
        git(&dir, &["init", "--quiet", "--initial-branch=main"]);
    }
    for n in 0..FILES {
        let text = format!("file {n} in the edition {edition}\n");
        // Some files are renamed and some are gone in each edition.
        let name = if n % 10 == edition % 10 {
            format!("{n}-{edition}.md")
        } else {
            format!("{n}.md")
        };
        let other = dir.join(format!("{n}.md"));
        if n % 10 == edition % 10 {
            drop(std::fs::remove_file(other));
        }
        std::fs::write(dir.join(name), text).unwrap();
    }
    git(&dir, &["add", "--all"]);
    git(&dir, &["commit", "--quiet", "--message", "x"]);
}

/// As the HTTP API does it.
fn register(place: &Place) {
    let data = Dir::create(&place.0.path().join("data")).unwrap();
    let engine = Engine::open(Options {
        store: Store::new(Sqlite::open(data.path()).unwrap()),
        data,
        vault: None,
        omi: None,
        project: None,
        wasm: Default::default(),
        items: Default::default(),
        repositories: kenning_engine::koi::RepositoryOptions {
            paths: vec![repositories(place)],
            ..Default::default()
        },
        mail: None,
        web: Default::default(),
        space: Space::default(),
        clock: Arc::new(Wall),
        zone: jiff::tz::TimeZone::UTC,
        random: Arc::new(SeededRandom::new(99)),
        environment: Arc::new(|_| None),
        shared: false,
        read_only: false,
    });
    let new = NewRepository {
        repo_url: repositories(place).join("many").display().to_string(),
        ..NewRepository::default()
    };
    let owner = Caller::new(Principal::owner(Space::default()));
    engine
        .unwrap()
        .koi()
        .register_repository(&owner, &new)
        .unwrap();
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command
        .env("KENNING_REPO_PATHS", repositories(place))
        .env("KENNING_MAIL", place.0.path().join("mail"))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn answer(place: &Place, arguments: &[&str]) -> Value {
    let done = command(place, arguments).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {err}");
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Starts it and kills it after so long, if it has not ended.
fn killed(place: &Place, arguments: &[&str], after: Duration) {
    let mut child = command(place, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Documents by their names, from the raw export; no name twice.
fn documents(place: &Place, prefix: &str) -> BTreeMap<String, String> {
    let exported = place.good(&["export"]);
    let mut all = BTreeMap::new();
    for line in exported.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let node = &row["node"];
        if let Some(key) = node["key"].as_str().filter(|it| it.starts_with(prefix)) {
            let body = node["body"].as_str().unwrap().to_owned();
            assert_eq!(
                all.insert(key.to_owned(), body),
                None,
                "{key} is there twice"
            );
        }
    }
    all
}

fn verify(place: &Place) {
    let report = place.good(&["audit", "verify", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["clean"], true, "{report}");
}

#[test]
fn a_scan_that_is_killed_is_completed_by_the_next() {
    let place = Place::new();
    commit(&place, 0);
    register(&place);
    let scan = ["koi", "github_scan", "--action", "scan", "--json"];
    for n in 0..KILLS {
        if n % 6 == 5 {
            commit(&place, n);
        }
        killed(
            &place,
            &scan,
            Duration::from_millis(40 + 35 * (n as u64 % 12)),
        );
        let status = answer(&place, &["koi", "github_scan", "--json"]);
        let repository = &status["repos"][0];
        assert_eq!(repository["status"], "active", "nobody scans: {status}");
        // Nobody says that it is done before it is.
        if repository["last_commit_sha"].is_null() {
            assert_eq!(status["total_scans"], 0, "{status}");
        }
    }
    verify(&place);
    let done = answer(&place, &scan);
    assert_eq!(done["status"], "completed", "{done}");
    verify(&place);
    let found = documents(&place, "github:many:");
    let dir = repositories(&place).join("many");
    let files = std::fs::read_dir(&dir)
        .unwrap()
        .map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "md"));
    let expected: BTreeMap<String, String> = files
        .map(|it| {
            let name = it.file_name().unwrap().to_str().unwrap().to_owned();
            (
                format!("github:many:{name}"),
                std::fs::read_to_string(it).unwrap(),
            )
        })
        .collect();
    assert_eq!(found, expected, "every file is one document");
    let again = answer(&place, &scan);
    assert_eq!(again["results"][0]["files_processed"], 0, "{again}");
}

fn mbox(place: &Place, n: usize) {
    let one = |n: usize| {
        format!(
            "From a Mon Jan  5 10:00:00 2026\nMessage-ID: <{n}@x>\nSubject: number {n}\n\nbody {n}\n\n"
        )
    };
    let all: String = (0..n).map(one).collect();
    std::fs::write(place.0.path().join("mail"), all).unwrap();
}

#[test]
fn a_reading_of_mail_that_is_killed_is_completed_by_the_next() {
    let place = Place::new();
    mbox(&place, 2_000);
    let search = [
        "koi",
        "knowledge_search",
        "--query",
        "number 7",
        "--source",
        "email",
        "--json",
    ];
    for n in 0..KILLS {
        if n == KILLS / 2 {
            mbox(&place, 3_000);
        }
        killed(
            &place,
            &search,
            Duration::from_millis(30 + 25 * (n as u64 % 12)),
        );
    }
    verify(&place);
    let until = Instant::now() + Duration::from_secs(60);
    while documents(&place, "email:").len() < 3_000 && Instant::now() < until {
        answer(&place, &search);
    }
    let found = documents(&place, "email:");
    assert_eq!(found.len(), 3_000);
    assert_eq!(found["email:2999@x"].trim(), "body 2999");
    verify(&place);
}
