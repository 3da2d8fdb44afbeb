//! The supervisor process, which owns the program and everything that it starts.
//!
//! It adopts orphaned processes, so that none can leave the tree; it measures the tree forty times a
//! second; and it ends the tree when the program has ended, when a limit is passed, or when the host
//! closes the socket or dies. It answers only when no process is left.

use crate::disk::Disk;
use crate::wire::{self, Order, Report};
use crate::{Exit, Usage, files, tree, user};
use kenning_core::{Error, Result};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time between two measurements of the tree.
const LOOK_EVERY: Duration = Duration::from_millis(25);

pub(crate) fn main() -> i32 {
    let Ok(mut host) = wire::upward() else {
        return 2;
    };
    let report = match supervise(&mut host) {
        Ok(report) => report,
        Err(error) => Report::Refused(error.into()),
    };
    // This fails only if the host is gone.
    let _ = wire::send_report(&mut host, &report);
    0
}

fn supervise(host: &mut UnixStream) -> Result<Report> {
    let (mut order, stdin) = wire::receive_order(host)?;
    // Signals that a terminal sends to the host's group must not reach the supervisor.
    rustix::process::setsid().map_err(|it| failed(it.into()))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|it| failed(it.into()))?;
    choose_user(&mut order, &stdin)?;
    let mut tree = Tree {
        signals_inside: signals_stay_inside()?,
        program: None,
        status: None,
    };
    let mut disk = Disk::new(&order);
    let started = tree.start(&order, stdin);
    let exit = started.and_then(|()| {
        let begun = Instant::now();
        wire::send_report(host, &Report::Confined)?;
        let exit = tree.watch(host, &order, begun, &mut disk)?;
        Ok((exit, begun))
    });
    tree.end();
    let (exit, begun) = exit?;
    // A quick program may have ended between two measurements.
    let exit = exit.or_else(|| disk.look());
    Ok(Report::Ended {
        exit: exit
            .or(tree.status.map(by_itself))
            .unwrap_or(Exit::Cancelled),
        usage: usage(begun)?,
    })
}

/// As root, the program gets a separate user, and so its own process count.
fn choose_user(order: &mut Order, stdin: &OwnedFd) -> Result<()> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        order.tasks_of_user = tree::tasks_of(own.as_raw()).saturating_add(order.limits.processes);
        return Ok(());
    }
    let chosen = match order.user_number {
        None => user::choose()?,
        Some(number) => {
            let chosen = user::lasting(number)?;
            // Other runs may use the same user now.
            let theirs = tree::tasks_of(chosen);
            order.tasks_of_user = theirs.saturating_add(order.limits.processes);
            chosen
        }
    };
    order.user = Some(chosen);
    for stream in [stdin.as_fd(), io::stdout().as_fd(), io::stderr().as_fd()] {
        user::give_pipe(stream, chosen)?;
    }
    let mut own = order.scratch.iter().chain(&order.made);
    own.try_for_each(|it| user::give(it, chosen))
}

/// Confines signals, so that a signal to all processes reaches only the tree, and tests it.
fn signals_stay_inside() -> Result<bool> {
    if !files::keep_signals_inside()? {
        return Ok(false);
    }
    let host = rustix::process::getppid();
    let tried = host.map(rustix::process::test_kill_process);
    Ok(tried == Some(Err(rustix::io::Errno::PERM)))
}

struct Tree {
    signals_inside: bool,
    program: Option<(Pid, OwnedFd)>,
    /// How the program itself ended.
    status: Option<WaitStatus>,
}

impl Tree {
    /// Starts the process that becomes the program, and waits until it has.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the jail that processes are started in"
    )]
    fn start(&mut self, order: &Order, stdin: OwnedFd) -> Result<()> {
        let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
        let child = Command::new("/proc/self/exe")
            .args(wire::CONFINE)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(io::Error::other("no such process")))?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        self.program = Some((pid, pidfd.map_err(|it| failed(it.into()))?));
        wire::send_order(&mut ours, order, stdin.as_fd())?;
        drop(stdin);
        let mut confined = false;
        // `exec` closes the other end.
        while let Some(report) = wire::receive_report(&mut ours)? {
            match report {
                Report::Confined => confined = true,
                Report::Refused(refusal) => return Err(refusal.into()),
                Report::Ended { .. } => {}
            }
        }
        if confined {
            return Ok(());
        }
        Err(
            Error::denied("the process of the jail ended before it was confined")
                .hint("see the log; a container or service manager around Kenning may forbid system calls that the jail needs"),
        )
    }

    /// Waits until there is a reason to end: `None` means that the program ended by itself.
    fn watch(
        &mut self,
        host: &UnixStream,
        order: &Order,
        begun: Instant,
        disk: &mut Disk,
    ) -> Result<Option<Exit>> {
        let limits = &order.limits;
        loop {
            let left = limits.wall.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(Some(Exit::TimedOut));
            }
            let (host_spoke, program_ended) = self.wait(host, left.min(LOOK_EVERY))?;
            self.reap();
            if program_ended {
                return Ok(None);
            }
            if host_spoke {
                return Ok(Some(Exit::Cancelled));
            }
            let weight = tree::weigh(std::process::id());
            if weight.tasks > limits.processes {
                return Ok(Some(Exit::TooManyProcesses));
            }
            if weight.bytes > limits.memory_bytes {
                return Ok(Some(Exit::TooMuchMemory));
            }
            let gone = usage(begun)?;
            if weight.cpu + gone.cpu_user + gone.cpu_system > limits.cpu {
                return Ok(Some(Exit::TooMuchCpu));
            }
            if let Some(exit) = disk.look_if_due() {
                return Ok(Some(exit));
            }
        }
    }

    /// Whether the host closed its socket, and whether the program ended.
    fn wait(&self, host: &UnixStream, most: Duration) -> Result<(bool, bool)> {
        let Some((_, pidfd)) = &self.program else {
            return Ok((true, true));
        };
        let mut polled = [
            PollFd::new(host, PollFlags::IN),
            PollFd::new(pidfd, PollFlags::IN),
        ];
        let most = Timespec::try_from(most).ok();
        match rustix::event::poll(&mut polled, most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(it) => return Err(failed(it.into())),
        }
        let [host, program] = polled.map(|it| !it.revents().is_empty());
        Ok((host, program))
    }

    /// Reaps dead processes. Returns whether any process is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.program.as_ref().is_some_and(|it| it.0 == pid) {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends every process. The dead pass their children on to this process, so when it has no child
    /// there is no process left.
    fn end(&mut self) {
        loop {
            if self.signals_inside {
                // All at once, so that none can escape by starting others. Signals are confined: this
                // reaches only the tree.
                let everybody = nix::unistd::Pid::from_raw(-1);
                let _ = nix::sys::signal::kill(everybody, nix::sys::signal::Signal::SIGKILL);
            } else {
                for pid in tree::beneath(std::process::id()) {
                    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                    // One that is gone already needs no signal.
                    let _ = pid.map(|it| rustix::process::kill_process(it, Signal::KILL));
                }
            }
            if !self.reap() {
                return;
            }
            // Dying processes need some processor time.
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn by_itself(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Exited(code),
        (None, signal) => Exit::Killed(signal.unwrap_or_default()),
    }
}

/// The usage of all processes that were started and have ended.
fn usage(begun: Instant) -> Result<Usage> {
    let gone = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|it| failed(it.into()))?;
    let duration = |seconds: i64, micros: i64| {
        Duration::from_secs(seconds.unsigned_abs()) + Duration::from_micros(micros.unsigned_abs())
    };
    let (user, system) = (gone.user_time(), gone.system_time());
    Ok(Usage {
        wall: begun.elapsed(),
        cpu_user: duration(user.tv_sec(), user.tv_usec()),
        cpu_system: duration(system.tv_sec(), system.tv_usec()),
        max_rss_bytes: gone.max_rss().unsigned_abs() * 1024,
    })
}

fn failed(error: io::Error) -> Error {
    Error::unavailable("the program could not be supervised")
        .hint("try again; the machine may be short of processes or memory")
        .because(error)
}
