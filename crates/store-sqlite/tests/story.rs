//! The embedded floor lives through the story.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_store::{Store, story};
use kenning_store_sqlite::Sqlite;

#[test]
fn the_embedded_floor_lives_through_the_story() {
    let directory = tempfile::tempdir().unwrap();
    story::run(&|| Store::new(Sqlite::open(directory.path()).unwrap()));
}

#[test]
fn two_processes_may_make_the_same_store_at_once() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Sqlite::open(directory.path()).unwrap());
            }
        });
    }
}

#[test]
fn a_store_of_a_newer_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(Sqlite::open(directory.path()).unwrap());
    let file = directory.path().join(kenning_store_sqlite::FILE_NAME);
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    let Err(error) = Sqlite::open(directory.path()) else {
        panic!("it was opened")
    };
    assert!(error.message.contains("version 999"), "{error}");
}
