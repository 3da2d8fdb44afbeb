//! What a tool written in Rust is made of: a macro that makes a function the tool, and helpers for its
//! input and output.
//!
//! ```
//! use kami_guest::{kami_tool, parse_input, text_result};
//!
//! kami_tool! {
//!     name: "dev.example.greet",
//!     version: "1.0.0",
//!     description: "Greets whoever is named",
//!     handler: greet,
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Input {
//!     who: String,
//! }
//!
//! fn greet(input: &str) -> Result<String, String> {
//!     let input: Input = parse_input(input)?;
//!     text_result(&format!("Hello, {}!", input.who))
//! }
//!
//! # assert_eq!(greet(r#"{"who": "you"}"#), Ok(r#"{"text":"Hello, you!"}"#.into()));
//! ```
//!
//! Built with `cargo build --target wasm32-wasip2 --release`, that is a component that exports
//! `kami:tool/tool@0.1.0` of `wit/kami-tool.wit`. Built for anything else it is plain Rust without
//! exports, so handlers are tested natively.
//!
//! The crate knows nothing of the host but that file, and brings `serde` and `serde_json` only. What
//! crosses the border is in `bindings.rs`, generated once, so that no tool waits for a generator:
//!
//! ```sh
//! cargo install wit-bindgen-cli --version 0.63.0 --locked --no-default-features --features rust
//! crates/kami-guest/regenerate
//! ```

#![deny(missing_docs)]

#[cfg(all(target_family = "wasm", not(any(target_env = "p2", target_env = "p3"))))]
compile_error!("a tool is a component: build it with `--target wasm32-wasip2`");

#[doc(hidden)]
#[allow(
    warnings,
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::restriction,
    reason = "generated, and texts cross the border as addresses"
)]
pub mod bindings;
mod json;
mod log;
mod macros;
#[doc(hidden)]
pub mod rt;

#[doc(hidden)]
pub use json::metadata;
pub use json::{error_result, parse_input, text_result, to_output};
pub use log::{LogLevel, log};

/// What a handler returns, so that the macro means the same type wherever it is used.
#[doc(hidden)]
pub type __HandlerResult = Result<String, String>;
