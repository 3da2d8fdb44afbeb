//! For tests only: a disk that fails on order, and what a power cut leaves of it.
//!
//! A program is started so that the kernel asks here before each of its calls that reads, writes,
//! syncs or names a file (seccomp's user notification; nothing is preloaded, so a static binary and a
//! library that makes its own system calls are seen alike). What is asked about files beneath the
//! watched directories can be
//!
//! - written down ([`Step`]), together with what the program said on its standard output, in one order;
//! - answered with an error ([`Fault`]): the k-th call of a kind, or each from the k-th on;
//! - left out ([`Leaves`]): a sync that only claims to have happened, which is how a test is seen to fail.
//!
//! [`image`] makes of what was written down the files as a power cut at any moment may leave them.
//!
//! It knows nothing of Kenning, and no product crate depends on it. Linux only.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "it is about files and processes that the test made itself"
)]

mod calls;
mod fault;
pub mod image;
mod kernel;
mod step;
mod watch;

pub use fault::{Fault, Happened, Kind, Leaves};
pub use step::Step;
pub use watch::{Disk, Settings, start};
