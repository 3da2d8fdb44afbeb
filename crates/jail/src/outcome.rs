//! The result of a program.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a run ended. In every case, no process of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal: its own, or that of a limit of the kernel (`SIGXFSZ`).
    Killed(i32),
    /// The wall-clock deadline passed.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// It wrote more than `output_bytes`; what came before is in the outcome.
    OutputTooLarge,
    /// All its processes together held more than `memory_bytes`.
    TooMuchMemory,
    /// It had more than `processes` processes and threads.
    TooManyProcesses,
    /// All its processes together used more than `cpu`.
    TooMuchCpu,
    /// What it may write to grew by more than `disk_bytes`, or the disk was nearly full.
    TooMuchDisk,
    /// It made more than `files` files and directories.
    TooManyFiles,
}

/// What a run used, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// From the start of the program to the death of its last process.
    pub wall: Duration,
    /// Processor time in the program.
    pub cpu_user: Duration,
    /// Processor time in the kernel.
    pub cpu_system: Duration,
    /// Memory of the largest process at its largest.
    pub max_rss_bytes: u64,
}

/// How a run ended, and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote to standard output, never more than `output_bytes`.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, with standard output never more than `output_bytes`.
    pub stderr: Vec<u8>,
    /// What it used.
    pub usage: Usage,
}

/// Which parts of the jail this machine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strength {
    /// Version of Landlock's interface; 3 is the least that is accepted.
    pub landlock_abi: i32,
    /// Whether TCP ports can be granted. If not, every grant of the network is refused.
    pub tcp_ports: bool,
    /// Whether the kernel confines signals. If not, programs of an ordinary user cannot send any.
    pub signals: bool,
    /// Whether programs run as a separate user, which is the case if this process is root.
    pub own_user: bool,
}
