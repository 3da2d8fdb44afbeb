//! For tests only: the fixtures of the official MCP conformance suite, around the real server.
//!
//! The suite calls tools, reads resources and gets prompts by names of its own, and looks at what comes
//! back. [`WithFixtures`] adds them to a [`kenning_mcp::Server`]: it answers what the suite asks for and
//! hands everything else to the server, over the same transports. Some fixtures are ours: they let tests
//! look at cancellation, panics and progress through the path that every real tool takes.
//!
//! No product crate depends on this one; `xtask tidy` checks that.

mod fixtures;
mod handler;

pub use handler::WithFixtures;
