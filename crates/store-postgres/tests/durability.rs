//! Guarantees that do not depend on the database's configuration or its other users.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and write rows that no event is about"
)]

use kenning_core::{Code, Space};
use kenning_store::{Store, Table};
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::{Version, own, shared};
use std::collections::BTreeSet;
use std::time::Duration;

fn open(url: &str) -> Store {
    Store::new(Postgres::open(url, None).unwrap())
}

fn set(store: &Store, key: &str, value: &str) -> kenning_core::Result<()> {
    let (key, value) = (key.to_owned(), value.to_owned());
    store.write(&Space::default(), move |tx| {
        tx.set("bucket", &key, value.as_bytes())
    })
}

/// Runs SQL for every later session of this database.
fn alter(url: &str, setting: &str) {
    let name = url.rsplit('/').next().unwrap();
    shared().sql(url, &format!("ALTER DATABASE \"{name}\" SET {setting}"));
}

/// Counts up in a transaction: two concurrent calls must not see the same number.
fn count_up(store: &Store) -> kenning_core::Result<()> {
    store.write(&Space::default(), |tx| {
        let n = tx.get("bucket", "count")?;
        let n: u64 = n.map_or(0, |it| String::from_utf8(it).unwrap().parse().unwrap());
        tx.set("bucket", "count", (n + 1).to_string().as_bytes())
    })
}

#[test]
fn a_commit_waits_for_the_disk_whatever_the_database_says() {
    let url = shared().database();
    drop(open(&url));
    // The trigger notes how the transaction that writes is committed.
    shared().sql(
        &url,
        "CREATE TABLE seen (setting TEXT);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO seen VALUES (current_setting('synchronous_commit')
             || ', ' || current_setting('transaction_isolation'));
           RETURN NEW; END $$;
         CREATE TRIGGER noted BEFORE INSERT ON kv FOR EACH ROW EXECUTE FUNCTION note()",
    );
    alter(&url, "default_transaction_isolation = 'serializable'");
    for (setting, expected) in [
        ("off", "on"),
        ("local", "on"),
        ("remote_write", "on"),
        ("on", "on"),
        ("remote_apply", "remote_apply"),
    ] {
        alter(&url, &format!("synchronous_commit = '{setting}'"));
        shared().sql(&url, "DELETE FROM seen");
        set(&open(&url), setting, "").unwrap();
        assert_eq!(
            shared().sql(&url, "SELECT setting FROM seen"),
            format!("{expected}, read committed"),
            "{setting}"
        );
    }
}

#[test]
fn a_stricter_default_isolation_loses_no_write_of_two_servers() {
    let url = shared().database();
    drop(open(&url));
    alter(&url, "default_transaction_isolation = 'repeatable read'");
    let servers = [open(&url), open(&url)];
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| {
                for _ in 0..50 {
                    count_up(server).unwrap();
                }
            });
        }
    });
    let count = servers[0].read(&Space::default(), |tx| tx.get("bucket", "count"));
    assert_eq!(count.unwrap().unwrap(), b"100");
}

#[test]
fn a_server_that_does_not_sync_is_refused_unless_the_address_allows_it() {
    let server = own(Version::default());
    let url = server.database();
    let store = open(&url);
    set(&store, "one", "").unwrap();
    drop(store);
    server.sql(&url, "ALTER SYSTEM SET fsync = off");
    server.sql(&url, "SELECT pg_reload_conf()");
    // The settings reach new sessions when the server has read its file again.
    while server.sql(&url, "SHOW fsync") == "on" {
        std::thread::yield_now();
    }
    let Err(refused) = Postgres::open(&url, None) else {
        panic!("it was opened")
    };
    assert_eq!(refused.code, Code::Denied);
    assert!(refused.message.contains("fsync=off"), "{refused}");
    assert!(refused.hint.unwrap().contains("allow_fsync_off=true"));

    for more in [
        "?allow_fsync_off=true",
        "?sslmode=disable&allow_fsync_off=true",
    ] {
        set(&open(&format!("{url}{more}")), "two", "").unwrap();
    }
    for more in ["?allow_fsync_off=false", "?sslmode=disable"] {
        let refused = Postgres::open(&format!("{url}{more}"), None).err().unwrap();
        assert_eq!(refused.code, Code::Denied, "{more}");
    }
    let bad = Postgres::open(&format!("{url}?allow_fsync_off=yes"), None);
    assert_eq!(bad.err().unwrap().code, Code::InvalidInput);
}

#[test]
fn a_server_stops_writing_once_a_newer_one_has_upgraded_the_tables() {
    let url = shared().database();
    let old = open(&url);
    set(&old, "before", "").unwrap();
    shared().sql(&url, "UPDATE kenning_version SET version = 999");
    for _ in 0..2 {
        let refused = set(&old, "after", "").unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.message.contains("version 999"), "{refused}");
    }
    let keys = old.read(&Space::default(), |tx| tx.list("bucket")).unwrap();
    assert_eq!(keys.len(), 1);
}

/// One statement for a whole table ran into the time limit of statements.
#[test]
fn a_table_is_read_in_many_statements() {
    let url = shared().database();
    let store = open(&url);
    shared().sql(
        &url,
        "INSERT INTO tiles (space, level, idx, hash)
         SELECT 'default', 1, n, sha256(n::text::bytea) FROM generate_series(1, 2500) n",
    );
    let when = "SELECT query_start FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'SELECT level, idx%FROM tiles%'";
    let (mut n_rows, mut began) = (0, BTreeSet::new());
    let scanned = store.read(&Space::default(), |tx| {
        tx.scan(Table::Tiles, &mut |_| {
            n_rows += 1;
            if n_rows % 1_200 == 1 {
                began.insert(shared().sql(&url, when));
            }
            Ok(())
        })
    });
    scanned.unwrap();
    assert_eq!((n_rows, began.len()), (2_500, 3), "{began:?}");
}

#[test]
fn a_lock_is_shared_by_all_servers_and_ends_with_its_holder() {
    let url = shared().database();
    let (one, two) = (open(&url), open(&url));
    let held = one.lock("item", Duration::ZERO).unwrap();
    assert!(held.is_some());
    let refused = two.lock("item", Duration::from_millis(60)).err().unwrap();
    assert_eq!(refused.code, Code::Unavailable);
    drop(two.lock("another", Duration::ZERO).unwrap());
    drop(held);
    let held = two.lock("item", Duration::from_secs(3)).unwrap();
    // A server that dies says nothing; its connection ends.
    shared().kill_backends(&url);
    drop(one.lock("item", Duration::from_secs(3)).unwrap());
    drop(held);
    // Failed attempts do not count toward the limit for ever.
    let held = one.lock("item", Duration::ZERO).unwrap();
    for _ in 0..20 {
        assert!(two.lock("item", Duration::ZERO).is_err());
    }
    drop(held);
    drop(two.lock("item", Duration::from_secs(3)).unwrap());
}

#[test]
fn objects_that_no_migration_made_are_reported() {
    let url = shared().database();
    let store = open(&url);
    assert_eq!(store.schema_faults().unwrap(), [""; 0]);
    shared().sql(
        &url,
        "CREATE TABLE more (a INT);
         CREATE VIEW seen AS SELECT * FROM kv;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER noted BEFORE INSERT ON kv FOR EACH ROW EXECUTE FUNCTION note();
         CREATE RULE lost AS ON DELETE TO kv DO INSTEAD NOTHING;
         DROP TABLE tiles",
    );
    let faults = store.schema_faults().unwrap();
    assert_eq!(
        faults,
        [
            "the function `note` does not belong to this program",
            "the rule `lost of kv` does not belong to this program",
            "the table `more` does not belong to this program",
            "the trigger `noted of kv` does not belong to this program",
            "the view `seen` does not belong to this program",
            "the table `tiles` is missing",
        ]
    );
    // `doctor` asks this.
    assert_eq!(store.check().unwrap(), faults);
}
