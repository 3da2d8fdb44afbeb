//! The program `kami`: `kenning kami` under the name of its contract.

use kenning::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(kenning_cli::run_kami(&Program, std::env::args_os()))
}
