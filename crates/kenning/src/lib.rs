//! What the programs are made of: they choose the backend of the store, the clock and the source of randomness.
//!
//! Everything they can do is in the crates that are named here; here they are only put together.

mod host;
mod outside;

pub use host::Program;
