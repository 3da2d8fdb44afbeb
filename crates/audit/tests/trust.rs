//! Trust: authors, origins, rollbacks, clocks, and the upgrade from version 1 to version 2.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests write to files and logs as an intruder would"
)]

use kenning_audit::{
    Change, Draft, Event, Log, Origin, Report, Signer, Verify, archive, event, on_behalf_of,
    survey_authors, verify,
};
use kenning_core::{Clock as _, Code, Did, FixedClock, Hlc, Kind, Result, SeededRandom, Space};
use kenning_store::{CheckpointRow, EventRow, Store};
use kenning_store_sqlite::{FILE_NAME, Sqlite};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// After everything in the log of version 1.
const NOW_MS: u64 = 1_800_000_000_000;

fn open_at(directory: &Path, seed: u64, clock: &Arc<FixedClock>) -> Log {
    let random = SeededRandom::new(seed);
    let signer = Signer::generate(&random);
    let clock = Arc::clone(clock);
    let store = Store::new(Sqlite::open(directory).unwrap());
    Log::new(store, signer, clock, Arc::new(random))
}

fn open(directory: &Path, seed: u64) -> Log {
    open_at(directory, seed, &Arc::new(FixedClock::at(NOW_MS)))
}

fn here() -> Space {
    Space::default()
}

fn try_put(log: &Log, key: &str) -> Result<()> {
    let draft = Draft {
        kind: Kind::Document,
        project: String::new(),
        key: key.to_owned(),
        title: key.to_owned(),
        body: "body".to_owned(),
        props: Map::new(),
    };
    log.write(&here(), move |tx| {
        tx.put_node(draft)?;
        tx.record("NodePut", json!({ "said": "something" }))
            .map(drop)
    })
}

fn put(log: &Log, key: &str) {
    try_put(log, key).unwrap();
}

fn check(log: &Log) -> Report {
    check_with(log, &[], None)
}

fn check_with(log: &Log, authors: &[Did], since: Option<&CheckpointRow>) -> Report {
    let here = here();
    let asked = Verify {
        authors,
        since,
        ..Verify::of(&here).by(log.signer().did())
    };
    log.read(&here, |tx| verify(tx, &asked, &|_| ())).unwrap()
}

#[track_caller]
fn assert_clean(report: &Report) {
    assert_eq!(report.faults, Vec::<String>::new());
}

#[track_caller]
fn assert_fault(report: &Report, part: &str) {
    let faults = report.faults.join("\n");
    assert!(faults.contains(part), "`{part}` is not in:\n{faults}");
}

/// Appends as an intruder who can write to the store and has a key, but not the node's.
fn forge(log: &Log, intruder: &Signer, changes: Vec<Change>) {
    let head = log.read(&here(), |tx| tx.head()).unwrap().unwrap();
    let last = log.read(&here(), |tx| tx.events_after(head.seq - 1, 1));
    let origin = Origin::from_bytes(&last.unwrap()[0].sealed.origin).unwrap();
    let event = Event {
        parents: head.tips.clone(),
        hlc: head.hlc.next(),
        author: intruder.did().clone(),
        agent: None,
        kind: "Forged".to_owned(),
        changes,
        data: Value::Null,
    };
    let row = event.sign(head.seq + 1, &origin, [9; 16], intruder);
    append(log, row);
}

/// Appends a row and mends the head, as a program would.
fn append(log: &Log, row: EventRow) {
    let write = move |tx: &mut dyn kenning_store::WriteTx| {
        let mut head = tx.head()?.unwrap();
        tx.append_event(&row)?;
        let mut frontier = kenning_audit::merkle::Frontier {
            size: head.seq,
            roots: head.frontier.clone(),
        };
        frontier.push(kenning_audit::merkle::leaf_hash(&row.id.0), |_, _, _| ());
        head.seq = row.seq;
        head.hlc = row.hlc;
        head.tips = vec![row.id];
        head.frontier = frontier.roots;
        tx.put_head(&head)
    };
    log.store().write(&here(), write).unwrap();
}

#[test]
fn an_event_of_a_key_that_is_no_author_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "a");
    assert_clean(&check(&log));
    forge(&log, &Signer::from_secret(&[6; 32]), Vec::new());
    assert_fault(&check(&log), "who is not an author of this log");
}

#[test]
fn a_key_that_added_itself_is_noticed_until_an_author_confirms_it() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path(), 1);
    put(&first, "a");
    let second = open(directory.path(), 2);
    put(&second, "b");
    let kinds = first.read(&here(), |tx| {
        let rows = tx.events_after(0, 9)?;
        Ok(rows.into_iter().map(|it| it.kind).collect::<Vec<_>>())
    });
    assert_eq!(kinds.unwrap(), ["NodePut", "AuthorJoined", "NodePut"]);
    assert_fault(&check(&first), "no trusted author has confirmed it");
    assert_clean(&check(&second));
    let trusted = check_with(&first, &[second.signer().did().clone()], None);
    assert_clean(&trusted);
    // A stranger to the log only gets a notice.
    let stranger = check(&open(directory.path(), 3));
    assert_clean(&stranger);
    assert!(
        stranger.notices[0].contains("no trusted author"),
        "{stranger:?}"
    );

    let did = second.signer().did().clone();
    first
        .write(&here(), move |tx| {
            tx.add_author(&did);
            tx.record("AuthorAdded", Value::Null)
        })
        .unwrap();
    assert_clean(&check(&first));
    assert!(check(&first).authors.iter().all(|it| it.is_trusted));
}

#[test]
fn a_revoked_key_writes_nothing_more_and_what_it_forges_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (open(directory.path(), 1), open(directory.path(), 2));
    put(&first, "a");
    put(&second, "b");
    let did = second.signer().did().clone();
    first
        .write(&here(), move |tx| {
            tx.add_author(&did);
            tx.revoke_author(&did);
            tx.record("AuthorRevoked", Value::Null)
        })
        .unwrap();
    assert_clean(&check(&first));
    let refused = try_put(&second, "c").unwrap_err();
    assert_eq!(refused.code, Code::Denied, "{refused}");
    let random = SeededRandom::new(2);
    forge(&first, &Signer::generate(&random), Vec::new());
    assert_fault(&check(&first), "who was revoked by event");
}

/// Whoever revokes a key that added itself has seen what it signed until then.
#[test]
fn what_a_key_signed_before_its_revocation_is_good_and_what_it_signs_after_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (open(directory.path(), 1), open(directory.path(), 2));
    put(&first, "a");
    put(&second, "b");
    assert_fault(&check(&first), "kenning audit authors revoke did:key:");
    let did = second.signer().did().clone();
    let revoked = did.clone();
    first
        .write(&here(), move |tx| {
            tx.revoke_author(&revoked);
            tx.record("AuthorRevoked", Value::Null)
        })
        .unwrap();
    let report = check(&first);
    assert_clean(&report);
    let told = report.authors.iter().find(|it| it.did == did.as_str());
    let told = told.unwrap();
    assert!(told.revoked_at.is_some() && !told.is_trusted, "{told:?}");
    let asked_by = first.signer().did();
    let here = here();
    let asked = Verify::of(&here).by(asked_by);
    let surveyed = first.read(&here, |tx| survey_authors(tx, &asked)).unwrap();
    assert_eq!(surveyed, report.authors);
    assert!(!told.signed_after_revocation());

    forge(&first, &Signer::generate(&SeededRandom::new(2)), Vec::new());
    let report = check(&first);
    assert_fault(&report, "who was revoked by event");
    assert_fault(&report, "kenning audit export --after");
    let faults = report.faults.join("\n");
    assert!(!faults.contains("authors add"), "{faults}");
    assert!(report.authors.iter().any(|it| it.signed_after_revocation()));
}

#[test]
fn an_intruder_cannot_revoke_the_owner() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "a");
    let intruder = Signer::from_secret(&[6; 32]);
    let changes = vec![
        Change::AddAuthor {
            author: intruder.did().clone(),
        },
        Change::RevokeAuthor {
            author: log.signer().did().clone(),
        },
    ];
    forge(&log, &intruder, changes);
    let report = check(&log);
    assert_fault(&report, "no trusted author has confirmed it");
    assert!(
        !report.faults.join("\n").contains("who was revoked"),
        "{:?}",
        report.faults
    );
}

#[test]
fn the_log_of_another_space_and_of_another_store_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "a");
    log.checkpoint(&here()).unwrap();
    let file = directory.path().join(FILE_NAME);
    let connection = rusqlite::Connection::open(&file).unwrap();
    for table in ["events", "checkpoints", "heads", "nodes"] {
        let sql = format!("UPDATE {table} SET space = 'other'");
        connection.execute(&sql, []).unwrap();
    }
    let other: Space = "other".parse().unwrap();
    let asked = Verify::of(&other);
    let report = log.read(&other, |tx| verify(tx, &asked, &|_| ())).unwrap();
    assert_fault(&report, "event 1 belongs to the space `default`");
    assert_fault(
        &report,
        "checkpoint 0: it belongs to another log or another space",
    );

    // The same key, another log.
    let elsewhere = tempfile::tempdir().unwrap();
    let source = open(elsewhere.path(), 5);
    put(&source, "a");
    let mine = tempfile::tempdir().unwrap();
    let target = open(mine.path(), 7);
    put(&target, "a");
    let head = target.read(&here(), |tx| tx.head()).unwrap().unwrap();
    let foreign = source.read(&here(), |tx| tx.events_after(0, 1)).unwrap();
    let origin = Origin::from_bytes(&foreign[0].sealed.origin).unwrap();
    let signer = Signer::generate(&SeededRandom::new(7));
    let event = Event {
        parents: head.tips.clone(),
        hlc: head.hlc.next(),
        author: signer.did().clone(),
        agent: None,
        kind: "Told".to_owned(),
        changes: Vec::new(),
        data: Value::Null,
    };
    append(&target, event.sign(2, &origin, [1; 16], &signer));
    assert_fault(&check(&target), "no event applies them");
}

#[test]
fn a_checkpoint_that_was_kept_shows_a_rollback() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "a");
    let yesterday = tempfile::tempdir().unwrap();
    let copy = yesterday.path().join(FILE_NAME);
    let connection = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    let sql = format!("VACUUM INTO '{}'", copy.display());
    connection.execute(&sql, []).unwrap();
    put(&log, "b");
    let kept = log.checkpoint(&here()).unwrap();
    put(&log, "c");
    assert_clean(&check_with(&log, &[], Some(&kept)));

    // Yesterday's file is sound by itself, whether or not it was written to since.
    let old = open(yesterday.path(), 1);
    assert_clean(&check(&old));
    assert_fault(&check_with(&old, &[], Some(&kept)), "rolled back");
    put(&old, "other");
    assert_clean(&check(&old));
    assert_fault(
        &check_with(&old, &[], Some(&kept)),
        "does not match the log",
    );

    // A checkpoint that the store had and has no more was deleted.
    connection.execute("DELETE FROM checkpoints", []).unwrap();
    assert_clean(&check(&log));
    assert_fault(
        &check_with(&log, &[], Some(&kept)),
        "is not in the store: it was deleted",
    );

    // All is gone: nothing is wrong in itself, and the checkpoint tells.
    let nothing = tempfile::tempdir().unwrap();
    let empty = open(nothing.path(), 1);
    assert_clean(&check(&empty));
    assert_fault(&check_with(&empty, &[], Some(&kept)), "it was removed");

    let mut forged = kept.clone();
    forged.seq = 1;
    assert_fault(
        &check_with(&log, &[], Some(&forged)),
        "the signature does not match",
    );
}

#[test]
fn a_checkpoint_of_another_log_is_called_that_and_names_no_keys() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (log, other) = (open(one.path(), 1), open(two.path(), 2));
    put(&log, "a");
    for key in ["a", "b"] {
        put(&other, key);
        let kept = other.checkpoint(&here()).unwrap();
        let report = check_with(&log, &[], Some(&kept));
        assert_eq!(report.faults.len(), 1, "{:?}", report.faults);
        assert_fault(&report, "the checkpoint that was kept is of another log");
    }
    let elsewhere: Space = "elsewhere".parse().unwrap();
    log.write(&elsewhere, |tx| tx.record("Noted", Value::Null))
        .unwrap();
    let kept = log.checkpoint(&elsewhere).unwrap();
    let report = check_with(&log, &[], Some(&kept));
    assert_eq!(
        report.faults,
        ["the checkpoint that was kept is of the space `elsewhere`"]
    );
}

/// Removing the whole log does not make the remaining rows valid.
#[test]
fn a_protected_row_without_any_event_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    log.write(&here(), |tx| tx.set("tokens", "a", b"b"))
        .unwrap();
    log.write(&here(), |tx| tx.set("cursors", "a", b"b"))
        .unwrap();
    let report = check(&log);
    assert_clean(&report);
    assert_eq!((report.n_pairs, report.n_unchecked), (1, 1));
    let connection = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    connection
        .execute_batch("DELETE FROM events; DELETE FROM heads; DELETE FROM nodes;")
        .unwrap();
    assert_fault(&check(&log), "the row `a` of `tokens` is not in the log");
}

#[test]
fn a_checkpoint_of_an_empty_log_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let empty = log.checkpoint(&here()).unwrap();
    assert_eq!((empty.seq, empty.height), (0, 0));
    assert_clean(&check(&log));
    put(&log, "a");
    assert_clean(&check(&log));
    assert_clean(&check_with(&log, &[], Some(&empty)));
    let first = log.checkpoint(&here()).unwrap();
    assert_eq!((first.seq, first.height), (1, 0));
    assert_clean(&check(&log));
}

/// What the program of version 1 wrote: two memories, a trusted key, a token, and a checkpoint of the
/// log while it was empty.
fn load_version_1(log: &Log) -> Vec<Space> {
    let lines: Vec<Value> = include_str!("golden/log-v1.jsonl")
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let mut rows: Vec<(Space, Vec<Value>)> = Vec::new();
    for line in lines {
        match line.get("space") {
            Some(space) => rows.push((space.as_str().unwrap().parse().unwrap(), Vec::new())),
            None if line.get("table").is_some() => rows.last_mut().unwrap().1.push(line),
            None => {}
        }
    }
    let spaces = rows.iter().map(|it| it.0.clone()).collect();
    for (space, rows) in rows {
        archive::load(log.store(), &space, rows.into_iter().map(Ok)).unwrap();
    }
    spaces
}

#[test]
fn a_log_of_version_1_verifies_and_goes_over_to_version_2() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    let spaces = load_version_1(&log);
    assert_eq!(spaces.len(), 2);
    let report = check(&log);
    assert_clean(&report);
    assert_eq!((report.n_events, report.origin), (5, None));
    assert!(report.n_unsigned > 0, "version 1 signed no passages");

    let kept = log.checkpoint(&here()).unwrap();
    assert_eq!(kept.version, 2);
    let kinds = log.read(&here(), |tx| tx.events_after(5, 9)).unwrap();
    assert_eq!(kinds[0].kind, "LogUpgraded");
    put(&log, "new");
    let report = check_with(&log, &[], Some(&kept));
    assert_clean(&report);
    assert!(report.origin.is_some());
    assert_eq!(report.authors.len(), 2, "the old key and the new");

    // Rows that version 1 did not sign are checked from then on.
    let connection = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    let sql = "UPDATE kv SET value = x'00' WHERE bucket = 'tools/trusted'";
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    assert_fault(&check(&log), "of `tools/trusted` is not what the log says");
}

#[test]
fn a_backup_keeps_what_version_2_added() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = open(one.path(), 1);
    put(&source, "a");
    let agent = Signer::from_secret(&[3; 32]).did().clone();
    let for_agent = agent.clone();
    let told = on_behalf_of(Some(for_agent), || {
        source.write(&here(), |tx| {
            tx.set("tokens", "t", b"v")?;
            tx.record("Told", json!({ "n": 1.5 }))
        })
    });
    told.unwrap();
    let kept = source.checkpoint(&here()).unwrap();
    let mut rows = Vec::new();
    source
        .read(&here(), |tx| {
            archive::dump(tx, &mut |row| {
                rows.push(Ok(row));
                Ok(())
            })
        })
        .unwrap();
    let target = open(two.path(), 2);
    archive::load(target.store(), &here(), rows.into_iter()).unwrap();
    assert_clean(&check_with(&target, &[], Some(&kept)));
    let events = target.read(&here(), |tx| tx.events_after(0, 9)).unwrap();
    assert_eq!(events[1].sealed.agent, agent.to_string());
    assert_eq!(event::data(&events[1]), json!({ "n": 1.5 }));
    // The restored node continues with its own key.
    put(&target, "b");
    assert_clean(&check(&target));
}

#[test]
fn an_erased_event_is_counted_and_the_log_still_verifies() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), 1);
    put(&log, "a");
    put(&log, "b");
    log.write(&here(), |tx| {
        let first = tx.events_after(0, 1)?.remove(0);
        assert!(tx.erase_event(&first)?);
        tx.record("Erased", json!({})).map(drop)
    })
    .unwrap();
    let connection = rusqlite::Connection::open(directory.path().join(FILE_NAME)).unwrap();
    let report = check(&log);
    assert_clean(&report);
    assert_eq!(report.n_erased, 1);
    let sql = "UPDATE events SET data = x'7b7d' WHERE seq = 2";
    connection.execute(sql, []).unwrap();
    assert_fault(&check(&log), "the data is not what was signed");
}

#[test]
fn nothing_is_written_by_a_clock_that_is_far_behind_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let ahead = Arc::new(FixedClock::at(NOW_MS + 400 * DAY_MS));
    put(&open_at(directory.path(), 1, &ahead), "from the future");

    let log = open(directory.path(), 1);
    let refused = try_put(&log, "b").unwrap_err();
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("400 days after"), "{refused}");
    assert!(refused.hint.unwrap().contains("kenning audit reset-clock"));
    assert_eq!(log.roots(&here()).unwrap().seq, 1, "nothing was written");

    log.reset_clock(&here()).unwrap();
    put(&log, "b");
    let last = log.read(&here(), |tx| tx.events_after(2, 1)).unwrap();
    assert_eq!(last[0].hlc.ms(), NOW_MS, "time goes on where it is");
    assert_clean(&check(&log));
    log.checkpoint(&here()).unwrap();
    assert_clean(&check(&log));

    // Only an event that says so may go back.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = open(elsewhere.path(), 1);
    put(&other, "a");
    let head = other.read(&here(), |tx| tx.head()).unwrap().unwrap();
    let first = other.read(&here(), |tx| tx.events_after(0, 1)).unwrap();
    let origin = Origin::from_bytes(&first[0].sealed.origin).unwrap();
    let signer = Signer::generate(&SeededRandom::new(1));
    let event = Event {
        parents: head.tips,
        hlc: Hlc::from_ms(NOW_MS - 1),
        author: signer.did().clone(),
        agent: None,
        kind: "Told".to_owned(),
        changes: Vec::new(),
        data: Value::Null,
    };
    append(&other, event.sign(2, &origin, [1; 16], &signer));
    assert_fault(&check(&other), "is not later than its parent");
}

#[test]
fn nothing_is_written_by_a_clock_that_is_ahead_by_many_years() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(FixedClock::at(NOW_MS));
    let log = open_at(directory.path(), 1, &clock);
    put(&log, "a");
    clock.advance(400 * DAY_MS);
    put(&log, "after a pause");
    clock.advance(20 * 366 * DAY_MS);
    let refused = try_put(&log, "b").unwrap_err();
    assert_eq!(refused.code, Code::Unavailable, "{refused}");
    assert!(clock.now_ms() > NOW_MS);

    let elsewhere = tempfile::tempdir().unwrap();
    let beyond = Arc::new(FixedClock::at(200 * 366 * DAY_MS));
    let log = open_at(elsewhere.path(), 1, &beyond);
    assert_eq!(try_put(&log, "a").unwrap_err().code, Code::Unavailable);
    assert_eq!(log.roots(&here()).unwrap().seq, 0);
}
