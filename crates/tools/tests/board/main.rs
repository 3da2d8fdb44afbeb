//! The tool table over a real store: nine tests in ten of the house stand here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests look at the files themselves"
)]

mod table;
mod vault_notes;
