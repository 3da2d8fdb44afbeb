//! The process that drops its privileges and becomes the program.
//!
//! Paths are opened first, while the process still may; then the user changes; then Landlock and seccomp
//! are applied, the narrowest last, because nothing can be undone. Any failure is reported and ends the
//! process: the program never starts in half a jail.

use crate::calls::{self, Situation};
use crate::spec::shown;
use crate::wire::{self, Order, Report};
use crate::{Limits, files, tree, user};
use kenning_core::{Error, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::fs::{Access, Mode};
use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Address space beyond the memory limit: some runtimes reserve much and use little. What is used is
/// bounded by `RLIMIT_DATA` and by the supervisor, which measures all processes together.
const RESERVED_BYTES: u64 = 64 << 30;

/// Returns only if the program did not start.
pub(crate) fn main() -> i32 {
    let Ok(mut supervisor) = wire::upward() else {
        return 2;
    };
    let refusal = match wire::receive_order(&mut supervisor) {
        Ok((order, stdin)) => become_program(&mut supervisor, &order, stdin),
        Err(error) => error,
    };
    // If this fails, the supervisor has ended, and so has the caller.
    let _ = wire::send_report(&mut supervisor, &Report::Refused(refusal.into()));
    1
}

fn become_program(supervisor: &mut UnixStream, order: &Order, stdin: OwnedFd) -> Error {
    match prepare(supervisor, order, stdin) {
        Ok(mut program) => not_executed(order, program.exec()),
        Err(error) => error,
    }
}

fn prepare(supervisor: &mut UnixStream, order: &Order, stdin: OwnedFd) -> Result<Command> {
    if tree::own_threads() != 1 {
        return Err(Error::internal(
            "the jail must be entered from a single thread",
        ));
    }
    let parent = rustix::process::getppid();
    close_inherited(supervisor, &stdin);
    rustix::stdio::dup2_stdin(&stdin).map_err(|it| failed("standard input", it))?;
    drop(stdin);
    // A new session has no terminal.
    rustix::process::setsid().map_err(|it| failed("a session", it))?;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    volunteer_when_memory_is_short();
    let rules = files::rules(order)?;
    rustix::process::chdir(&order.cwd).map_err(|_| missing("cwd", &order.cwd))?;
    user::become_user(order.user)?;
    reachable(order)?;
    die_with(parent)?;
    let program = command(order);
    files::enforce(rules)?;
    limit(order)?;
    calls::forbid(&Situation {
        net: &order.net,
        // A user with a number is shared with other runs.
        own_user: order.user.is_some() && order.user_number.is_none(),
        signals_inside: files::strength()?.signals,
        pid: std::process::id(),
    })?;
    wire::send_report(supervisor, &Report::Confined)?;
    Ok(program)
}

/// Closes descriptors that the host inherited from its parent; the host's own are closed by `exec`.
fn close_inherited(supervisor: &UnixStream, stdin: &OwnedFd) {
    let kept = [supervisor.as_raw_fd(), stdin.as_raw_fd()];
    for fd in tree::own_descriptors() {
        if !kept.contains(&fd) {
            // The list names the descriptor with which it was read, too, which is closed by now.
            let _ = nix::unistd::close(fd);
        }
    }
}

/// When the machine runs out of memory, the kernel kills a program in the jail first.
#[expect(
    clippy::disallowed_methods,
    reason = "a setting of this process in the kernel, no file"
)]
fn volunteer_when_memory_is_short() {
    // A kernel without this setting confines as well.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Whether the program's user can reach what was granted. Even if Landlock allows it, file modes may
/// forbid it, and an early error is better than a program that fails later.
fn reachable(order: &Order) -> Result<()> {
    let read = Access::READ_OK;
    let program = [order.program.clone()];
    let cwd = [order.cwd.clone()];
    let scratch: Vec<OsString> = order.scratch.iter().cloned().collect();
    let grants: [(&str, &[OsString], Access); 6] = [
        ("program", &program, read | Access::EXEC_OK),
        ("cwd", &cwd, Access::EXEC_OK),
        ("read", &order.read, read),
        ("exec", &order.exec, read),
        ("write", &order.write, read | Access::WRITE_OK),
        ("scratch", &scratch, read | Access::WRITE_OK),
    ];
    for (field, paths, access) in grants {
        for path in paths {
            let Err(error) = rustix::fs::access(path, access) else {
                continue;
            };
            let name = shown(Path::new(path));
            if error == rustix::io::Errno::NOENT {
                return Err(missing(field, path));
            }
            let error = Error::denied(format!(
                "`{field}`: the modes of `{name}`, or of a directory above it, do not let the \
                 program's user in"
            ));
            return Err(if order.user.is_some() && field == "write" {
                error.hint(
                    "Kenning runs as root, so programs run as a user without rights: let everybody \
                     write there (`chmod o+rwX`), remove the folder so that Kenning makes it, or run \
                     Kenning as the owner",
                )
            } else if order.user.is_some() {
                error.hint(
                    "Kenning runs as root, so programs run as a user without rights: make what they \
                     need readable by everybody (`chmod o+rX`), or run Kenning as the owner",
                )
            } else {
                error.hint("change the modes, or grant less")
            });
        }
    }
    Ok(())
}

/// If the supervisor is killed, the kernel kills the program too.
fn die_with(parent: Option<rustix::process::Pid>) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|it| failed("a signal for the end of its supervisor", it))?;
    if rustix::process::getppid() == parent {
        return Ok(());
    }
    Err(Error::internal("the supervisor is gone"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the jail that processes are started in"
)]
fn command(order: &Order) -> Command {
    let mut command = Command::new(&order.program);
    command.args(&order.args).env_clear();
    command.envs(order.env.iter().map(|(name, value)| (name, value)));
    command
}

fn limit(order: &Order) -> Result<()> {
    let Limits {
        cpu,
        memory_bytes,
        file_bytes,
        open_files,
        ..
    } = order.limits;
    // A little more than the limit, so that the supervisor, which measures all processes, reports it first.
    let seconds = cpu.as_secs().saturating_add(2);
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_MEMLOCK, 64 << 10),
        (Resource::RLIMIT_SIGPENDING, 1 << 10),
        (Resource::RLIMIT_NICE, 0),
        (Resource::RLIMIT_RTPRIO, 0),
        (Resource::RLIMIT_CPU, seconds),
        (Resource::RLIMIT_FSIZE, file_bytes),
        (Resource::RLIMIT_NOFILE, open_files),
        (Resource::RLIMIT_NPROC, order.tasks_of_user),
        (
            Resource::RLIMIT_AS,
            memory_bytes.saturating_add(RESERVED_BYTES),
        ),
        (Resource::RLIMIT_DATA, memory_bytes),
    ] {
        // A lower limit that is already set stays.
        let bounded = getrlimit(resource).map(|(_, bound)| bound.min(most));
        let set = bounded.and_then(|most| setrlimit(resource, most, most));
        set.map_err(|it| failed("its limits", it))?;
    }
    Ok(())
}

fn not_executed(order: &Order, error: io::Error) -> Error {
    let name = shown(Path::new(&order.program));
    let refusal = match error.kind() {
        io::ErrorKind::NotFound => Error::not_found("program or its interpreter", name)
            .hint("name an executable file that exists"),
        io::ErrorKind::PermissionDenied => Error::denied(format!(
            "`program`: `{name}` or its interpreter is not executable here"
        ))
        .hint("grant `exec` on its directory and on those of its interpreter and libraries"),
        io::ErrorKind::ArgumentListTooLong => {
            Error::too_large("`args` and `env` are larger than the kernel accepts")
                .hint("pass large values on standard input")
        }
        _ => Error::invalid(format!("`program`: `{name}` cannot be executed"))
            .hint("name a program of this machine's architecture"),
    };
    refusal.because(error)
}

fn missing(field: &str, path: &OsString) -> Error {
    let name = shown(Path::new(path));
    Error::not_found(&format!("file or directory for `{field}`"), name)
        .hint("grant paths that exist")
}

fn failed(what: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::denied(format!("the program could not be given {what}"))
        .hint("see the log for what the kernel said")
        .because(error)
}
