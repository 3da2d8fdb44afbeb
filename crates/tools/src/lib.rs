//! The tool table: every tool, declared once.
//!
//! A tool is a file with a unit struct, an `Input`, an `Output` and a `call`; [`TOOLS`] lists them in
//! the order in which they are shown. Everything else is derived from that table: the MCP listing,
//! `POST /tools/{name}`, the command line, the OpenAPI document, the manual, the permission that a
//! call needs. This crate knows no transport and no storage; it knows the engine.
//!
//! To add a tool: write `crates/tools/src/<toolset>/<name>.rs`, name the module in the folder's
//! `mod.rs`, add a row to [`TOOLS`].

#![deny(missing_docs)]

mod board;
mod declare;
mod default_set;
mod envelope;
mod flows;
mod input;
mod metrics;
pub mod near;
mod pages;
mod schema;
mod select;
pub mod slots;
mod table;
mod toolset;
mod workflow_calls;

pub mod core;
pub mod kg;
pub mod kg_extra;
pub mod kiwi;
pub mod koi;
pub mod koi_api;
pub mod omi;
pub mod omi_extra;

pub use board::{Board, hide_internal, installed_summary};
pub use declare::{AnyTool, Call, Example, OtherTools, Text, Tool, summary};
pub use default_set::{in_default_set, listed_description, listed_schema};
pub use envelope::{Reply, malformed};
pub use flows::{Flows, finish_workflow};
pub use kg::workflow_reply;
pub use metrics::Metrics;
pub use schema::lean;
pub use select::Selection;
pub use table::TOOLS;
pub use toolset::{Annotations, Effect, Toolset};
pub use workflow_calls::start_workflow;
