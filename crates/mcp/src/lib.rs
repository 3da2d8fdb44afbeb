//! The MCP server.
//!
//! A [`Server`] offers the tool table (the board) to MCP clients, over [`stdio`] and over Streamable [`http`], in both
//! eras of the protocol: with the `initialize` handshake up to 2025-11-25, and without any since
//! 2026-07-28. rmcp speaks the protocol; this crate reads every message before rmcp does, because
//! rmcp drops what it cannot parse and ends when something arrives too early, where a client deserves
//! an answer.
//!
//! It knows no storage and no single tool: everything comes from the board.
//!
//! Its one invariant: every request is answered exactly once, unless it was cancelled, and it writes
//! nothing but messages.

#![deny(missing_docs)]

mod admission;
mod call;
mod changes;
mod lines;
mod listing;
mod message;
mod server;
mod skills;
mod tasks;

pub mod http;
pub mod stdio;

pub use server::{Handler, Server};
