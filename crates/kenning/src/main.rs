//! The binary: chooses the floor, the clock and the randomness, and hands them to the house.
//!
//! Everything it can do is in the crates it names; here they are only put together.

mod host;
mod outside;

use host::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(kenning_cli::run(&Program, std::env::args_os()))
}
