//! One running program and its disk.

use crate::calls::{Call, Watched, understand};
use crate::fault::{Fault, Happened, Kind, Leaves};
use crate::kernel::{self, Answer, Asked, Listener};
use crate::step::Step;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many failed calls of a fault are listed.
const FAILED_MAX: usize = 64;

/// The disk of a running program: the faults to inject, and what was done.
#[derive(Clone)]
pub struct Disk(Arc<Shared>);

struct Shared {
    root: PathBuf,
    /// The pipe that the program's standard output is, under whichever number it writes to it.
    output: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: bool,
    steps: Vec<Step>,
    leaves: Leaves,
    fault: Option<Fault>,
    happened: Happened,
}

/// How a disk is from the first call on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Everything is written down.
    pub records: bool,
    /// Syncs that do not happen.
    pub leaves: Leaves,
    /// Something goes wrong at once.
    pub fault: Option<Fault>,
}

/// Starts a program whose files beneath `root` are watched.
pub fn start(command: &mut Command, root: &Path, settings: Settings) -> io::Result<(Child, Disk)> {
    let root = std::fs::canonicalize(root)?;
    let (child, listener) = kernel::start(command)?;
    let output = child.stdout.as_ref().map(|stdout| {
        let here = format!("/proc/self/fd/{}", stdout.as_raw_fd());
        std::fs::read_link(here)
    });
    let disk = Disk(Arc::new(Shared {
        root,
        output: output.transpose()?,
        state: Mutex::new(State {
            records: settings.records,
            leaves: settings.leaves,
            fault: settings.fault,
            ..State::default()
        }),
    }));
    let watching = disk.clone();
    std::thread::Builder::new()
        .name("disk".to_owned())
        .spawn(move || watching.watch(&listener))?;
    Ok((child, disk))
}

impl Disk {
    /// Injects a fault from now on, replacing the previous one.
    pub fn set(&self, fault: Fault) {
        let mut state = self.state();
        state.fault = Some(fault);
        state.happened = Happened::default();
    }

    /// Stops injecting faults. Returns what failed.
    pub fn clear(&self) -> Happened {
        let mut state = self.state();
        state.fault = None;
        std::mem::take(&mut state.happened)
    }

    /// What has gone wrong so far.
    pub fn happened(&self) -> Happened {
        self.state().happened.clone()
    }

    /// How much has been done so far.
    pub fn n_steps(&self) -> usize {
        self.state().steps.len()
    }

    /// Everything that was done, in order.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.state().steps)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers until the program has ended. After an error here every further call fails, which no
    /// test can miss.
    fn watch(&self, listener: &Listener) {
        while let Ok(Some(asked)) = listener.next() {
            let answer = self.decide(&asked);
            if listener.answer(&asked, answer).is_err() {
                return;
            }
        }
    }

    fn decide(&self, asked: &Asked) -> Answer {
        let files = Watched {
            root: &self.0.root,
            output: self.0.output.as_deref(),
        };
        let Some(call) = understand(asked, &files) else {
            return Answer::Go;
        };
        let mut state = self.state();
        if let Some(errno) = self.fails(&mut state, &call) {
            return Answer::Fail(errno);
        }
        if let Call::Sync(path) = &call
            && let Some(inside) = self.inside(path)
            && state.leaves.out(&inside, path.is_dir())
        {
            return Answer::Pretend;
        }
        if state.records {
            let steps = self.steps(call);
            state.steps.extend(steps);
        }
        Answer::Go
    }

    /// The error that a call gets instead of being done.
    fn fails(&self, state: &mut State, call: &Call) -> Option<i32> {
        let fault = state.fault?;
        let (name, path, kind) = match call {
            Call::Read(path) => ("read", path, Kind::Read),
            Call::Write { path, .. } => ("write", path, Kind::Write),
            Call::Resize { path, .. } => ("resize", path, Kind::Write),
            Call::Sync(path) => ("sync", path, Kind::Sync),
            Call::Open { path, creates, .. } if *creates && !path.exists() => {
                ("create", path, Kind::NeedsRoom)
            }
            Call::MakeDir(path) if !path.exists() => ("mkdir", path, Kind::NeedsRoom),
            Call::Rename(_, path) => ("rename", path, Kind::NeedsRoom),
            Call::Link(_, path) => ("link", path, Kind::NeedsRoom),
            _ => return None,
        };
        let inside = self.inside(path)?;
        let counts = match fault.kind {
            Kind::NeedsRoom => matches!(kind, Kind::NeedsRoom | Kind::Write),
            other => kind == other,
        };
        if !counts {
            return None;
        }
        state.happened.n_calls += 1;
        let n = state.happened.n_calls;
        if n == fault.at || fault.stays && n > fault.at {
            if state.happened.failed.len() < FAILED_MAX {
                state.happened.failed.push(format!("{name} {inside}"));
            }
            return Some(fault.errno);
        }
        None
    }

    /// A path beneath what is watched; `""` is that itself.
    fn inside(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.0.root).ok()?.to_str()?.to_owned())
    }

    fn steps(&self, call: Call) -> Vec<Step> {
        let inside = |path: &Path| self.inside(path);
        let one = |step: Option<Step>| step.into_iter().collect();
        match call {
            Call::Read(_) => Vec::new(),
            Call::Write {
                path,
                offset,
                bytes,
            } => one(inside(&path).map(|path| Step::Write {
                path,
                offset,
                bytes,
            })),
            Call::Resize { path, length } => {
                one(inside(&path).map(|path| Step::Resize { path, length }))
            }
            Call::Sync(path) => one(inside(&path).map(|name| {
                if path.is_dir() {
                    Step::SyncDir(name)
                } else {
                    Step::SyncFile(name)
                }
            })),
            Call::Open {
                path,
                creates,
                truncates,
            } => {
                let exists = path.exists();
                one(inside(&path).and_then(|path| match exists {
                    false if creates => Some(Step::Create(path)),
                    true if truncates => Some(Step::Resize { path, length: 0 }),
                    _ => None,
                }))
            }
            Call::MakeDir(path) if !path.exists() => one(inside(&path).map(Step::MakeDir)),
            Call::MakeDir(_) => Vec::new(),
            Call::Rename(from, to) => match (inside(&from), inside(&to)) {
                (Some(from), Some(to)) => vec![Step::Rename { from, to }],
                _ => Vec::new(),
            },
            Call::Link(from, to) => match (inside(&from), inside(&to)) {
                (Some(from), Some(to)) => vec![Step::Link { from, to }],
                _ => Vec::new(),
            },
            Call::Remove(path) if path.symlink_metadata().is_ok() => {
                one(inside(&path).map(Step::Remove))
            }
            Call::Remove(_) => Vec::new(),
            Call::Said(bytes) => vec![Step::Said(bytes)],
        }
    }
}
