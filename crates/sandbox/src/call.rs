//! The request to a tool and its result: limits, capabilities, the outcome and every way to
//! fail.
//!
//! The texts of [`Failure`] are a contract: people look them up in the developer's guide. None contains
//! a backtrace or a path of this machine; details for developers are in [`Outcome::detail`].

use crate::digest::Digest;
use crate::hosts::Host;
use crate::manifest::{FsKind, Security, TOOL_MEMORY_MB_MAX};
use kenning_core::{Code, Error};
use kenning_vault::Dir;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Limits of one call. The first three come from the manifest; the others protect the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory: all linear memories and tables of the call, and what the host keeps for it.
    pub max_memory_mb: u32,
    /// Wall time, from the first instruction on.
    pub max_execution_ms: u64,
    /// The number of instructions.
    pub max_fuel: u64,
    /// Size of the input.
    pub input_bytes_max: usize,
    /// Size of the result, and of all data that the tool passes to the host in one call.
    pub output_bytes_max: usize,
    /// Size of all logged lines together; further lines are dropped and counted.
    pub log_bytes_max: usize,
    /// How much of the end of standard output, and of standard error, is kept.
    pub stdio_bytes_max: usize,
    /// Number of HTTP requests.
    pub http_requests_max: u32,
    /// Size of the body of one request.
    pub http_request_bytes_max: usize,
    /// Size of the body of one response.
    pub http_response_bytes_max: usize,
    /// Size of the headers of one request in memory.
    pub http_header_bytes_max: usize,
    /// Number of resources that the tool holds at once: files, streams, requests.
    pub handles_max: usize,
    /// Number of random bytes in one request.
    pub random_bytes_max: u64,
    /// Number of core instances.
    pub instances_max: usize,
    /// Number of memories.
    pub memories_max: usize,
    /// Number of tables.
    pub tables_max: usize,
    /// Number of elements of one table.
    pub table_elements_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let security = Security::default();
        Self {
            max_memory_mb: security.max_memory_mb,
            max_execution_ms: security.max_execution_ms,
            max_fuel: security.max_fuel,
            input_bytes_max: 4 * MIB,
            output_bytes_max: 4 * MIB,
            log_bytes_max: 64 * 1024,
            stdio_bytes_max: 64 * 1024,
            http_requests_max: 32,
            http_request_bytes_max: 4 * MIB,
            http_response_bytes_max: 8 * MIB,
            http_header_bytes_max: 64 * 1024,
            handles_max: 1_000,
            random_bytes_max: MIB as u64,
            instances_max: 256,
            memories_max: 8,
            tables_max: 64,
            table_elements_max: 100_000,
        }
    }
}

impl From<&Security> for Limits {
    fn from(security: &Security) -> Self {
        Self {
            max_memory_mb: security.max_memory_mb,
            max_execution_ms: security.max_execution_ms,
            max_fuel: security.max_fuel,
            ..Self::default()
        }
    }
}

const MIB: usize = 1024 * 1024;

/// What a tool may reach beyond its own memory. By default, nothing.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Hosts that it may send HTTP requests to.
    pub net: Vec<Host>,
    /// A directory.
    pub fs: FsAccess,
    /// Environment variables with their values.
    pub env: Vec<(String, String)>,
}

/// How much a tool may keep in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Size of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            bytes: 64 * MIB as u64,
            files: 1_000,
        }
    }
}

impl Capabilities {
    /// What was granted: the tool's directory is opened only if it may see it, and variables that
    /// are not set are left out.
    pub fn new(
        granted: &Security,
        dir: impl FnOnce() -> kenning_core::Result<Dir>,
        quota: Quota,
        variable: impl Fn(&str) -> Option<String>,
    ) -> kenning_core::Result<Self> {
        let fs = match granted.fs_access {
            FsKind::None => FsAccess::None,
            FsKind::ReadOnly => FsAccess::ReadOnly(dir()?),
            FsKind::Sandbox => FsAccess::Sandbox { dir: dir()?, quota },
        };
        let env = granted.env_allow_list.iter();
        Ok(Self {
            net: granted.net_allow_list.clone(),
            fs,
            env: env
                .filter_map(|name| Some((name.clone(), variable(name)?)))
                .collect(),
        })
    }
}

/// A directory that a tool sees as `/`.
#[derive(Clone, Default)]
pub enum FsAccess {
    /// No directory.
    #[default]
    None,
    /// Read only.
    ReadOnly(Dir),
    /// Read and write, up to a quota over all of its calls.
    Sandbox {
        /// The tool's own directory, not the one that holds its component.
        dir: Dir,
        /// Its quota.
        quota: Quota,
    },
}

impl fmt::Debug for FsAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::ReadOnly(_) => "ReadOnly",
            Self::Sandbox { .. } => "Sandbox",
        })
    }
}

/// One call.
pub struct RunCall<'a> {
    /// The tool's name: all calls with the same name share one limit of concurrent calls and memory.
    pub tool: &'a str,
    /// Which function: `None` is `run`. Generic components have others, see
    /// [`Described`](crate::Described).
    pub function: Option<&'a str>,
    /// A JSON text.
    pub input: &'a str,
    /// What the call may use.
    pub limits: Limits,
    /// What the tool may reach.
    pub capabilities: &'a Capabilities,
    /// Set by the caller to cancel the call.
    pub cancelled: Arc<AtomicBool>,
    /// When the caller stops waiting for the compiler, for its turn or for the tool.
    pub deadline: Instant,
    /// Called for each line that the tool logs, while it runs.
    pub log: Option<Arc<dyn Fn(LogLine) + Send + Sync>>,
}

impl RunCall<'_> {
    /// The same for a program, whose result is what it prints: all of it is kept, and one byte more to notice
    /// when it is too much.
    pub(crate) fn as_command(&self) -> Self {
        let stdio_bytes_max = self.limits.output_bytes_max.saturating_add(1);
        Self {
            limits: Limits {
                stdio_bytes_max,
                ..self.limits
            },
            cancelled: Arc::clone(&self.cancelled),
            log: self.log.clone(),
            ..*self
        }
    }
}

/// The level of a logged line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Every detail.
    Trace,
    /// For the tool's developer.
    Debug,
    /// Normal operation.
    Info,
    /// Something unexpected.
    Warn,
    /// A failure.
    Error,
}

/// A line that a tool logged, or that the host logged about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Its level.
    pub level: LogLevel,
    /// What it says, without control characters.
    pub message: String,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct Outcome {
    /// The tool's result, or why there is none.
    pub result: Result<String, Failure>,
    /// For a developer who asks: the whole chain of causes with the backtrace.
    pub detail: Option<String>,
    /// The resources it used.
    pub usage: Usage,
    /// The end of what the tool printed.
    pub stdout: String,
    /// The end of what the tool printed to standard error.
    pub stderr: String,
    /// The code that was compiled for this call, to be recorded instead of the known one.
    pub prepared: Option<Digest>,
}

/// The resources a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of instructions.
    pub fuel: u64,
    /// From the first instruction to the answer.
    pub wall: Duration,
    /// Its peak memory, including what the host kept for it.
    pub memory_peak_bytes: u64,
    /// Requests that it made, refused ones included.
    pub http_requests: u64,
    /// Bytes of bodies that it sent.
    pub http_bytes_sent: u64,
    /// Bytes of bodies that it received.
    pub http_bytes_received: u64,
    /// Bytes that it wrote to files.
    pub bytes_written: u64,
    /// Lines that it logged and that were dropped.
    pub log_lines_dropped: u64,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The tool's own `Err`.
    Returned(String),
    /// It ran too long.
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
    /// It took too many instructions.
    FuelExhausted {
        /// The instructions it used.
        used: u64,
        /// The limit.
        limit: u64,
        /// A limit that might be enough.
        suggested: u64,
    },
    /// It wanted too much memory.
    MemoryGrow {
        /// The limit.
        limit_mb: u32,
    },
    /// It aborted, as Rust does when it panics.
    Panicked {
        /// What it printed last.
        message: String,
    },
    /// It exited instead of returning a result.
    Exited {
        /// With this code.
        code: i32,
    },
    /// It has no such function.
    ExportNotFound(String),
    /// It trapped: an invalid operation, such as a division by zero.
    Trap(String),
    /// It went over one of the host's own limits.
    LimitReached(String),
    /// It failed after its directory was full.
    QuotaExceeded {
        /// What it printed last.
        message: String,
    },
    /// The input is over the limit.
    InputTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The answer is over the limit.
    OutputTooLarge {
        /// The limit.
        max: usize,
    },
    /// The input does not fit the function's types.
    BadInput(String),
    /// The component's bytes are not those that were installed.
    IntegrityViolation(String),
    /// The caller cancelled the call.
    Cancelled,
    /// Too many calls run, and none ended before the caller's deadline.
    Busy,
    /// Other calls use the memory that it needs.
    MemoryTaken,
    /// The component cannot be run at all.
    Unusable {
        /// The code of the cause.
        code: Code,
        /// Why it cannot be run.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A bug of the host.
    Internal(String),
}

impl Failure {
    /// Its error code.
    pub fn code(&self) -> Code {
        match self {
            Self::TimedOut { .. } | Self::Cancelled => Code::Timeout,
            Self::FuelExhausted { .. }
            | Self::MemoryGrow { .. }
            | Self::LimitReached(_)
            | Self::QuotaExceeded { .. }
            | Self::Busy
            | Self::MemoryTaken => Code::Limited,
            Self::InputTooLarge { .. } | Self::OutputTooLarge { .. } => Code::TooLarge,
            Self::ExportNotFound(_) => Code::NotFound,
            Self::IntegrityViolation(_) => Code::Corrupt,
            Self::Unusable { code, .. } => *code,
            Self::Internal(_) => Code::Internal,
            Self::Returned(_)
            | Self::Panicked { .. }
            | Self::Exited { .. }
            | Self::Trap(_)
            | Self::BadInput(_) => Code::InvalidInput,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned(message) => f.write_str(message),
            Self::TimedOut { limit_ms } => write!(f, "execution timed out after {limit_ms} ms"),
            Self::FuelExhausted { used, limit, .. } => {
                write!(f, "fuel exhausted: used {used} of {limit}")
            }
            Self::MemoryGrow { limit_mb } if *limit_mb >= TOOL_MEMORY_MB_MAX => write!(
                f,
                "memory grow failure: the tool wanted more than {limit_mb} MB, which is the most that a tool can have"
            ),
            Self::MemoryGrow { limit_mb } => write!(
                f,
                "memory grow failure: the tool wanted more than {limit_mb} MB"
            ),
            Self::Panicked { message } if message.is_empty() => f.write_str("tool panicked"),
            Self::Panicked { message } => write!(f, "tool panicked: {message}"),
            Self::Exited { code } => {
                write!(
                    f,
                    "the tool exited with code {code} without a result"
                )
            }
            Self::ExportNotFound(name) => write!(f, "export not found: {name}"),
            Self::Trap(reason) => write!(f, "the tool was stopped: {reason}"),
            Self::LimitReached(what) => write!(f, "limit reached: {what}"),
            Self::QuotaExceeded { message } if message.is_empty() => {
                f.write_str("quota exceeded: the tool's directory is full")
            }
            Self::QuotaExceeded { message } => {
                write!(f, "quota exceeded: the tool's directory is full: {message}")
            }
            Self::InputTooLarge { bytes, max } => {
                write!(f, "the input has {bytes} bytes; at most {max} are accepted")
            }
            Self::OutputTooLarge { max } => {
                write!(f, "the tool's result is larger than {max} bytes")
            }
            Self::BadInput(why) => write!(f, "the input does not match the function's types: {why}"),
            Self::IntegrityViolation(what) => write!(f, "integrity violation: {what}"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Busy => f.write_str(
                "limited: too many calls of WASM tools are running; try again in a few seconds",
            ),
            Self::MemoryTaken => f.write_str(
                "limited: the WASM tools that are running have taken the memory that they share; try again in a few seconds",
            ),
            Self::Unusable { message, hint, .. } => match hint {
                Some(hint) => write!(f, "{message} ({hint})"),
                None => f.write_str(message),
            },
            Self::Internal(what) => write!(f, "internal error: {what}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unusable {
                code,
                message,
                hint,
            } => Error {
                hint,
                ..Error::new(code, message)
            },
            other => Error::new(other.code(), other.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Unusable {
            code: error.code,
            message: error.message,
            hint: error.hint,
        }
    }
}
