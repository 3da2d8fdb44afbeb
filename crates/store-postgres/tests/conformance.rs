//! The PostgreSQL backend passes the conformance test on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_core::Code;
use kenning_store::{Store, conformance};
use kenning_store_postgres::Postgres;
use kenning_testing_postgres::{Version, own, shared};

#[test]
fn the_postgres_backend_passes_the_conformance_test() {
    let url = shared().database();
    println!("{}", shared().version());
    conformance::run(&|| Store::new(Postgres::open(&url, None).unwrap()));
}

#[test]
fn it_passes_on_an_older_server_too() {
    let server = own(Version::V16);
    let url = server.database();
    println!("{}", server.version());
    conformance::run(&|| Store::new(Postgres::open(&url, None).unwrap()));
}

#[test]
fn servers_that_start_at_once_do_not_fight() {
    for _ in 0..3 {
        let url = shared().database();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| Postgres::open(&url, None).unwrap());
            }
        });
    }
}

#[test]
fn a_password_is_in_no_message() {
    let url = shared().database();
    let (before, after) = url.split_once('@').unwrap();
    let wrong = [
        format!("{before}WRONGSECRET@{after}"),
        "postgres://kenning:WRONGSECRET@127.0.0.1:1/none".to_owned(),
        "postgres://kenning:WRONGSECRET@".to_owned(),
        "postgres://kenning:WRONGSECRET@127.0.0.1:notaport/x".to_owned(),
        "mysql://kenning:WRONGSECRET@127.0.0.1/x".to_owned(),
    ];
    for url in wrong {
        let Err(error) = Postgres::open(&url, None) else {
            panic!("it was opened")
        };
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("WRONGSECRET"), "{shown}");
        assert!(
            matches!(error.code, Code::Unavailable | Code::InvalidInput),
            "{shown}"
        );
        assert!(error.hint.is_some(), "{shown}");
    }
    let store = Store::new(Postgres::open(&url, None).unwrap());
    let password = before.rsplit(':').next().unwrap();
    assert!(!store.describe().contains(password), "{}", store.describe());
}

#[test]
fn a_store_of_a_newer_program_is_left_alone() {
    let url = shared().database();
    drop(Postgres::open(&url, None).unwrap());
    shared().sql(&url, "UPDATE kenning_version SET version = 999");
    let Err(error) = Postgres::open(&url, None) else {
        panic!("it was opened")
    };
    assert!(error.message.contains("version 999"), "{error}");
}

#[test]
fn a_server_whose_connections_were_cut_again_and_again_goes_on() {
    let url = shared().database();
    let store = Store::new(Postgres::open(&url, None).unwrap());
    let here = kenning_core::Space::default();
    // More often than there are connections: none may be lost for ever.
    for round in 0..40 {
        shared().kill_backends(&url);
        let answered = (0..3).any(|_| store.read(&here, |tx| tx.get("b", "k")).is_ok());
        assert!(answered, "round {round}");
    }
}
