//! What the programs are made of: the floor, the clock and the randomness, handed to the house.
//!
//! Everything they can do is in the crates that are named here; here they are only put together.

mod host;
mod outside;

pub use host::Program;
