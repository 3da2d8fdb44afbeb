//! For tests only: a store in memory, and random operations on all backends at once.
//!
//! [`Model`] says in plain maps what the trait promises. [`replay`] does the same random operations to
//! it, to SQLite and to PostgreSQL, and stops at the first answer that differs. It cannot know
//! which backend is wrong; the documentation of the trait says that.
//!
//! Invariant: the same seed does the same operations, on every machine.

#![allow(
    clippy::disallowed_methods,
    reason = "the store itself is tested, below the events"
)]

mod draw;
mod model;
mod replay;
mod steps;
mod world;

pub use model::Model;
pub use replay::{Difference, Summary, replay};
