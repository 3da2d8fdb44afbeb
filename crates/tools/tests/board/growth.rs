//! What grows is bounded: files of killed processes, locks, grants, events of reads.

use crate::memories::{recall, store};
use kenning_testing::{Fixture, NOW_MS};
use kenning_tools::Selection;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// How many rows a bucket has.
fn rows(fixture: &Fixture, bucket: &str) -> usize {
    let space = fixture.owner().principal.space;
    let rows = fixture.log().read(&space, |tx| tx.list(bucket));
    rows.unwrap().len()
}

fn kinds(fixture: &Fixture) -> Vec<String> {
    let engine = fixture.board.engine();
    engine.omi().settle();
    let space = fixture.owner().principal.space;
    let events = fixture.log().read(&space, |tx| tx.events_after(0, 10_000));
    events.unwrap().into_iter().map(|it| it.kind).collect()
}

fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn touch(path: &Path, at_ms: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "half").unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    let at = UNIX_EPOCH + Duration::from_millis(at_ms);
    file.set_modified(at).unwrap();
}

#[test]
fn files_of_killed_writes_and_their_locks_are_removed_once_they_are_old() {
    const HOUR_MS: u64 = 3_600_000;
    let fixture = Fixture::new();
    let data = fixture.root.path().join("data");
    let name = ".0123456789abcdef.kenning-tmp";
    let old = [fixture.vault().join("People").join(name), data.join(name)];
    for path in &old {
        touch(path, NOW_MS - 30 * HOUR_MS);
    }
    let young = fixture.vault().join(name);
    touch(&young, NOW_MS - HOUR_MS);
    touch(&data.join("locks/0123.lock"), NOW_MS);
    let engine = fixture.board.engine();
    let doctor = |name: &str| {
        let seen = engine.doctor().unwrap().seen;
        let found = seen.into_iter().find(|it| it.0 == name);
        found.unwrap_or_else(|| panic!("no line `{name}`")).1
    };
    assert!(doctor("killed writes").starts_with("3 files"));
    assert!(doctor("lock files").starts_with("1;"));
    let cleaned = engine.clean_up().unwrap().unwrap();
    assert_eq!((cleaned.unfinished, cleaned.locks), (2, 1));
    assert!(young.exists() && old.iter().all(|it| !it.exists()));
    assert_eq!(engine.clean_up().unwrap(), None, "it was done lately");
    fixture.clock.advance(30 * HOUR_MS);
    let again = engine.clean_up().unwrap().unwrap();
    assert_eq!(again.unfinished, 1);
    assert!(doctor("killed writes").starts_with("0 files"));
    for name in [
        "run grants",
        "previewed pages",
        "environments",
        "in memory",
        "reads",
    ] {
        doctor(name);
    }
}

#[test]
fn the_doctor_tells_the_size_of_the_write_ahead_log_and_warns_of_a_large_one() {
    if std::env::var("KENNING_TEST_BACKEND").is_ok_and(|it| it == "postgres") {
        // Only the embedded store has one.
        return;
    }
    let fixture = Fixture::without_vault(Selection::default());
    let engine = fixture.board.engine();
    let told = || {
        let found = engine.doctor().unwrap();
        let line = found.seen.iter().find(|it| it.0 == "write-ahead log");
        let line = line.unwrap_or_else(|| panic!("{:?}", found.seen)).1.clone();
        let warnings = found.warnings.iter();
        let n = warnings.filter(|it| it.contains("write-ahead log")).count();
        (line, n)
    };
    store(&fixture, json!({ "content": "small" }));
    let (line, n_warnings) = told();
    assert!(line.starts_with("0."), "{line}");
    assert_eq!(n_warnings, 0);
    // A read that is under way keeps the log from being used again.
    let space = fixture.owner().principal.space;
    let body = "many words ".repeat(80_000);
    let read = fixture.log().read(&space, |tx| {
        tx.head()?;
        for n in 0..50 {
            let asked =
                json!({ "id": format!("v{n}"), "vector": [1.0], "metadata": { "a": body } });
            let reply = fixture.call("kg_vector_upsert", asked);
            assert!(!reply.is_error(), "{}", reply.text);
        }
        Ok(told())
    });
    let (line, n_warnings) = read.unwrap();
    assert!(!line.starts_with("0."), "{line}");
    assert_eq!(n_warnings, 1, "{line}");
}

#[test]
fn a_write_leaves_no_lock_file() {
    let fixture = Fixture::new();
    for n in 0..5 {
        let note = json!({ "path": format!("n{n}.md"), "content": "x" });
        assert!(!fixture.call("vault_write_note", note).is_error());
    }
    let locks = files(&fixture.root.path().join("data/locks"));
    assert!(locks.is_empty(), "{locks:?}");
}

#[test]
fn grants_of_runs_go_when_they_grant_nothing_any_more() {
    let fixture = Fixture::without_vault(Selection::default());
    let path = fixture.project().join(".ai/directives/auth/hello.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "---\nname: hello\nversion: 1.0.0\ncategory: auth\ndescription: Says hello\n---\n\n# Hello\n\n1. Say it.\n";
    fs::write(path, text).unwrap();
    let execute = |action: &str| {
        let asked = json!({ "item_type": "directive", "action": action, "item_id": "hello" });
        let reply = fixture.call("execute", asked);
        assert!(!reply.is_error(), "{}", reply.text);
    };
    execute("sign");
    for _ in 0..3 {
        execute("run");
    }
    assert_eq!(rows(&fixture, "items/grants"), 3);
    fixture.clock.advance(3_600_001);
    execute("run");
    assert_eq!(rows(&fixture, "items/grants"), 1);
}

#[test]
fn events_of_reads_are_as_many_as_the_configuration_asks_for() {
    for (reads, few, many) in [("all", 200, 200), ("sampled", 1, 100), ("off", 0, 0)] {
        let fixture = Fixture::new();
        let config = fixture.root.path().join("omi/config.yaml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, format!("events:\n  reads: {reads}\n")).unwrap();
        store(
            &fixture,
            json!({ "content": "The office plants are watered on Mondays" }),
        );
        for n in 0..200 {
            let query = format!("watered plants {n}");
            recall(&fixture, json!({ "query": query, "min_relevance": 0 }));
        }
        let kinds = kinds(&fixture);
        let n = kinds
            .iter()
            .filter(|it| *it == "MemoryRecalledEvent")
            .count();
        assert!((few..=many).contains(&n), "{reads}: {n}");
        let counted = rows(&fixture, "access") > 0;
        assert_eq!(counted, n > 0, "{reads}");
    }
}

#[test]
fn a_call_keeps_to_the_configuration_that_it_read_first() {
    let fixture = Fixture::new();
    let config = fixture.root.path().join("omi/config.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let put = |tokens: usize| {
        let text = format!("storage:\n  max_now_tokens: {tokens}\n");
        // Of another length, so that no file system takes one for the other.
        fs::write(&config, text).unwrap();
    };
    let kernel = fixture.kernel();
    let read = || kernel.memory_config().unwrap().max_now_tokens;
    put(900);
    kernel.with_wait_limit(fixture.owner().waited, || {
        assert_eq!(read(), 900);
        put(1_000);
        assert_eq!(read(), 900);
        // A part of the call is the call.
        kernel.with_wait_limit(fixture.owner().waited, || assert_eq!(read(), 900));
        // Another program in the same call has settings of its own.
        let other = Fixture::new();
        let theirs = other.kernel();
        let default = theirs.with_wait_limit(other.owner().waited, || theirs.memory_config());
        assert_ne!(default.unwrap().max_now_tokens, 900);
        assert_eq!(read(), 900);
        // What the call itself sets, it goes by.
        let omi = fixture.board.engine().omi();
        omi.config_set(&fixture.owner(), "storage.max_now_tokens", "70000")
            .unwrap();
        assert_eq!(read(), 70_000);
    });
    put(8_000);
    assert_eq!(read(), 8_000);
}
