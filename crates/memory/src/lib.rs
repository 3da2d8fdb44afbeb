//! The rules and formats of memories, independent of where they are kept.
//!
//! Arithmetic and formats only: no store, no files, no clock. The engine composes them, so every
//! number and file format that the contract fixes is decided here and can be tested here.
//!
//! Reading order: [`types`], then [`score`] and [`belief`] for the numbers, then [`now`] and
//! [`daily`] for the files. [`config`] has the settings.
//!
//! The one invariant: the same arguments always give the same answer.

#![deny(missing_docs)]

pub mod belief;
pub mod capsule;
pub mod claims;
pub mod config;
pub mod daily;
pub mod duplicates;
mod lines;
pub mod now;
pub mod score;
pub mod stamp;
pub mod topology;
pub mod types;

pub use types::{Confidence, MemoryType};
