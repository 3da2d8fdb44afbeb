//! The program `omi`: `kenning omi` under the name of its contract.

use kenning::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    kenning_jail::enter_if_asked();
    ExitCode::from(kenning_cli::run_omi(&Program, std::env::args_os()))
}
