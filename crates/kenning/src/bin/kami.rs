//! The program `kami`: `kenning kami` under the name of its contract.

#[path = "../launch.rs"]
mod launch;

use std::process::ExitCode;

fn main() -> ExitCode {
    launch::kenning_as("kami")
}
