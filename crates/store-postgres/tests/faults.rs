//! Errors while the database is away, and recovery when it is back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and write rows that no event is about"
)]

use kenning_core::{Code, Space};
use kenning_store::{Store, patience};
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::shared;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// More than a pool has.
const MANY: usize = 40;

fn set(store: &Store, value: &'static [u8]) -> kenning_core::Result<()> {
    store.write(&Space::default(), move |tx| tx.set("bucket", "key", value))
}

fn get(store: &Store) -> kenning_core::Result<Option<Vec<u8>>> {
    store.read(&Space::default(), |tx| tx.get("bucket", "key"))
}

#[test]
fn reads_that_fail_use_up_no_connection() {
    let url = shared().database();
    let store = Store::new(Postgres::open(&url, None).unwrap());
    for _ in 0..MANY {
        let failed = store.read(&Space::default(), |tx| {
            shared().kill_backends(&url);
            tx.get("bucket", "key")
        });
        assert_eq!(failed.unwrap_err().code, Code::Unavailable);
    }
    let began = Instant::now();
    assert_eq!(get(&store).unwrap(), None);
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn reads_that_panic_use_up_no_connection() {
    let url = shared().database();
    let store = Store::new(Postgres::open(&url, None).unwrap());
    for _ in 0..MANY {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.read(&Space::default(), |_| -> kenning_core::Result<()> {
                panic!("on purpose")
            })
        }));
        assert!(panicked.is_err());
    }
    assert_eq!(get(&store).unwrap(), None);
}

#[test]
fn a_silent_database_costs_a_call_its_patience_and_no_more() {
    let url = shared().database();
    let network = Network::before(&url);
    let store = Store::new(Postgres::open(&network.url, None).unwrap());
    set(&store, b"one").unwrap();
    // Several connections, so that several are stale.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| get(&store).unwrap());
        }
    });

    network.is_silent.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let began = Instant::now();
                let error = patience::within(Duration::from_secs(1), || {
                    // The second wait has what the first has left, which is nothing.
                    let first = if n % 2 == 0 {
                        set(store, b"two")
                    } else {
                        get(store).map(drop)
                    };
                    first
                        .and(Err(kenning_core::Error::internal("it was answered")))
                        .or_else(|first: kenning_core::Error| {
                            assert_eq!(first.code, Code::Unavailable, "{first}");
                            set(store, b"three")
                        })
                });
                assert_eq!(error.unwrap_err().code, Code::Unavailable);
                assert!(began.elapsed() < Duration::from_millis(1_900));
            });
        }
    });

    network.is_silent.store(false, Ordering::SeqCst);
    let began = Instant::now();
    while set(&store, b"four").is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "never found again"
        );
    }
    // What callers were told was not written does not come later: everything that was held back has
    // arrived, and no session of the database is at work any more.
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND pid <> pg_backend_pid() AND state <> 'idle'";
    let is_quiet =
        || network.n_held.load(Ordering::SeqCst) == 0 && shared().sql(&url, busy).trim() == "0";
    let began = Instant::now();
    while !is_quiet() {
        assert!(began.elapsed() < Duration::from_secs(30), "never quiet");
    }
    assert_eq!(get(&store).unwrap().unwrap(), b"four");
}

/// Carries bytes to the database and back, unless it is silent.
struct Network {
    url: String,
    is_silent: Arc<AtomicBool>,
    /// How many pieces were read and are not passed on yet.
    n_held: Arc<AtomicUsize>,
}

impl Network {
    fn before(url: &str) -> Self {
        let (user, rest) = url.rsplit_once('@').unwrap();
        let (database, name) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{user}@{}/{name}", listener.local_addr().unwrap());
        let (database, is_silent) = (database.to_owned(), Arc::new(AtomicBool::new(false)));
        let n_held = Arc::new(AtomicUsize::new(0));
        let (silent, held) = (is_silent.clone(), n_held.clone());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = TcpStream::connect(&database).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (silent, held) = (silent.clone(), held.clone());
                    std::thread::spawn(move || carry(from, to, &silent, &held));
                }
            }
        });
        Self {
            url,
            is_silent,
            n_held,
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, silent: &AtomicBool, held: &AtomicUsize) {
    let mut bytes = [0; 8 * 1024];
    loop {
        let n = from.read(&mut bytes).unwrap_or(0);
        held.fetch_add(1, Ordering::SeqCst);
        while silent.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let is_over = n == 0 || to.write_all(&bytes[..n]).is_err();
        held.fetch_sub(1, Ordering::SeqCst);
        if is_over {
            // Either end may be closed already.
            drop(to.shutdown(std::net::Shutdown::Both));
            return;
        }
    }
}
