//! The wire protocol of KOI-net, as the reference implementation (koi-net 2.1.2) and the nodes of
//! bioregional communities (Octo) speak it. Pure: no store, no files, no clock, no network.
//!
//! - [`json`]: JSON that keeps the order of members and the digits of numbers, because signatures cover them.
//! - [`rid`]: names of things; a node's name is bound to its key.
//! - [`manifest`], [`event`]: what is known of a thing, and what happened to it.
//! - [`profile`]: who a node is, and who subscribes to what.
//! - [`envelope`]: signed messages; [`message`]: what they ask and answer.
//! - [`key`]: ECDSA on P-256.

#![deny(missing_docs)]

pub mod envelope;
pub mod event;
pub mod json;
pub mod key;
pub mod manifest;
pub mod message;
mod number;
pub mod profile;
pub mod rid;
pub mod time;

pub use envelope::{Envelope, Refused};
pub use event::{Event, EventType};
pub use json::{Json, Limits};
pub use key::{PublicKey, SecretKey};
pub use manifest::{Bundle, Manifest};
pub use message::{Payload, Query};
pub use profile::{EdgeProfile, EdgeStatus, EdgeType, NodeProfile, NodeType};
pub use rid::{NodeRid, Rid, edge_rid};
