//! What a memory is, apart from where it is kept.
//!
//! Arithmetic and formats only: no store, no files, no clock. The engine composes them, so whatever
//! the contract fixes as a figure or as the text of a file is decided here and can be tested here.
//!
//! Reading order: [`types`] for the words, then [`score`] and [`belief`] for the figures, then [`now`]
//! and [`daily`] for the files. [`config`] is what a person may set.
//!
//! The one invariant: the same arguments always give the same answer.

#![deny(missing_docs)]

pub mod belief;
pub mod capsule;
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
