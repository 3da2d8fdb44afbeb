//! The program `kenning`.

use kenning::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(kenning_cli::run(&Program, std::env::args_os()))
}
