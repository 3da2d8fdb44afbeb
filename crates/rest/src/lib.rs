//! The HTTP server.
//!
//! [`serve`] listens; [`guard`] is the one layer around every route, `/mcp` included: it checks Host
//! and Origin, authenticates the caller, and enforces the limits on size, time and rate. The routes
//! in `routes` all use the same tool table. A route added anywhere is behind the layer, because the
//! layer is around the whole router.

mod answer;
mod body;
mod cors;
mod failures;
mod federation;
pub mod guard;
mod handler;
mod hosts;
mod koi;
mod log;
mod memory;
mod openapi;
mod peers;
mod places;
mod progress;
mod project;
mod rate;
mod refusals;
mod registry;
mod requests;
mod routes;
mod server;
mod sse;
mod stream;
mod tail;

pub use body::BODY_BYTES_MAX;
pub use cors::Origin;
pub use guard::Guard;
pub use hosts::Hosts;
pub use openapi::document as openapi;
pub use routes::router;
pub use server::{Limits, bind, serve, serve_within};
