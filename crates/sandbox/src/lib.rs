//! Runs tools that other people wrote.
//!
//! A tool is a WebAssembly component with a manifest. This crate reads the manifest ([`manifest`]),
//! compares what it asks for with what the operator permits ([`policy`]), takes packages apart
//! ([`archive`]), checks their signatures ([`signature`]), and runs components ([`Runtime`]) within
//! [`Limits`] and [`Capabilities`]. It knows no registry, no store and no protocol: the
//! caller decides which tools exist and where their bytes are stored.
//!
//! Its one invariant: whatever a component is or does, the process goes on, the caller gets an
//! [`Outcome`] by the deadline, and nothing was reached that was not granted. Files are reached
//! through `vault` and hosts through `egress`, never around them.
//!
//! Read [`call`] for what is asked and answered, then `wasm` for how.

#![deny(missing_docs)]

pub mod archive;
pub mod call;
mod digest;
pub mod hosts;
pub mod manifest;
pub mod policy;
pub mod signature;
mod wasm;

pub use call::{
    Capabilities, Failure, FsAccess, Limits, LogLevel, LogLine, Outcome, Quota, RunCall, Usage,
};
pub use digest::{Artifact, Digest, Sha256};
pub use wasm::code::ToolCode;
pub use wasm::shape::{Abi, Described, Function};
pub use wasm::{PoolSize, Runtime, RuntimeOptions};
