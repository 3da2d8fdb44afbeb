//! `omi` and `kami` are `kenning` under another name. For those who install with cargo, which makes no
//! links, each is a program of a few lines that becomes `kenning`; packages make links instead.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What a shell says of a program that is not there.
const NOT_FOUND: u8 = 127;

/// Becomes `kenning`, which looks at the name it was called by. Comes back only when that fails.
pub(crate) fn kenning_as(name: &str) -> ExitCode {
    let beside = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name("kenning"))
        .filter(|it| it.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from("kenning"));
    #[expect(
        clippy::disallowed_methods,
        reason = "it is our own program, and nothing that a caller named"
    )]
    let cause = Command::new(&program)
        .arg0(name)
        .args(std::env::args_os().skip(1))
        .exec();
    #[expect(
        clippy::print_stderr,
        reason = "this program has no other way to say it"
    )]
    {
        eprintln!(
            "{name}: cannot start `{}`: {cause}; `{name}` is a part of it: put it beside this program or into PATH",
            program.display()
        );
    }
    ExitCode::from(NOT_FOUND)
}
