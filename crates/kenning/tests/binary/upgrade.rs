//! Stores and backups of older programs: `testing/stores` says how they were made.

use crate::Place;
use flate2::read::GzDecoder;
use kenning_testing_postgres::shared;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Every SQLite schema there has been.
const SQLITE: [&str; 7] = [
    "sqlite-1.db.gz",
    "sqlite-2.db.gz",
    "sqlite-3.db.gz",
    "sqlite-4.db.gz",
    "sqlite-5.db.gz",
    "sqlite-6.db.gz",
    "sqlite-7.db.gz",
];
/// Every PostgreSQL schema there has been.
const POSTGRES: [&str; 5] = [
    "postgres-1.sql.gz",
    "postgres-2.sql.gz",
    "postgres-3.sql.gz",
    "postgres-4.sql.gz",
    "postgres-5.sql.gz",
];
/// Every form of a backup there has been, and one of a store of today's schema.
const BACKUPS: [&str; 2] = ["backup-1.jsonl.gz", "backup-1-schema-7.jsonl.gz"];

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/stores")
}

fn unpack(name: &str, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let packed = File::open(stores().join(name)).unwrap();
    let mut out = File::create(to).unwrap();
    std::io::copy(&mut GzDecoder::new(packed), &mut out).unwrap();
}

/// What `audit verify` says of every space: counts and roots.
fn verified(place: &Place, at: &[&str]) -> String {
    let mut arguments = vec!["audit", "verify", "--json", "--all-spaces"];
    arguments.extend(at);
    place.good(&arguments)
}

fn recalled(place: &Place, at: &[&str]) -> String {
    let mut arguments = at.to_vec();
    arguments.extend(["omi", "memory_recall", "--query", "cache"]);
    place.good(&arguments)
}

/// What must hold of a store once this program has opened it: verified, read, written, moved to the
/// other kind of store and back, and restored from a backup, always with the same log.
fn lives_on(place: &Place, at: &[&str], other: &str) {
    let before = verified(place, at);
    let from = at[1];
    place.good(&["migrate", "--from", from, "--to", other]);
    let moved: Vec<&str> = if other.starts_with("postgres") {
        vec!["--database", other]
    } else {
        vec!["--data", other]
    };
    assert_eq!(verified(place, &moved), before);
    place.good(&[at, &["backup", "again.jsonl"]].concat());
    let restore = ["restore", "--keep-tokens", "again.jsonl"];
    place.good(&[&["--data", "restored"][..], &restore].concat());
    assert_eq!(verified(place, &["--data", "restored"]), before);
    // It goes on. A recall is an event too, so it comes now.
    assert!(recalled(place, at).contains("the cache is cold on Mondays"));
    let store = [
        "omi",
        "memory_store",
        "--content",
        "written by the newest program",
    ];
    place.good(&[at, &store].concat());
    verified(place, at);
    let recall = ["omi", "memory_recall", "--query", "newest program"];
    let found = place.good(&[at, &recall].concat());
    assert!(found.contains("written by the newest program"), "{found}");
}

#[test]
fn a_store_of_every_schema_is_kept() {
    let mut kept: Vec<String> = fs::read_dir(stores())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.ends_with(".gz"))
        .collect();
    kept.sort();
    let mut expected = [&SQLITE[..], &POSTGRES, &BACKUPS].concat();
    expected.sort_unstable();
    assert_eq!(
        kept, expected,
        "a file that is not tested, or a test without its file"
    );
    let migrations = |store: &str| {
        let folder = format!("{}/../{store}/migrations", env!("CARGO_MANIFEST_DIR"));
        fs::read_dir(folder).unwrap().count()
    };
    let hint = "keep a store of the new schema: testing/stores/README.md";
    assert_eq!(SQLITE.len(), migrations("store-sqlite"), "{hint}");
    assert_eq!(POSTGRES.len(), migrations("store-postgres"), "{hint}");
}

#[test]
fn a_file_of_every_schema_is_opened_verified_moved_and_backed_up() {
    for name in SQLITE {
        let place = Place::new();
        unpack(name, &place.0.path().join("old/kenning.db"));
        lives_on(&place, &["--data", "old"], &shared().database());
    }
}

/// The events of version 1 named no authors; whoever signed them is listed all the same.
#[test]
fn the_author_of_old_events_is_listed() {
    let place = Place::new();
    unpack(SQLITE[0], &place.0.path().join("data/kenning.db"));
    let list = || -> Vec<serde_json::Value> {
        let listed = place.good(&["--json", "audit", "authors", "list"]);
        let values = serde_json::Deserializer::from_str(&listed).into_iter();
        values.map(Result::unwrap).collect()
    };
    let of_default = |all: &[serde_json::Value]| -> Vec<serde_json::Value> {
        let own = all.iter().filter(|it| it["space"] == "default");
        own.cloned().collect()
    };
    let old = of_default(&list());
    assert_eq!(old.len(), 1, "{old:?}");
    assert!(old[0]["events"].as_u64().unwrap() > 0, "{old:?}");
    place.good(&["omi", "memory_store", "--content", "goes on"]);
    let new = of_default(&list());
    assert_eq!(new.len(), 2, "{new:?}");
    let find = |own: bool| new.iter().find(|it| it["own"] == own).unwrap().clone();
    assert_eq!(find(false)["did"], old[0]["did"]);
    assert_eq!(find(false)["maySign"], false);
    assert_eq!(find(true)["maySign"], true);
    let told = place.good(&["audit", "authors", "list"]);
    assert!(told.contains("signed events of an older version"), "{told}");
    assert!(place.good(&["doctor"]).contains("all is well"));
}

#[test]
fn a_database_of_every_schema_is_opened_verified_moved_and_backed_up() {
    for name in POSTGRES {
        let place = Place::new();
        let sql = place.0.path().join("old.sql");
        unpack(name, &sql);
        let url = shared().database();
        shared().sql(&url, &fs::read_to_string(sql).unwrap());
        lives_on(&place, &["--database", &url], "elsewhere");
    }
}

#[test]
fn a_backup_of_every_form_is_restored_and_backed_up_again() {
    for name in BACKUPS {
        let place = Place::new();
        unpack(name, &place.0.path().join("old.jsonl"));
        let url = shared().database();
        let mut reports = Vec::new();
        for at in [["--data", "new"], ["--database", &url]] {
            place.good(&[&at[..], &["restore", "--keep-tokens", "old.jsonl"]].concat());
            reports.push(verified(&place, &at));
            assert!(recalled(&place, &at).contains("the cache is cold on Mondays"));
            let search = json!({ "query": "deep", "vector": [0.25, -1, 3], "k": 1 }).to_string();
            let search = ["call", "kg_vector_search", "--json", &search];
            let found = place.good(&[&at[..], &search].concat());
            assert!(found.contains("\"deep\""), "{found}");
            place.good(&[&at[..], &["backup", "--force", "again.jsonl"]].concat());
        }
        assert_eq!(reports[0], reports[1]);
    }
}
