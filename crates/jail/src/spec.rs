//! The specification of a run.

use kenning_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The binary that is started as supervisor and calls [`enter_if_asked`](crate::enter_if_asked).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Its path.
    pub program: PathBuf,
}

impl Launcher {
    /// The running binary itself, even if its file was replaced meanwhile.
    pub fn own() -> Self {
        Self {
            program: "/proc/self/exe".into(),
        }
    }
}

/// Which network a program has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Net {
    /// None, not even loopback or a local socket.
    #[default]
    None,
    /// Outgoing TCP to these ports, of any address: the kernel cannot tell addresses apart. There is no
    /// UDP, so names are resolved only with `RES_OPTIONS=use-vc` in the environment and port 53 here.
    Tcp(Vec<u16>),
}

/// How much of the machine a program may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time.
    pub wall: Duration,
    /// Processor time of all its processes together.
    pub cpu: Duration,
    /// Memory that each process may reserve for writing, by the kernel (a thread's stack counts with all
    /// of its size), and what all together really have, as seen forty times a second.
    pub memory_bytes: u64,
    /// Size of one file that it writes, by the kernel.
    pub file_bytes: u64,
    /// By how much the directories that it may write to may grow, as measured by the supervisor: for a
    /// moment it can be more.
    pub disk_bytes: u64,
    /// Files and directories that it may create, measured in the same way.
    pub files: u64,
    /// Open descriptors of each process.
    pub open_files: u64,
    /// Processes and threads, itself included.
    pub processes: u64,
    /// Standard output and standard error together.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(30),
            memory_bytes: 512 << 20,
            file_bytes: 64 << 20,
            disk_bytes: 1 << 30,
            files: 100_000,
            open_files: 256,
            processes: 64,
            output_bytes: 1 << 20,
        }
    }
}

/// A program, and everything that it may have.
///
/// Paths are absolute and are opened by the kernel when the jail is made, links followed: the caller
/// decides what they are. Where this process is root, the program runs as a separate user without
/// privileges, so everything that it reads must be readable by all users; `scratch` and `made` alone
/// are given to that user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The file that is executed; must be beneath `exec`.
    pub program: PathBuf,
    /// Arguments after the program's name, each exactly as it stands here.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Where it starts. Gives no rights: name it in `read`, `write` or `scratch` too.
    pub cwd: PathBuf,
    /// Files and directories that it may read, with everything beneath.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read and change, with everything beneath.
    pub write: Vec<PathBuf>,
    /// Files and directories that it may read and execute, with everything beneath.
    pub exec: Vec<PathBuf>,
    /// A directory that the caller made for this run and removes afterwards. It may be changed like
    /// those of `write`; as root it is given to the program's user.
    pub scratch: Option<PathBuf>,
    /// Beneath this directory no link is followed on the way to what is granted: others may write there,
    /// and put a link where a file was.
    pub without_links: Option<PathBuf>,
    /// Directories of `write` that the caller has just made, empty. As root they are given to the
    /// program's user, who could not write there otherwise.
    pub made: Vec<PathBuf>,
    /// Where this process is root: a number from which the program's user follows, so that runs with
    /// the same number can change what earlier ones wrote. Without it each run has another user.
    pub user_number: Option<u32>,
    /// Its network.
    pub net: Net,
    /// Its limits.
    pub limits: Limits,
    /// What it reads from standard input, which then ends. [`spawn`](crate::spawn) ignores it.
    pub stdin: Vec<u8>,
}

impl Spec {
    /// A program without arguments, environment, files or network, in the root directory.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: "/".into(),
            read: Vec::new(),
            write: Vec::new(),
            exec: Vec::new(),
            scratch: None,
            without_links: None,
            made: Vec::new(),
            user_number: None,
            net: Net::None,
            limits: Limits::default(),
            stdin: Vec::new(),
        }
    }

    /// Checks that do not depend on the machine.
    pub(crate) fn validate(&self) -> Result<()> {
        let paths = [("program", &self.program), ("cwd", &self.cwd)]
            .into_iter()
            .chain(self.read.iter().map(|it| ("read", it)))
            .chain(self.write.iter().map(|it| ("write", it)))
            .chain(self.exec.iter().map(|it| ("exec", it)))
            .chain(self.scratch.iter().map(|it| ("scratch", it)))
            .chain(self.made.iter().map(|it| ("made", it)))
            .chain(self.without_links.iter().map(|it| ("without_links", it)));
        for (field, path) in paths {
            if !path.is_absolute() {
                return Err(
                    Error::invalid(format!("`{field}`: `{}` is relative", path.display()))
                        .hint("give the whole path"),
                );
            }
            no_nul(field, path.as_os_str())?;
        }
        for arg in &self.args {
            no_nul("args", arg)?;
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains('=') {
                return Err(Error::invalid(format!(
                    "`env`: `{name}` is not the name of a variable"
                ))
                .hint("a name is not empty and has no `=`"));
            }
            no_nul("env", OsStr::new(name))?;
            no_nul(name, OsStr::new(value))?;
        }
        self.limits.validate()
    }
}

impl Limits {
    fn validate(&self) -> Result<()> {
        let durations = [("wall", self.wall), ("cpu", self.cpu)];
        let numbers = [
            ("memory_bytes", self.memory_bytes),
            ("file_bytes", self.file_bytes),
            ("open_files", self.open_files),
            ("processes", self.processes),
            ("output_bytes", self.output_bytes),
        ];
        let zero_time = durations.iter().find(|it| it.1.is_zero()).map(|it| it.0);
        // A program that may write no file is one with `file_bytes` 0.
        let zero = numbers
            .iter()
            .find(|limit| limit.1 == 0 && limit.0 != "file_bytes")
            .map(|it| it.0);
        match zero_time.or(zero) {
            None => Ok(()),
            Some(field) => {
                Err(Error::invalid(format!("`{field}`: `0` lets nothing run"))
                    .hint("give at least 1"))
            }
        }
    }
}

/// The kernel ends a text at a NUL, so the rest would be lost silently.
fn no_nul(field: &str, text: &OsStr) -> Result<()> {
    if !text.as_encoded_bytes().contains(&0) {
        return Ok(());
    }
    Err(
        Error::invalid(format!("`{field}` has the character U+0000"))
            .hint("no argument, path or variable of a program can hold it"),
    )
}

/// The last part of a path, because messages hold no absolute paths.
#[cfg(target_os = "linux")]
pub(crate) fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
