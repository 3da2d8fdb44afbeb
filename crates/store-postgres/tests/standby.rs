//! A server on a hot standby answers reads, refuses writes, and never tries to write by itself.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and write rows that no event is about"
)]

use kenning_core::{Code, Space};
use kenning_store::Store;
use kenning_store_postgres::{Options, Postgres};
use kenning_testing_postgres::{Version, own};
use std::time::{Duration, Instant};

fn set(store: &Store, value: &'static [u8]) -> kenning_core::Result<()> {
    store.write(&Space::default(), move |tx| tx.set("bucket", "key", value))
}

fn get(store: &Store) -> Option<Vec<u8>> {
    let got = store.read(&Space::default(), |tx| tx.get("bucket", "key"));
    got.unwrap()
}

/// What the standby has replayed is seen; how soon is the standby's business.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read_only() -> Options<'static> {
    Options {
        read_only: true,
        ..Options::default()
    }
}

#[test]
fn a_standby_is_read_and_not_written() {
    let primary = own(Version::V18);
    let (url, empty) = (primary.database(), primary.database());
    let first = Store::new(Postgres::open(&url, None).unwrap());
    set(&first, b"one").unwrap();
    let standby = primary.standby();
    let there = standby.same_database(&url);

    let second = Store::new(Postgres::open_with(&there, read_only()).unwrap());
    wait_until("what was written before", || {
        get(&second).as_deref() == Some(b"one")
    });
    set(&first, b"two").unwrap();
    wait_until("what was written since", || {
        get(&second).as_deref() == Some(b"two")
    });
    assert_eq!(second.spaces().unwrap(), [Space::default()]);
    assert_eq!(second.check().unwrap(), Vec::<String>::new());
    let refused = set(&second, b"three").unwrap_err();
    assert_eq!(refused.code, Code::Denied, "{refused}");
    assert!(
        refused.message.contains("does not accept writes"),
        "{refused}"
    );
    assert!(refused.hint.unwrap().contains("--read-only"));
    assert_eq!(get(&second).as_deref(), Some(&b"two"[..]));
    assert_eq!(get(&first).as_deref(), Some(&b"two"[..]));

    // Without `--read-only` too: the tables are as they must be, so there is nothing to write.
    let careless = Store::new(Postgres::open(&there, None).unwrap());
    assert_eq!(get(&careless).as_deref(), Some(&b"two"[..]));

    // Tables that are not there are not made, and the message says where to make them.
    let nowhere = standby.same_database(&empty);
    let Err(missing) = Postgres::open_with(&nowhere, read_only()) else {
        panic!("it was opened")
    };
    assert_eq!(missing.code, Code::Unavailable, "{missing}");
    assert!(missing.hint.unwrap().contains("on the primary"));
    let Err(refused) = Postgres::open(&nowhere, None) else {
        panic!("it was opened")
    };
    assert_eq!(refused.code, Code::Denied, "{refused}");

    // Followers are woken by asking: a standby notifies nobody.
    let every = second.subscribe(std::sync::Arc::new(|| ()));
    assert!(every <= Duration::from_secs(2));

    // The primary is gone; what was replayed is still read.
    primary.stop_immediate();
    assert_eq!(get(&second).as_deref(), Some(&b"two"[..]));
}
