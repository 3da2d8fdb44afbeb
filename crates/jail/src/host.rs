//! The side that asks.

use crate::wire::{self, CONFINE, Order, Report, SUPERVISE};
use crate::{Exit, Launcher, Net, Outcome, Spec, Strength, Usage, confine, files, supervise};
use kenning_core::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at whether the caller took it back.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the end of a tree may take after its deadline before the supervisor is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first line of `main` in every binary that is a [`Launcher`]. If this process was started to hold
/// or to become a program of the jail it does that and does not return.
#[expect(clippy::exit, reason = "`main` of this process is here")]
pub fn enter_if_asked() {
    let args: Vec<_> = std::env::args_os().skip(1).take(3).collect();
    if args == SUPERVISE {
        std::process::exit(supervise::main());
    }
    if args == CONFINE {
        std::process::exit(confine::main());
    }
}

/// The same as if the kernel offered no newer Landlock than this. For tests of older kernels.
#[doc(hidden)]
pub fn enter_if_asked_with(newest_landlock_abi: i32) {
    files::pretend(newest_landlock_abi);
    enter_if_asked();
}

/// What this machine's jail is made of, or why there is none. [`run`] and [`spawn`] ask it themselves,
/// and find out the rest when the jail is made.
pub fn check() -> Result<Strength> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(
            Error::denied("the jail has no list of system calls for this processor")
                .hint("use a WASM tool"),
        );
    }
    files::strength()
}

/// Runs a program to its end and gives back what it wrote. When this returns, no process of it is left.
/// Setting `cancelled` ends it within moments.
pub fn run(launcher: &Launcher, spec: &Spec, cancelled: &Arc<AtomicBool>) -> Result<Outcome> {
    let input = if spec.stdin.is_empty() {
        Input::Nothing
    } else {
        Input::Pipe
    };
    let mut held = Held::start(launcher, spec, input)?;
    let mut stdin = held.stdin.take();
    let mut unwritten = spec.stdin.as_slice();
    let mut outputs = [
        Output::new(held.stdout.take())?,
        Output::new(held.stderr.take())?,
    ];
    if let Some(pipe) = &stdin {
        unblock(pipe)?;
    }
    let latest = Instant::now().checked_add(spec.limits.wall.saturating_add(PATIENCE));
    let mut ours: Option<Exit> = None;
    let mut ended: Option<(Exit, Usage)> = None;
    while ended.is_none() || outputs.iter().any(|it| it.pipe.is_some()) {
        let ready = ready(&held.control, ended.is_none(), stdin.as_ref(), &outputs)?;
        if ready.control {
            ended = held.next_report()?;
        }
        if ready.stdin && !feed(stdin.as_mut(), &mut unwritten) {
            stdin = None;
        }
        for output in &mut outputs {
            output.read(spec.limits.output_bytes)?;
        }
        let n_read: u64 = outputs.iter().map(|it| it.bytes.len() as u64).sum();
        if ours.is_none() && n_read > spec.limits.output_bytes {
            ours = Some(Exit::OutputTooLarge);
            held.let_go();
        }
        if ours.is_none() && ended.is_none() && cancelled.load(Ordering::Relaxed) {
            ours = Some(Exit::Cancelled);
            held.let_go();
        }
        if latest.is_some_and(|it| Instant::now() > it) {
            return Err(Error::internal("the jail did not end its program in time"));
        }
    }
    let Some((exit, usage)) = ended else {
        return Err(Error::internal("the jail did not report a result"));
    };
    let exit = match ours {
        Some(Exit::OutputTooLarge) => Exit::OutputTooLarge,
        _ => exit,
    };
    let [stdout, mut stderr] = outputs.map(|it| it.bytes);
    let mut stdout = stdout;
    let most = usize::try_from(spec.limits.output_bytes).unwrap_or(usize::MAX);
    stdout.truncate(most);
    stderr.truncate(most - stdout.len());
    Ok(Outcome {
        exit,
        stdout,
        stderr,
        usage,
    })
}

/// Starts a program that is talked to over its standard input and output. Limits hold as for [`run`],
/// but for `output_bytes`: whoever reads decides when it is too much.
pub fn spawn(launcher: &Launcher, spec: &Spec) -> Result<Peer> {
    let mut held = Held::start(launcher, spec, Input::Pipe)?;
    if let Some((exit, _)) = held.next_report()? {
        let why = format!("the program ended at once: {exit:?}");
        return Err(Error::unavailable(why).hint("run it by hand and see what it says"));
    }
    Ok(Peer {
        stdin: held.stdin.take(),
        stdout: held.stdout.take(),
        stderr: held.stderr.take(),
        held,
    })
}

/// A program that is talked to. Dropping it ends the program and everything that the program started.
#[derive(Debug)]
pub struct Peer {
    /// To write to; dropping it ends the program's input.
    pub stdin: Option<PipeWriter>,
    /// To read from.
    pub stdout: Option<PipeReader>,
    /// To read from, or else a program that says much there comes to a halt.
    pub stderr: Option<PipeReader>,
    held: Held,
}

impl Peer {
    /// Begins to end the program, from any thread.
    pub fn kill(&self) {
        self.held.let_go();
    }

    /// Waits for the program to end by itself or by a limit. When this returns, no process of it is left.
    pub fn wait(mut self) -> Result<(Exit, Usage)> {
        self.stdin = None;
        loop {
            if let Some(ended) = self.held.next_report()? {
                return Ok(ended);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Nothing,
    Pipe,
}

/// A supervisor, and our ends of everything. Dropping it ends the tree.
#[derive(Debug)]
struct Held {
    supervisor: Child,
    control: UnixStream,
    stdin: Option<PipeWriter>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

impl Held {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the jail that processes are started in"
    )]
    fn start(launcher: &Launcher, spec: &Spec, input: Input) -> Result<Self> {
        spec.validate()?;
        let strength = check()?;
        if spec.net != Net::None && !strength.tcp_ports {
            return Err(Error::denied(
                "this kernel cannot hold a program to the TCP ports that it was granted",
            )
            .hint("use Linux 6.7 or newer, or run the program without a network"));
        }
        let (control, theirs) = UnixStream::pair().map_err(not_started)?;
        let (stdout, to_stdout) = io::pipe().map_err(not_started)?;
        let (stderr, to_stderr) = io::pipe().map_err(not_started)?;
        let (from_stdin, stdin) = input.open()?;
        // The command keeps the other ends open for as long as it lives.
        let supervisor = Command::new(&launcher.program)
            .args(SUPERVISE)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(to_stdout)
            .stderr(to_stderr)
            .spawn()
            .map_err(not_started)?;
        let mut held = Self {
            supervisor,
            control,
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
        };
        wire::send_order(&mut held.control, &Order::from(spec), from_stdin.as_fd())?;
        Ok(held)
    }

    /// The next report, which says that the program has started (none) or how it ended.
    fn next_report(&mut self) -> Result<Option<(Exit, Usage)>> {
        match wire::receive_report(&mut self.control)? {
            Some(Report::Confined) => Ok(None),
            Some(Report::Ended { exit, usage }) => Ok(Some((exit, usage))),
            Some(Report::Refused(refusal)) => Err(refusal.into()),
            None => Err(Error::internal("the jail's supervisor process has ended")),
        }
    }

    /// The supervisor sees the end of the socket and ends the tree.
    fn let_go(&self) {
        // If it has ended already there is nothing to tell.
        let _ = self.control.shutdown(Shutdown::Write);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
        // A supervisor that does not get its answer out would wait for us while we wait for it.
        (self.stdin, self.stdout, self.stderr) = (None, None, None);
        let patience = self.control.set_read_timeout(Some(PATIENCE));
        let ended = patience.is_ok() && drain(&mut self.control);
        if !ended {
            // Then the program dies with its supervisor.
            let _ = self.supervisor.kill();
        }
        let _ = self.supervisor.wait();
    }
}

/// Reads to the end, which comes when the supervisor does.
fn drain(control: &mut UnixStream) -> bool {
    io::copy(control, &mut io::sink()).is_ok()
}

impl Input {
    fn open(self) -> Result<(OwnedFd, Option<PipeWriter>)> {
        match self {
            Self::Pipe => {
                let (theirs, ours) = io::pipe().map_err(not_started)?;
                Ok((theirs.into(), Some(ours)))
            }
            Self::Nothing => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let null = rustix::fs::open("/dev/null", flags, Mode::empty());
                Ok((null.map_err(|it| not_started(it.into()))?, None))
            }
        }
    }
}

/// One of the two streams, and what came of it so far.
struct Output {
    pipe: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl Output {
    fn new(pipe: Option<PipeReader>) -> Result<Self> {
        if let Some(pipe) = &pipe {
            unblock(pipe)?;
        }
        let bytes = Vec::new();
        Ok(Self { pipe, bytes })
    }

    /// Takes what is there. Beyond the limit it is thrown away, so that a flood fills no memory.
    fn read(&mut self, most: u64) -> Result<()> {
        let mut chunk = [0; 1 << 14];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(n) if self.bytes.len() as u64 > most => {
                    // One chunk at a look, or a flood would keep us here.
                    let _ = n;
                    return Ok(());
                }
                Ok(n) => self
                    .bytes
                    .extend_from_slice(chunk.get(..n).unwrap_or_default()),
                Err(it) if it.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(it) if it.kind() == io::ErrorKind::Interrupted => {}
                Err(it) => {
                    return Err(
                        Error::internal("the program's output could not be read").because(it)
                    );
                }
            }
        }
        Ok(())
    }
}

/// Who has something for us.
struct Ready {
    control: bool,
    stdin: bool,
}

fn ready(
    control: &UnixStream,
    listening: bool,
    stdin: Option<&PipeWriter>,
    outputs: &[Output; 2],
) -> Result<Ready> {
    let mut polled = Vec::with_capacity(4);
    let mut control_at = None;
    let mut stdin_at = None;
    if listening {
        control_at = Some(polled.len());
        polled.push(PollFd::new(control, PollFlags::IN));
    }
    if let Some(stdin) = stdin {
        stdin_at = Some(polled.len());
        polled.push(PollFd::new(stdin, PollFlags::OUT));
    }
    for pipe in outputs.iter().filter_map(|it| it.pipe.as_ref()) {
        polled.push(PollFd::new(pipe, PollFlags::IN));
    }
    let most = Timespec::try_from(LOOK_EVERY).ok();
    match rustix::event::poll(&mut polled, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(it) => return Err(Error::internal("waiting for the program failed").because(it)),
    }
    let spoke = |at: Option<usize>| {
        at.and_then(|it| polled.get(it))
            .is_some_and(|it| !it.revents().is_empty())
    };
    Ok(Ready {
        control: spoke(control_at),
        stdin: spoke(stdin_at),
    })
}

/// Writes what the pipe takes. Says whether more is to come; a program that reads no further is no fault.
fn feed(stdin: Option<&mut PipeWriter>, unwritten: &mut &[u8]) -> bool {
    let Some(stdin) = stdin else { return false };
    match stdin.write(unwritten) {
        Ok(n) => *unwritten = unwritten.get(n..).unwrap_or_default(),
        Err(it) if it.kind() == io::ErrorKind::WouldBlock => {}
        Err(it) if it.kind() == io::ErrorKind::Interrupted => {}
        Err(_) => return false,
    }
    !unwritten.is_empty()
}

fn unblock(pipe: impl std::os::fd::AsFd) -> Result<()> {
    let set = rustix::fs::fcntl_getfl(&pipe)
        .and_then(|flags| rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK));
    set.map_err(|it| not_started(it.into()))
}

fn not_started(error: io::Error) -> Error {
    Error::unavailable("the program's supervisor could not be started")
        .hint("try again; the machine may be short of processes, memory or descriptors")
        .because(error)
}
