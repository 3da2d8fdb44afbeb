//! The program `kenning`.

use kenning::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    kenning_jail::enter_if_asked();
    ExitCode::from(kenning_cli::run(&Program, std::env::args_os()))
}
