//! For tests only: the cellar in memory, and random operations on every floor at once.
//!
//! [`Model`] says in plain maps what the trait promises. [`replay`] does the same random operations to
//! it, to SQLite and to PostgreSQL, and stops at the first answer that differs. Which floor is wrong it
//! does not know; a reader of the trait does.
//!
//! Invariant: the same seed does the same operations, on every machine.

#![allow(
    clippy::disallowed_methods,
    reason = "what is tested is the cellar itself, beneath the events"
)]

mod draw;
mod model;
mod replay;
mod steps;
mod world;

pub use model::Model;
pub use replay::{Difference, Summary, replay};
