//! The real server on a loopback port, asked with exact bytes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test connects to its own server and reads its own corpus"
)]

mod backups;
mod credentials;
mod crowds;
mod events;
mod far;
mod hostile;
mod hosts;
mod koi;
mod koi_documents;
#[path = "../../../tools/tests/board/koi_entities.rs"]
mod koi_entities;
#[path = "../../../tools/tests/board/koi_example.rs"]
mod koi_example;
mod koi_input;
#[path = "../../../tools/tests/board/koi_repos/mod.rs"]
mod koi_repos;
#[path = "../../../tools/tests/board/koi_statements.rs"]
mod koi_statements;
#[path = "../../../tools/tests/board/koi_web/mod.rs"]
mod koi_web;
mod limits;
mod log;
mod malformed;
mod memories;
mod origins;
mod place;
mod routes;

use far::Fixture;

/// What the recorded backend answered in the pair of this name.
fn koi_golden(name: &str) -> serde_json::Value {
    const PAIRS: &str = include_str!("../../../../testing/vectors/koi-golden.jsonl");
    let pairs = PAIRS
        .lines()
        .map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
    let mut found = pairs.filter(|it| it["name"] == name);
    found.next().unwrap()["response"].take()
}
