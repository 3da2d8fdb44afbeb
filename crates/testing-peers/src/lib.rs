//! For tests only: several nodes in memory, a network that loses and repeats, and nodes that lie.
//!
//! [`converge`] lets two to five nodes write everything that a store can hold while messages are lost,
//! repeated and reordered, nodes are killed between and within steps, the network is parted, and clocks
//! are up to an hour off; then it heals, and all nodes must hold the same. [`use_tools`] does it with whole
//! programs and the tools of all wings, and all must answer alike. [`restrict`] lets nodes exchange that may not do
//! everything. [`lie`] puts a node among them that tells two histories, rewrites, withholds, floods or loops, called or
//! calling.
//!
//! Invariant: the same seed does the same, on every machine. A failure says its seed.

mod fence;
mod lies;
mod node;
mod policies;
mod programs;
mod pushes;
mod world;

pub use lies::{LIES, lie};
pub use policies::restrict;
pub use programs::use_tools;
pub use world::converge;
