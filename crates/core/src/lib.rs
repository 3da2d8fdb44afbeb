//! Shared types.
//!
//! Ids, bounded numbers, hybrid time, randomness and the one table of error codes: everything that
//! several crates must agree on. `core` does no I/O, reads no clock and draws no random numbers;
//! those are passed in as [`Clock`] and [`Random`], so that every other crate can be simulated.

#![deny(missing_docs)]

mod bounded;
mod clock;
mod error;
mod hash;
mod id;
pub mod idle;
mod names;

pub use bounded::{Bounded, Limit, Unit};
pub use clock::{Clock, FixedClock, Hlc, HlcClock, Implausible, Random, SeededRandom};
pub use error::{CODES, Code, CodeRow, Error, MESSAGE_CHARS_MAX, McpForm, Result};
pub use hash::Hash;
pub use id::{Did, EventId, NodeId};
pub use names::{DEFAULT_SPACE, Kind, Space};
