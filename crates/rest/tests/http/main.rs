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
mod events;
mod far;
mod hosts;
mod koi;
#[path = "../../../tools/tests/board/koi_entities.rs"]
mod koi_entities;
#[path = "../../../tools/tests/board/koi_statements.rs"]
mod koi_statements;
mod limits;
mod malformed;
mod memories;
mod place;
mod routes;

use far::House;
