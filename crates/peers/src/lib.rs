//! How two nodes exchange the events of a space.
//!
//! Each node has a log of its own. A node pulls another's log entry by entry, in that log's order, and
//! pushes its own: an event goes over with the rows that it put, everything else as its bare id. The
//! ids extend the Merkle tree that the receiver keeps of the sender's log, and its root must be the one
//! that the sender signed. So nothing can be left out, changed or told differently a second time
//! without the receiver noticing, and the next exchange begins where the last one ended.
//!
//! Reading order: [`Peer`] (whom we know, and what they may do), [`Page`] (a piece of a log),
//! [`receive`] (takes one in), [`Session`] (what the calling side does), [`answer`] (what the called
//! side does), [`seal`] (how messages are signed).
//!
//! There is no network here, no clock and no thread: messages come in and go out as bytes, so that
//! whole exchanges can be simulated. Remote events are written by `kenning_audit` alone.

mod cursor;
mod exchange;
mod message;
mod page;
mod peer;
mod receive;
pub mod seal;
mod wire;

pub use cursor::{CURSORS, Cursor, Head};
pub use exchange::{Done, Rules, Session, answer};
pub use message::{Along, Have, Request, Response};
pub use page::{Page, PageEntry, Wanted, build};
pub use peer::{Evidence, Peer, Policy, peer_id};
pub use receive::{Around, Arrival, Received, Refusal, receive};
pub use wire::{pack, unpack};

/// The largest message, after it is unpacked. A note of 8 MiB fits, with its history written anew.
pub const MESSAGE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The most entries of a page.
pub const ENTRIES_MAX: usize = 1_000;

/// A page is closed once it has so many bytes.
pub const PAGE_BYTES: usize = 1024 * 1024;
